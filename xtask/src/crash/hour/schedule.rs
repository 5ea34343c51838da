//! What happens when: drawn from the seed before the run begins.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

/// Checks of one run, however long it is. Each takes a sample of what the server uses.
pub(super) const CHECKS: u32 = 60;
/// `kill -9` and a start, in one hour: one each four minutes.
const KILLS_PER_HOUR: u32 = 15;
/// Stops of the process, in one hour.
const STOPS_PER_HOUR: u32 = 30;
/// The shortest and the longest stop, in milliseconds. The longest outlives each deadline of the server but that of a
/// write.
const STOP_MILLIS: std::ops::RangeInclusive<u64> = 1_000..=20_000;
/// Backups, in one hour.
const BACKUPS_PER_HOUR: u32 = 12;
/// Splits, merges and moves, in one hour.
const CHANGES_PER_HOUR: u32 = 2_000;

const HOUR: Duration = Duration::from_secs(3_600);

/// Something that happens once.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Event {
    /// Everything rests, the service is compared with what it acknowledged, and a sample is taken.
    Check,
    /// The process ends at once, and is started again.
    Kill,
    /// The process stands still for so long.
    Stop(Duration),
    /// A backup is made while everything goes on.
    Backup,
}

/// All that happens in one run. Times count from its begin.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Schedule {
    /// In the order of their times. The last is a check, at the end of the run.
    pub(super) events: Vec<(Duration, Event)>,
    /// When a change of ranges is asked for, in order.
    pub(super) changes: Vec<Duration>,
}

impl Schedule {
    /// A schedule for a run of this length. Of everything there is at least one, in a run as short as it may be.
    pub(super) fn draw(rng: &mut StdRng, length: Duration) -> Self {
        let mut events: Vec<(Duration, Event)> =
            (1..=CHECKS).map(|number| (length * number / CHECKS, Event::Check)).collect();
        events.extend(times(rng, KILLS_PER_HOUR, length).into_iter().map(|at| (at, Event::Kill)));
        events.extend(times(rng, BACKUPS_PER_HOUR, length).into_iter().map(|at| (at, Event::Backup)));
        for at in times(rng, STOPS_PER_HOUR, length) {
            events.push((at, Event::Stop(Duration::from_millis(rng.random_range(STOP_MILLIS)))));
        }
        // What comes at the same time as the last check comes before it, so that the run ends with a check.
        events.sort_by_key(|(at, event)| (*at, *event == Event::Check));
        Self { events, changes: times(rng, CHANGES_PER_HOUR, length) }
    }

    /// How many events there are of the kind that `is` tells.
    pub(super) fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|(_, event)| is(event)).count()
    }
}

/// Times at random, one in each of as many equal parts of the run as it has by its length.
fn times(rng: &mut StdRng, per_hour: u32, length: Duration) -> Vec<Duration> {
    let count = (length.as_secs_f64() / HOUR.as_secs_f64() * f64::from(per_hour)).round().max(1.0);
    let part = length.div_f64(count);
    (0..count as u32).map(|number| part * number + part.mul_f64(rng.random_range(0.0..1.0))).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn drawn(seed: u64, minutes: u32) -> Schedule {
        Schedule::draw(&mut StdRng::seed_from_u64(seed), Duration::from_secs(60) * minutes)
    }

    #[test]
    fn an_hour_has_as_many_of_each_as_it_should() {
        let schedule = drawn(1, 60);
        assert_eq!(schedule.changes.len(), 2_000);
        assert_eq!(schedule.count(|event| *event == Event::Check), 60);
        assert_eq!(schedule.count(|event| *event == Event::Kill), 15);
        assert_eq!(schedule.count(|event| *event == Event::Backup), 12);
        assert_eq!(schedule.count(|event| matches!(event, Event::Stop(_))), 30);
        assert!(schedule.changes.is_sorted());
    }

    #[test]
    fn a_short_run_has_one_of_each_and_ends_with_a_check() {
        for seed in 0..50 {
            let schedule = drawn(seed, 1);
            assert_eq!(schedule.count(|event| *event == Event::Kill), 1);
            assert_eq!(schedule.count(|event| *event == Event::Backup), 1);
            assert_eq!(schedule.changes.len(), 33);
            assert!(schedule.events.is_sorted_by_key(|(at, _)| *at));
            assert_eq!(schedule.events.last(), Some(&(Duration::from_secs(60), Event::Check)));
        }
    }

    #[test]
    fn stops_take_one_to_twenty_seconds() {
        for (_, event) in drawn(3, 60).events {
            if let Event::Stop(length) = event {
                assert!((1..=20).contains(&length.as_secs()), "{length:?}");
            }
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(drawn(7, 60), drawn(7, 60));
        assert_ne!(drawn(7, 60), drawn(8, 60));
    }
}
