//! How fast a bulk job may go. Pure: every call gets the time, counted from any beginning.
//!
//! A job has a *ceiling* and a *rate* below it, both in requests a second.
//!
//! * The ceiling follows the [`Pace`]. For objects it doubles in 20 minutes, but only over time in which the job
//!   really wants more than it gets: a store does not prepare for load that it does not see.
//! * The rate falls at a sign of pressure: to half of what was really sent at an answer of 408, 429 or 5xx or a lost connection,
//!   and by a fifth when answers take three times as long as they used to. Requests in flight bring several
//!   signs of one cause, so it falls at most once in a second.
//! * A second after the last sign the rate begins to rise again, by a tenth each second, up to the ceiling.
//!
//! Requests pass one by one, with a small reserve for those that come late: a twentieth of a second's requests. A batch of entities
//! passes as a whole when one request may, and those that come after it wait until its entities have had their time.

use std::time::Duration;

/// Signs of pressure within this time count as one, and the rate rests for so long before it rises.
const REST: Duration = Duration::from_secs(1);
/// What a second without a sign adds to the rate.
const RISE: f64 = 1.1;
/// The lowest rate. With batches it is one of the largest batch that has passed.
const RATE_MIN: f64 = 1.0;
/// The part of a second whose requests may pass at once.
const RESERVE_SECONDS: f64 = 0.05;
/// Answers before latencies are compared.
const ANSWERS_MIN: u32 = 200;
/// Answers take longer, if they take so many times as long as they used to ...
const LONGER: f64 = 3.0;
/// ... and at least this, in seconds.
const LONG: f64 = 0.1;
/// The time over which the rate that was really sent is measured.
const MEASURED: Duration = Duration::from_secs(1);
/// The longest wait before a job asks again: a rate that was low may have risen meanwhile.
const WAIT_MAX: f64 = 1.0;
/// Bytes of request and answer up to which the time of an answer can be compared with other times. Above, the time is that of the
/// network.
const COMPARABLE_BYTES: usize = 64 * 1024;

/// The rates that a kind of request may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Requests a second at the beginning, or entities for tables; infinite without a limit.
    pub per_second: f64,
    /// After how long the rate may have doubled; `None` if it stays.
    pub doubles_in: Option<Duration>,
}

impl Pace {
    /// Writes and deletions of objects in one bucket, by the guideline on request rates.
    pub const OBJECT_WRITES: Self =
        Self { per_second: 1_000.0, doubles_in: Some(Duration::from_secs(20 * 60)) };
    /// Reads of objects in one bucket, by the same guideline.
    pub const OBJECT_READS: Self =
        Self { per_second: 5_000.0, doubles_in: Some(Duration::from_secs(20 * 60)) };
    /// Entities of one partition, by the targets of Azure Table Storage.
    pub const TABLE_PARTITION: Self = Self { per_second: 2_000.0, doubles_in: None };
    /// Entities of one account, by the same targets.
    pub const TABLE_ACCOUNT: Self = Self { per_second: 20_000.0, doubles_in: None };
    /// No limit, until there are signs of pressure.
    pub const FREE: Self = Self { per_second: f64::INFINITY, doubles_in: None };
}

/// What one answer says about the store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sign {
    /// An answer after this time.
    Answer(Duration),
    /// An answer whose time says nothing, because many bytes moved.
    LargeAnswer,
    /// 408, 429, 5xx, or no answer.
    Pressure,
}

impl Sign {
    /// The sign of an answer with this status, or of none, to a request that moved `bytes`.
    pub fn of(status: Option<u16>, took: Duration, bytes: usize) -> Self {
        Self::compared(status, took, bytes, COMPARABLE_BYTES)
    }

    /// The same, where times can be compared up to `comparable` bytes.
    pub(super) fn compared(status: Option<u16>, took: Duration, bytes: usize, comparable: usize) -> Self {
        match status {
            None | Some(408 | 429 | 500 | 502..=599) => Self::Pressure,
            Some(_) if bytes > comparable => Self::LargeAnswer,
            Some(_) => Self::Answer(took),
        }
    }
}

/// The state of a job's speed.
#[derive(Debug, Clone)]
pub struct Ramp {
    pace: Pace,
    ceiling: f64,
    rate: f64,
    /// Requests that may pass now; below zero if some were let pass ahead of time.
    reserve: f64,
    /// When `reserve`, `rate` and `ceiling` were brought up to date.
    seen: Duration,
    /// Whether the last request had to wait.
    is_short: bool,
    /// The most that has passed together.
    largest: f64,
    /// When the last sign of pressure counted.
    pressed: Option<Duration>,
    /// What passed in the present and the last stretch of [`MEASURED`].
    stretch: (Duration, f64, f64),
    answers: u32,
    /// The usual and the recent time of an answer, in seconds.
    usual: f64,
    recent: f64,
}

