//! Changes of a map: after any changes in any order, every version keeps the rules.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rangehold_map::{
    Change, ChangeRefused, DatabaseName, Generation, Home, Intent, KeyRange, PartitionPrefix, RangeEntry,
    RangeId, RangeMap, ServerId, TableId,
};

/// Where the partition with this PartitionKey begins.
fn boundary(partition_key: &str) -> Vec<u8> {
    PartitionPrefix::entity("acct", TableId(1), partition_key).as_bytes().to_vec()
}

/// A stored key inside that partition.
fn inside(partition_key: &str) -> Vec<u8> {
    PartitionPrefix::entity("acct", TableId(1), partition_key).key("row")
}

fn home(server: u64, range: RangeId) -> Home {
    let database = DatabaseName { range, generation: Generation::FIRST, attempt: 1 };
    Home { server: ServerId(server), database }
}

fn first() -> RangeMap {
    RangeMap::single(RangeId(1), home(1, RangeId(1)))
}

/// A step of a test. Ranges are chosen by index, so that most steps find one.
#[derive(Debug, Clone)]
enum Step {
    Split { index: usize, at: Vec<u8> },
    Merge { index: usize },
    Move { index: usize, server: u64 },
    Offline { index: usize },
    Online { index: usize },
    Done { index: usize },
    Undone { index: usize },
}

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(vec!["0001", "0002", "0003", "0004", "0005", "0006", "0007"])
        .prop_flat_map(|key| prop_oneof![8 => Just(boundary(key)), 1 => Just(inside(key))])
}

fn any_step() -> impl Strategy<Value = Step> {
    let index = || 0..8usize;
    prop_oneof![
        3 => (index(), any_key()).prop_map(|(index, at)| Step::Split { index, at }),
        2 => index().prop_map(|index| Step::Merge { index }),
        2 => (index(), 1..4u64).prop_map(|(index, server)| Step::Move { index, server }),
        1 => index().prop_map(|index| Step::Offline { index }),
        1 => index().prop_map(|index| Step::Online { index }),
        6 => index().prop_map(|index| Step::Done { index }),
        2 => index().prop_map(|index| Step::Undone { index }),
    ]
}

/// The change that a step begins on this map; `None` for steps that finish one.
fn change(map: &RangeMap, step: &Step) -> Option<Change> {
    let entry = |index: usize| &map.entries()[index % map.entries().len()];
    let named = |index| (entry(index).id, entry(index).generation);
    Some(match *step {
        Step::Split { index, ref at } => {
            let (range, generation) = named(index);
            Change::Split { range, generation, at: at.clone() }
        }
        Step::Merge { index } => {
            let ((left, left_generation), (right, right_generation)) = (named(index), named(index + 1));
            Change::Merge { left, left_generation, right, right_generation }
        }
        Step::Move { index, server } => {
            let (range, generation) = named(index);
            let to = Home { server: ServerId(server), ..entry(index).place };
            Change::Move { range, generation, to }
        }
        Step::Offline { index } => {
            let (range, generation) = named(index);
            Change::Offline { range, generation }
        }
        Step::Online { index } => {
            let (range, generation) = named(index);
            Change::Online { range, generation }
        }
        Step::Done { .. } | Step::Undone { .. } => return None,
    })
}

fn take(map: &RangeMap, step: &Step) -> Result<RangeMap, ChangeRefused> {
    if let Some(change) = change(map, step) {
        return map.begin(&change);
    }
    let (Step::Done { index } | Step::Undone { index }) = step else {
        unreachable!("the others are changes")
    };
    let entry = &map.entries()[index % map.entries().len()];
    match (&entry.intent, step) {
        (_, Step::Undone { .. }) | (None, _) => map.undone(entry.id),
        (&Some(Intent::Split { left, right, .. }), _) => {
            map.split_done(entry.id, home(1, left), home(2, right))
        }
        (&Some(Intent::Merge { into, .. }), _) => map.merge_done(entry.id, home(3, into)),
        (&Some(Intent::MergeWith { left }), _) => {
            let Some(Intent::Merge { into, .. }) = map.get(left).unwrap().intent else {
                panic!("{left} is not the left side of a merge in {map:?}")
            };
            map.merge_done(left, home(3, into))
        }
        (Some(Intent::Move { .. }), _) => map.move_done(entry.id),
    }
}

/// All versions that the steps make, with the first one. A refused step makes none.
fn history(steps: &[Step]) -> Vec<RangeMap> {
    let mut versions = vec![first()];
    for step in steps {
        let map = versions.last().unwrap();
        if let Ok(next) = take(map, step) {
            versions.push(next);
        }
    }
    versions
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(any_step(), 0..60)
}

