//! Compaction: what it leaves out, and where it runs.
//!
//! Rows of dropped tables go when the files they are in are rewritten: [`LeaveOut`] leaves them
//! out. A row left out can uncover an older version of itself in a file that was not rewritten, but
//! only of the same dropped table, which nobody can read; and the sweeper looks again until a
//! scan shows nothing.
//!
//! Compaction is long, and shares disk and processors with requests. It runs on threads of its own
//! that the scheduler serves after all others.

use std::sync::Arc;

use async_trait::async_trait;
use rustix::process::{getpriority_process, setpriority_process};
use slatedb::{
    CompactionFilter, CompactionFilterDecision, CompactionFilterError, CompactionFilterSupplier,
    CompactionJobContext, RowEntry,
};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::limits::BACKGROUND_NICE;
use crate::range::DroppedTables;

/// Leaves out the rows of a range's dropped tables.
pub(crate) struct LeaveOut {
    dropped: Arc<DroppedTables>,
}

impl LeaveOut {
    pub(crate) fn new(dropped: Arc<DroppedTables>) -> Self {
        Self { dropped }
    }
}

#[async_trait]
impl CompactionFilterSupplier for LeaveOut {
    async fn create_compaction_filter(
        &self,
        _job: &CompactionJobContext,
    ) -> Result<Box<dyn CompactionFilter>, CompactionFilterError> {
        Ok(Box::new(Self { dropped: Arc::clone(&self.dropped) }))
    }
}

#[async_trait]
impl CompactionFilter for LeaveOut {
    async fn filter(&mut self, row: &RowEntry) -> Result<CompactionFilterDecision, CompactionFilterError> {
        // The set is asked for each row: a table dropped while a long compaction runs is left out
        // from there on. While nothing is dropped that is one look at an empty map.
        Ok(if self.dropped.covers(&row.key) {
            CompactionFilterDecision::Drop
        } else {
            CompactionFilterDecision::Keep
        })
    }

    async fn on_compaction_end(&mut self) -> Result<(), CompactionFilterError> {
        Ok(())
    }
}

/// Where compaction and garbage collection run.
pub(crate) struct Background {
    handle: Handle,
    /// Ours, unless the caller's runtime is used.
    runtime: Option<Runtime>,
}

impl Background {
    /// One thread of its own, with low priority.
    pub(crate) fn own() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("rangehold-compaction")
            .enable_time()
            .on_thread_start(lower_priority)
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// The caller's runtime: in simulation everything runs on one thread.
    pub(crate) fn shared() -> Self {
        Self { handle: Handle::current(), runtime: None }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // A runtime that waits for its threads may not be dropped in async code; and what runs
        // there can be broken off anywhere.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// On Linux a "process" of these calls is a thread, and none given is the calling one.
fn lower_priority() {
    let now = getpriority_process(None).unwrap_or(0);
    if let Err(error) = setpriority_process(None, now.max(BACKGROUND_NICE)) {
        tracing::warn!(%error, "compaction keeps the priority of requests");
    }
}
