//! The history of load: no step loses counts, budgets hold, and the axis changes rarely.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use rangehold_map::history::{
    Axis, BUCKETS_MAX, Boundaries, Cells, Column, Projection, Record, RollUp, SEGMENTS_MAX, Segment, Shelf,
    Survey, TICKS_BEFORE_SURVEY, Tier, View,
};
use rangehold_map::load::{Counts, Place, Tally};
use rangehold_map::{KeyRange, PartitionPrefix, TableId};

/// A hash that is good enough for the keys of tests (FNV-1a).
fn name(key: &[u8]) -> u64 {
    key.iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
}

fn sum<'a>(counts: impl IntoIterator<Item = &'a Counts>) -> Counts {
    let mut sum = Counts::default();
    counts.into_iter().for_each(|counts| sum += *counts);
    sum
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(b'a'), Just(b'b'), any::<u8>()], 1..4).prop_map(|rest| [&[0x20][..], &rest].concat())
}

fn axis() -> impl Strategy<Value = Axis> {
    vec(key(), 0..12).prop_map(|keys| Axis::new(keys, name))
}

fn counts() -> impl Strategy<Value = Counts> {
    vec(0u64..1_000, 6).prop_map(|n| Counts::of_numbers([n[0], n[1], n[2], n[3], n[4], n[5]]))
}

fn cells() -> impl Strategy<Value = Cells> {
    btree_map(0u32..14, counts(), 0..6)
}

fn tally() -> impl Strategy<Value = Tally> {
    let place = prop_oneof![
        key().prop_map(Place::Partition),
        (key(), proptest::option::of(key())).prop_map(|(low, high)| Place::Span(low, high)),
    ];
    (vec((place, counts()), 0..6), counts()).prop_map(|(places, rest)| {
        let mut total = sum(places.iter().map(|(_, counts)| counts));
        total += rest;
        Tally { total, places }
    })
}

