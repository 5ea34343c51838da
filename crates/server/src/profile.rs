//! Profiles: the numbers that make the service behave as the cloud does, or as well as it can.
//!
//! There is one code path and two sets of numbers. `fast`, the default, has no budgets, ends pages
//! for no other reason than their size, and answers nothing with an error that it could do; only a
//! process that is really overloaded sheds. `cloud` behaves as the documents of the real service
//! say, so that a program's retry code can be rehearsed before it meets the cloud. What each number
//! comes from stands beside it, and for users in `docs/profiles.md`.

use std::time::Duration;

use rangehold_map::load::LoadPolicy;
use rangehold_map::plan::Policy;

use crate::limits;

/// The numbers of one profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its name in settings and replies of the admin endpoint.
    pub name: &'static str,
    /// Transactions of one account; a batch counts as one. `None`: as many as the machine bears.
    pub account: Option<Budget>,
    /// Transactions of one table.
    pub table: Option<Budget>,
    /// Entities of one partition: written, or returned by a read, which counts as one at least.
    pub partition: Option<Budget>,
    /// When the process itself is overloaded, and how fast it sheds.
    pub overload: OverloadPolicy,
    /// When a page of a query ends.
    pub pages: PageRules,
    /// What a range answers while it moves.
    pub moving: MovingAnswers,
    /// When a range is hot, and what is said of that.
    pub load: LoadPolicy,
    /// When ranges are split, merged and moved.
    pub plan: Policy,
}

/// What may be used of something in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Units each second. As many can be used at once after a quiet second.
    pub per_second: f64,
    /// How many seconds' worth of unused budget is put aside, to be used while the process has room
    /// to spare.
    pub credit: Duration,
}

/// When the process is overloaded: see the module `admission`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverloadPolicy {
    /// A task that is ready waits longer than this to run, all through an
    /// [`OverloadPolicy::interval`].
    pub delay_max: Duration,
    /// Over which the least delay is taken: only a queue that is never empty is one. More than
    /// twice the delay, so that one stall does not fill it.
    pub interval: Duration,
    /// While a ready task waits no longer than this, there is room to spare for credit.
    pub room_delay_max: Duration,
}

/// When a page of a query ends before it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRules {
    /// Where the page would leave its range, with a token.
    pub end_with_range: bool,
    /// How long a page looks for matches, before it ends with a token.
    pub within: Duration,
}

/// What a range answers while it moves, and for some time afterwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MovingAnswers {
    /// For how long; zero: nothing is to be seen of a move.
    pub lasting: Duration,
    /// The share of requests that get 503 `ServerBusy`, of 1.
    pub busy: f64,
    /// The share that get 500 `OperationTimedOut`, late.
    pub timeouts: f64,
    /// How late.
    pub late: Duration,
}

impl Profile {
    /// As good as we can: no budget, no error that could be avoided.
    pub fn fast() -> Self {
        Self {
            name: "fast",
            account: None,
            table: None,
            partition: None,
            // Clients that wait for their answers delay each other, which is not an overload: 256 clients that
            // send batches of 5 ms each wait 640 ms on two cores, which work all the time.
            overload: OverloadPolicy {
                delay_max: Duration::from_secs(2),
                interval: Duration::from_secs(5),
                room_delay_max: Duration::from_millis(10),
            },
            pages: PageRules { end_with_range: false, within: limits::PAGE_WITHIN },
            moving: MovingAnswers { lasting: Duration::ZERO, busy: 0.0, timeouts: 0.0, late: Duration::ZERO },
            load: LoadPolicy::fast(),
            plan: Policy::fast(),
        }
    }

    /// As the cloud's documents say.
    pub fn cloud() -> Self {
        // Documented for a standard account, for entities of 1 KiB. No document gives a table a
        // target of its own: it may use its account's.
        let account = Budget { per_second: 20_000.0, credit: Duration::ZERO };
        Self {
            name: "cloud",
            account: Some(account),
            table: Some(account),
            // Documented. The credit is DynamoDB's: unused capacity of the last 300 s.
            partition: Some(Budget { per_second: 2_000.0, credit: Duration::from_secs(300) }),
            overload: OverloadPolicy {
                delay_max: Duration::from_millis(200),
                interval: Duration::from_secs(1),
                room_delay_max: Duration::from_millis(10),
            },
            // Documented: a page ends at a partition boundary's server, and after 5 s.
            pages: PageRules { end_with_range: true, within: Duration::from_secs(5) },
            // "A few seconds" of both kinds is what is documented; shares and delay are ours. Over before the
            // last of the retries that the official SDKs make by default, or a request that came just when
            // the move began could be refused each time: Python's is sent 4.8 s after the first answer.
            moving: MovingAnswers {
                lasting: Duration::from_secs(3),
                busy: 0.5,
                timeouts: 0.1,
                late: Duration::from_secs(2),
            },
            load: LoadPolicy::cloud(),
            plan: Policy::cloud(),
        }
    }
}
