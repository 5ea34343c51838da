//! The limits of what is kept of the names of a bucket.

/// The most names of a sample. A tenth of them is enough to judge a prefix.
pub const SAMPLED_NAMES_MAX: usize = 100;
/// The most bytes of a name in a sample. Longer names are left out: no object can have one.
pub const SAMPLED_NAME_BYTES_MAX: usize = 1_024;
/// The most folders in a prefix that is looked at by itself. Names that differ only below it are judged together.
pub const PREFIX_FOLDERS_MAX: usize = 32;
