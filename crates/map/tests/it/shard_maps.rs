//! Shard maps: the rules of their changes, compared with a simple model.

use proptest::prelude::*;
use rangehold_map::KeyRange;
use rangehold_map::shard::{
    Effect, Fresh, Held, Lock, LockToken, MapKind, MappingId, MappingUpdate, NewMapping, ShardChange,
    ShardChangeRefused, ShardId, ShardKeyValue, ShardMap, differences,
};
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

fn shard(n: u128) -> ShardId {
    ShardId(Uuid::from_u128(n))
}

fn keys(low: i32, high: i32) -> KeyRange {
    low.to_key().unwrap().up_to(Some(&high.to_key().unwrap()))
}

fn key(value: i32) -> Vec<u8> {
    value.to_key().unwrap().raw().to_vec()
}

/// A map, a source of ids, and the time for locks.
struct Rig {
    map: ShardMap,
    given: u64,
    now: i64,
}

impl Rig {
    fn new(kind: MapKind) -> Self {
        Self { map: ShardMap::new(kind, Vec::new()), given: 0, now: 0 }
    }

    fn change(&mut self, change: &ShardChange) -> Result<Effect, ShardChangeRefused> {
        let given = AtomicU64::new(self.given);
        let next = || given.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fresh = Fresh {
            id: &mut || Uuid::from_u128(next().into()),
            fence: &mut || i64::try_from(next()).unwrap(),
        };
        let effect = self.map.apply(change, self.now, &mut fresh)?;
        self.given = given.into_inner();
        self.map = self.map.after(&effect);
        assert_eq!(self.map.fault(), None);
        Ok(effect)
    }

    fn add(&mut self, keys: KeyRange, to: u128) -> Result<MappingId, ShardChangeRefused> {
        let new = NewMapping { keys, shard: shard(to), online: true };
        Ok(self.change(&ShardChange::Add(vec![new]))?.comes[0].id)
    }

    fn update(&mut self, mapping: MappingId, to: MappingUpdate) -> Result<MappingId, ShardChangeRefused> {
        let effect = self.change(&ShardChange::Update { mapping, to, token: LockToken::NONE })?;
        Ok(effect.comes[0].id)
    }
}

const OFFLINE: MappingUpdate = MappingUpdate { online: Some(false), shard: None };

/// Acceptance 72, 74, 75: a new mapping that overlaps another is refused; one that fits in a gap is not.
#[test]
fn intervals_do_not_overlap() {
    let mut rig = Rig::new(MapKind::Range);
    rig.add(keys(0, 10), 1).unwrap();
    rig.add(keys(20, 30), 1).unwrap();
    for (low, high) in [(5, 15), (5, 7), (-5, 5), (-5, 15), (15, 25), (i32::MIN, i32::MAX), (0, 10)] {
        let refused = rig.add(keys(low, high), 2).unwrap_err();
        assert!(matches!(refused, ShardChangeRefused::AlreadyMapped { .. }), "[{low}, {high})");
    }
    rig.add(keys(10, 20), 2).unwrap();
    let refused = rig.add(keys(7, 7), 2).unwrap_err();
    assert!(matches!(refused, ShardChangeRefused::NoKeys { .. }));
    let twice = [keys(40, 60), keys(50, 70)].map(|keys| NewMapping { keys, shard: shard(1), online: true });
    assert!(rig.change(&ShardChange::Add(twice.into())).is_err());
    assert_eq!(rig.map.mappings().len(), 3);
}

/// Acceptance 58, 79: the id of a mapping from before a change is refused; 56: so is deletion while online.
#[test]
fn old_mapping_ids_are_refused() {
    let mut rig = Rig::new(MapKind::Range);
    let first = rig.add(keys(0, 10), 1).unwrap();
    let delete = |mapping| ShardChange::Delete { mapping, token: LockToken::NONE };
    assert!(matches!(rig.change(&delete(first)), Err(ShardChangeRefused::NotOffline { .. })));
    let second = rig.update(first, OFFLINE).unwrap();
    assert!(matches!(rig.change(&delete(first)), Err(ShardChangeRefused::UnknownMapping { .. })));
    rig.change(&delete(second)).unwrap();
    assert!(rig.map.mappings().is_empty());
    let same = ShardChange::Update { mapping: second, to: MappingUpdate::default(), token: LockToken::NONE };
    assert!(matches!(rig.change(&same), Err(ShardChangeRefused::UnknownMapping { .. })));
}

