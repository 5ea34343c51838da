//! What a range counts, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Range;
use crate::database::Borrowed;

/// What has happened since the range was opened here.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) reads: AtomicU64,
    pub(super) scans: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) refusals: AtomicU64,
    pub(super) reopenings: AtomicU64,
}

/// What a range counts, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeStatistics {
    /// Reads of single rows.
    pub reads: u64,
    /// Scans.
    pub scans: u64,
    /// Writes that were acknowledged.
    pub writes: u64,
    /// Writes that were refused by their judge.
    pub refusals: u64,
    /// Flushes of the log since the database was opened.
    pub flushes: u64,
    /// Bytes that are only in memtables and the log.
    pub unflushed_bytes: u64,
    /// Dropped tables that are not completely removed yet.
    pub dropped_tables_pending: u64,
    /// How often the database had to be opened again.
    pub reopenings: u64,
    /// What its database reads from the files of others, such as a parent's.
    pub borrowed: Borrowed,
}

impl Range {
    pub(crate) fn statistics(&self) -> RangeStatistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let opening = self.open_now().ok();
        RangeStatistics {
            reads: count(&self.counts.reads),
            scans: count(&self.counts.scans),
            writes: count(&self.counts.writes),
            refusals: count(&self.counts.refusals),
            flushes: opening.as_ref().map_or(0, |opening| opening.flusher.flushes()),
            unflushed_bytes: opening.as_ref().map_or(0, |opening| opening.unflushed_bytes()),
            dropped_tables_pending: self.dropped.len() as u64,
            reopenings: count(&self.counts.reopenings),
            borrowed: opening.as_ref().map_or_else(Borrowed::default, |opening| opening.borrowed()),
        }
    }
}
