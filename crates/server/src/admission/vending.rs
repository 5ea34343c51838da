//! Budgets of the whole service, spent by its front ends.
//!
//! An account has one budget, but its requests come in at every front end. If each request asked for its tokens, that
//! would cost a round trip. So an *authority* keeps the account's bucket and gives out tokens for about a second at a
//! time, and each front end pays from its own *purse*:
//!
//! ```text
//!   front end                                  authority
//!   purse is empty --- Ask { demand } ------->  draws from the account's bucket
//!   pays from it   <-- Grant { tokens, .. } --  (what the bucket has, at most the demand)
//! ```
//!
//! Tokens expire, so that an idle purse does not keep them from others for long. A grant that is too small says when
//! to ask again. So an account above its budget does not cause more questions. Today both sides are in one process,
//! and the message is a call. It stays a message, because the authority will be another process when several
//! processes share one store.

use std::time::Duration;

use super::bucket::Bucket;
use super::recent::Recent;
use crate::profile::Budget;

/// A front end asks for the tokens that it may need in this time.
const ASKED_FOR: Duration = Duration::from_secs(1);
/// The time after which unused tokens expire.
const EXPIRE_AFTER: Duration = Duration::from_secs(2);
/// The fewest tokens that are asked for.
const DEMAND_MIN: f64 = 32.0;
/// The most accounts or tables that an authority or a front end remembers.
const SCOPES_MAX: usize = 4096;

/// A front end asks for tokens of one account or table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ask {
    /// The account or table, as a hash.
    pub(crate) scope: u64,
    /// The number of tokens that it could use.
    pub(crate) demand: f64,
}

/// The answer to an [`Ask`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grant {
    /// The number of tokens that it may use.
    pub(crate) tokens: f64,
    /// How long they are valid.
    pub(crate) good_for: Duration,
    /// When to ask again, if there are too few.
    pub(crate) again_in: Duration,
}

/// Keeps the buckets of all accounts, or of all tables.
#[derive(Debug)]
pub(crate) struct Authority {
    budget: Budget,
    buckets: Recent<Bucket>,
}

impl Authority {
    /// An authority that gives every account, or every table, the same budget.
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget, buckets: Recent::new(SCOPES_MAX) }
    }

    /// Answers the question of a front end.
    pub(crate) fn ask(&mut self, now: Duration, ask: &Ask) -> Grant {
        let bucket = self.buckets.get(ask.scope, now, || Bucket::full(&self.budget, now));
        let tokens = bucket.draw(&self.budget, now, ask.demand);
        // When the bucket has so many tokens, it is worth asking again.
        let worth_it = (self.budget.per_second / 20.0).clamp(1.0, DEMAND_MIN);
        let too_few = tokens < ask.demand;
        let again_in = if too_few { bucket.ready_in(&self.budget, worth_it) } else { Duration::ZERO };
        Grant { tokens, good_for: EXPIRE_AFTER, again_in }
    }
}

/// A front end's tokens of one account or table.
#[derive(Debug, Default)]
struct Purse {
    tokens: f64,
    good_until: Duration,
    asked: Duration,
    ask_from: Duration,
    /// The tokens paid since the front end last asked.
    paid: f64,
}

impl Purse {
    /// Pays, if there are enough tokens.
    fn pay(&mut self, now: Duration, cost: f64) -> bool {
        let enough = now < self.good_until && self.tokens >= cost;
        if enough {
            self.tokens -= cost;
            self.paid += cost;
        }
        enough
    }

    /// How many tokens to ask for: twice what was used lately in the time [`ASKED_FOR`], so that growing demand is
    /// met soon. `None` while it is too early to ask again.
    fn demand(&self, now: Duration, cost: f64) -> Option<f64> {
        let since = now.saturating_sub(self.asked).max(Duration::from_millis(1));
        let lately = self.paid * (ASKED_FOR.as_secs_f64() / since.as_secs_f64()).min(4.0);
        (now >= self.ask_from).then(|| (2.0 * lately).max(DEMAND_MIN).max(cost))
    }

