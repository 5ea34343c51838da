//! The timestamps that a range gives to its writes. They strictly grow, also across crashes and across clocks that
//! step back.
//!
//! A timestamp is max(clock, last timestamp + 100 ns). So that this holds after a crash too, the range
//! keeps a *reservation* in its meta rows: no timestamp at or above it was ever given out, and a process that
//! opens the range starts there.
//!
//! A write of an object or a bucket takes whole microseconds, since their generations are numbers of microseconds. So the
//! timestamps of two such writes are at least 1 us apart.
//!
//! **How the reservation is renewed.** The reservation has no write of its own. The write that comes within five
//! seconds of the reservation's end carries the next reservation in its own batch. A batch is in the log
//! whole or not at all, so for every durable row there is a durable reservation above its
//! timestamp:
//!
//! * a write that carries no reservation has a timestamp below a reservation that *is* durable;
//! * a write that carries a reservation has a timestamp below that one.
//!
//! So no write waits for a renewal, an idle range writes nothing, and the timestamps follow a wall clock that
//! jumps ahead at once. Batches may enter the log in another order than that of their
//! timestamps, and then an older reservation would overwrite a newer one. Therefore each lock
//! stripe has a reservation row of its own (within a stripe the order is the same), and the
//! reservation of the range is the greatest of them.

use rangehold_map::key::{KIND_BUCKET, KIND_OBJECT};
use rangehold_map::{PartitionPrefix, Timestamp};

use crate::limits::{RESERVATION_LEFT_MIN_TICKS, RESERVED_TICKS};

/// A timestamp for one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) at: Timestamp,
    /// The reservation that the write must carry, if it must carry one.
    pub(crate) reserve: Option<Timestamp>,
}

/// How fine the timestamps of a write are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grain {
    /// 100 ns.
    Tick,
    /// Whole microseconds.
    Microsecond,
}

impl Grain {
    /// What the writes of a partition need.
    pub(crate) fn of(partition: &PartitionPrefix) -> Self {
        match partition.as_bytes().first() {
            Some(&(KIND_OBJECT | KIND_BUCKET)) => Self::Microsecond,
            _ => Self::Tick,
        }
    }

    /// The first time of this grain at or after `at`.
    fn round_up(self, at: Timestamp) -> Timestamp {
        match self {
            Self::Tick => at,
            Self::Microsecond => {
                let past = at.ticks().rem_euclid(Timestamp::TICKS_PER_US);
                let missing = if past == 0 { 0 } else { Timestamp::TICKS_PER_US - past };
                at.saturating_add(missing)
            }
        }
    }
}

/// The high-water mark of one range.
#[derive(Debug)]
pub(crate) struct HighWater {
    last: Timestamp,
    /// The greatest reservation known to be durable.
    reserved: Timestamp,
}

impl HighWater {
    /// The mark of a range that was just opened, with the reservation `reserved`.
    pub(crate) fn starting_at(reserved: Timestamp) -> Self {
        Self { last: reserved.saturating_add(-1), reserved }
    }

    /// The timestamp of the next write, greater than all before it.
    pub(crate) fn next(&mut self, now: Timestamp, grain: Grain) -> Stamp {
        self.last = grain.round_up(now.max(self.last.next()));
        let at = self.last;
        let left = self.reserved.ticks().saturating_sub(at.ticks());
        let due = left < RESERVATION_LEFT_MIN_TICKS;
        Stamp { at, reserve: due.then(|| at.saturating_add(RESERVED_TICKS)) }
    }

    /// No timestamp up to `high_water` is given from now on, whatever this range's own rows say.
    pub(crate) fn inherit(&mut self, high_water: Timestamp) {
        self.last = self.last.max(high_water);
    }

    /// Goes on after `high_water`, the last timestamp that was given. It is known, so the range need not begin at the
    /// reservation.
    pub(crate) fn resume_at(&mut self, high_water: Timestamp) {
        self.last = high_water;
    }

    /// The last timestamp that was given.
    pub(crate) fn last(&self) -> Timestamp {
        self.last
    }