/// Acceptance 88, 89, 91, 92: when a split and a merge are refused; then nothing changes.
#[test]
fn a_split_is_strictly_inside_and_a_merge_joins_neighbours() {
    let mut rig = Rig::new(MapKind::Range);
    let left = rig.add(keys(0, 10), 1).unwrap();
    let before = rig.map.clone();
    for at in [-1, 0, 10, 11] {
        let split = ShardChange::Split { mapping: left, at: key(at), token: LockToken::NONE };
        assert!(matches!(rig.change(&split), Err(ShardChangeRefused::OutsideMapping { .. })));
    }
    assert_eq!(rig.map, before);
    let other = rig.add(keys(10, 20), 2).unwrap();
    let far = rig.add(keys(30, 40), 1).unwrap();
    let off = rig.add(keys(40, 50), 1).unwrap();
    let off = rig.update(off, OFFLINE).unwrap();
    let merge = |left, right| ShardChange::Merge {
        left,
        left_token: LockToken::NONE,
        right,
        right_token: LockToken::NONE,
    };
    assert!(matches!(rig.change(&merge(left, other)), Err(ShardChangeRefused::OtherShard { .. })));
    assert!(matches!(rig.change(&merge(left, far)), Err(ShardChangeRefused::NotNeighbours { .. })));
    assert!(matches!(rig.change(&merge(far, off)), Err(ShardChangeRefused::OtherStatus { .. })));
    assert!(matches!(rig.change(&merge(far, far)), Err(ShardChangeRefused::NotNeighbours { .. })));
    let mut list = Rig::new(MapKind::List);
    let point = list.add(7.to_key().unwrap().point(), 1).unwrap();
    let split = ShardChange::Split { mapping: point, at: key(8), token: LockToken::NONE };
    assert!(matches!(list.change(&split), Err(ShardChangeRefused::NotARange)));
}

/// Acceptance 77, 87, 90, 93, 94: a change of a locked mapping needs the token; an ended lock has no effect.
#[test]
fn a_locked_mapping_needs_the_token_until_the_lock_ends() {
    let mut rig = Rig::new(MapKind::Range);
    let id = rig.add(keys(0, 10), 1).unwrap();
    let token = LockToken(Uuid::from_u128(77));
    let lock = Lock { token, owner: "a move".to_owned(), until: 100 };
    for bad in [LockToken::NONE, LockToken::FORCE] {
        let lock = Lock { token: bad, ..lock.clone() };
        assert_eq!(Lock::may_lock(None, id, &lock, 0), Err(ShardChangeRefused::NoToken));
    }
    Lock::may_lock(None, id, &lock, 0).unwrap();
    assert!(matches!(
        Lock::may_lock(Some(&lock), id, &lock, 99),
        Err(ShardChangeRefused::AlreadyLocked { .. })
    ));
    Lock::may_lock(Some(&lock), id, &lock, 100).unwrap();
    Lock::may_unlock(Some(&lock), id, LockToken::FORCE, 0).unwrap();
    assert!(Lock::may_unlock(Some(&lock), id, LockToken(Uuid::from_u128(78)), 0).is_err());
    let mut locked = rig.map.mappings()[0].clone();
    locked.lock = Some(lock.clone());
    rig.map = ShardMap::new(MapKind::Range, vec![locked]);
    let split = |token| ShardChange::Split { mapping: id, at: key(5), token };
    assert!(matches!(rig.change(&split(LockToken::NONE)), Err(ShardChangeRefused::Locked { .. })));
    let pieces = rig.change(&split(token)).unwrap().comes;
    assert!(pieces.iter().all(|piece| piece.lock.as_ref() == Some(&lock)));
    let merge = |left_token, right_token| ShardChange::Merge {
        left: pieces[0].id,
        left_token,
        right: pieces[1].id,
        right_token,
    };
    assert!(rig.change(&merge(token, LockToken::NONE)).is_err());
    let whole = rig.change(&merge(token, token)).unwrap().comes;
    assert_eq!(whole[0].lock.as_ref(), Some(&lock));
    rig.now = 100;
    let late = ShardChange::Update { mapping: whole[0].id, to: OFFLINE, token };
    assert!(matches!(rig.change(&late), Err(ShardChangeRefused::NotLocked { .. })));
}

/// A step of the property, with mappings chosen by index.
#[derive(Debug, Clone)]
enum Step {
    Add { low: i32, length: i32, shard: u128 },
    Delete { index: usize },
    Update { index: usize, online: Option<bool>, shard: Option<u128> },
    Split { index: usize, at: i32 },
    Merge { index: usize },
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..30i32, 0..10i32, 1..4u128).prop_map(|(low, length, shard)| Step::Add { low, length, shard }),
        2 => (0..8usize).prop_map(|index| Step::Delete { index }),
        4 => (0..8usize, any::<Option<bool>>(), prop::option::of(1..4u128))
            .prop_map(|(index, online, shard)| Step::Update { index, online, shard }),
        3 => (0..8usize, 0..40i32).prop_map(|(index, at)| Step::Split { index, at }),
        3 => (0..8usize).prop_map(|index| Step::Merge { index }),
    ]
}

