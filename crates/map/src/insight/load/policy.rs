//! The numbers by which a range is called hot and its load is judged.

use std::time::Duration;

/// How hot a range may be, how long it is looked at, and what a useful split is.
///
/// A profile is a set of these numbers. Load is counted in *cost*: a request costs one, and one more
/// for every [`Self::entities_per_request`] entities it touches beyond the first such portion.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPolicy {
    /// What one range is meant to bear, in cost per second.
    pub cap: f64,
    /// Entities that cost as much as one request. At least 1.
    pub entities_per_request: u32,
    /// Share of `cap` from which a range is warm.
    pub warm_share: f64,
    /// Share of `cap` from which a range is a candidate for a split.
    pub hot_share: f64,
    /// How far, in shares of `cap`, the load must fall below the mark of a state to leave it.
    pub slack: f64,
    /// How long the load must be warm before the state is.
    pub warm_for: Duration,
    /// Share of refused requests from which a warm range is a candidate whatever its rate.
    pub throttled_share: f64,
    /// How long a range must stay hot before its load is judged.
    pub hot_for: Duration,
    /// Length of one look at the load.
    pub look: Duration,
    /// Longest look: what a slow range may need until its figures are firm.
    pub look_max: Duration,
    /// Share of one partition from which it is a hot key.
    pub hot_key_share: f64,
    /// Share of one partition, or of one narrow place that moves, from which it is blamed when every cut is
    /// uneven.
    pub blocking_share: f64,
    /// Greatest imbalance |L-R| / (L+R) of a cut.
    pub balance_max: f64,
    /// The same if no cut is as good as that: a split must take some load off.
    pub balance_max_at_worst: f64,
    /// Greatest change of a cut's balance, per second.
    pub drift_max: f64,
    /// How long a split should be of use: so far ahead the drift is followed.
    pub useful_for: Duration,
    /// Greatest imbalance of a cut after that time, and on average within single seconds.
    pub imbalance_max: f64,
    /// Share of the load that may touch both sides of a cut; beyond it scans are the cause.
    pub crossing_max: f64,
    /// Share of requests beyond an edge of the load of one look, from which it is an append.
    pub beyond_share: f64,
    /// Standard deviations by which a change of balance must stand out from chance.
    pub sigmas: f64,
    /// How long the greatest load of a range is remembered, and must have been seen before it is known.
    pub peak_for: Duration,
    /// How long the verdict `Split` holds: its key grows stale.
    pub split_kept: Duration,
    /// How long any other verdict holds, unless the load changes clearly.
    pub verdict_kept: Duration,
    /// How long the first `Unclear` holds; each further one holds twice as long as the one before.
    pub retry_first: Duration,
}

impl LoadPolicy {
    /// Decides a little over a minute after the load rose.
    ///
    /// The cap is CockroachDB's threshold for a split by load. The rest comes from an experiment with
    /// 13 workloads and was then tried on others; `docs/design/0004-verdicts.md` has the figures.
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

    /// What a request that touched so many entities costs.
    pub fn cost(&self, entities: u32) -> u32 {
        entities.div_ceil(self.entities_per_request.max(1)).max(1)
    }
}
