//! A token bucket: how much of a budget is left.
//!
//! ```text
//!      rate                      a bucket holds one second's worth;
//!       |                        what runs over is saved, and once a minute
//!   ____v____                    becomes credit, up to a limit:
//!  |         |--- overflow --> saved --each minute--> credit
//!  |  level  |                                          |
//!  |_________|                                          v
//!       |  taken first                 taken when the level is out, and there is room
//!       v
//! ```
//!
//! **Lending.** A request that finds at least one token is let in, whatever it costs. Otherwise a batch of a hundred
//! would never pass a bucket that single writes keep nearly empty. So the level may fall below zero, and later
//! requests wait until it is above zero again. What a page returns is known only while it is read. So it is charged
//! as it grows, and must end when the debt is too large. In any stretch of time, no more is used than these together:
//! what the rate gives, one second's worth, the credit, and what was lent to the last request.
//!
//! **Credit by the minute.** Unused budget becomes credit only when a whole minute is over. So a new bucket has no
//! credit, and neither has one that was forgotten and made again: forgetting a bucket never gives more than the
//! budget.

use std::time::Duration;

use crate::profile::Budget;

/// The time over which unused budget is counted before it becomes credit.
const CREDITED_EVERY: Duration = Duration::from_secs(60);

/// The part of a [`Budget`] that is left. All times are counted from the same moment, and any moment will do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bucket {
    level: f64,
    credit: f64,
    /// The unused budget of this minute.
    saved: f64,
    minute_begun: Duration,
    at: Duration,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn full(budget: &Budget, now: Duration) -> Self {
        Self { level: budget.per_second, credit: 0.0, saved: 0.0, minute_begun: now, at: now }
    }

    /// Takes `cost` if there is a token left, and tells whether it did. With `room` it may also use credit.
    pub(crate) fn take(&mut self, budget: &Budget, now: Duration, cost: f64, room: bool) -> bool {
        self.refill(budget, now);
        if self.level >= 1.0 {
            self.level -= cost;
            true
        } else if room && self.credit >= cost {
            self.credit -= cost;
            true
        } else {
            false
        }
    }

    /// Takes `cost` for work that is under way, and tells whether the work may go on. It may not if the debt has
    /// reached `lent_max`.
    pub(crate) fn charge(
        &mut self,
        budget: &Budget,
        now: Duration,
        cost: f64,
        lent_max: f64,
        room: bool,
    ) -> bool {
        self.refill(budget, now);
        self.level -= cost;
        if room && self.level < 0.0 {
            let paid = self.credit.min(-self.level);
            self.credit -= paid;
            self.level += paid;
        }
        self.level > -lent_max
    }

    /// Takes up to `most` tokens, and never lends.
    pub(crate) fn draw(&mut self, budget: &Budget, now: Duration, most: f64) -> f64 {
        self.refill(budget, now);
        let drawn = self.level.clamp(0.0, most.max(0.0));
        self.level -= drawn;
        drawn
    }

    /// The time until the bucket holds `tokens`, if nothing is taken.
    pub(crate) fn ready_in(&self, budget: &Budget, tokens: f64) -> Duration {
        Duration::from_secs_f64(((tokens - self.level) / budget.per_second).max(0.0))
    }

    /// Adds what the rate gave since the last call. A `now` before that of the last call adds nothing.
    fn refill(&mut self, budget: &Budget, now: Duration) {
        let passed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        self.level += passed.as_secs_f64() * budget.per_second;
        self.saved += (self.level - budget.per_second).max(0.0);
        self.level = self.level.min(budget.per_second);
        if self.at - self.minute_begun >= CREDITED_EVERY {
            let credit_max = budget.credit.as_secs_f64() * budget.per_second;
            self.credit = (self.credit + self.saved).min(credit_max);
            (self.saved, self.minute_begun) = (0.0, self.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BUDGET: Budget = Budget { per_second: 100.0, credit: Duration::from_secs(30) };
    const LENT_MAX: f64 = 50.0;

    /// Steps of a history. Each has the milliseconds that pass, whether it is a request or the growth of a page, its
    /// cost, and whether there is room.
    fn steps() -> impl Strategy<Value = Vec<(u64, bool, u32, bool)>> {
        prop::collection::vec((0..20_000_u64, any::<bool>(), 1..120_u32, any::<bool>()), 1..200)
    }

    proptest! {
        /// In every stretch of a history, no more is used than these together: what the rate gives, a full bucket,
        /// the most credit that there may be, and what was lent.
        #[test]
        fn no_stretch_uses_more_than_its_budget(steps in steps()) {
            let mut bucket = Bucket::full(&BUDGET, Duration::ZERO);
            let mut now = Duration::ZERO;
            let mut used: Vec<(Duration, f64)> = Vec::new();
            let mut may_go_on = true;
            for (passed, is_request, cost, room) in steps {
                now += Duration::from_millis(passed);
                let cost = f64::from(cost);
                if is_request {
                    if bucket.take(&BUDGET, now, cost, room) {
                        used.push((now, cost));
                    }
                } else if may_go_on {
                    // A page that was told to end does not grow. The next page may begin.
                    may_go_on = bucket.charge(&BUDGET, now, cost, LENT_MAX, room);
                    used.push((now, cost));
                } else {
                    may_go_on = bucket.take(&BUDGET, now, 0.0, room);
                }
            }
            for (begin, &(since, _)) in used.iter().enumerate() {
                let mut sum = 0.0;
                for &(until, cost) in &used[begin..] {
                    sum += cost;
                    let rate = (until - since).as_secs_f64() * BUDGET.per_second;
                    let credit = BUDGET.credit.as_secs_f64() * BUDGET.per_second;
                    // The bucket lent to a request of at most 119, and then to a page that grew by at most 119.
                    let most = rate + BUDGET.per_second + credit + LENT_MAX + 2.0 * 119.0;
                    prop_assert!(sum <= most + 1e-6, "{sum} used in {:?}", until - since);
                }
            }
        }

        /// No more is drawn than what the rate gives and one second's worth. Not one token is lent.
        #[test]
        fn drawing_never_lends(draws in prop::collection::vec((0..3_000_u64, 0..500_u32), 1..200)) {
            let mut bucket = Bucket::full(&BUDGET, Duration::ZERO);
            let (mut now, mut sum) = (Duration::ZERO, 0.0);
            for (passed, most) in draws {
                now += Duration::from_millis(passed);
                sum += bucket.draw(&BUDGET, now, f64::from(most));
                prop_assert!(sum <= now.as_secs_f64() * BUDGET.per_second + BUDGET.per_second + 1e-6);
            }
        }

        /// A client that asks all the time gets the whole rate: nothing is lost.
        #[test]
        fn a_greedy_user_gets_the_whole_rate(every_ms in 1..50_u64, cost in 1..100_u32) {
            let mut bucket = Bucket::full(&BUDGET, Duration::ZERO);
            let (mut now, mut sum) = (Duration::ZERO, 0.0);
            while now < Duration::from_secs(20) {
                now += Duration::from_millis(every_ms);
                // Several requests at once, as from many clients.
                for _ in 0..10 {
                    sum += f64::from(u8::from(bucket.take(&BUDGET, now, f64::from(cost), false))) * f64::from(cost);
                }
            }
            prop_assert!(sum >= 20.0 * BUDGET.per_second, "{sum}");
        }
    }

    #[test]
    fn credit_comes_from_whole_minutes_and_needs_room() {
        let mut bucket = Bucket::full(&BUDGET, Duration::ZERO);
        let spend = |bucket: &mut Bucket, at: u64, room: bool| {
            let taken = (0..10_000).filter(|_| bucket.take(&BUDGET, Duration::from_secs(at), 1.0, room));
            taken.count()
        };
        // 59 quiet seconds are not a minute.
        assert_eq!(spend(&mut bucket, 59, true), 100);
        // When the minute is over, what ran over becomes credit, but at most 30 s of the rate.
        assert_eq!(spend(&mut bucket, 61, false), 100);
        assert_eq!(spend(&mut bucket, 61, true), 3_000);
        assert_eq!(spend(&mut bucket, 62, true), 100);
    }

    #[test]
    fn a_large_request_is_not_starved_by_small_ones() {
        let mut bucket = Bucket::full(&BUDGET, Duration::ZERO);
        while bucket.take(&BUDGET, Duration::ZERO, 1.0, false) {}
        assert!(bucket.take(&BUDGET, Duration::from_millis(15), 100.0, false));
        // Its cost is paid back before the next request is let in.
        assert!(!bucket.take(&BUDGET, Duration::from_millis(1_000), 1.0, false));
        assert!(bucket.take(&BUDGET, Duration::from_millis(1_010), 1.0, false));
    }

    #[test]
    fn time_that_goes_back_gives_nothing() {
        let mut bucket = Bucket::full(&BUDGET, Duration::from_secs(10));
        assert_eq!(bucket.draw(&BUDGET, Duration::from_secs(10), 500.0), 100.0);
        assert_eq!(bucket.draw(&BUDGET, Duration::from_secs(5), 500.0), 0.0);
        assert_eq!(bucket.draw(&BUDGET, Duration::from_secs(11), 500.0), 100.0);
    }
}
