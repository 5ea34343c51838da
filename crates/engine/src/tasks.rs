//! The background tasks of a server, and what happens when one panics.
//!
//! A panic ends a task without a word: tokio keeps the panic for the code that joins the task, and no code
//! does so while the server runs. Then, for example, dropped tables would no longer be removed and
//! memtables no longer be limited, and still everything would seem well. So each task has a name, and a
//! task that ended by a panic is logged and remembered.

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

/// The tasks that panicked, in words. Clones share the list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Panicked(Arc<Mutex<Vec<String>>>);

impl Tasks {
    /// Runs `task`. A task that may panic halfway through a change must not share the changed data with
    /// others.
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

    /// The list of the panics of these tasks.
    pub(crate) fn panicked(&self) -> Panicked {
        self.panicked.clone()
    }

    /// Ends all tasks, at whatever point they are.
    pub(crate) async fn shutdown(&mut self) {
        self.running.shutdown().await;
    }
}

impl Panicked {
    /// The panics so far.
    pub(crate) fn list(&self) -> MutexGuard<'_, Vec<String>> {
        // The code that holds this lock only reads the list, or adds one entry.
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
