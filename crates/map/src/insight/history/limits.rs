//! What bounds the history.

/// Key buckets of one axis.
pub const BUCKETS_MAX: usize = 2_048;
/// Bytes after which a segment is closed.
pub const SEGMENT_BYTES_MAX: u64 = 4 << 20;
/// Segments that are kept, of all tiers together: programs that restart every minute leave small ones.
pub const SEGMENTS_MAX: usize = 1_024;
/// Seconds with load before the axis is looked at for the first time; then after twice as many each time,
/// up to `SURVEY_EVERY_MAX`.
pub const TICKS_BEFORE_SURVEY: u64 = 20;
/// Seconds with load between two looks at the axis at most.
pub(super) const SURVEY_EVERY_MAX: u64 = 600;
/// Partitions whose load is remembered in order to choose boundaries.
pub(super) const SAMPLES_MAX: usize = 4_096;
/// Places of tallies that are looked at in one second for that.
pub(super) const SEEN_MAX: usize = 2_048;
/// A bucket with more than two such parts of the load is cut into pieces of about one, if it can be: as
/// many again may then come to each before it is cut once more, so that a steady load changes nothing.
pub(super) const FAIR_PARTS: u64 = 128;
