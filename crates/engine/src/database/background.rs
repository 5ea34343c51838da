//! Where compaction and garbage collection run.
//!
//! Compaction takes long, and shares disk and processors with requests. So it runs on a thread of its own,
//! which the scheduler of the system runs after all others.

use rustix::process::{getpriority_process, setpriority_process};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::limits::BACKGROUND_NICE;

/// Where compaction and garbage collection run.
pub(crate) struct Background {
    handle: Handle,
    /// The runtime made here; `None` if the caller's runtime is used.
    runtime: Option<Runtime>,
}

impl Background {
    /// Makes a runtime with one thread of low priority.
    pub(crate) fn own() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("rangehold-compaction")
            .enable_time()
            .on_thread_start(lower_priority)
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Uses the caller's runtime: in simulation everything runs on one thread.
    pub(crate) fn shared() -> Self {
        Self { handle: Handle::current(), runtime: None }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // A runtime that waits for its threads must not be dropped in async code. And the work that runs
        // there can be broken off anywhere.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lowers the priority of the calling thread: on Linux a "process" of these calls is a thread, and `None`
/// is the calling one.
fn lower_priority() {
    let now = getpriority_process(None).unwrap_or(0);
    if let Err(error) = setpriority_process(None, now.max(BACKGROUND_NICE)) {
        tracing::warn!(%error, "compaction keeps the priority of requests");
    }
}
