//! Why a change of the map is refused, and the sentences that say so.

use std::fmt;

use crate::range::{Generation, KeyRange, RangeId};

/// Why a change was not made. The map is as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeRefused {
    /// The map has no such range.
    UnknownRange {
        /// The range.
        range: RangeId,
    },
    /// The change was made for another generation: it comes late, or a second time.
    OtherGeneration {
        /// The range.
        range: RangeId,
        /// The generation for which the change was made.
        made_for: Generation,
        /// The generation in which the range is.
        is_in: Generation,
    },
    /// Another change of the range is under way.
    Begun {
        /// The range.
        range: RangeId,
        /// That change, such as "being split".
        doing: &'static str,
    },
    /// The change that is to be finished or undone was not begun.
    NotBegun {
        /// The range.
        range: RangeId,
        /// The expected change, such as "being split".
        doing: &'static str,
    },
    /// A split would leave one half without keys.
    OutsideRange {
        /// The range.
        range: RangeId,
        /// The split key.
        at: Vec<u8>,
        /// The keys of the range.
        keys: KeyRange,
    },
    /// The split key lies inside a partition.
    CutsPartition {
        /// The range.
        range: RangeId,
        /// The split key.
        at: Vec<u8>,
    },
    /// The ranges that are to be merged are not neighbours, or were named in the wrong order.
    NotNeighbours {
        /// The range that was named as the left one.
        left: RangeId,
        /// The other.
        right: RangeId,
    },
    /// The range is offline: it cannot be split, merged or moved.
    Offline {
        /// The range.
        range: RangeId,
    },
    /// The range is already offline, online or at the new place.
    Already {
        /// The range.
        range: RangeId,
        /// What it is already, such as "offline".
        how: &'static str,
    },
    /// A move that names another database than the range's own.
    OtherDatabase {
        /// The range.
        range: RangeId,
    },
}

impl ChangeRefused {
    /// A sentence for people, in which `key` writes the keys.
    pub fn sentence(&self, key: impl Fn(&[u8]) -> String) -> String {
        match self {
            Self::UnknownRange { range } => {
                format!(
                    "{range} is not in the map: it was split or merged, or never existed; look at the map"
                )
            }
            Self::OtherGeneration { range, made_for, is_in } => format!(
                "the change of {range} was made for generation {made_for}, and the range is in {is_in}: \
                 look at the map and ask again"
            ),
            Self::Begun { range, doing } => {
                format!("{range} is {doing}: wait until that is done, or undo it")
            }
            Self::NotBegun { range, doing } => {
                format!("{range} is not {doing}: there is nothing to finish or undo")
            }
            Self::OutsideRange { range, at, keys } => {
                let above = key(keys.low());
                let below = keys.high().map(|high| format!(" and below {}", key(high))).unwrap_or_default();
                format!("{} does not cut {range}: choose a key above {above}{below}", key(at))
            }
            Self::CutsPartition { range, at } => format!(
                "{range} cannot be split at {}, inside a partition: split before the partition or after it",
                key(at)
            ),
            Self::NotNeighbours { left, right } => format!(
                "{right} does not begin where {left} ends: name two neighbours, the one with the lower keys first"
            ),
            Self::Offline { range } => format!("{range} is offline: set it online first"),
            Self::Already { range, how } => format!("{range} is {how} already"),
            Self::OtherDatabase { range } => {
                format!("a move keeps the database of {range}: name the one in which it is")
            }
        }
    }
}

impl fmt::Display for ChangeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence(|key| format!("\"{}\"", key.escape_ascii())))
    }
}

impl std::error::Error for ChangeRefused {}