/// What each of the keys 0..40 is mapped to: an interval's number, its shard, whether it is online.
type Model = Vec<Option<(MappingId, ShardId, bool)>>;

fn model(map: &ShardMap) -> Model {
    let held = |at: i32| map.mappings().iter().find(|mapping| mapping.keys.contains(&key(at)));
    (0..40).map(|at| held(at).map(|mapping| (mapping.id, mapping.shard, mapping.online))).collect()
}

proptest! {
    /// For any changes: each key keeps its shard and status unless the change names it; a lookup finds the
    /// same as a search of all mappings; and an exchanged effect undoes the change.
    #[test]
    fn a_change_affects_only_the_keys_that_it_names(steps in prop::collection::vec(any_step(), 1..40)) {
        let mut rig = Rig::new(MapKind::Range);
        for step in steps {
            let before = rig.map.clone();
            let at = |index: usize| before.mappings().get(index % before.mappings().len().max(1));
            let none = LockToken::NONE;
            let change = match step {
                Step::Add { low, length, shard: to } => Some(ShardChange::Add(vec![NewMapping {
                    keys: keys(low, low + length), shard: shard(to), online: true,
                }])),
                Step::Delete { index } => at(index).map(|m| ShardChange::Delete { mapping: m.id, token: none }),
                Step::Update { index, online, shard: to } => at(index).map(|m| ShardChange::Update {
                    mapping: m.id, to: MappingUpdate { online, shard: to.map(shard) }, token: none,
                }),
                Step::Split { index, at: cut } => at(index).map(|m| ShardChange::Split {
                    mapping: m.id, at: key(cut), token: none,
                }),
                Step::Merge { index } => at(index).zip(at(index + 1)).map(|(left, right)| ShardChange::Merge {
                    left: left.id, left_token: none, right: right.id, right_token: none,
                }),
            };
            let Some(change) = change else { continue };
            let Ok(effect) = rig.change(&change) else {
                prop_assert_eq!(&rig.map, &before);
                continue;
            };
            let (old, new) = (model(&before), model(&rig.map));
            for (at, (old, new)) in (0..).zip(old.iter().zip(&new)) {
                let touched = |list: &[rangehold_map::shard::ShardMapping]| list.iter().any(|m| m.keys.contains(&key(at)));
                if touched(&effect.goes) || touched(&effect.comes) {
                    prop_assert_ne!(old.map(|o| o.0), new.map(|n| n.0));
                    if matches!(change, ShardChange::Split { .. } | ShardChange::Merge { .. }) {
                        prop_assert_eq!(old.map(|o| (o.1, o.2)), new.map(|n| (n.1, n.2)));
                    }
                } else {
                    prop_assert_eq!(old, new);
                }
                prop_assert_eq!(rig.map.lookup(&key(at)).map(|m| m.id), new.map(|n| n.0));
            }
            let undone = rig.map.after(&Effect { goes: effect.comes, comes: effect.goes });
            prop_assert_eq!(undone, before);
        }
    }

    /// Acceptance 124, 130: the differences are exactly the keys for which the maps differ, each once.
    #[test]
    fn differences_cover_exactly_the_keys_for_which_maps_differ(
        global in prop::collection::btree_map(0..40i32, 1..4u128, 0..8),
        local in prop::collection::btree_map(0..40i32, 1..4u128, 0..8),
    ) {
        let held = |ends: &std::collections::BTreeMap<i32, u128>| -> Vec<Held<()>> {
            let lows = std::iter::once(0).chain(ends.keys().copied());
            lows.zip(ends).filter(|(low, (high, _))| low < high).map(|(low, (&high, &id))| Held {
                // The same keys with the same number are the same mapping on both sides.
                keys: keys(low, high), id: MappingId(Uuid::from_u128((low as u128) << 40 | (high as u128) << 20 | id)), about: (),
            }).filter(|held| held.id.0.as_u128() % 3 > 0).collect()
        };
        let (global, local) = (held(&global), held(&local));
        let found = differences(global.clone(), local.clone());
        let at = |list: &[Held<()>], key: &[u8]| list.iter().find(|held| held.keys.contains(key)).map(|held| held.id);
        for value in 0..41 {
            let key = key(value);
            let told: Vec<_> = found.iter().filter(|one| one.keys.contains(&key)).collect();
            let (global, local) = (at(&global, &key), at(&local, &key));
            prop_assert_eq!(told.len(), usize::from(global != local));
            for one in told {
                prop_assert_eq!(one.global.as_ref().map(|held| held.id), global);
                prop_assert_eq!(one.local.as_ref().map(|held| held.id), local);
            }
        }
    }
}
