//! What the owner of a range records about its load, and what it concludes.
//!
//! [`RangeLoad`] belongs to one range while one server owns it. Every request is recorded, in constant
//! time, and once a second [`RangeLoad::tick`] folds the second into rates and moves the state on:
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
//! While a range is a candidate the `finder` looks at it; then the `judge` finds the cause: a key
//! at which a split helps, or the reason why none does, which the user is told ([`Verdict`]). A verdict
//! against a split is kept for half an hour, so that a range that cannot be split is not looked at for
//! ever; meanwhile the finder goes on looking, and once the cause is not seen any more in two looks
//! after one another the verdict falls.
//!
//! Numbers are in [`LoadPolicy`]. Time is told, as the time since the process began, and chance is a
//! seed, so that the same requests give the same verdict.
//!
//! **After a split, merge or move** the new owner begins with a fresh `RangeLoad`. Nothing is inherited:
//! a share of the parent's rates would be load that nobody has measured. Rates are right from the
//! first second on; the peak is unknown for ten minutes, and so no child is merged again before.

mod chance;
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
mod top_keys;
mod travel;
mod verdict;

use std::time::Duration;

use chance::Chance;
use rate::{Peak, Rate};
use state::State;
use tally::Spans;
use top_keys::TopKeys;

use partition::partition_in;
pub(crate) use partition::partition_of;

pub use policy::LoadPolicy;
pub use state::HotState;
pub use tally::{Counts, Place, Tally};
pub use top_keys::{HotRow, TopKey};
pub use verdict::{Cause, Doubt, Manner, Travel, Verdict};

/// Half-life of the rates that follow the load.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// Half-life of the rate that shows the trend.
const HALF_LIFE_SLOW: Duration = Duration::from_secs(120);
/// Half-life of the rate by which a range is found hot: a jump to twice the mark is seen after 2 s.
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

/// One request, as it was answered.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// What it did.
    pub access: Access,
    /// The stored key that was touched, or of a scan the lowest.
    pub key: &'a [u8],
    /// Of a scan, where its *response* ended: the last key it looked at, or the bound it reached. `None` for
    /// the end of the range. Not what was asked for: a scan with a limit ends where the limit was met.
    pub high: Option<&'a [u8]>,
    /// Entities it looked at or wrote.
    pub entities: u32,
    /// Bytes it read or wrote.
    pub bytes: u64,
}

/// The load of a range, as far as it was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Requests per second that were answered (half-life 10 s, as all rates but one).
    pub rate: f64,
    /// The same with a half-life of 120 s.
    pub rate_slow: f64,
    /// What the requests cost, per second: the unit of [`LoadPolicy::cap`], and what ranges are balanced by.
    pub cost_rate: f64,
    /// Entities per second.
    pub entities_rate: f64,
    /// Bytes per second.
    pub bytes_rate: f64,
    /// Requests per second that wrote.
    pub write_rate: f64,
    /// Requests per second that were refused to protect this range or its server.
    pub throttled_rate: f64,
    /// The greatest `cost_rate` of the last minutes ([`LoadPolicy::peak_for`], or up to a fifth more); `None`
    /// until so much was measured.
    pub peak: Option<f64>,
    /// How hot the range is.
    pub state: HotState,
    /// The last verdict, until it ends or another one takes its place. A verdict against a split is
    /// also shown while the range is being looked at again.
    pub verdict: Option<Verdict>,
    /// The partitions with 1 % of the load or more, the greatest first.
    pub top_keys: Vec<TopKey>,
}

/// Records the load of one range.
#[derive(Debug, Clone)]
pub struct RangeLoad {
    policy: LoadPolicy,
    chance: Chance,
    /// Since the range is owned.
    counted: Counted,
    /// What it was at the last tick, and when the history was last told.
    at_tick: Counted,
    at_tally: Counts,
    /// When the last second ended; `None` before the first tick.
    ticked: Option<Duration>,
    rates: Rates,
    peak: Peak,
    top: TopKeys,
    /// Where requests were that are no partition's own.
    spans: Spans,
    state: State,
}

/// What was counted since some moment.
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
    /// Of a range that is owned from now on. `seed` decides what is sampled; ranges should differ in it.
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

    /// Counts a request that was answered.
    pub fn record(&mut self, sample: &Sample<'_>) {
        let cost = self.policy.cost(sample.entities);
        let counts = sample.counts();
        self.counted.counts += counts;
        self.counted.cost += u64::from(cost);
        self.place(sample, counts, cost, u64::from(cost) * u64::from(cost));
    }

    /// Counts requests for `key` that were refused to protect this range or its server. They are no load,
    /// but where load wants to be: without them a hot partition that is held at its target would look like
    /// any other. Of a scan that was refused it counts only where it would have begun.
    pub fn throttled(&mut self, key: &[u8], access: Access, requests: u32) {
        let counts = Counts { throttled: u64::from(requests), ..Counts::default() };
        self.counted.counts += counts;
        if partition_in(key).is_none() {
            // A scan from before all partitions of its table.
            self.top.add_to_none(requests);
            self.spans.add(key, Some(key), counts);
            return;
        }
        let sample = Sample { access, key, high: Some(key), entities: 1, bytes: 0 };
        // So many requests of cost 1: their squares add up to as many.
        self.place(&sample, counts, requests, u64::from(requests));
    }

    /// Counts a request for `key` that failed. It is no load; only the history tells of it.
    pub fn failed(&mut self, key: &[u8]) {
        let counts = Counts { errors: 1, ..Counts::default() };
        self.counted.counts += counts;
        self.spans.add(key, Some(key), counts);
    }

    /// Counts where in the range a request was, or several; `squares` is the sum of the squares of their costs.
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

    /// What was counted since this was last asked, and where; `None` if nothing was. Has no part in
    /// rates and verdicts.
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

    /// Ends a second; to be called about once in each. `now` is the time since the process began.
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

    /// The last verdict, as [`Load::verdict`]: for who asks each second.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.state.verdict()
    }

    /// What is known, as of the last tick.
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

    /// Requests per second, at least one: what refused requests are compared with.
    fn rate_or_one(&self) -> f64 {
        self.requests.per_second().max(1.0)
    }
}
