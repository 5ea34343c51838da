//! How long things take in a profile: what follows from its numbers, and so what a run may take.
//!
//! Nothing here is measured. If a run takes longer, something happened that the numbers do not describe.

use std::time::Duration;

use rangehold_map::load::LoadPolicy;
use rangehold_map::plan::Policy;

/// How long a split or a move waits at most for its range to get ready.
const CHANGE_MAX: Duration = Duration::from_secs(30);
/// The number of looks in a row that must miss the cause of a verdict before the verdict ends.
const MISSES: u32 = 2;

/// From the first request to a verdict: the range is warm, and is then looked at. The looks are of equal length
/// and end when it was hot for long enough, so that the last one may end up to a look later.
pub(super) fn judged(load: &LoadPolicy) -> Duration {
    load.warm_for + load.hot_for + load.look
}

/// From the first request until a load that is even over the keys, and keeps ranges hot until each server has one,
/// lies on `servers` servers.
///
/// It is halved and halved again, in as many rounds as it takes to have a range for each server. In a round
///
/// 1. every range is judged, which the fresh halves are from their beginning;
/// 2. it is split, once it is ready;
/// 3. the halves settle, before their rates are believed;
/// 4. one of them moves, once it is ready.
///
/// One split and one move are begun in a tick of the planner, and all in all there is one of each for every
/// server but the first. No half waits for a cool-down: only what has moved has to stay, and its halves are
/// new ranges. For `cloud` and 4 servers that is 2 x (5 + 180 + 10 + 30 + 30 + 30) + 6 x 15 s, 11 minutes.
pub(super) fn spread(load: &LoadPolicy, plan: &Policy, servers: usize) -> Duration {
    let rounds = servers.next_power_of_two().trailing_zeros();
    let changes = 2 * u32::try_from(servers - 1).expect("there are few servers");
    let round = judged(load) + CHANGE_MAX + plan.settle + CHANGE_MAX;
    round * rounds + plan.tick * changes
}

/// From a verdict against a split until the split that another verdict would have asked for.
///
/// The verdict ends when two looks in a row do not find its cause. A verdict of "unclear" is tried again a while
/// later. Then the range is judged again, and it is split with the next tick, once it is ready. For
/// `cloud` that is 2 x 190 + 195 + 15 + 30 s, a little more than 10 minutes.
pub(super) fn judged_again(load: &LoadPolicy, plan: &Policy) -> Duration {
    let falls = (load.hot_for + load.look) * MISSES;
    falls.max(load.retry_first) + judged(load) + plan.tick + CHANGE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_spread_in_the_minutes_that_the_documentation_names() {
        let page =
            std::fs::read_to_string(rangehold_testkit::workspace::root().join("docs/profiles.md")).unwrap();
        let row = page.lines().find(|line| line.contains("is on all of them within")).unwrap();
        let minutes = |time: Duration| time.as_secs().div_ceil(60);
        let fast = minutes(spread(&LoadPolicy::fast(), &Policy::fast(), 4));
        let cloud = minutes(spread(&LoadPolicy::cloud(), &Policy::cloud(), 4));
        assert!(row.contains(&format!("| {fast} minutes | {cloud} minutes |")), "{fast}, {cloud}: {row}");
    }

    #[test]
    fn one_server_needs_no_round() {
        assert_eq!(spread(&LoadPolicy::cloud(), &Policy::cloud(), 1), Duration::ZERO);
    }
}
