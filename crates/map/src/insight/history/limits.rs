//! The limits of the history.

/// The most buckets of an axis.
pub const BUCKETS_MAX: usize = 2_048;
/// The size in bytes at which a segment is closed.
pub const SEGMENT_BYTES_MAX: u64 = 4 << 20;
/// The most segments of all tiers together. A program that restarts every minute makes many small ones.
pub const SEGMENTS_MAX: usize = 1_024;
/// The number of seconds with load before the first survey of the axis. The wait doubles after each survey,
/// up to `SURVEY_EVERY_MAX`.
pub const TICKS_BEFORE_SURVEY: u64 = 20;
/// The most seconds with load between two surveys of the axis.
pub(super) const SURVEY_EVERY_MAX: u64 = 600;
/// The most partitions whose load is remembered, for the choice of boundaries.
pub(super) const SAMPLES_MAX: usize = 4_096;
/// The most places of tallies that are read in one second, for the choice of boundaries.
pub(super) const SEEN_MAX: usize = 2_048;
/// A fair part is the whole load divided by this. A bucket with more than two fair parts is cut into pieces
/// of about one fair part, if possible. The load of a piece may then double before it is cut again, so that a
/// steady load changes nothing.
pub(super) const FAIR_PARTS: u64 = 128;
