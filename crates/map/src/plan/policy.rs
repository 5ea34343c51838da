//! The numbers by which the planner decides.

use std::time::Duration;

use crate::load::LoadPolicy;

/// What the planner wants, how much it may do at once, and how long it waits.
///
/// A profile is a set of these numbers; the code is the same for all profiles. Where a number has a source,
/// it is named. The others were chosen by trials with `cargo xtask balance`.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The time between two plans. The budgets below are for one such tick.
    pub tick: Duration,

    /// The load per second at which a range becomes a candidate for a split, as [`LoadPolicy`] has it. Merges
    /// stay well below it.
    pub split_rate: f64,
    /// The share of all ranges that may be split in one tick. One range always may.
    pub splits_share: f64,
    /// The number of ranges per server from which nothing is split. It limits the size of the map.
    pub ranges_per_server_high: u32,

    /// The number of ranges per server that are kept even if they are cold, so that they can be spread when
    /// load comes (ten, as in Windows Azure Storage).
    pub ranges_per_server_low: u32,
    /// Two neighbours merge if the sum of their peaks is below this share of `split_rate`.
    pub merge_share: f64,
    /// The same as a share of the average load of a server, if there are several servers. The load of larger
    /// ranges could not be evened out: this is about the distance from `relieve_from` to `relieve_to`.
    pub merge_grain: f64,
    /// How long both must have been unchanged: not split, merged or moved.
    pub merge_after: Duration,
    /// The most bytes that a merged range may have.
    pub merge_bytes_max: u64,
    /// The number of merges in which one server takes part at the same time.
    pub merges_per_server: u32,
    /// The same if there are many ranges.
    pub merges_per_server_crowded: u32,
    /// The share of `ranges_per_server_high` from which there are many.
    pub crowded_share: f64,

    /// The share of its capacity that the busiest server must use before anything is moved (a quarter, as in
    /// Slicer). Below that, moves do not help clients.
    pub calm_utilisation: f64,
    /// A server gives ranges away if its load is above this multiple of the mean.
    pub relieve_from: f64,
    /// It gives ranges until its load is at this multiple of the mean. The distance to `relieve_from` keeps
    /// noise from moving ranges to and fro.
    pub relieve_to: f64,
    /// A server below this share of the mean starves: it is new, or came back without ranges. It is given
    /// ranges even if no server is too busy.
    pub starving_share: f64,
    /// How many of the busiest servers give ranges to starving servers in one tick.
    pub lenders_max: usize,
    /// The least share of its load that a server must lose by the moves of one tick; otherwise nothing moves.
    pub relief_min: f64,
    /// A range with more load than half the distance between two servers may still move, if nothing else
    /// relieves its server soon and the new server ends this share below the load that the old one had.
    pub exchange_gain: f64,
    /// The most ranges that one server gives away in one tick.
    pub moves_per_server: u32,
    /// The share of all load that may move in one tick. One range always may.
    pub churn: f64,
    /// The same in an emergency.
    pub churn_emergency: f64,
    /// A server with more than this multiple of the mean load is an emergency.
    pub emergency_over_mean: f64,
    /// So is a server that uses more than this share of its capacity and is above `relieve_from`.
    pub emergency_utilisation: f64,
    /// How long a range that has moved stays where it is.
    pub cool_down: Duration,
    /// How old a range must be before its rate is trusted. A younger one is not moved for balance.
    pub settle: Duration,

    /// A range is quarantined if at least this many servers crashed while they held it.
    pub crashes_max: u32,
    /// The most ranges that are quarantined in one tick. If more are suspected, something else must have
    /// crashed the servers, because one bad range crashes one server at a time.
    pub quarantined_max: usize,
    /// How long a crash counts against the ranges that the server held.
    pub crash_memory: Duration,
}

impl Policy {
    /// As fast as makes sense. A verdict takes a minute, so a hot range is relieved within 90 s.
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

    /// As the cloud's documents describe it: plans every 15 s, as Windows Azure Storage does, and trusts the
    /// rate of a new range after half a minute.
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
