//! Profiles: the numbers that make the service behave as the cloud does, or as well as it can.
//!
//! There is one code path and two sets of numbers. `fast`, the default, has no budgets, ends pages only by their size
//! and time, and does every request that it can. It refuses requests only when the process is really overloaded.
//! `cloud` behaves as the documents of the real service say, so that a program's retry code can be tried before it
//! meets the cloud. The source of each number is written beside the number. For users, the sources are in
//! `docs/profiles.md`.

use std::time::Duration;

use rangehold_map::capacity::Rules;
use rangehold_map::load::LoadPolicy;
use rangehold_map::plan::Policy;

use crate::limits;

/// The numbers of one profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its name in settings and replies of the admin endpoint.
    pub name: &'static str,
    /// Transactions of one account; a batch counts as one. `None`: no limit.
    pub account: Option<Budget>,
    /// Transactions of one table.
    pub table: Option<Budget>,
    /// Entities of one partition that are written, or that a read returns. A read counts as at least one.
    pub partition: Option<Budget>,
    /// Requests for objects. `None`: no limit.
    pub objects: Option<ObjectRules>,
    /// When the process itself is overloaded, and how fast it refuses requests then.
    pub overload: OverloadPolicy,
    /// When a page of a query ends.
    pub pages: PageRules,
    /// The answers of a range while it moves.
    pub moving: MovingAnswers,
    /// When a range is hot, and how its load is judged.
    pub load: LoadPolicy,
    /// When ranges are split, merged and moved.
    pub plan: Policy,
}

/// A limit of use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Units each second. As many can be used at once after a quiet second.
    pub per_second: f64,
    /// Unused budget is saved, up to what this time gives. It may be used later, while the process has room to spare.
    pub credit: Duration,
}

/// The rates of requests for objects.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectRules {
    /// What a bucket bears, and how that changes.
    pub rates: Rules,
    /// The least time between two writes of one name.
    pub name_every: Duration,
    /// Bytes each second, up and down, of one project in one location. `None`: no limit.
    pub bytes_per_second: Option<f64>,
    /// How many times as fast as real time the clock runs by which buckets grow and fall back.
    pub time_scale: f64,
}

impl ObjectRules {
    /// What the documents of Google Cloud Storage say. They name no bandwidth that fits all projects.
    pub fn cloud() -> Self {
        Self {
            rates: Rules::documented(),
            name_every: Duration::from_secs(1),
            bytes_per_second: None,
            time_scale: 1.0,
        }
    }
}

/// When the process is overloaded; see the module `admission`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverloadPolicy {
    /// The process is overloaded if a task that is ready to run waits longer than this, all through an
    /// [`OverloadPolicy::interval`].
    pub delay_max: Duration,
    /// The time over which the least delay counts: only a queue that is never empty in it shows an overload. The
    /// interval is more than twice `delay_max`, so that one stall does not fill it.
    pub interval: Duration,
    /// While a ready task waits no longer than this, there is room to spare for credit.
    pub room_delay_max: Duration,
}

/// When a page of a query ends before it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRules {
    /// Whether a page ends, with a token, where it would leave its range.
    pub end_with_range: bool,
    /// How long a page looks for matches before it ends with a token.
    pub within: Duration,
}

/// The answers of a range while it moves, and for some time afterwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MovingAnswers {
    /// How long clients see effects of a move; zero if they see none.
    pub lasting: Duration,
    /// The share of requests that get 503 `ServerBusy`, of 1.
    pub busy: f64,
    /// The share of requests that get a late 500 `OperationTimedOut`.
    pub timeouts: f64,
    /// The delay of that answer.
    pub late: Duration,
}

impl Profile {
    /// The service as good as it can be: no budgets, and no error that could be avoided.
    pub fn fast() -> Self {
        Self {
            name: "fast",
            account: None,
            table: None,
            partition: None,
            objects: None,
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

    /// The service as the cloud's documents describe it.
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
            objects: Some(ObjectRules::cloud()),
            overload: OverloadPolicy {
                delay_max: Duration::from_millis(200),
                interval: Duration::from_secs(1),
                room_delay_max: Duration::from_millis(10),
            },
            // Documented: a page ends at a boundary between the partition servers' keys, and after 5 s.
            pages: PageRules { end_with_range: true, within: Duration::from_secs(5) },
            // The documents say "a few seconds" for both kinds of answers. The shares and the delay are our own
            // choice. The effects must be over before the last of the retries that the official SDKs make by default.
            // Otherwise a request that came just when the move began could be refused each time. Python's last retry
            // is sent 4.8 s after the first answer.
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
