//! Why a change of a shard map is not made.

use std::fmt;

use super::id::MappingId;
use super::key::ShardKey;
use super::key_type::ShardKeyType;
use super::lock::Lock;
use crate::range::KeyRange;

/// Why a change was not made. The map is as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardChangeRefused {
    /// The map has no such mapping: it was changed, and the handle is from before.
    UnknownMapping {
        /// The mapping.
        mapping: MappingId,
    },
    /// Some of the keys are mapped.
    AlreadyMapped {
        /// The keys that were to be added.
        keys: KeyRange,
        /// The keys of a mapping that holds some of them.
        by: KeyRange,
    },
    /// The interval holds no key.
    NoKeys {
        /// The interval.
        keys: KeyRange,
    },
    /// What only a range map has, asked of a list map.
    NotARange,
    /// A deletion or a move of a mapping that is online, and stays so.
    NotOffline {
        /// The mapping.
        mapping: MappingId,
    },
    /// A split key that does not lie strictly inside.
    OutsideMapping {
        /// The mapping.
        mapping: MappingId,
        /// The split key.
        at: Vec<u8>,
        /// The mapping's keys.
        keys: KeyRange,
    },
    /// Mappings that are to be merged do not touch, or stand in the wrong order.
    NotNeighbours {
        /// The one that was to be the left one.
        left: MappingId,
        /// The other.
        right: MappingId,
    },
    /// Mappings that are to be merged are on two shards.
    OtherShard {
        /// The left one.
        left: MappingId,
        /// The right one.
        right: MappingId,
    },
    /// Of mappings that are to be merged one is online, the other offline.
    OtherStatus {
        /// The left one.
        left: MappingId,
        /// The right one.
        right: MappingId,
    },
    /// Somebody else holds the mapping.
    Locked {
        /// The mapping.
        mapping: MappingId,
        /// His lock.
        lock: Lock,
    },
    /// A token was shown, and the mapping is not locked, or no more.
    NotLocked {
        /// The mapping.
        mapping: MappingId,
    },
    /// The mapping that was to be locked is locked.
    AlreadyLocked {
        /// The mapping.
        mapping: MappingId,
        /// The lock that it has.
        lock: Lock,
    },
    /// A token that locks nothing.
    NoToken,
}

impl ShardChangeRefused {
    /// The sentence for people, with keys written as keys of the map.
    pub fn sentence(&self, key_type: ShardKeyType) -> String {
        let key = |raw: &[u8]| match ShardKey::from_raw(key_type, raw) {
            Ok(key) => key.to_string(),
            Err(_) => raw.escape_ascii().to_string(),
        };
        self.sentence_with(key)
    }

    fn sentence_with(&self, key: impl Fn(&[u8]) -> String) -> String {
        let range = |keys: &KeyRange| match keys.high() {
            Some(high) => format!("[{}, {})", key(keys.low()), key(high)),
            None => format!("[{}, end)", key(keys.low())),
        };
        match self {
            Self::UnknownMapping { mapping } => format!(
                "mapping {mapping} is not in the map, or no more: look the key up and use the mapping found"
            ),
            Self::AlreadyMapped { keys, by } => {
                format!(
                    "{} is not free: {} is mapped; choose other keys or delete that",
                    range(keys),
                    range(by)
                )
            }
            Self::NoKeys { keys } => {
                format!("{} holds no key: give a low end below its high end", range(keys))
            }
            Self::NotARange => "a list map has single keys: they are not split or merged".to_owned(),
            Self::NotOffline { mapping } => {
                format!("mapping {mapping} is online: take it offline before it is deleted or moved")
            }
            Self::OutsideMapping { at, keys, .. } => {
                format!(
                    "{} does not cut {}: choose a key above its low end and below its high end",
                    key(at),
                    range(keys)
                )
            }
            Self::NotNeighbours { left, right } => format!(
                "mapping {right} does not begin where {left} ends: name two neighbours, the lower one first"
            ),
            Self::OtherShard { left, right } => {
                format!("mappings {left} and {right} are on two shards: move one to the other first")
            }
            Self::OtherStatus { left, right } => {
                format!("of mappings {left} and {right} one is offline: give both one status first")
            }
            Self::Locked { mapping, lock } => {
                format!(
                    "mapping {mapping} is locked by {:?}: show its token, or wait until the lock ends",
                    lock.owner
                )
            }
            Self::NotLocked { mapping } => {
                format!("mapping {mapping} is not locked, or no more: lock it again, or show no token")
            }
            Self::AlreadyLocked { mapping, lock } => {
                format!("mapping {mapping} is locked already, by {:?}", lock.owner)
            }
            Self::NoToken => "this token locks nothing: make one of random bits".to_owned(),
        }
    }
}

impl fmt::Display for ShardChangeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence_with(|raw| format!("\"{}\"", raw.escape_ascii())))
    }
}

impl std::error::Error for ShardChangeRefused {}
