//! Intervals of keys, maps of ranges, and the rules of maps.

use proptest::prelude::*;
use rangehold_map::{
    DatabaseName, Finding, Generation, Home, Intent, KeyRange, RangeEntry, RangeId, RangeMap, ServerId,
};

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0u8, 0x10, 0x20, 0x21, 0xFF]), 0..4)
}

fn any_range() -> impl Strategy<Value = KeyRange> {
    (any_bytes(), prop::option::of(any_bytes())).prop_map(|(low, high)| KeyRange::new(low, high))
}

fn entry(id: u64, low: &[u8], high: Option<&[u8]>) -> RangeEntry {
    RangeEntry {
        id: RangeId(id),
        keys: KeyRange::new(low.to_vec(), high.map(<[u8]>::to_vec)),
        generation: Generation(1),
        place: home(1, id),
        online: true,
        intent: None,
    }
}

/// Server `server`, with the first database of range `range`.
fn home(server: u64, range: u64) -> Home {
    let database = DatabaseName { range: RangeId(range), generation: Generation(1), attempt: 1 };
    Home { server: ServerId(server), database }
}

/// A map of these entries, in which all ids below 100 were given.
fn map_of(entries: Vec<RangeEntry>) -> RangeMap {
    RangeMap::new(1, RangeId(100), entries)
}

/// A map that is cut at the given keys.
fn cut_at(cuts: &[Vec<u8>]) -> RangeMap {
    let mut lows = vec![KeyRange::whole().low().to_vec()];
    lows.extend(cuts.iter().cloned());
    let entries = lows.iter().enumerate().map(|(index, low)| {
        let high = lows.get(index + 1).map(Vec::as_slice);
        entry(index as u64 + 1, low, high)
    });
    // In reverse order, because a map sorts its entries itself.
    map_of(entries.rev().collect())
}