/// Where the keys are, and whether they are served: a change that is only begun, or undone, must not touch
/// this.
fn served(map: &RangeMap) -> Vec<(RangeId, KeyRange, Home, bool)> {
    map.entries().iter().map(|e| (e.id, e.keys.clone(), e.place, e.online)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_version_keeps_the_rules(steps in any_steps()) {
        let mut gone = BTreeSet::new();
        for pair in history(&steps).windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            prop_assert_eq!(after.check_homes(), vec![]);
            prop_assert_eq!(after.version(), before.version() + 1);
            prop_assert!(after.next_range() >= before.next_range());
            for entry in before.entries() {
                match after.get(entry.id) {
                    None => { gone.insert(entry.id); }
                    Some(now) => {
                        prop_assert_eq!(&now.keys, &entry.keys, "a range keeps its keys");
                        prop_assert!(now.generation >= entry.generation);
                        let same = (now.place, now.online) == (entry.place, entry.online);
                        prop_assert!(same || now.generation > entry.generation, "{:?} was {:?}", now, entry);
                    }
                }
            }
            for entry in after.entries() {
                prop_assert!(!gone.contains(&entry.id), "{} came back", entry.id);
                let was = before.get(entry.id);
                prop_assert!(was.is_some() || entry.generation == Generation::FIRST);
            }
        }
    }

    #[test]
    fn every_change_that_was_begun_can_be_done_or_undone(steps in any_steps()) {
        for map in history(&steps) {
            for (index, entry) in map.entries().iter().enumerate() {
                for step in [Step::Done { index }, Step::Undone { index }] {
                    let next = take(&map, &step);
                    prop_assert_eq!(next.is_ok(), entry.intent.is_some(), "{:?}", next);
                    let Ok(next) = next else { continue };
                    let doing = |map: &RangeMap| map.entries().iter().filter(|e| e.intent.is_some()).count();
                    let sides = match entry.intent {
                        Some(Intent::Merge { .. } | Intent::MergeWith { .. }) => 2,
                        _ => 1,
                    };
                    prop_assert_eq!(doing(&next) + sides, doing(&map));
                }
            }
        }
    }

    #[test]
    fn undoing_a_change_restores_the_map(steps in any_steps(), step in any_step()) {
        let versions = history(&steps);
        let map = versions.last().unwrap();
        let Some(asked) = change(map, &step) else { return Ok(()) };
        let Ok(begun) = map.begin(&asked) else { return Ok(()) };
        prop_assert_eq!(begun.begin(&asked), Err(refusal_of_a_second(&asked, &begun)));
        let Some(entry) = begun.entries().iter().find(|e| map.get(e.id).unwrap().intent != e.intent) else {
            return Ok(()); // It was done at once: offline or online.
        };
        prop_assert_eq!(served(&begun), served(map), "nothing changes before it is done");
        let undone = begun.undone(entry.id).unwrap();
        prop_assert_eq!(served(&undone), served(map));
        for (now, was) in undone.entries().iter().zip(map.entries()) {
            prop_assert_eq!(&now.intent, &was.intent);
            let touched = begun.get(now.id).unwrap().intent != was.intent;
            let expected = if touched { was.generation.next() } else { was.generation };
            prop_assert_eq!(now.generation, expected);
        }
        prop_assert!(undone.begin(&asked).is_err(), "what was undone does not begin again by itself");
    }

    #[test]
    fn a_second_assignment_of_the_same_ranges_is_refused(steps in any_steps(), to in 1..4u64) {
        let versions = history(&steps);
        let map = versions.last().unwrap();
        let free = map.entries().iter().filter(|entry| entry.online && entry.intent.is_none());
        let wanted: Vec<_> = free
            .map(|entry| (entry.id, entry.generation, Home { server: ServerId(to), ..entry.place }))
            .collect();
        let assigned = map.assigned(&wanted).unwrap();
        prop_assert_eq!(assigned.check(), vec![]);
        for (range, generation, home) in &wanted {
            let entry = assigned.get(*range).unwrap();
            prop_assert_eq!((entry.generation, &entry.place), (generation.next(), home));
        }
        if !wanted.is_empty() {
            let again = assigned.assigned(&wanted);
            let refused = matches!(again, Err(ChangeRefused::OtherGeneration { .. }));
            prop_assert!(refused, "{again:?}");
        }
    }

    #[test]
    fn a_change_for_another_generation_is_refused(steps in any_steps(), step in any_step(), off in 1..4u64) {
        let versions = history(&steps);
        let map = versions.last().unwrap();
        let Some(mut asked) = change(map, &step) else { return Ok(()) };
        let (range, is_in) = match &mut asked {
            Change::Split { range, generation, .. }
            | Change::Move { range, generation, .. }
            | Change::Offline { range, generation }
            | Change::Online { range, generation }
            | Change::Merge { left: range, left_generation: generation, .. } => {
                let is_in = *generation;
                generation.0 += off;
                (*range, is_in)
            }
        };
        let made_for = Generation(is_in.0 + off);
        prop_assert_eq!(map.begin(&asked), Err(ChangeRefused::OtherGeneration { range, made_for, is_in }));
    }

    /// A change that was made is refused when it comes a second time.
    #[test]
    fn no_change_can_be_made_twice(steps in any_steps()) {
        let mut map = first();
        let mut carried_out: Vec<Change> = Vec::new();
        for step in &steps {
            let asked = change(&map, step);
            let Ok(next) = take(&map, step) else { continue };
            carried_out.extend(asked);
            map = next;
            for late in &carried_out {
                prop_assert!(map.begin(late).is_err(), "{:?} happens again in {:?}", late, map);
            }
        }
    }
}

