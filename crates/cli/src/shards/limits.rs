//! The limits of the commands for shard maps. Those of the maps themselves are in the library.

/// The most retries of a step that a command may ask for. With the longest pause they last most of a day; meanwhile the keys
/// that the step changes are held.
pub(super) const RETRIES_MAX: u32 = 1_000;
/// The longest pause between two attempts that a command may ask for, in milliseconds.
pub(super) const RETRY_WAIT_MS_MAX: u64 = 60_000;