/// Keys above the first of the key space, in order, each once.
fn any_cuts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::btree_set(any_bytes(), 0..6).prop_map(|cuts| {
        let whole = KeyRange::whole();
        cuts.into_iter().filter(|cut| cut.as_slice() > whole.low()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn an_intersection_holds_the_keys_that_both_hold(a in any_range(), b in any_range(), key in any_bytes()) {
        let both = a.intersect(&b);
        prop_assert_eq!(both.contains(&key), a.contains(&key) && b.contains(&key));
        prop_assert_eq!(&both, &b.intersect(&a));
    }

    #[test]
    fn an_empty_range_holds_no_key_and_any_other_holds_its_low_key(range in any_range(), key in any_bytes()) {
        if range.is_empty() {
            prop_assert!(!range.contains(&key));
        } else {
            prop_assert!(range.contains(range.low()));
        }
        if let Some(high) = range.high() {
            prop_assert!(!range.contains(high));
        }
    }

    #[test]
    fn every_key_has_one_range_in_a_map_without_findings(cuts in any_cuts(), key in any_bytes()) {
        let map = cut_at(&cuts);
        prop_assert_eq!(map.check(), vec![]);
        let holders: Vec<_> = map.entries().iter().filter(|entry| entry.keys.contains(&key)).collect();
        prop_assert_eq!(holders.len(), usize::from(KeyRange::whole().contains(&key)));
        prop_assert_eq!(map.lookup(&key), holders.first().copied());
    }

    #[test]
    fn overlapping_ranges_are_those_that_share_keys(cuts in any_cuts(), keys in any_range()) {
        let map = cut_at(&cuts);
        let found: Vec<_> = map.overlapping(&keys).collect();
        let shares: Vec<_> =
            map.entries().iter().filter(|entry| !entry.keys.intersect(&keys).is_empty()).collect();
        prop_assert_eq!(found, shares);
    }

    /// For any entries: if a map has no findings, each key has exactly one range.
    #[test]
    fn a_map_without_findings_has_one_range_for_every_key(
        entries in prop::collection::vec(any_range(), 0..4),
        keys in prop::collection::vec(any_bytes(), 8),
    ) {
        let entries: Vec<_> = entries.into_iter().enumerate().map(|(index, keys)| {
            entry(index as u64, keys.low(), keys.high())
        }).collect();
        let map = map_of(entries);
        if map.check().is_empty() {
            for key in keys.iter().filter(|key| KeyRange::whole().contains(key)) {
                let holders = map.entries().iter().filter(|entry| entry.keys.contains(key)).count();
                prop_assert_eq!(holders, 1, "{:?} in {:?}", key, map);
                prop_assert!(map.lookup(key).is_some());
            }
        }
    }
}

#[test]
fn the_first_map_is_one_range() {
    let map = RangeMap::single(RangeId(7), home(3, 7));
    assert_eq!(map.check_homes(), []);
    assert_eq!(map.next_range(), RangeId(8));
    let found = map.lookup(&[0x20, 1, 2]).unwrap();
    assert_eq!((found.id, found.place, found.generation), (RangeId(7), home(3, 7), Generation(1)));
    // The rows that a range keeps about itself belong to no range.
    assert_eq!(map.lookup(&[0x01, 1]), None);
}

#[test]
fn each_broken_rule_is_found() {
    let low = KeyRange::whole().low().to_vec();
    let map = |entries: Vec<RangeEntry>| map_of(entries).check();
    assert_eq!(map(vec![]), [Finding::NoRange]);
    assert_eq!(map(vec![entry(1, b"\x20", None)]), [Finding::Gap { before: RangeId(1) }], "at the beginning");
    assert_eq!(
        map(vec![entry(1, &low, Some(b"\x20")), entry(2, b"\x21", None)]),
        [Finding::Gap { before: RangeId(2) }],
        "in the middle"
    );
    assert_eq!(map(vec![entry(1, &low, Some(b"\x20"))]), [Finding::OpenEnd { after: RangeId(1) }]);
    let overlap = Finding::Overlap { left: RangeId(1), right: RangeId(2) };
    assert_eq!(map(vec![entry(1, &low, Some(b"\x21")), entry(2, b"\x20", None)]), vec![overlap.clone()]);
    assert_eq!(map(vec![entry(1, &low, None), entry(2, b"\x20", None)]), vec![overlap]);
    let empty =
        map(vec![entry(1, &low, Some(b"\x20")), entry(2, b"\x20", Some(b"\x20")), entry(3, b"\x20", None)]);
    assert_eq!(empty, [Finding::Empty { range: RangeId(2) }]);
}

/// A map of two ranges that meet at the first entity, changed by `edit`.
fn two(edit: impl FnOnce(&mut [RangeEntry])) -> RangeMap {
    let mut entries = vec![entry(1, KeyRange::whole().low(), Some(b"\x20")), entry(2, b"\x20", None)];
    edit(&mut entries);
    map_of(entries)
}

#[test]
fn each_broken_rule_of_a_change_is_found() {
    let (one, other) = (RangeId(1), RangeId(2));
    let split = |at: &[u8], right| Intent::Split { at: at.to_vec(), left: RangeId(8), right: RangeId(right) };
    let merge = || Intent::Merge { right: RangeId(2), into: RangeId(8) };
    let with = || Intent::MergeWith { left: RangeId(1) };

    assert_eq!(two(|_| ()).check(), []);
    assert_eq!(two(|e| e[0].intent = Some(split(b"\x11", 9))).check(), []);
    assert_eq!(
        two(|e| (e[0].intent, e[1].intent) = (Some(merge()), Some(with()))).check(),
        [],
        "both sides of a merge"
    );

    assert_eq!(two(|e| e[1].id = one).check(), [Finding::IdTwice { range: one }]);
    assert_eq!(
        two(|e| e[0].intent = Some(split(b"\x11", 8))).check(),
        [Finding::IdTwice { range: RangeId(8) }]
    );
    let to_come = Finding::IdToCome { range: RangeId(100), next_range: RangeId(100) };
    assert_eq!(two(|e| e[0].intent = Some(split(b"\x11", 100))).check(), vec![to_come.clone()]);
    assert_eq!(two(|e| e[1].id = RangeId(100)).check(), [to_come]);
    let alone = Finding::MergeAlone { range: one, with: other };
    assert_eq!(two(|e| e[0].intent = Some(merge())).check(), vec![alone]);
    let alone_too = Finding::MergeAlone { range: other, with: one };
    assert_eq!(two(|e| e[1].intent = Some(with())).check(), vec![alone_too]);
    let crossed = two(|e| (e[0].intent, e[1].intent) = (Some(with()), Some(merge())));
    assert_eq!(
        crossed.check(),
        [Finding::MergeAlone { range: one, with: one }, Finding::MergeAlone { range: other, with: other }]
    );
    for at in [b"\x10".as_slice(), b"\x20", b"\x0F"] {
        assert_eq!(
            two(|e| e[0].intent = Some(split(at, 9))).check(),
            [Finding::SplitOutside { range: one }],
            "{at:?}"
        );
    }
    let moving = Intent::Move { to: home(2, 1) };
    assert_eq!(
        two(|e| (e[0].online, e[0].intent) = (false, Some(moving))).check(),
        [Finding::OfflineChange { range: one }]
    );
}

#[test]
fn each_broken_rule_of_partitions_and_databases_is_found() {
    let (one, other) = (RangeId(1), RangeId(2));
    let shared = two(|e| e[1].place = home(2, 1));
    assert_eq!(shared.check(), [], "only the second check sees databases");
    let database = home(2, 1).database;
    assert_eq!(shared.check_homes(), [Finding::SharedDatabase { left: one, right: other, database }]);
    let moving = two(|e| e[0].intent = Some(Intent::Move { to: home(2, 7) }));
    assert_eq!(moving.check_homes(), [Finding::MoveToOtherDatabase { range: one }]);
    let cut = map_of(vec![
        entry(1, KeyRange::whole().low(), Some(b"\x10acct\0\x02")),
        entry(2, b"\x10acct\0\x02", None),
    ]);
    assert_eq!(cut.check_homes(), [Finding::CutPartition { range: other }]);
    let to_cut = two(|e| {
        let at = b"\x10acct\0\x02".to_vec();
        e[0].intent = Some(Intent::Split { at, left: RangeId(8), right: RangeId(9) });
    });
    assert_eq!(to_cut.check_homes(), [Finding::CutPartition { range: one }]);
}

#[test]
fn findings_name_their_ranges() {
    let (r4, r5) = (RangeId(4), RangeId(5));
    for (finding, text) in [
        (Finding::NoRange, "the map has no range"),
        (Finding::Gap { before: r4 }, "keys before r4 belong to no range"),
        (Finding::Overlap { left: r4, right: r5 }, "r4 and r5 hold the same keys"),
        (Finding::OpenEnd { after: r4 }, "keys after r4 belong to no range"),
        (Finding::Empty { range: r4 }, "r4 can hold no key"),
        (Finding::IdTwice { range: r4 }, "r4 is named twice"),
        (Finding::IdToCome { range: r5, next_range: r4 }, "r5 is named, but the next range is to be r4"),
        (
            Finding::MergeAlone { range: r4, with: r5 },
            "r4 is to be merged with r5, which is not its neighbour or is not to be merged with it",
        ),
        (Finding::SplitOutside { range: r4 }, "r4 is to be split at a key that does not cut it in two"),
        (Finding::OfflineChange { range: r4 }, "r4 is offline and yet being changed"),
        (Finding::CutPartition { range: r4 }, "r4 begins, or is to be split, inside a partition"),
        (
            Finding::SharedDatabase { left: r4, right: r5, database: home(1, 4).database },
            "r4 and r5 are both in database 4-1-1",
        ),
        (Finding::MoveToOtherDatabase { range: r4 }, "r4 is to move to another database than its own"),
    ] {
        assert_eq!(finding.to_string(), text);
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    assert_eq!("r7".parse(), Ok(RangeId(7)));
    assert_eq!("s12".parse(), Ok(ServerId(12)));
    let name = DatabaseName { range: RangeId(7), generation: Generation(3), attempt: 1 };
    assert_eq!((name.to_string(), "7-3-1".parse()), ("7-3-1".to_owned(), Ok(name)));
    for text in ["", "7", "7-3", "7-3-1-1", "07-3-1", "7-+3-1", "7--1", "a-b-c", "7-3-1 "] {
        let refused = text.parse::<DatabaseName>();
        assert!(refused.is_err(), "{text:?} was taken for {refused:?}");
    }
    for text in ["", "7", "r", "r-1", "r+1", "s7", "r7 ", "r99999999999999999999"] {
        assert_eq!(
            text.parse::<RangeId>().unwrap_err().to_string(),
            format!("{text:?} is not a range: write it as r7")
        );
    }
}
