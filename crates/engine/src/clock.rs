//! The time of the engine: a clock that never goes back.
//!
//! Wall clocks step back, by NTP or by hand. The times of rows must not: a timestamp that shrinks breaks
//! ETags. And if the database below gets a clock that is 30 s in the past, it hangs each write for ten
//! seconds and then closes itself for good. So only this module of the engine reads the wall clock:
//!
//! ```text
//!   wall clock  ----/    step back 1 h
//!                  |_______/-------/-------     (the time of other machines)
//!   Clock::now  ----/....../......./.------     (half speed until the wall has caught up)
//! ```
//!
//! While the wall clock is behind a time that was already given out, time goes on at half speed. It could
//! stand still instead. But then nothing would age for that hour, or for a year if the clock had been set a
//! year ahead by mistake: garbage would stay, and checkpoints would never end.
//!
//! Times that come from *outside* (the date of a signature, the end of a SAS) are compared with
//! [`Clock::wall`], since the machines that wrote them do not know how our clock was slowed down.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use rangehold_map::Timestamp;
use slatedb_common::clock::{SystemClock, SystemClockTicker};
use tokio::time::Instant;

/// A clock that never goes back. Clones share its state.
#[derive(Clone)]
pub struct Clock(Arc<Inner>);

struct Inner {
    source: Source,
    /// Added to the source. Tests step the wall clock with it.
    offset_ticks: AtomicI64,
    last: Mutex<Last>,
}

enum Source {
    /// The machine's clock.
    System,
    /// A fixed start. Time passes as in tokio, so it stands still while tokio's time is paused.
    Manual { start: Timestamp, since: Instant },
}

/// The time that was last given out, and when that was by the monotonic clock.
struct Last {
    given: Timestamp,
    at: Instant,
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self::new(Source::System)
    }

    /// A clock that begins at `start` and follows tokio's time, for tests and simulation.
    pub fn manual(start: Timestamp) -> Self {
        Self::new(Source::Manual { start, since: Instant::now() })
    }

    fn new(source: Source) -> Self {
        let last = Last { given: Timestamp::from_ticks(i64::MIN), at: Instant::now() };
        Self(Arc::new(Inner { source, offset_ticks: AtomicI64::new(0), last: Mutex::new(last) }))
    }

    /// The time now: that of the wall clock, but never before a time that was given out earlier.
    pub fn now(&self) -> Timestamp {
        let wall = self.wall();
        let at = Instant::now();
        let mut last = self.0.last.lock();
        if wall >= last.given {
            *last = Last { given: wall, at };
            return wall;
        }
        let passed = at.saturating_duration_since(last.at).as_nanos() / 200;
        // If less than one tick has passed, nothing is written, so that frequent callers do not stop the
        // clock.
        if passed > 0 {
            let given = last.given.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX));
            *last = Last { given, at };
        }
        last.given
    }

    /// The wall clock as it is. It may step back, so use it only to compare with times that others wrote.
    pub fn wall(&self) -> Timestamp {
        let offset = self.0.offset_ticks.load(Ordering::Relaxed);
        match &self.0.source {
            Source::System => system_time(),
            Source::Manual { start, since } => start.saturating_add(ticks(since.elapsed())),
        }
        .saturating_add(offset)
    }

    /// Makes sure that [`Clock::now`] returns no time before `floor` any more.
    pub fn advance_to(&self, floor: Timestamp) {
        let mut last = self.0.last.lock();
        if floor > last.given {
            *last = Last { given: floor, at: Instant::now() };
        }
    }

    /// Steps the wall clock by `ticks` of 100 ns, back if negative. For tests.
    pub fn step(&self, ticks: i64) {
        self.0.offset_ticks.fetch_add(ticks, Ordering::Relaxed);
    }

    /// The same clock, as the type that the database below takes.
    pub(crate) fn for_database(&self) -> Arc<dyn SystemClock> {
        Arc::new(DatabaseClock(self.clone()))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock")
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
fn system_time() -> Timestamp {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => Timestamp::from_ticks(ticks(after)),
        Err(before) => Timestamp::from_ticks(-ticks(before.duration())),
    }
}

/// A duration in ticks of 100 ns, at most the greatest value of the type.
pub(crate) fn ticks(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX)
}

/// [`Clock`] as an implementation of the database's trait. It waits by tokio's time: a clock that was
/// stepped must not make a wait longer or shorter.
#[derive(Debug)]
struct DatabaseClock(Clock);

impl SystemClock for DatabaseClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0.now().ticks() / 10).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600 * Timestamp::TICKS_PER_SECOND;

    fn paused<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without IO always builds")
            .block_on(test)
    }

    #[test]
    fn a_step_back_slows_the_clock_down_to_half_and_a_step_ahead_is_followed() {
        paused(async {
            let start = Timestamp::from_unix_seconds(1_700_000_000);
            let clock = Clock::manual(start);
            assert_eq!(clock.now(), start);
            clock.step(-HOUR);
            assert_eq!(clock.now(), start);
            assert_eq!(clock.wall(), start.saturating_add(-HOUR));
            tokio::time::advance(Duration::from_secs(10)).await;
            assert_eq!(clock.now(), start.saturating_add(5 * Timestamp::TICKS_PER_SECOND));
            clock.step(2 * HOUR);
            assert_eq!(clock.now(), clock.wall());
        });
    }

    proptest! {
        #[test]
        fn the_clock_never_goes_back(steps in prop::collection::vec((-3 * HOUR..HOUR, 0u64..5_000), 1..50)) {
            paused(async {
                let clock = Clock::manual(Timestamp::from_unix_seconds(1_700_000_000));
                let mut last = clock.now();
                for (step, ms) in steps {
                    clock.step(step);
                    tokio::time::advance(Duration::from_millis(ms)).await;
                    let now = clock.now();
                    prop_assert!(now >= last, "{now:?} after {last:?}");
                    prop_assert!(now >= clock.wall());
                    last = now;
                }
                Ok(())
            })?;
        }
    }

    #[test]
    fn the_system_clock_is_in_this_century() {
        let now = Clock::system().now().unix_seconds();
        assert!((1_700_000_000..4_100_000_000).contains(&now), "{now}");
    }
}
