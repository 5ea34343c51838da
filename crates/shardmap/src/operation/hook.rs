//! Fail points: tests are called at each step, and can stop it or make it fail.

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
    /// The change of the first shard's local map.
    LocalSource,
    /// The change of another shard's.
    LocalTarget,
    /// The change of the global map, and the log row's end.
    GlobalEnd,
    /// Another owner, in the log.
    TakeOver,
    /// The decision to undo, in the log.
    TurnBack,
    /// The local map of another shard as it was.
    UndoTarget,
    /// The first shard's local map as it was.
    UndoSource,
    /// The global map as it was, and the log row's end.
    UndoEnd,
}

impl Step {
    /// All of them.
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

/// Before or after the commit of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum When {
    /// Nothing is done yet.
    Before,
    /// It is done.
    After,
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Which operation.
    pub operation: Uuid,
    /// What it does.
    pub kind: OperationKind,
    /// At which step.
    pub step: Step,
    /// On which side of its commit.
    pub when: When,
}

/// How a step fails, when a test wants it: before its commit as if the transaction had failed, after it as
/// if the answer had been lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepFault {
    /// A temporary failure, after which the step is tried again.
    MayPass,
    /// A permanent failure.
    Stays,
}

type Told = Pin<Box<dyn Future<Output = Result<(), StepFault>> + Send>>;

/// Called at each [`Moment`]. A future that never ends stops the operation there. If the operation is then
/// dropped, it looks like one whose owner has crashed.
#[derive(Clone)]
pub struct StepHook(Option<Arc<dyn Fn(Moment) -> Told + Send + Sync>>);

impl StepHook {
    /// A hook that runs what `at` gives for each moment.
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
