//! Changes of a shard map, and what they take away and bring.
//!
//! The rules are those of the elastic database library: a mapping is deleted when it is offline; it goes
//! to another shard if it is offline before or after; it is split strictly inside, and both pieces have its
//! status and lock; two are merged if they touch, on one shard, with one status, and the lock is the left
//! one's. Whoever changes a locked mapping shows the lock's token, and no token where no lock is.

use uuid::Uuid;

use super::id::{MappingId, ShardId};
use super::lock::{Lock, LockToken};
use super::map::{MapKind, ShardMap, ShardMapping};
use super::refused::ShardChangeRefused;
use crate::ordered::Ordered;
use crate::range::KeyRange;

/// A mapping that is to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMapping {
    /// Its keys.
    pub keys: KeyRange,
    /// Where they are.
    pub shard: ShardId,
    /// Whether the shard serves them.
    pub online: bool,
}

/// What an update sets; what it leaves out stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MappingUpdate {
    /// Another status.
    pub online: Option<bool>,
    /// Another shard.
    pub shard: Option<ShardId>,
}

/// A change of a shard map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardChange {
    /// Add mappings: all or none.
    Add(Vec<NewMapping>),
    /// Take a mapping away.
    Delete {
        /// Which.
        mapping: MappingId,
        /// The token of its lock.
        token: LockToken,
    },
    /// Give a mapping another status, another shard, or both.
    Update {
        /// Which.
        mapping: MappingId,
        /// What is set.
        to: MappingUpdate,
        /// The token of its lock.
        token: LockToken,
    },
    /// Make two mappings of one.
    Split {
        /// Which.
        mapping: MappingId,
        /// The first key of the right piece.
        at: Vec<u8>,
        /// The token of its lock.
        token: LockToken,
    },
    /// Make one mapping of two neighbours.
    Merge {
        /// The one with the lower keys.
        left: MappingId,
        /// The token of its lock.
        left_token: LockToken,
        /// The other.
        right: MappingId,
        /// The token of its lock.
        right_token: LockToken,
    },
}

/// What a change takes away and brings. Exchanged, it undoes the change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effect {
    /// Mappings that are no more.
    pub goes: Vec<ShardMapping>,
    /// Mappings that are new.
    pub comes: Vec<ShardMapping>,
}

/// Where ids and fences that were never used come from.
pub struct Fresh<'a> {
    /// Ids.
    pub id: &'a mut (dyn FnMut() -> Uuid + Send),
    /// Fences.
    pub fence: &'a mut (dyn FnMut() -> i64 + Send),
}

impl ShardMap {
    /// What `change` takes away and brings, if the rules allow it. `now` is for locks, in microseconds
    /// since 1970; mappings that the change touches, or that hold some of its keys, must be in the map.
    ///
    /// # Errors
    ///
    /// [`ShardChangeRefused`], each with the rule that it names.
    pub fn apply(
        &self,
        change: &ShardChange,
        now: i64,
        fresh: &mut Fresh<'_>,
    ) -> Result<Effect, ShardChangeRefused> {
        match change {
            ShardChange::Add(new) => self.add(new, fresh),
            ShardChange::Delete { mapping, token } => {
                let gone = self.unlocked(*mapping, *token, now)?;
                if gone.online {
                    return Err(ShardChangeRefused::NotOffline { mapping: gone.id });
                }
                Ok(Effect { goes: vec![gone.clone()], comes: Vec::new() })
            }
            ShardChange::Update { mapping, to, token } => {
                let gone = self.unlocked(*mapping, *token, now)?;
                update(gone, *to, fresh)
            }
            ShardChange::Split { mapping, at, token } => {
                self.only_in_ranges()?;
                let gone = self.unlocked(*mapping, *token, now)?;
                split(gone, at, fresh)
            }
            ShardChange::Merge { left, left_token, right, right_token } => {
                self.only_in_ranges()?;
                let left = self.unlocked(*left, *left_token, now)?;
                let right = self.unlocked(*right, *right_token, now)?;
                merge(left, right, fresh)
            }
        }
    }

    /// The next version, after `effect`.
    pub fn after(&self, effect: &Effect) -> Self {
        let stays =
            self.mappings().iter().filter(|mapping| !effect.goes.iter().any(|gone| gone.id == mapping.id));
        Self::new(self.kind(), stays.chain(&effect.comes).cloned().collect())
    }

