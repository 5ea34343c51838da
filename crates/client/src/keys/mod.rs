//! Keys that scale, as pure functions.
//!
//! A table is sorted by PartitionKey and then by RowKey, as text, and cut into ranges between partitions. So two things
//! follow from a key: which entities one query can read together, and whether writes spread or all go to one place.
//!
//! | you want | take |
//! |---|---|
//! | numbers in the order of numbers | [`padded`], [`NumberKeys`] |
//! | the newest first | [`reversed_ticks`], [`NumberKeys::newest_first`] |
//! | keys without any order, for even load | [`random`] |
//! | names that begin alike, spread | [`hash_prefixed`] |
//! | one hot partition, cut into some | [`Buckets`] |
//! | several fields in one key | [`composite`] |
//!
//! A prefix or a bucket spreads writes, and costs reads: a query in the order of the names must ask each prefix or
//! bucket. [`fan_out`](crate::pattern::fan_out) does that, and puts the answers in order again. So take as few digits or
//! buckets as the load needs.

mod composite;
mod number;
mod spread;
mod time;

use std::fmt;

pub use composite::{composite, parts};
pub use number::{NumberKeys, padded};
pub use spread::{Buckets, hash_prefixed, prefixes, random, without_prefix};
pub use time::{reversed_ticks, ticks, time_of_reversed};

/// A value that has no key of the wanted form. The text says which value and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyError(String);

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeyError {}