/// How a change is refused that was just begun (or done, for offline and online).
fn refusal_of_a_second(change: &Change, map: &RangeMap) -> ChangeRefused {
    match *change {
        Change::Split { range, .. } | Change::Move { range, .. } | Change::Merge { left: range, .. } => {
            let doing = map.get(range).unwrap().intent.as_ref().unwrap().doing();
            ChangeRefused::Begun { range, doing }
        }
        Change::Offline { range, generation } | Change::Online { range, generation } => {
            ChangeRefused::OtherGeneration { range, made_for: generation, is_in: generation.next() }
        }
    }
}

/// r2 holds the keys below "0005" and r3 the rest; both on server 1.
fn two_ranges() -> RangeMap {
    let split = Change::Split { range: RangeId(1), generation: Generation(1), at: boundary("0005") };
    let begun = first().begin(&split).unwrap();
    begun.split_done(RangeId(1), home(1, RangeId(2)), home(1, RangeId(3))).unwrap()
}

fn merge(left: RangeId, right: RangeId) -> Change {
    let generation = Generation(1);
    Change::Merge { left, left_generation: generation, right, right_generation: generation }
}

#[test]
fn a_merge_after_a_split_restores_all_but_the_id() {
    let map = two_ranges();
    let begun = map.begin(&merge(RangeId(2), RangeId(3))).unwrap();
    assert_eq!(begun.next_range(), RangeId(5));
    let merged = begun.merge_done(RangeId(2), home(1, RangeId(4))).unwrap();
    let whole = RangeEntry { id: RangeId(4), place: home(1, RangeId(4)), ..first().entries()[0].clone() };
    assert_eq!(merged, RangeMap::new(5, RangeId(5), vec![whole]));
    assert_eq!(begun.undone(RangeId(3)), begun.undone(RangeId(2)), "either side may be named");
}

#[test]
fn a_split_inside_a_partition_is_refused() {
    let split = |at: &[u8]| Change::Split { range: RangeId(1), generation: Generation(1), at: at.to_vec() };
    let done = |begun: RangeMap| begun.split_done(RangeId(1), home(1, RangeId(2)), home(2, RangeId(3)));
    let halves = done(first().begin(&split(&boundary("0005"))).unwrap()).unwrap();
    assert_eq!(halves.lookup(&inside("0005")).unwrap().place, home(2, RangeId(3)));
    assert_eq!(halves.check(), []);
    let at = inside("0005");
    let refused = first().begin(&split(&at));
    assert_eq!(refused, Err(ChangeRefused::CutsPartition { range: RangeId(1), at }));
}

/// `refused.txt` of the golden scripts has the refusals of what can be asked for by a command.
#[test]
fn refusals_of_what_no_command_asks_for_say_what_is_wrong() {
    let (r2, r3) = (RangeId(2), RangeId(3));
    let map = two_ranges();
    let begun = map.begin(&merge(r2, r3)).unwrap();
    let to_other_database = Change::Move { range: r2, generation: Generation(1), to: home(2, r3) };
    for (refused, sentence) in [
        (begun.move_done(r2), "r2 is not being moved: there is nothing to finish or undo"),
        (
            begun.split_done(r2, home(1, r2), home(1, r3)),
            "r2 is not being split: there is nothing to finish or undo",
        ),
        (
            begun.merge_done(r3, home(1, r2)),
            "r3 is not the left range of a merge: there is nothing to finish or undo",
        ),
        (map.begin(&to_other_database), "a move keeps the database of r2: name the one in which it is"),
    ] {
        assert_eq!(refused.unwrap_err().sentence(|key| format!("{key:02x?}")), sentence);
    }
}
