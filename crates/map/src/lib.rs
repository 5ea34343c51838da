//! The ordered key space, the ranges it is cut into, and what is decided about them.
//!
//! Every row of Rangehold has one key in one ordered space ([`key`]). The space is cut into ranges
//! ([`range`]), and the [`RangeMap`] lists them, without a gap and without an overlap. Each range is owned by
//! one server at a time. Ranges are split, merged and moved ([`Change`]): such a change is begun in the map,
//! and later it is done or undone.
//!
//! ```text
//!   key space   |-- catalogue, buckets --|--------- entities ---------|-- objects --|
//!   ranges      [ r1 .................................. )[ r5 .................... ...
//! ```
//!
//! The modules stand on floors. Each uses only those below it:
//!
//! ```text
//!   script       the language in which maps, changes and plans are written, for tests and people
//!   plan         the planner: which ranges to split, merge and move
//!   load, history    how much load a range has, whether a split helps, and how it was before
//!   RangeMap     which range is where, its changes and its rules   |  shard   users' shard maps
//!   ordered      entries sorted by keys: what both sorts of map are made of
//!   range        intervals of keys, and the ids of ranges and servers
//!   blob         where the bytes of large payloads lie
//!   codec, key   how values become bytes in order, and which sorts of row there are
//! ```
//!
//! Architecture Invariant: this crate knows no clock, no randomness, no IO and no async. Where it needs a
//! time, the caller passes it in.

pub mod blob;
pub mod codec;
mod insight;
pub mod key;
pub mod ordered;
pub mod plan;
pub mod range;
mod range_map;
pub mod script;
pub mod shard;
mod timestamp;

pub use insight::{capacity, history, load, names};
pub use key::{
    BlobId, BucketId, BucketRow, Key, ObjectGeneration, ObjectKey, ObjectRow, PartitionPrefix, TableId,
};
pub use range::{Generation, KeyRange, NotAnId, RangeId, ServerId};
pub use range_map::{
    Change, ChangeRefused, DatabaseName, Finding, Home, Intent, NotADatabaseName, RangeEntry, RangeMap,
};
pub use timestamp::Timestamp;