    /// A write that carried `reservation` has become durable.
    pub(crate) fn reserved_durably(&mut self, reservation: Timestamp) {
        self.reserved = self.reserved.max(reservation);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// One step of a range's life.
    #[derive(Debug, Clone)]
    enum Step {
        /// A write in this stripe, `clock_ticks` after the start.
        Write { stripe: u8, clock_ticks: i64, grain: Grain },
        /// The log takes the batches that wait, up to this many, and they become durable.
        Flush { count: usize },
        /// Everything not durable is lost, and the range is opened again.
        Crash,
    }

    fn step() -> impl Strategy<Value = Step> {
        let second = Timestamp::TICKS_PER_SECOND;
        prop_oneof![
            6 => (0u8..4, -3_600 * second..40 * second, prop::sample::select(vec![Grain::Tick, Grain::Microsecond]))
                .prop_map(|(stripe, clock_ticks, grain)| Step::Write { stripe, clock_ticks, grain }),
            3 => (1usize..8).prop_map(|count| Step::Flush { count }),
            1 => Just(Step::Crash),
        ]
    }

    proptest! {
        /// Batches of different stripes reach the log in any order. Batches of one stripe keep their order.
        #[test]
        fn what_is_durable_is_below_what_follows_a_crash(
            steps in prop::collection::vec(step(), 1..80),
            order in any::<prop::sample::Selector>(),
        ) {
            let start = Timestamp::from_unix_seconds(1_700_000_000);
            let mut rows: BTreeMap<u8, Timestamp> = BTreeMap::new();
            let mut mark = HighWater::starting_at(Timestamp::default());
            let mut waiting: Vec<(u8, Stamp)> = Vec::new();
            let mut greatest_durable = Timestamp::from_ticks(-1);
            let mut last = Timestamp::from_ticks(-1);
            let mut last_of_mark = mark.last();
            for step in steps {
                match step {
                    Step::Write { stripe, clock_ticks, grain } => {
                        let clock = start.saturating_add(clock_ticks);
                        let stamp = mark.next(clock, grain);
                        prop_assert!(stamp.at > last && stamp.at >= clock);
                        if grain == Grain::Microsecond {
                            prop_assert_eq!(stamp.at.ticks() % Timestamp::TICKS_PER_US, 0);
                        }
                        // The grain adds less than itself.
                        let least = clock.max(last_of_mark.next());
                        prop_assert!(stamp.at.ticks() - least.ticks() < Timestamp::TICKS_PER_US);
                        last_of_mark = mark.last();
                        last = stamp.at;
                        waiting.push((stripe, stamp));
                    }
                    Step::Flush { count } => for _ in 0..count.min(waiting.len()) {
                        let stripe = order.select(waiting.iter().map(|(stripe, _)| *stripe));
                        let first = waiting.iter().position(|(s, _)| *s == stripe).unwrap();
                        let (stripe, stamp) = waiting.remove(first);
                        greatest_durable = greatest_durable.max(stamp.at);
                        if let Some(reservation) = stamp.reserve {
                            rows.insert(stripe, reservation);
                            mark.reserved_durably(reservation);
                        }
                    },
                    Step::Crash => {
                        waiting.clear();
                        mark = HighWater::starting_at(rows.values().max().copied().unwrap_or_default());
                        last_of_mark = mark.last();
                        last = greatest_durable;
                    }
                }
            }
            let reopened = HighWater::starting_at(rows.values().max().copied().unwrap_or_default())
                .next(Timestamp::from_ticks(0), Grain::Tick);
            prop_assert!(reopened.at > greatest_durable);
        }
    }

    #[test]
    fn a_steady_writer_carries_a_reservation_every_five_seconds() {
        let start = Timestamp::from_unix_seconds(1_700_000_000);
        let mut mark = HighWater::starting_at(Timestamp::default());
        let mut carried = 0;
        for ms in 0..60_000 {
            let stamp = mark.next(start.saturating_add(ms * Timestamp::TICKS_PER_MS), Grain::Tick);
            if let Some(reservation) = stamp.reserve {
                carried += 1;
                mark.reserved_durably(reservation);
            }
        }
        assert!((11..=13).contains(&carried), "{carried} in a minute");
    }
}