proptest! {
    #[test]
    fn the_counts_of_a_range_are_in_its_cells(axis in axis(), tally in tally(), low in key(), high in key()) {
        let mut cells = Cells::new();
        axis.place(&KeyRange::new(low, Some(high)), &tally, &mut cells);
        prop_assert_eq!(sum(cells.values()), tally.total);
        prop_assert!(cells.keys().all(|bucket| (*bucket as usize) < axis.buckets()));
    }

    #[test]
    fn counts_without_a_place_stay_in_the_range(axis in axis(), rest in counts(), at in any::<prop::sample::Index>()) {
        let range = axis.bucket(at.index(axis.buckets()));
        let mut cells = Cells::new();
        axis.place(&range, &Tally { total: rest, places: Vec::new() }, &mut cells);
        prop_assert!(cells.keys().all(|bucket| axis.bucket(*bucket as usize) == range));
    }

    #[test]
    fn rolling_up_keeps_sums_and_times(
        seconds in vec((0i64..40, cells(), any::<bool>()), 0..60),
    ) {
        let axes = [Axis::new(vec![b"\x20a".to_vec()], name), Axis::new(vec![b"\x20b".to_vec()], name)];
        let (mut roll_up, mut at, mut axis) = (RollUp::default(), 1_000, 0);
        let mut rolled: BTreeMap<Tier, Vec<Column>> = BTreeMap::new();
        let mut total = Counts::default();
        for (later, cells, turn) in seconds {
            at += later;
            axis = if turn { 1 - axis } else { axis };
            total += sum(cells.values());
            let done = roll_up.add(&Column { at, axis: Arc::clone(axes[axis].boundaries()), cells });
            for (tier, column) in done {
                prop_assert!(column.at % tier.step() == 0 && column.at <= at, "{:?} {}", tier, column.at);
                rolled.entry(tier).or_default().push(column);
            }
        }
        for tier in [Tier::Ten, Tier::Minute] {
            let columns = rolled.remove(&tier).unwrap_or_default();
            let all: Vec<Counts> = columns.iter().chain(&roll_up.open(tier)).map(Column::total).collect();
            prop_assert_eq!(sum(&all), total, "{:?}", tier);
        }
        // After enough time, every column is complete.
        let done = roll_up.until(at + 120);
        prop_assert!(roll_up.open(Tier::Ten).is_empty() && roll_up.open(Tier::Minute).is_empty(), "{:?}", done);
    }

    #[test]
    fn minutes_can_be_added_up_again_from_tens(seconds in vec((0i64..15, cells(), any::<bool>()), 1..60)) {
        let axes = [Axis::new(vec![b"\x20a".to_vec()], name), Axis::new(vec![b"\x20b".to_vec()], name)];
        let (mut first, mut at, mut tens, mut minutes) = (RollUp::default(), 600, Vec::new(), Vec::new());
        let mut total = Counts::default();
        let note = |done: Vec<(Tier, Column)>, tens: &mut Vec<Column>, minutes: &mut Vec<Column>| {
            for (tier, column) in done {
                if tier == Tier::Ten { tens.push(column) } else { minutes.push(column) }
            }
        };
        for (later, cells, other) in seconds {
            at += later;
            total += sum(cells.values());
            let column = Column { at, axis: Arc::clone(axes[usize::from(other)].boundaries()), cells };
            note(first.add(&column), &mut tens, &mut minutes);
        }
        tens.extend(first.finish());
        // Another process continues from the written columns.
        let known_until = minutes.last().map_or(0, |minute: &Column| minute.at + 60);
        let mut second = RollUp::default();
        for ten in tens.iter().filter(|ten| ten.at >= known_until) {
            minutes.extend(second.resume(ten).into_iter().map(|(_, minute)| minute));
        }
        minutes.extend(second.open(Tier::Minute));
        prop_assert_eq!(sum(&minutes.iter().map(Column::total).collect::<Vec<_>>()), total);
    }

    #[test]
    fn projecting_keeps_sums(past in axis(), present in axis(), cells in cells(), with_keys in any::<bool>()) {
        let mut boundaries = Boundaries::clone(past.boundaries());
        if !with_keys {
            boundaries.keys = None;
        }
        let projected = Projection::new(&boundaries, &present).project(&cells);
        prop_assert_eq!(sum(projected.values()), sum(cells.values()));
        prop_assert!(projected.keys().all(|bucket| (*bucket as usize) < present.buckets()));
    }

    #[test]
    fn a_bucket_between_common_boundaries_stays_between_them(
        common in btree_set(key(), 1..5),
        past in vec(key(), 0..8),
        present in vec(key(), 0..8),
        with_keys in any::<bool>(),
        counts in counts(),
    ) {
        let with = |more: Vec<Vec<u8>>| Axis::new(common.iter().cloned().chain(more).collect(), name);
        let (past, present) = (with(past), with(present));
        let mut boundaries = Boundaries::clone(past.boundaries());
        if !with_keys {
            boundaries.keys = None;
        }
        let projection = Projection::new(&boundaries, &present);
        for bucket in 0..past.buckets() {
            let keys = past.bucket(bucket);
            let low = common.iter().rfind(|common| common.as_slice() <= keys.low());
            let high = common.iter().find(|common| keys.high().is_some_and(|high| common.as_slice() >= high));
            let projected = projection.project(&Cells::from([(bucket as u32, counts)]));
            for target in projected.keys() {
                let target = present.bucket(*target as usize);
                prop_assert!(low.is_none_or(|low| target.low() >= low.as_slice()));
                prop_assert!(high.is_none_or(|high| target.low() < high.as_slice()));
            }
        }
    }

    #[test]
    fn records_are_read_as_they_were_written(axis in axis(), at in 0i64..1 << 40, cells in cells()) {
        let column = Column { at, axis: Arc::clone(axis.boundaries()), cells };
        let expected = Record::Column { at, cells: column.cells.clone() };
        prop_assert_eq!(Record::decode(&Record::encode_column(&column)), Ok(expected));
        let with = Record::decode(&Record::encode_axis(axis.boundaries(), true));
        prop_assert_eq!(with, Ok(Record::Axis(Boundaries::clone(axis.boundaries()))));
        let without = Record::decode(&Record::encode_axis(axis.boundaries(), false));
        let names = axis.boundaries().names.clone();
        prop_assert_eq!(without, Ok(Record::Axis(Boundaries { names, keys: None })));
    }

    #[test]
    fn bytes_that_are_not_a_record_are_refused(bytes in vec(any::<u8>(), 0..200), kind in 0u8..4) {
        let _ = Record::decode(&[&[kind][..], &bytes].concat());
    }

    #[test]
    fn the_budget_holds_and_the_oldest_of_the_finest_tier_go_first(
        budget in 1_000u64..20_000,
        segments in vec((0usize..3, 0i64..500, 1u64..3_000), 1..60),
    ) {
        let mut shelf = Shelf::new(budget);
        let mut kept: BTreeMap<_, Segment> = BTreeMap::new();
        for (tier, from, bytes) in segments {
            let segment = Segment { tier: Tier::ALL[tier], from, to: from + 60, bytes };
            let Some(gone) = shelf.make_room(bytes, 500) else {
                prop_assert!(bytes > budget);
                continue;
            };
            let gone: Vec<Segment> = gone.iter().filter_map(|id| kept.remove(id)).collect();
            for gone in gone {
                let first = |other: &Segment| (gone.tier, gone.from) <= (other.tier, other.from);
                prop_assert!(kept.values().all(first), "{:?} went before {:?}", gone, kept);
            }
            let id = shelf.next_id();
            shelf.put(id, segment);
            kept.insert(id, segment);
            prop_assert!(shelf.bytes() <= budget);
            prop_assert_eq!(shelf.bytes(), kept.values().map(|segment| segment.bytes).sum::<u64>());
        }
    }

    #[test]
    fn a_view_shows_all_counts_within_it(
        past in axis(),
        present in axis(),
        columns in vec((0i64..300, cells()), 0..20),
        rows_max in 1usize..10,
        step in 1i64..70,
    ) {
        let mut view = View::new(present.clone(), &KeyRange::whole(), 50..250, step);
        let mut total = Counts::default();
        for (at, cells) in columns {
            let column = Column { at, axis: Arc::clone(past.boundaries()), cells };
            view.add(&column);
            if (50..250).contains(&at) {
                total += column.total();
            }
        }
        let shown = view.show(rows_max);
        prop_assert!(shown.rows.len() <= rows_max);
        prop_assert_eq!(shown.rows.iter().map(|row| row.buckets).sum::<usize>(), present.buckets());
        let cells = shown.columns.iter().flat_map(|column| &column.cells);
        prop_assert!(cells.clone().all(|(row, _)| *row < shown.rows.len()));
        prop_assert_eq!(sum(cells.map(|(_, counts)| counts)), total);
    }
}

