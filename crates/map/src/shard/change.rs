//! Changes of a shard map: which mappings each removes and adds.
//!
//! The rules are those of the elastic database library:
//! * Only an offline mapping is deleted.
//! * A mapping goes to another shard only if it is offline before or after the change.
//! * A mapping is split at a key strictly inside. Both pieces keep its status and its lock.
//! * Two mappings are merged if they touch, are on one shard and have the same status. The lock of the left
//!   one stays.
//! * A change of a locked mapping needs the lock's token. A change of any other mapping must not have a token.

use uuid::Uuid;

use super::id::{MappingId, ShardId};
use super::lock::{Lock, LockToken};
use super::map::{MapKind, ShardMap, ShardMapping};
use super::refused::ShardChangeRefused;
use crate::ordered::Ordered;
use crate::range::KeyRange;

/// A mapping to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMapping {
    /// Its keys.
    pub keys: KeyRange,
    /// The shard that holds them.
    pub shard: ShardId,
    /// Whether the shard serves them.
    pub online: bool,
}

/// The fields that an update sets. Fields that are `None` stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MappingUpdate {
    /// The new status.
    pub online: Option<bool>,
    /// The new shard.
    pub shard: Option<ShardId>,
}

/// A change of a shard map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardChange {
    /// Add mappings: all or none.
    Add(Vec<NewMapping>),
    /// Delete a mapping.
    Delete {
        /// The mapping.
        mapping: MappingId,
        /// The token of its lock.
        token: LockToken,
    },
    /// Set the status of a mapping, its shard, or both.
    Update {
        /// The mapping.
        mapping: MappingId,
        /// The new values.
        to: MappingUpdate,
        /// The token of its lock.
        token: LockToken,
    },
    /// Split a mapping in two.
    Split {
        /// The mapping.
        mapping: MappingId,
        /// The first key of the right piece.
        at: Vec<u8>,
        /// The token of its lock.
        token: LockToken,
    },
    /// Merge two neighbours.
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

/// What a change removes and adds. With the two exchanged, it undoes the change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effect {
    /// The mappings that are removed.
    pub goes: Vec<ShardMapping>,
    /// The mappings that are added.
    pub comes: Vec<ShardMapping>,
}

/// Gives ids and fences that were never used.
pub struct Fresh<'a> {
    /// Gives ids.
    pub id: &'a mut (dyn FnMut() -> Uuid + Send),
    /// Gives fences.
    pub fence: &'a mut (dyn FnMut() -> i64 + Send),
}

impl ShardMap {
    /// What `change` removes and adds, if the rules allow it. `now` is in microseconds since 1970, for the
    /// ends of locks. All mappings that the change names, or that hold some of its keys, must be in this map.
    ///
    /// # Errors
    ///
    /// [`ShardChangeRefused`] names the rule that forbids the change.
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

    /// Each new mapping must hold keys, and must share none with another mapping, new or old.
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

/// A new mapping as `of`, but with other keys.
fn piece(of: &ShardMapping, keys: KeyRange, fresh: &mut Fresh<'_>) -> ShardMapping {
    ShardMapping { id: MappingId((fresh.id)()), keys, fence: (fresh.fence)(), ..of.clone() }
}
