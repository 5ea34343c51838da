//! The limits of what is kept for a bucket.

/// The most spans of a bucket. One that has so many does not grow further.
pub const SPANS_MAX: usize = 1_024;
/// The most names that a span samples.
pub const SAMPLES_MAX: usize = 128;
/// The most bytes of a name that are kept of a sample. Names that differ only behind them are not divided.
pub const SAMPLE_BYTES_MAX: usize = 256;
/// The fewest requests of each stretch in which cuts are measured.
pub const MEASURED_MIN: f64 = 50.0;
