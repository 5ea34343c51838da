//! Where compaction and garbage collection run.
//!
//! Compaction is long, and shares disk and processors with requests. It runs on a thread of its own
//! that the scheduler serves after all others.

use rustix::process::{getpriority_process, setpriority_process};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::limits::BACKGROUND_NICE;

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
