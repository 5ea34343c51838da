//! The steps of a scan over several ranges.
//!
//! A scan reads each range as of a moment of its own. Between two of these moments any change may be made: a machine may hold
//! the scan up there for as long as it wants. A test makes its changes there.

use super::Hook;

/// The steps of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScanStep {
    /// A range was read to its end, and the scan goes on behind it if it wants more.
    RangeRead,
}

/// The hook of these steps. It is called with the range that was read.
pub type ScanHook = Hook<ScanStep>;