impl Ramp {
    /// A job at this pace that begins at `now`.
    pub fn new(pace: Pace, now: Duration) -> Self {
        Self {
            pace,
            ceiling: pace.per_second,
            rate: pace.per_second,
            reserve: 1.0,
            seen: now,
            is_short: false,
            largest: 1.0,
            pressed: None,
            stretch: (now, 0.0, 0.0),
            answers: 0,
            usual: 0.0,
            recent: 0.0,
        }
    }

    /// Requests a second that may pass now.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Lets a request pass, or says how long to wait before asking again.
    ///
    /// # Errors
    /// The wait, if the rate does not allow a request at `now`.
    pub fn pass(&mut self, now: Duration) -> Result<(), Duration> {
        self.pass_together(1, now)
    }

    /// Lets `count` requests pass together, or the entities of a batch, or says how long to wait before asking again.
    ///
    /// # Errors
    /// The wait, if the rate does not allow any request at `now`.
    pub fn pass_together(&mut self, count: u32, now: Duration) -> Result<(), Duration> {
        self.advance(now);
        self.is_short = self.reserve < 1.0 && self.rate.is_finite();
        if self.is_short {
            let wait = ((1.0 - self.reserve) / self.rate).min(WAIT_MAX);
            return Err(Duration::from_secs_f64(wait).max(Duration::from_micros(100)));
        }
        let count = f64::from(count);
        if self.rate.is_finite() {
            self.reserve -= count;
        }
        self.largest = self.largest.max(count);
        self.stretch.1 += count;
        Ok(())
    }

    /// Takes note of an answer.
    pub fn note(&mut self, sign: Sign, now: Duration) {
        self.advance(now);
        match sign {
            Sign::LargeAnswer => {}
            Sign::Pressure => self.press(0.5, now),
            Sign::Answer(took) => {
                let took = took.as_secs_f64();
                self.answers = self.answers.saturating_add(1);
                let weight = |least: f64| (1.0 / f64::from(self.answers)).max(least);
                self.recent += (took - self.recent) * weight(0.05);
                self.usual += (took - self.usual) * weight(0.001);
                if self.answers >= ANSWERS_MIN && self.recent > LONG && self.recent > LONGER * self.usual {
                    self.press(0.8, now);
                }
            }
        }
    }

    /// Lowers the rate, unless it was lowered a moment ago.
    fn press(&mut self, factor: f64, now: Duration) {
        if self.pressed.is_some_and(|pressed| now < pressed + REST) {
            return;
        }
        let sent = self.stretch.1.max(self.stretch.2) / MEASURED.as_secs_f64();
        self.rate = (self.rate.min(sent) * factor).max(RATE_MIN * self.largest).min(self.ceiling);
        // One request keeps its place: else signs that come once a second would let none pass at the lowest rate.
        self.reserve = self.reserve.min(1.0);
        self.pressed = Some(now);
    }

