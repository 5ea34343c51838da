//! The background tasks of a server, and what becomes of one that panics.
//!
//! A panic ends a task in silence: tokio keeps it for whoever joins the task, and nobody does while
//! the server runs. Dropped tables would no longer go, memtables no longer be bounded, and all would
//! look well. So each task has a name, and one that ended by a panic is logged and remembered.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Tasks that run until they are shut down, or dropped.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    running: JoinSet<()>,
    panicked: Panicked,
}

/// The tasks that panicked, in words. Clones are the same list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Panicked(Arc<Mutex<Vec<String>>>);

impl Tasks {
    /// Runs `task`. What it has half done when it panics it must not share with others.
    pub(crate) fn spawn(&mut self, name: String, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_on(&Handle::current(), name, task);
    }

    /// Runs `task` on another runtime.
    pub(crate) fn spawn_on(
        &mut self,
        runtime: &Handle,
        name: String,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let panicked = self.panicked.clone();
        let watched = async move {
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                let why = message(&*panic);
                tracing::error!(
                    task = name,
                    why,
                    "a background task panicked; the process has to be restarted"
                );
                panicked.list().push(format!("{name} panicked ({why}); the process has to be restarted"));
            }
        };
        self.running.spawn_on(watched, runtime);
    }

    /// Where its panics are noted.
    pub(crate) fn panicked(&self) -> Panicked {
        self.panicked.clone()
    }

    /// Ends all tasks, wherever they are.
    pub(crate) async fn shutdown(&mut self) {
        self.running.shutdown().await;
    }
}

impl Panicked {
    /// The panics so far.
    pub(crate) fn list(&self) -> MutexGuard<'_, Vec<String>> {
        // A holder only reads, or adds one.
        self.0.lock()
    }
}

/// What `panic!` was called with.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_noted_by_name() {
        let mut tasks = Tasks::default();
        tasks.spawn("the idler".to_owned(), std::future::pending());
        tasks.spawn("the sweeper".to_owned(), async { panic!("row {}", 7) });
        let panicked = tasks.panicked();
        while panicked.list().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(*panicked.list(), ["the sweeper panicked (row 7); the process has to be restarted"]);
        tasks.shutdown().await;
        assert_eq!(panicked.list().len(), 1);
    }
}
