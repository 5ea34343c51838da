//! The numbers by which the planner decides.

use std::time::Duration;

use crate::load::LoadPolicy;

/// What the planner wants, how much it may do at once, and how long it waits.
///
/// A profile is a set of these numbers: the code is the same for all. Where a number has a source
/// it is named; the others are choices, tried in `cargo xtask balance`.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// How often a plan is made. The budgets below are for one such tick.
    pub tick: Duration,

    /// Load from which one range is a candidate for a split, per second: [`LoadPolicy`]'s. Merges stay
    /// well below it.
    pub split_rate: f64,
    /// Share of all ranges that may be split in one tick; at least one always may.
    pub splits_share: f64,
    /// Ranges per server above which nothing is split any more: what the map may cost.
    pub ranges_per_server_high: u32,

    /// Ranges per server that are kept even if they are cold, so that there is something to spread
    /// when load comes (ten, as in Windows Azure Storage).
    pub ranges_per_server_low: u32,
    /// Two neighbours merge if the sum of their peaks is below this share of `split_rate`.
    pub merge_share: f64,
    /// The same as a share of a server's load, on average, where there are several servers. Larger ranges
    /// are too coarse to be evened out: that is about the distance from `relieve_from` to `relieve_to`.
    pub merge_grain: f64,
    /// How long both must have been neither split nor merged nor moved.
    pub merge_after: Duration,
    /// Bytes that a merged range may have at most.
    pub merge_bytes_max: u64,
    /// Merges that one server takes part in at once.
    pub merges_per_server: u32,
    /// The same where ranges have become many.
    pub merges_per_server_crowded: u32,
    /// Share of `ranges_per_server_high` from which they are many.
    pub crowded_share: f64,

    /// Share of its capacity that the busiest server must use before anything is moved (a quarter, as
    /// in Slicer): below that a move helps nobody.
    pub calm_utilisation: f64,
    /// How far above the mean, as a factor, a server must be before it gives ranges away.
    pub relieve_from: f64,
    /// How far down it is then brought. The distance to `relieve_from` is what keeps noise from
    /// moving ranges to and fro.
    pub relieve_to: f64,
    /// Share of the mean below which a server is given ranges although nobody is too busy: it came
    /// back empty, or is new.
    pub starving_share: f64,
    /// How many of the busiest servers give to such a server in one tick.
    pub lenders_max: usize,
    /// Share of its load that a server must be rid of by what moves in one tick; else nothing moves.
    pub relief_min: f64,
    /// A range larger than half the distance between two servers goes, if nothing else would relieve the
    /// one soon, and the other ends this share below where the one was.
    pub exchange_gain: f64,
    /// Ranges that one server gives away in one tick at most.
    pub moves_per_server: u32,
    /// Share of all load that may move in one tick; one range always may.
    pub churn: f64,
    /// The same in an emergency.
    pub churn_emergency: f64,
    /// A server so far above the mean, as a factor, is an emergency.
    pub emergency_over_mean: f64,
    /// So is one that uses this share of its capacity and is above `relieve_from`.
    pub emergency_utilisation: f64,
    /// How long a range stays where it was moved to.
    pub cool_down: Duration,
    /// How old a range must be before its rate is believed: before that it moves for no balance.
    pub settle: Duration,

    /// Servers that may end while they hold a range, before the range is called poison.
    pub crashes_max: u32,
    /// How many ranges may be called poison in one tick. Where more are suspected, something else
    /// brought the servers down: one bad range ends one server at a time.
    pub quarantined_max: usize,
    /// How long the end of a server is held against the ranges it had.
    pub crash_memory: Duration,
}

impl Policy {
    /// As quick as makes sense: with a verdict after a minute, a hot range is relieved within 90 s.
    pub fn fast() -> Self {
        let load = LoadPolicy::fast();
        Self {
            tick: Duration::from_secs(3),
            split_rate: load.cap * load.hot_share,
            splits_share: 0.001,
            ranges_per_server_high: 1_000,
            ranges_per_server_low: 10,
            merge_share: 0.4,
            merge_grain: 0.04,
            merge_after: Duration::from_secs(10 * 60),
            merge_bytes_max: 4 << 30,
            merges_per_server: 1,
            merges_per_server_crowded: 4,
            crowded_share: 0.8,
            calm_utilisation: 0.25,
            relieve_from: 1.08,
            relieve_to: 1.04,
            starving_share: 0.5,
            lenders_max: 32,
            relief_min: 0.02,
            exchange_gain: 0.1,
            moves_per_server: 64,
            churn: 0.01,
            churn_emergency: 0.09,
            emergency_over_mean: 1.5,
            emergency_utilisation: 0.9,
            cool_down: Duration::from_secs(5 * 60),
            settle: Duration::from_secs(5),
            crashes_max: 2,
            quarantined_max: 8,
            crash_memory: Duration::from_secs(30 * 60),
        }
    }

    /// As the cloud's documents describe it: looks every 15 s, as Windows Azure Storage does, and
    /// waits half a minute before it believes the rate of a new range.
    pub fn cloud() -> Self {
        let load = LoadPolicy::cloud();
        Self {
            tick: Duration::from_secs(15),
            split_rate: load.cap * load.hot_share,
            settle: Duration::from_secs(30),
            ..Self::fast()
        }
    }
}