    fn receive(&mut self, now: Duration, grant: &Grant) {
        let kept = if now < self.good_until { self.tokens } else { 0.0 };
        self.tokens = kept + grant.tokens;
        (self.good_until, self.ask_from) = (now + grant.good_for, now + grant.again_in);
        (self.asked, self.paid) = (now, 0.0);
    }
}

/// A front end's tokens of all accounts, or of all tables.
#[derive(Debug)]
pub(crate) struct Purses(Recent<Purse>);

impl Purses {
    /// Purses without tokens.
    pub(crate) fn new() -> Self {
        Self(Recent::new(SCOPES_MAX))
    }

    /// Pays `cost` for `scope`, and asks the authority if there are too few tokens. Tells whether it was paid.
    pub(crate) fn pay(
        &mut self,
        now: Duration,
        scope: u64,
        cost: f64,
        authority: impl FnOnce(&Ask) -> Grant,
    ) -> bool {
        let purse = self.0.get(scope, now, Purse::default);
        if purse.pay(now, cost) {
            return true;
        }
        let Some(demand) = purse.demand(now, cost) else {
            return false;
        };
        purse.receive(now, &authority(&Ask { scope, demand }));
        purse.pay(now, cost)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BUDGET: Budget = Budget { per_second: 1_000.0, credit: Duration::ZERO };

    proptest! {
        /// Any number of front ends may ask at any times: what is granted never exceeds the budget, and what is paid
        /// never exceeds what is granted.
        #[test]
        fn grants_never_exceed_the_budget(
            steps in prop::collection::vec((0..400_u64, 0..3_usize, 1..300_u32), 1..300),
        ) {
            let mut authority = Authority::new(BUDGET);
            let mut front_ends = [Purses::new(), Purses::new(), Purses::new()];
            let (mut now, mut granted, mut paid) = (Duration::ZERO, 0.0, 0.0);
            for (passed, front_end, cost) in steps {
                now += Duration::from_millis(passed);
                let cost = f64::from(cost);
                let was_paid = front_ends[front_end].pay(now, 7, cost, |ask| {
                    let grant = authority.ask(now, ask);
                    granted += grant.tokens;
                    grant
                });
                paid += if was_paid { cost } else { 0.0 };
                prop_assert!(granted <= now.as_secs_f64() * 1_000.0 + 1_000.0 + 1e-6);
                prop_assert!(paid <= granted + 1e-6);
            }
        }
    }

    /// Three front ends make `tries` payments each, every millisecond for ten seconds. Returns how much they could
    /// pay together, and how often they asked.
    fn ten_seconds(tries: usize) -> (f64, usize) {
        let mut authority = Authority::new(BUDGET);
        let mut front_ends = [Purses::new(), Purses::new(), Purses::new()];
        let (mut paid, mut asked) = (0.0, 0);
        for ms in 0..10_000 {
            let now = Duration::from_millis(ms);
            for purses in &mut front_ends {
                for _ in 0..tries {
                    let was_paid = purses.pay(now, 7, 1.0, |ask| {
                        asked += 1;
                        authority.ask(now, ask)
                    });
                    paid += f64::from(u8::from(was_paid));
                }
            }
        }
        (paid, asked)
    }

    #[test]
    fn front_ends_above_the_budget_use_all_of_it_and_ask_seldom() {
        let (paid, asked) = ten_seconds(5);
        assert!((10_000.0..=11_000.0).contains(&paid), "{paid}");
        // 150,000 payments were tried.
        assert!(asked < 1_500, "{asked}");
    }

    #[test]
    fn tokens_expire() {
        let mut authority = Authority::new(BUDGET);
        let mut idle = Purses::new();
        assert!(idle.pay(Duration::ZERO, 7, 1.0, |ask| authority.ask(Duration::ZERO, ask)));
        let mut purse = Purse::default();
        purse.receive(
            Duration::ZERO,
            &Grant { tokens: 10.0, good_for: EXPIRE_AFTER, again_in: Duration::ZERO },
        );
        assert!(purse.pay(Duration::from_millis(1_999), 1.0));
        assert!(!purse.pay(Duration::from_secs(2), 1.0));
    }
}