    /// Brings everything up to `now`.
    fn advance(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.seen).as_secs_f64();
        self.seen = self.seen.max(now);
        if let Some(double) = self.pace.doubles_in
            && self.is_short
            && self.pressed.is_none()
        {
            self.ceiling *= 2_f64.powf(passed / double.as_secs_f64());
        }
        match self.pressed {
            None => self.rate = self.ceiling,
            Some(pressed) => {
                // The time since the rate may rise, as far as it lies after the last call.
                let rising = now.saturating_sub(pressed + REST).as_secs_f64().min(passed);
                self.rate = (self.rate * RISE.powf(rising)).min(self.ceiling);
                if self.rate >= self.ceiling {
                    self.pressed = None;
                }
            }
        }
        if self.rate.is_finite() {
            let most = (self.rate * RESERVE_SECONDS).max(1.0);
            self.reserve = (self.reserve + self.rate * passed).min(most);
        }
        self.measure(now);
    }

    fn measure(&mut self, now: Duration) {
        let (begun, count, _) = self.stretch;
        let since = now.saturating_sub(begun);
        if since >= MEASURED {
            let last = if since < 2 * MEASURED { count } else { 0.0 };
            self.stretch = (now, 0.0, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Asks for as much as possible from `from` to `to`; returns how much passed.
    fn drive(ramp: &mut Ramp, from: Duration, to: Duration) -> u64 {
        let (mut now, mut passed) = (from, 0);
        while now < to {
            match ramp.pass(now) {
                Ok(()) => passed += 1,
                Err(wait) => now += wait,
            }
        }
        passed
    }

    #[test]
    fn a_job_on_objects_begins_at_the_documented_rate_and_doubles_in_twenty_minutes() {
        let mut ramp = Ramp::new(Pace { per_second: 10.0, ..Pace::OBJECT_WRITES }, Duration::ZERO);
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let mut rates = Vec::new();
        for step in 0..3 {
            drive(&mut ramp, minutes(20 * step), minutes(20 * (step + 1)));
            rates.push(ramp.rate().round());
        }
        assert_eq!(rates, [20.0, 40.0, 80.0]);
        assert_eq!((Pace::OBJECT_WRITES.per_second, Pace::OBJECT_READS.per_second), (1_000.0, 5_000.0));
    }

    #[test]
    fn load_that_is_not_sent_does_not_raise_the_ceiling() {
        let mut ramp = Ramp::new(Pace::OBJECT_WRITES, Duration::ZERO);
        for second in 0..3_600 {
            assert_eq!(ramp.pass(Duration::from_secs(second)), Ok(()));
        }
        assert_eq!(ramp.rate(), 1_000.0);
    }

    #[test]
    fn pressure_halves_what_was_sent_once_a_second_and_a_tenth_comes_back_each_second() {
        let mut ramp = Ramp::new(Pace::FREE, Duration::ZERO);
        for request in 0..1_000 {
            assert_eq!(ramp.pass(request * MS), Ok(()), "there is no limit yet");
        }
        let now = 999 * MS;
        for _ in 0..50 {
            ramp.note(Sign::of(Some(429), MS, 0), now);
        }
        assert_eq!(ramp.rate(), 500.0, "fifty answers of one moment are one sign");
        ramp.note(Sign::of(Some(200), MS, 0), now + REST);
        assert_eq!(ramp.rate(), 500.0);
        ramp.note(Sign::of(Some(200), MS, 0), now + 2 * REST);
        assert_eq!(ramp.rate().round(), 550.0);
        let passed = drive(&mut ramp, now + 2 * REST, now + 3 * REST);
        assert!((540..=620).contains(&passed), "{passed}");
    }

    #[test]
    fn answers_that_take_longer_slow_a_job_down_before_the_store_refuses() {
        let mut ramp = Ramp::new(Pace::TABLE_PARTITION, Duration::ZERO);
        let mut now = Duration::ZERO;
        let mut answers = |ramp: &mut Ramp, took: Duration, count: u32| {
            for _ in 0..count {
                now += MS;
                // Once the rate has fallen, not all of a thousand a second pass.
                let _ = ramp.pass(now);
                ramp.note(Sign::Answer(took), now);
            }
        };
        answers(&mut ramp, 40 * MS, 2_000);
        assert_eq!(ramp.rate(), 2_000.0);
        answers(&mut ramp, 40 * MS, 10);
        ramp.note(Sign::LargeAnswer, Duration::from_secs(2));
        assert_eq!(ramp.rate(), 2_000.0);
        answers(&mut ramp, 400 * MS, 40);
        assert!((700.0..900.0).contains(&ramp.rate()), "{}", ramp.rate());
    }

    #[test]
    fn a_batch_counts_all_its_entities_and_one_a_second_is_the_least() {
        let mut ramp = Ramp::new(Pace::TABLE_PARTITION, Duration::ZERO);
        let (mut now, mut entities) = (Duration::ZERO, 0);
        let mut drive = |ramp: &mut Ramp, to: Duration| {
            while now < to {
                match ramp.pass_together(100, now) {
                    Ok(()) => entities += 100,
                    Err(wait) => now += wait,
                }
            }
            std::mem::take(&mut entities)
        };
        let ten = drive(&mut ramp, 10 * REST);
        assert!((19_900..=20_200).contains(&ten), "{ten}");
        // The service answers 503 for a minute.
        let mut minute = 0;
        for second in 10..70 {
            ramp.note(Sign::Pressure, second * REST);
            minute += drive(&mut ramp, (second + 1) * REST);
        }
        assert!((5_500..=8_500).contains(&minute), "{minute}");
        // Then it comes back to the documented rate, and not beyond.
        drive(&mut ramp, 120 * REST);
        assert_eq!(ramp.rate(), 2_000.0);
    }

    proptest! {
        #[test]
        fn a_job_never_sends_more_than_its_pace_allows_and_never_stands_still(
            pressed in proptest::collection::vec(0..10_000_u64, 0..20),
            per_second in 1.0..500.0,
        ) {
            let pace = Pace { per_second, doubles_in: Some(Duration::from_secs(10)) };
            let mut ramp = Ramp::new(pace, Duration::ZERO);
            let mut passed = 0;
            for second in 0..10_u64 {
                let from = Duration::from_secs(second);
                for at in pressed.iter().filter(|at| **at / 1_000 == second) {
                    ramp.note(Sign::Pressure, Duration::from_millis(*at).max(from));
                }
                passed += drive(&mut ramp, from, from + REST);
                let most = per_second * 2_f64.powf((second + 1) as f64 / 10.0);
                prop_assert!(ramp.rate() <= most + 1e-6 && ramp.rate() >= RATE_MIN.min(per_second));
                let sent = most * (second + 1) as f64 * (1.0 + RESERVE_SECONDS) + 2.0;
                prop_assert!(passed as f64 <= sent, "{passed} of {sent}");
            }
            prop_assert!(passed >= 5);
        }
    }
}
