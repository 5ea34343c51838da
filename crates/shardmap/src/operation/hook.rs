//! Fail points. Each step calls a test's function, which can stop the step or make it fail.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use uuid::Uuid;

use super::plan::OperationKind;

/// A step of an operation: one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// The decision and the log row, in the global map.
    GlobalBegin,
    /// The change of the local map of the first shard.
    LocalSource,
    /// The change of the local map of the other shard.
    LocalTarget,
    /// The change of the global map, and the deletion of the log row.
    GlobalEnd,
    /// The new owner, in the log.
    TakeOver,
    /// The decision to undo, in the log.
    TurnBack,
    /// Restores the local map of the other shard.
    UndoTarget,
    /// Restores the local map of the first shard.
    UndoSource,
    /// Restores the global map, and deletes the log row.
    UndoEnd,
}

impl Step {
    /// All steps.
    pub const ALL: [Self; 9] = [
        Self::GlobalBegin,
        Self::LocalSource,
        Self::LocalTarget,
        Self::GlobalEnd,
        Self::TakeOver,
        Self::TurnBack,
        Self::UndoTarget,
        Self::UndoSource,
        Self::UndoEnd,
    ];
}

/// Whether a moment is before or after the commit of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum When {
    /// The step is not committed yet.
    Before,
    /// The step is committed.
    After,
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Its id.
    pub operation: Uuid,
    /// What it does.
    pub kind: OperationKind,
    /// The step.
    pub step: Step,
    /// Whether it is before or after the commit of the step.
    pub when: When,
}

/// How a step fails when a test wants that. Before its commit it fails as if the transaction had failed. After its
/// commit it fails as if the answer had been lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepFault {
    /// A temporary failure, after which the step is tried again.
    MayPass,
    /// A permanent failure.
    Stays,
}

type Told = Pin<Box<dyn Future<Output = Result<(), StepFault>> + Send>>;

/// Called at each [`Moment`]. A future that never ends stops the operation there. If the operation is then dropped,
/// other processes see it as they see an operation whose owner has crashed.
#[derive(Clone)]
pub struct StepHook(Option<Arc<dyn Fn(Moment) -> Told + Send + Sync>>);

impl StepHook {
    /// A hook that runs the future that `at` returns for each moment.
    pub fn new<F>(at: impl Fn(Moment) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), StepFault>> + Send + 'static,
    {
        Self(Some(Arc::new(move |moment| Box::pin(at(moment)))))
    }

    pub(crate) async fn at(&self, moment: Moment) -> Result<(), StepFault> {
        match &self.0 {
            Some(hook) => hook(moment).await,
            None => Ok(()),
        }
    }
}

impl Default for StepHook {
    /// A hook that does nothing.
    fn default() -> Self {
        Self(None)
    }
}

impl std::fmt::Debug for StepHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StepHook")
    }
}