fn partition(number: usize) -> Vec<u8> {
    PartitionPrefix::entity("acme", TableId(7), &format!("p{number:05}")).as_bytes().to_vec()
}

/// A tally with this many reads of each of these partitions.
fn reads(partitions: impl IntoIterator<Item = usize>, each: u64) -> Tally {
    let counts = Counts { reads: each, ..Counts::default() };
    let places: Vec<_> =
        partitions.into_iter().map(|number| (Place::Partition(partition(number)), counts)).collect();
    Tally { total: sum(places.iter().map(|(_, counts)| counts)), places }
}

#[test]
fn a_view_of_some_keys_has_no_column_for_load_outside_of_them() {
    let axis = Axis::new(vec![partition(5)], name);
    let mut view = View::new(axis.clone(), &KeyRange::new(start().remove(0), Some(partition(5))), 0..100, 10);
    for (at, number) in [(7, 7), (23, 3)] {
        let mut cells = Cells::new();
        axis.place(&KeyRange::whole(), &reads([number], 1), &mut cells);
        view.add(&Column { at, axis: Arc::clone(axis.boundaries()), cells });
    }
    let times: Vec<_> = view.show(9).columns.iter().map(|column| (column.at, column.cells.len())).collect();
    assert_eq!(times, [(20, 1)]);
}

fn start() -> Vec<Vec<u8>> {
    vec![KeyRange::whole().low().to_vec()]
}

/// Gives a survey the same load for some seconds. Returns how often the axis changed.
fn watch(survey: &mut Survey, tally: &Tally, seconds: u64) -> usize {
    let ranges = start();
    (0..seconds)
        .filter(|_| {
            survey.see([tally], name);
            survey.renew(&ranges, name).is_some()
        })
        .count()
}

#[test]
fn one_range_has_several_buckets_after_twenty_seconds_and_then_a_steady_load_changes_nothing() {
    let mut survey = Survey::new(start(), None, name);
    let load = reads(0..1_000, 3);
    assert_eq!(watch(&mut survey, &load, TICKS_BEFORE_SURVEY - 1), 0);
    assert_eq!(watch(&mut survey, &load, 1), 1);
    let buckets = survey.axis().buckets();
    assert!((100..200).contains(&buckets), "{buckets}");
    assert_eq!(watch(&mut survey, &load, 7_200), 0, "{} buckets", survey.axis().buckets());
}

