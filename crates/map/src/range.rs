//! Intervals of the key space, and the ids of ranges and servers.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::key::{KIND_CATALOGUE, after_prefix};

/// Names a range. It is never reused. A move keeps it; a split and a merge make new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeId(pub u64);

/// Counts the changes of a range: of its owner, and of whether it serves. A read is answered only in the
/// generation in which it began. A change that was made for an older generation is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// Names a partition server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u64);

/// A text that is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not a {what}: write it as {example}")]
pub struct NotAnId {
    /// The text.
    pub text: String,
    /// The wanted kind of id.
    pub what: &'static str,
    /// An example of such an id.
    pub example: &'static str,
}

impl RangeId {
    /// The id after this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Generation {
    /// The generation of a new range.
    pub const FIRST: Self = Self(1);

    /// The generation after this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl FromStr for RangeId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = numbered(text, 'r').map(Self);
        id.ok_or_else(|| NotAnId { text: text.to_owned(), what: "range", example: "r7" })
    }
}

impl FromStr for ServerId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = numbered(text, 's').map(Self);
        id.ok_or_else(|| NotAnId { text: text.to_owned(), what: "server", example: "s3" })
    }
}

/// The number after `letter`, if only digits follow it.
fn numbered(text: &str, letter: char) -> Option<u64> {
    let digits = text.strip_prefix(letter)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for RangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

/// The keys from `low` (inclusive) up to `high` (exclusive). Without a `high`, all keys from `low` on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

impl KeyRange {
    /// The interval `[low, high)`. It is empty if `high` is not above `low`.
    pub fn new(low: Vec<u8>, high: Option<Vec<u8>>) -> Self {
        Self { low, high }
    }

    /// All keys that ranges can hold. The rows that a range keeps about itself lie below.
    pub fn whole() -> Self {
        Self { low: vec![KIND_CATALOGUE], high: None }
    }

    /// All keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Self {
        Self { low: prefix.to_vec(), high: after_prefix(prefix) }
    }

    /// The lower bound, which is the least key inside if the interval is not empty.
    pub fn low(&self) -> &[u8] {
        &self.low
    }

    /// The upper bound, which lies outside; `None` if there is none.
    pub fn high(&self) -> Option<&[u8]> {
        self.high.as_deref()
    }

    /// Whether `key` lies inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.low.as_slice() && self.high.as_deref().is_none_or(|high| key < high)
    }

    /// Whether `key` cuts the interval into two that are not empty: it lies inside and above `low`.
    pub fn is_cut_by(&self, key: &[u8]) -> bool {
        self.contains(key) && key > self.low.as_slice()
    }

    /// Whether no key can lie inside.
    pub fn is_empty(&self) -> bool {
        self.high.as_deref().is_some_and(|high| high <= self.low.as_slice())
    }

    /// The keys that lie in both.
    pub fn intersect(&self, other: &Self) -> Self {
        let low = self.low.clone().max(other.low.clone());
        let high = match (&self.high, &other.high) {
            (Some(a), Some(b)) => Some(a.min(b).clone()),
            (one, None) | (None, one) => one.clone(),
        };
        Self { low, high }
    }
}
