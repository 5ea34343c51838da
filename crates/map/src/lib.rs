//! The ordered key space, the ranges it is cut into, and the map that says which range is where.
//!
//! Everything Rangehold stores has one key in one ordered space ([`key`]). The space is cut into
//! ranges ([`range`]); the [`RangeMap`] lists them, versioned, without gap or overlap. A range is
//! owned by one server at a time, in one *generation* at a time. Ranges are split, merged and moved
//! ([`Change`]): in the map that is begun, and later done or undone.
//!
//! ```text
//!   key space   |-- catalogue --|------------- entities -------------|-- (objects) --|
//!   ranges      [ r1 .................................. )[ r5 .................... ...
//! ```
//!
//! Users' SQL databases have maps of their own, of keys of their own types: [`shard`].
//!
//! Architecture Invariant: this crate knows no clock, no randomness, no IO and no async. What it
//! needs of time is a [`Timestamp`] that its caller hands in.

pub mod codec;
pub mod history;
mod home;
pub mod key;
pub mod load;
pub mod ordered;
pub mod plan;
pub mod range;
mod range_map;
pub mod script;
pub mod shard;
mod timestamp;

pub use home::{DatabaseName, Home, NotADatabaseName};
pub use key::{Key, PartitionPrefix, TableId};
pub use range::{Generation, KeyRange, NotAnId, RangeId, ServerId};
pub use range_map::{Change, ChangeRefused, Finding, Intent, RangeEntry, RangeMap};
pub use timestamp::Timestamp;