    fn only_in_ranges(&self) -> Result<(), ShardChangeRefused> {
        if self.kind() == MapKind::Range { Ok(()) } else { Err(ShardChangeRefused::NotARange) }
    }

    fn unlocked(
        &self,
        mapping: MappingId,
        token: LockToken,
        now: i64,
    ) -> Result<&ShardMapping, ShardChangeRefused> {
        let found = self.get(mapping).ok_or(ShardChangeRefused::UnknownMapping { mapping })?;
        Lock::admits(found.lock.as_ref(), mapping, token, now)?;
        Ok(found)
    }

    /// Each must have a key, and none in common with another, new or old.
    fn add(&self, new: &[NewMapping], fresh: &mut Fresh<'_>) -> Result<Effect, ShardChangeRefused> {
        if let Some(empty) = new.iter().find(|new| new.keys.is_empty()) {
            return Err(ShardChangeRefused::NoKeys { keys: empty.keys.clone() });
        }
        let made = |new: &NewMapping| ShardMapping {
            id: MappingId((fresh.id)()),
            keys: new.keys.clone(),
            shard: new.shard,
            online: new.online,
            fence: (fresh.fence)(),
            lock: None,
        };
        let comes = Ordered::new(new.iter().map(made).collect());
        let taken = |keys: &KeyRange, by: &KeyRange| {
            Err(ShardChangeRefused::AlreadyMapped { keys: keys.clone(), by: by.clone() })
        };
        for pair in comes.windows(2) {
            if pair[0].keys.high().is_none_or(|high| high > pair[1].keys.low()) {
                return taken(&pair[1].keys, &pair[0].keys);
            }
        }
        for one in comes.iter() {
            if let Some(old) = self.overlapping(&one.keys).first() {
                return taken(&one.keys, &old.keys);
            }
        }
        Ok(Effect { goes: Vec::new(), comes: comes.into_vec() })
    }
}

fn update(
    gone: &ShardMapping,
    to: MappingUpdate,
    fresh: &mut Fresh<'_>,
) -> Result<Effect, ShardChangeRefused> {
    if to == MappingUpdate::default() {
        return Ok(Effect::default());
    }
    let online = to.online.unwrap_or(gone.online);
    let shard = to.shard.unwrap_or(gone.shard);
    if shard != gone.shard && gone.online && online {
        return Err(ShardChangeRefused::NotOffline { mapping: gone.id });
    }
    let next = ShardMapping { id: MappingId((fresh.id)()), online, shard, ..gone.clone() };
    Ok(Effect { goes: vec![gone.clone()], comes: vec![next] })
}

fn split(gone: &ShardMapping, at: &[u8], fresh: &mut Fresh<'_>) -> Result<Effect, ShardChangeRefused> {
    if !gone.keys.is_cut_by(at) {
        let (at, keys) = (at.to_vec(), gone.keys.clone());
        return Err(ShardChangeRefused::OutsideMapping { mapping: gone.id, at, keys });
    }
    let left = KeyRange::new(gone.keys.low().to_vec(), Some(at.to_vec()));
    let right = KeyRange::new(at.to_vec(), gone.keys.high().map(<[u8]>::to_vec));
    let comes = [left, right].map(|keys| piece(gone, keys, fresh));
    Ok(Effect { goes: vec![gone.clone()], comes: comes.into() })
}

fn merge(
    left: &ShardMapping,
    right: &ShardMapping,
    fresh: &mut Fresh<'_>,
) -> Result<Effect, ShardChangeRefused> {
    let ids = (left.id, right.id);
    if left.keys.high() != Some(right.keys.low()) {
        return Err(ShardChangeRefused::NotNeighbours { left: ids.0, right: ids.1 });
    }
    if left.shard != right.shard {
        return Err(ShardChangeRefused::OtherShard { left: ids.0, right: ids.1 });
    }
    if left.online != right.online {
        return Err(ShardChangeRefused::OtherStatus { left: ids.0, right: ids.1 });
    }
    let whole = KeyRange::new(left.keys.low().to_vec(), right.keys.high().map(<[u8]>::to_vec));
    let comes = vec![piece(left, whole, fresh)];
    Ok(Effect { goes: vec![left.clone(), right.clone()], comes })
}

/// A mapping of another interval, in all else as `of`.
fn piece(of: &ShardMapping, keys: KeyRange, fresh: &mut Fresh<'_>) -> ShardMapping {
    ShardMapping { id: MappingId((fresh.id)()), keys, fence: (fresh.fence)(), ..of.clone() }
}
