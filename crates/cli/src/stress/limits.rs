//! The limits of stress tests.

use std::time::Duration;

/// Entities a second that one partition serves: the documented target, for entities of 1 KiB.
pub(crate) const PARTITION_TARGET: f64 = 2_000.0;
/// Requests that are under way at a time, unless the command says otherwise. One that does not fit is not sent, and counts as late.
pub(crate) const REQUESTS_AT_ONCE: u32 = 512;
/// The most requests at a time that a command may ask for.
pub(crate) const REQUESTS_AT_ONCE_MAX: u32 = 10_000;
/// The share of a kind's requests that must be answered in its wanted time.
pub(crate) const IN_TIME: f64 = 0.99;
/// The longest peak.
pub(crate) const PEAK_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Kinds of requests in a plan.
pub(crate) const KINDS_MAX: usize = 64;
/// Requests a second of all kinds together.
pub(crate) const REQUESTS_PER_SECOND_MAX: f64 = 100_000.0;
/// Entities that are loaded before the peak.
pub(crate) const LOADED_MAX: u64 = 10_000_000;
/// Registrations from which the target partition is found before anything is sent.
pub(crate) const SAMPLED: u64 = 10_000;
/// Numbers that are tried to find those of the target partition.
pub(crate) const TARGET_SEARCH_MAX: u64 = 100_000_000;
/// Batches of the load that are under way at a time.
pub(crate) const LOAD_AT_ONCE: usize = 16;
/// Entities whose keys are remembered, so that reads and changes find something.
pub(crate) const KNOWN_MAX: usize = 1_000_000;
/// Partitions that are counted. If there are more, those with few requests are forgotten.
pub(crate) const PARTITIONS_COUNTED: usize = 4_096;
/// Requests of one query that asks each prefix: two hexadecimal digits.
pub(crate) const EACH_DIGITS_MAX: usize = 2;
/// Lines of a file of keys.
pub(crate) const KEY_LINES_MAX: usize = 10_000_000;
/// Bytes of a plan.
pub(crate) const PLAN_BYTES_MAX: u64 = 1 << 20;
/// How often the ranges of the service are looked at.
pub(crate) const WATCH_EVERY: Duration = Duration::from_secs(2);
/// Events of the service that a report keeps.
pub(crate) const EVENTS_MAX: usize = 500;
/// The lag of this machine's own sending above which a report warns, at the 99th percentile.
pub(crate) const LAG_MAX: Duration = Duration::from_millis(50);
