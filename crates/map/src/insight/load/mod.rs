//! Counts the load of a range and judges a hot one.
//!
//! [`RangeLoad`] belongs to one range while one server owns it. It records every request in constant time.
//! Once a second, [`RangeLoad::tick`] updates the rates and the state:
//!
//! ```text
//!            5 s above        above 0.8 of the cap,
//!            0.6 of the cap   or refusing requests       hot for long enough
//!      cold ---------------> warm -------------> candidate -------------> judged
//!        ^                   |  ^                    |                      |
//!        +-------------------+  +---- cools down ----+     verdict ends, or |
//!        ^                              candidate <--- the load has changed +
//!        +---------------------- cools down --------------------------------+
//! ```
//!
//! While a range is a candidate, the `finder` observes it. Then the `judge` finds the cause: a key at which a
//! split helps, or the reason why no split helps. Users see this [`Verdict`]. A verdict against a split is kept
//! for half an hour, so that a range that cannot be split is not judged all the time. Meanwhile the finder goes
//! on; if the cause is not seen in two looks in a row, the verdict is dropped.
//!
//! The numbers are in [`LoadPolicy`]. The caller passes in the time since the process began, and a seed for
//! chance, so the same requests give the same verdict.
//!
//! **After a split, merge or move** the new owner begins with a new `RangeLoad` and inherits nothing, because a
//! share of the old rates would be load that was never measured. Rates are right from the first second on. The
//! peak is unknown for ten minutes, so a new range is not merged before.

mod digits;
mod edges;
mod finder;
mod front;
mod judge;
mod look;
mod partition;
mod policy;
mod rate;
mod reservoir;
mod state;
mod tally;
mod titles;
mod top_keys;
mod travel;
mod verdict;

use std::time::Duration;

use super::chance::Chance;
use rate::{Peak, Rate};
use state::State;
use tally::Spans;
use top_keys::TopKeys;

use partition::partition_in;
pub(crate) use partition::partition_of;

pub use policy::LoadPolicy;
pub use state::HotState;
pub use tally::{Counts, Place, Tally};
pub use titles::{BucketTitle, Titles};
pub use top_keys::{HotRow, TopKey};
pub use verdict::{Cause, Doubt, Manner, Travel, Verdict};

/// The half-life of all rates but two.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// The half-life of the rate that shows the trend.
const HALF_LIFE_SLOW: Duration = Duration::from_secs(120);
/// The half-life of the rate that makes a range warm or hot. A jump to twice the mark is seen after 2 s.
const HALF_LIFE_QUICK: Duration = Duration::from_secs(2);

/// How a request used the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read one row.
    PointRead,
    /// Wrote one row or several of one partition.
    Write,
    /// Read an interval.
    Scan,
}

/// One answered request.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// How it used the range.
    pub access: Access,
    /// The stored key that it touched; for a scan, the lowest one.
    pub key: &'a [u8],
    /// For a scan, where its *response* ended: the last key that it read, or the bound that it reached.
    /// `None` is the end of the range. A scan with a limit ends where it reached the limit, not at the bound
    /// of the request.
    pub high: Option<&'a [u8]>,
    /// The entities that it read or wrote.
    pub entities: u32,
    /// The bytes that it read or wrote.
    pub bytes: u64,
}

/// The measured load of a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Answered requests per second. The half-life is 10 s, as for all rates here but the next.
    pub rate: f64,
    /// The same with a half-life of 120 s.
    pub rate_slow: f64,
    /// The cost of the requests per second: the unit of [`LoadPolicy::cap`] and of the planner's balance.
    pub cost_rate: f64,
    /// Entities per second.
    pub entities_rate: f64,
    /// Bytes per second.
    pub bytes_rate: f64,
    /// Writes per second.
    pub write_rate: f64,
    /// Requests per second that were refused to protect this range or its server.
    pub throttled_rate: f64,
    /// The greatest `cost_rate` of the last [`LoadPolicy::peak_for`], or up to a fifth more. `None` until the
    /// range was measured for that long.
    pub peak: Option<f64>,
    /// How hot the range is.
    pub state: HotState,
    /// The last verdict, until it ends or another one replaces it. A verdict against a split is also shown
    /// while the range is a candidate again.
    pub verdict: Option<Verdict>,
    /// The partitions with at least 1 % of the load, the greatest first.
    pub top_keys: Vec<TopKey>,
}

