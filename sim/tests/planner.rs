//! The real manager plans, and what it plans is done: splits and merges by load, while clients work.

use rangehold_sim::faults::Weather;
use rangehold_sim::run::run_of;
use rangehold_sim::world::{Planner, Size};

#[test]
fn ranges_are_split_and_merged_by_their_load() {
    // So much that some ranges are below it by half, and are merged: all clients together send 30 requests a second.
    let capacity = Planner::Splits(8.0);
    let size = Size { servers: 3, planner: Some(capacity), random: false, ..Size::default() };
    let mut planned = [0; 3];
    for seed in 1..=4 {
        let outcome = run_of(seed, Weather::fair(), size, false);
        assert_eq!(outcome.findings, Vec::<String>::new(), "{outcome}");
        planned.iter_mut().zip(outcome.planned).for_each(|(sum, count)| *sum += count);
    }
    let [splits, merges, _] = planned;
    assert!(splits > 0 && merges > 0, "{planned:?} splits, merges and moves");
}