#[test]
fn a_heavy_partition_gets_its_own_bucket_and_its_table_gets_a_boundary() {
    let mut survey = Survey::new(start(), None, name);
    let mut load = reads(0..1_000, 1);
    load.places[500].1.reads = 2_000;
    watch(&mut survey, &load, TICKS_BEFORE_SURVEY);
    let axis = survey.axis();
    let bucket = axis.bucket(axis.bucket_of(&partition(500)));
    assert_eq!(bucket.low(), partition(500));
    assert_eq!(bucket.high(), Some(&partition(501)[..]));
    assert!(axis.keys().contains(&rangehold_map::key::table_prefix("acme", TableId(7))));
}

#[test]
fn boundaries_stay_when_ranges_are_split_and_merged() {
    let mut survey = Survey::new(start(), None, name);
    watch(&mut survey, &reads(0..1_000, 1), TICKS_BEFORE_SURVEY);
    let before = survey.axis().keys().to_vec();
    let split = [start(), vec![partition(333)]].concat();
    let after = survey.renew(&split, name).expect("the range has a boundary of its own");
    assert!(before.iter().chain(&split).all(|key| after.keys().contains(key)));
    assert!(survey.renew(&start(), name).is_none(), "merged: the boundary stays");
}

#[test]
fn a_load_that_always_moves_stays_within_the_limit_of_buckets() {
    let mut survey = Survey::new([start(), vec![partition(1)]].concat(), None, name);
    for hour in 0..60 {
        watch(&mut survey, &reads(hour * 200..(hour + 1) * 200, 5), 600);
        assert!(survey.axis().buckets() <= BUCKETS_MAX, "{}", survey.axis().buckets());
    }
    assert!(survey.axis().buckets() >= BUCKETS_MAX - 1, "{} are used", survey.axis().buckets());
    let loaded = partition(58 * 200)..partition(60 * 200);
    let now = survey.axis().keys().iter().filter(|key| loaded.contains(key)).count();
    assert!(now > 60, "{now} boundaries where the load is now");
}

#[test]
fn many_ranges_stay_within_the_limit_of_buckets() {
    let ranges: Vec<_> = (0..3 * BUCKETS_MAX).map(partition).collect();
    let mut survey = Survey::new(ranges.clone(), None, name);
    assert!(survey.axis().buckets() <= BUCKETS_MAX);
    assert!(survey.renew(&[ranges, start()].concat(), name).is_none_or(|axis| axis.buckets() <= BUCKETS_MAX));
}

#[test]
fn boundaries_without_keys_are_recognised_when_their_keys_are_seen() {
    let mut first = Survey::new(start(), None, name);
    watch(&mut first, &reads(0..1_000, 1), TICKS_BEFORE_SURVEY);
    let kept = Boundaries { keys: None, ..Boundaries::clone(first.axis().boundaries()) };
    let mut second = Survey::new(start(), Some(&kept), name);
    assert_eq!(second.axis().buckets(), 1);
    watch(&mut second, &reads(0..1_000, 1), 1);
    assert_eq!(second.axis().keys(), first.axis().keys());
    let whole = Survey::new(start(), Some(first.axis().boundaries()), name);
    assert_eq!(whole.axis().keys(), first.axis().keys(), "with their keys at once");
}

#[test]
fn old_segments_are_deleted_even_within_the_budget() {
    let mut shelf = Shelf::new(1 << 20);
    for tier in Tier::ALL {
        let id = shelf.next_id();
        shelf.put(id, Segment { tier, from: 0, to: 60, bytes: 10 });
    }
    assert_eq!(shelf.make_room(0, 60 + 599).unwrap(), []);
    assert_eq!(shelf.make_room(0, 60 + 600).unwrap().len(), 1);
    assert_eq!(shelf.make_room(0, 60 + 6 * 3600).unwrap().len(), 1);
    assert_eq!(shelf.make_room(0, 60 + 7 * 86_400).unwrap().len(), 1);
    assert_eq!(shelf.bytes(), 0);
}

#[test]
fn the_number_of_segments_has_a_limit() {
    let mut shelf = Shelf::new(1 << 20);
    for at in 0..2 * SEGMENTS_MAX as i64 {
        shelf.make_room(1, at).unwrap();
        let id = shelf.next_id();
        shelf.put(id, Segment { tier: Tier::Minute, from: at, to: at + 1, bytes: 1 });
    }
    assert_eq!(shelf.bytes(), SEGMENTS_MAX as u64);
}
