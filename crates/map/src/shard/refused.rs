//! Why a change of a shard map is refused.

use std::fmt;

use super::id::MappingId;
use super::key::ShardKey;
use super::key_type::ShardKeyType;
use super::lock::Lock;
use crate::range::KeyRange;

/// Why a change was not made. The map is as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardChangeRefused {
    /// The map has no such mapping, for example because it was changed since.
    UnknownMapping {
        /// The mapping.
        mapping: MappingId,
    },
    /// Some of the keys already have a mapping.
    AlreadyMapped {
        /// The keys of the new mapping.
        keys: KeyRange,
        /// The keys of the mapping that holds some of them.
        by: KeyRange,
    },
    /// The interval holds no key.
    NoKeys {
        /// The interval.
        keys: KeyRange,
    },
    /// A split or merge of a list map.
    NotARange,
    /// The mapping is to be deleted, or to go to another shard while it stays online.
    NotOffline {
        /// The mapping.
        mapping: MappingId,
    },
    /// The split key does not lie strictly inside the mapping.
    OutsideMapping {
        /// The mapping.
        mapping: MappingId,
        /// The split key.
        at: Vec<u8>,
        /// The mapping's keys.
        keys: KeyRange,
    },
    /// The mappings that are to be merged do not touch, or were named in the wrong order.
    NotNeighbours {
        /// The mapping that was named as the left one.
        left: MappingId,
        /// The other.
        right: MappingId,
    },
    /// The mappings that are to be merged are on two shards.
    OtherShard {
        /// The left one.
        left: MappingId,
        /// The right one.
        right: MappingId,
    },
    /// One of the mappings that are to be merged is online, the other offline.
    OtherStatus {
        /// The left one.
        left: MappingId,
        /// The right one.
        right: MappingId,
    },
    /// Another holder has locked the mapping.
    Locked {
        /// The mapping.
        mapping: MappingId,
        /// Its lock.
        lock: Lock,
    },
    /// A token was given, but the mapping is not locked, or no longer.
    NotLocked {
        /// The mapping.
        mapping: MappingId,
    },
    /// The mapping that is to be locked is already locked.
    AlreadyLocked {
        /// The mapping.
        mapping: MappingId,
        /// The lock that it has.
        lock: Lock,
    },
    /// A token that cannot be used to lock.
    NoToken,
}

impl ShardChangeRefused {
    /// A sentence for people, with keys of the map's type.
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
                "mapping {mapping} is not in the map, or no longer: look the key up and use the mapping that is found"
            ),
            Self::AlreadyMapped { keys, by } => {
                format!(
                    "{} is not free, because {} is mapped: choose other keys, or delete that mapping",
                    range(keys),
                    range(by)
                )
            }
            Self::NoKeys { keys } => {
                format!("{} holds no key: give a low end below its high end", range(keys))
            }
            Self::NotARange => "a list map has single keys, which cannot be split or merged".to_owned(),
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
                    "mapping {mapping} is locked by {:?}: give its token, or wait until the lock ends",
                    lock.owner
                )
            }
            Self::NotLocked { mapping } => {
                format!("mapping {mapping} is not locked, or no longer: lock it again, or give no token")
            }
            Self::AlreadyLocked { mapping, lock } => {
                format!("mapping {mapping} is locked already, by {:?}", lock.owner)
            }
            Self::NoToken => "this token cannot be used to lock: make one of random bits".to_owned(),
        }
    }
}

impl fmt::Display for ShardChangeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence_with(|raw| format!("\"{}\"", raw.escape_ascii())))
    }
}

impl std::error::Error for ShardChangeRefused {}
