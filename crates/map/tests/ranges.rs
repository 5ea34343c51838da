//! Ranges as sets of keys, and maps of them.

use proptest::prelude::*;
use rangehold_map::{Finding, Generation, KeyRange, RangeEntry, RangeId, RangeMap, ServerId};

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
        server: ServerId(1),
    }
}

/// A map that is cut at the given keys.
fn cut_at(cuts: &[Vec<u8>]) -> RangeMap {
    let mut lows = vec![KeyRange::whole().low().to_vec()];
    lows.extend(cuts.iter().cloned());
    let entries = lows.iter().enumerate().map(|(index, low)| {
        let high = lows.get(index + 1).map(Vec::as_slice);
        entry(index as u64 + 1, low, high)
    });
    // In another order, since a map sorts its entries itself.
    RangeMap::new(1, entries.rev().collect())
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
    fn an_intersection_holds_what_both_hold(a in any_range(), b in any_range(), key in any_bytes()) {
        let both = a.intersect(&b);
        prop_assert_eq!(both.contains(&key), a.contains(&key) && b.contains(&key));
        prop_assert_eq!(&both, &b.intersect(&a));
    }

    #[test]
    fn an_empty_range_holds_nothing_and_any_other_its_low_key(range in any_range(), key in any_bytes()) {
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
    fn every_key_has_one_range_in_a_good_map(cuts in any_cuts(), key in any_bytes()) {
        let map = cut_at(&cuts);
        prop_assert_eq!(map.check(), vec![]);
        let holders: Vec<_> = map.entries().iter().filter(|entry| entry.keys.contains(&key)).collect();
        prop_assert_eq!(holders.len(), usize::from(KeyRange::whole().contains(&key)));
        prop_assert_eq!(map.lookup(&key), holders.first().copied());
    }

    /// Whatever the entries: a map without findings is one in which each key has exactly one range.
    #[test]
    fn a_map_without_findings_is_good(
        entries in prop::collection::vec(any_range(), 0..4),
        keys in prop::collection::vec(any_bytes(), 8),
    ) {
        let entries: Vec<_> = entries.into_iter().enumerate().map(|(index, keys)| {
            entry(index as u64, keys.low(), keys.high())
        }).collect();
        let map = RangeMap::new(1, entries);
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
fn a_first_map_is_one_range() {
    let map = RangeMap::single(RangeId(7), ServerId(3));
    assert_eq!(map.check(), []);
    let found = map.lookup(&[0x20, 1, 2]).unwrap();
    assert_eq!((found.id, found.server, found.generation), (RangeId(7), ServerId(3), Generation(1)));
    // The rows that a range keeps about itself belong to no range.
    assert_eq!(map.lookup(&[0x01, 1]), None);
}

#[test]
fn each_broken_rule_is_found() {
    let low = KeyRange::whole().low().to_vec();
    let map = |entries: Vec<RangeEntry>| RangeMap::new(1, entries).check();
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

#[test]
fn findings_name_their_ranges() {
    for (finding, text) in [
        (Finding::NoRange, "the map has no range"),
        (Finding::Gap { before: RangeId(2) }, "keys before r2 belong to no range"),
        (Finding::OpenEnd { after: RangeId(1) }, "keys after r1 belong to no range"),
        (Finding::Empty { range: RangeId(4) }, "r4 can hold no key"),
    ] {
        assert_eq!(finding.to_string(), text);
    }
}