/// Records the load of one range.
#[derive(Debug, Clone)]
pub struct RangeLoad {
    policy: LoadPolicy,
    chance: Chance,
    /// What was counted since this server owns the range.
    counted: Counted,
    /// What was counted until the last tick, and until the last tally.
    at_tick: Counted,
    at_tally: Counts,
    /// When the last second ended; `None` before the first tick.
    ticked: Option<Duration>,
    rates: Rates,
    peak: Peak,
    top: TopKeys,
    /// Where requests were that touched no partition or several.
    spans: Spans,
    state: State,
}

/// What was counted in some time.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    counts: Counts,
    cost: u64,
}

#[derive(Debug, Clone)]
struct Rates {
    requests: Rate,
    requests_slow: Rate,
    cost: Rate,
    cost_quick: Rate,
    entities: Rate,
    bytes: Rate,
    writes: Rate,
    throttled: Rate,
}

impl RangeLoad {
    /// For a range that is owned from now on. `seed` decides what is sampled and should differ between ranges.
    pub fn new(policy: LoadPolicy, seed: u64) -> Self {
        let peak = Peak::over(policy.peak_for);
        Self {
            policy,
            chance: Chance::new(seed),
            counted: Counted::default(),
            at_tick: Counted::default(),
            at_tally: Counts::default(),
            ticked: None,
            rates: Rates::new(),
            peak,
            top: TopKeys::default(),
            spans: Spans::default(),
            state: State::new(),
        }
    }

    /// Counts an answered request.
    pub fn record(&mut self, sample: &Sample<'_>) {
        let cost = self.policy.cost(sample.entities);
        let counts = sample.counts();
        self.counted.counts += counts;
        self.counted.cost += u64::from(cost);
        self.place(sample, counts, cost, u64::from(cost) * u64::from(cost));
    }

    /// Counts requests for `key` that were refused to protect this range or its server. They are not load,
    /// but they show where load would be: without them, a hot partition that is held at its target would look
    /// like any other. A refused scan is counted where it would have begun.
    pub fn throttled(&mut self, key: &[u8], access: Access, requests: u32) {
        let counts = Counts { throttled: u64::from(requests), ..Counts::default() };
        self.counted.counts += counts;
        if partition_in(key).is_none() {
            // A scan that begins below all partitions of its table.
            self.top.add_to_none(requests);
            self.spans.add(key, Some(key), counts);
            return;
        }
        let sample = Sample { access, key, high: Some(key), entities: 1, bytes: 0 };
        // Each request has cost 1, so the sum of the squares is the number of requests.
        self.place(&sample, counts, requests, u64::from(requests));
    }

    /// Counts a failed request for `key`. It is not load; only the history shows it.
    pub fn failed(&mut self, key: &[u8]) {
        let counts = Counts { errors: 1, ..Counts::default() };
        self.counted.counts += counts;
        self.spans.add(key, Some(key), counts);
    }

    /// Counts where in the range one or several requests were. `squares` is the sum of the squares of their
    /// costs.
    fn place(&mut self, sample: &Sample<'_>, counts: Counts, cost: u32, squares: u64) {
        let partition = partition_of(sample.key);
        match (sample.access, sample.high) {
            (Access::PointRead | Access::Write, _) => {
                self.top.add(partition, Some(sample.key), cost, counts);
            }
            (Access::Scan, Some(high)) if high.starts_with(partition) => {
                self.top.add(partition, None, cost, counts);
            }
            (Access::Scan, high) => {
                self.top.add_to_none(cost);
                self.spans.add(sample.key, high, counts);
            }
        }
        if let Some(finder) = self.state.finder() {
            finder.record(partition, sample, (cost, squares), &mut self.chance);
        }
    }

