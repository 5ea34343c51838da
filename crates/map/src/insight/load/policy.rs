//! The numbers that decide when a range is hot and how its load is judged.

use std::time::Duration;

/// How hot a range may be, how long it is observed, and which split is useful.
///
/// A profile is a set of these numbers. Load is counted in *cost*. A request costs one for each
/// [`Self::entities_per_request`] entities that it touches, rounded up, and at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPolicy {
    /// The load that one range should take, in cost per second.
    pub cap: f64,
    /// The number of entities that cost as much as one request. At least 1.
    pub entities_per_request: u32,
    /// The share of `cap` from which a range is warm.
    pub warm_share: f64,
    /// The share of `cap` from which a range is a candidate for a split.
    pub hot_share: f64,
    /// How far, in shares of `cap`, the load must fall below the mark of a state to leave it.
    pub slack: f64,
    /// How long the load must be above the mark before the range is warm.
    pub warm_for: Duration,
    /// The share of refused requests from which a warm range is a candidate at any rate.
    pub throttled_share: f64,
    /// How long a range must stay hot before its load is judged.
    pub hot_for: Duration,
    /// The length of one look.
    pub look: Duration,
    /// The longest look. A range with few requests may need it for reliable figures.
    pub look_max: Duration,
    /// The share of the load from which one partition is a hot key.
    pub hot_key_share: f64,
    /// The share of the load from which one partition, or one narrow place with moving load, counts as the
    /// reason why every cut is uneven.
    pub blocking_share: f64,
    /// The greatest imbalance |L-R| / (L+R) of a good cut.
    pub balance_max: f64,
    /// The same if there is no good cut: a split must at least relieve the range a little.
    pub balance_max_at_worst: f64,
    /// The greatest change of a cut's balance, per second.
    pub drift_max: f64,
    /// How long a split should be useful. The drift is extrapolated that far.
    pub useful_for: Duration,
    /// The greatest imbalance of a cut after that time, and on average within single seconds.
    pub imbalance_max: f64,
    /// The share of the load that may touch both sides of a cut. Above it, scans are the cause.
    pub crossing_max: f64,
    /// The share of requests beyond an edge of an earlier look from which the load is an append or prepend.
    pub beyond_share: f64,
    /// By how many standard deviations a change of balance must differ from chance.
    pub sigmas: f64,
    /// How long the peak of a range is remembered. It is unknown until the range was measured for that long.
    pub peak_for: Duration,
    /// How long a verdict for a split holds. After that its key is too old.
    pub split_kept: Duration,
    /// How long any other verdict holds, unless the load clearly changes.
    pub verdict_kept: Duration,
    /// How long the first `Unclear` holds. Each further one in a row holds twice as long as the one before.
    pub retry_first: Duration,
}

impl LoadPolicy {
    /// Decides a little more than a minute after the load has risen.
    ///
    /// The cap is CockroachDB's threshold for a split by load. The other numbers come from an experiment with
    /// 13 workloads and were then tested with others; `docs/design/0004-verdicts.md` has the figures.
    pub fn fast() -> Self {
        Self {
            cap: 2_500.0,
            entities_per_request: 20,
            warm_share: 0.6,
            hot_share: 0.8,
            slack: 0.1,
            warm_for: Duration::from_secs(5),
            throttled_share: 0.01,
            hot_for: Duration::from_secs(60),
            look: Duration::from_secs(10),
            look_max: Duration::from_secs(120),
            hot_key_share: 0.5,
            blocking_share: 0.25,
            balance_max: 0.25,
            balance_max_at_worst: 0.4,
            drift_max: 0.06 / 40.0,
            useful_for: Duration::from_secs(300),
            imbalance_max: 0.5,
            crossing_max: 0.5,
            beyond_share: 0.5,
            sigmas: 4.0,
            peak_for: Duration::from_secs(10 * 60),
            split_kept: Duration::from_secs(120),
            verdict_kept: Duration::from_secs(30 * 60),
            retry_first: Duration::from_secs(5 * 60),
        }
    }

    /// Waits three minutes before it judges, as the cloud's documents say ("stays hot for minutes"),
    /// and takes the documented target of a partition, 2,000 entities per second, as the cap.
    pub fn cloud() -> Self {
        Self { cap: 2_000.0, entities_per_request: 1, hot_for: Duration::from_secs(180), ..Self::fast() }
    }

    /// The cost of a request that touched so many entities.
    pub fn cost(&self, entities: u32) -> u32 {
        entities.div_ceil(self.entities_per_request.max(1)).max(1)
    }
}