    /// What was counted since the last call, and where; `None` if nothing was. This does not change rates or
    /// verdicts.
    pub fn take_tally(&mut self) -> Option<Tally> {
        let total = self.counted.counts - self.at_tally;
        if total.is_nothing() {
            return None;
        }
        self.at_tally = self.counted.counts;
        let mut places = Vec::new();
        self.top.take_counts(&mut places);
        self.spans.take(&mut places);
        Some(Tally { total, places })
    }

    /// Ends a second. To be called about once a second; `now` is the time since the process began.
    pub fn tick(&mut self, now: Duration) {
        let seconds = self.ticked.map_or(1.0, |ticked| now.saturating_sub(ticked).as_secs_f64());
        if seconds == 0.0 {
            return;
        }
        self.ticked = Some(now);
        let second = self.counted.since(&self.at_tick);
        self.at_tick = self.counted;
        self.rates.add(&second, seconds);
        self.top.decay((-seconds / HALF_LIFE.as_secs_f64()).exp2());
        self.peak.add(self.rates.cost.per_second(), now);
        let heat = self.rates.heat(&self.policy);
        self.state.tick(now, heat, &self.top, &self.policy);
    }

    /// The last verdict, as in [`Load::verdict`], but without the cost of [`RangeLoad::observe`].
    pub fn verdict(&self) -> Option<&Verdict> {
        self.state.verdict()
    }

    /// The load as of the last tick.
    pub fn observe(&self) -> Load {
        Load {
            rate: self.rates.requests.per_second(),
            rate_slow: self.rates.requests_slow.per_second(),
            cost_rate: self.rates.cost.per_second(),
            entities_rate: self.rates.entities.per_second(),
            bytes_rate: self.rates.bytes.per_second(),
            write_rate: self.rates.writes.per_second(),
            throttled_rate: self.rates.throttled.per_second(),
            peak: self.peak.value(),
            state: self.state.hot_state(),
            verdict: self.verdict().cloned(),
            top_keys: self.top.list(),
        }
    }
}

impl Counted {
    fn since(&self, earlier: &Self) -> Self {
        Self { counts: self.counts - earlier.counts, cost: self.cost - earlier.cost }
    }
}

impl Sample<'_> {
    fn counts(&self) -> Counts {
        let writes = u64::from(self.access == Access::Write);
        let (entities, bytes) = (u64::from(self.entities), self.bytes);
        Counts { reads: 1 - writes, writes, entities, bytes, throttled: 0, errors: 0 }
    }
}

impl Rates {
    fn new() -> Self {
        Self {
            requests: Rate::new(HALF_LIFE),
            requests_slow: Rate::new(HALF_LIFE_SLOW),
            cost: Rate::new(HALF_LIFE),
            cost_quick: Rate::new(HALF_LIFE_QUICK),
            entities: Rate::new(HALF_LIFE),
            bytes: Rate::new(HALF_LIFE),
            writes: Rate::new(HALF_LIFE),
            throttled: Rate::new(HALF_LIFE),
        }
    }

    fn add(&mut self, second: &Counted, seconds: f64) {
        let Counted { counts, cost } = *second;
        let requests = counts.reads + counts.writes;
        self.requests.add(requests, seconds);
        self.requests_slow.add(requests, seconds);
        self.cost.add(cost, seconds);
        self.cost_quick.add(cost, seconds);
        self.entities.add(counts.entities, seconds);
        self.bytes.add(counts.bytes, seconds);
        self.writes.add(counts.writes, seconds);
        self.throttled.add(counts.throttled, seconds);
    }

    fn heat(&self, policy: &LoadPolicy) -> state::Heat {
        let refused = self.throttled.per_second();
        state::Heat {
            quick: self.cost_quick.per_second() / policy.cap,
            steady: self.cost.per_second() / policy.cap,
            refused: refused / (refused + self.rate_or_one()),
        }
    }

    /// Requests per second, but at least one: refused requests are compared with this.
    fn rate_or_one(&self) -> f64 {
        self.requests.per_second().max(1.0)
    }
}
