//! The named steps of work that may be broken off anywhere, and hooks that are called after each.
//!
//! A process may die between any two steps. Tests and the simulation stop it there, by a [`Hook`], and
//! check what the next process does with the state that is left.

mod change;
mod space;

pub use change::{Step, StepHook};
pub use space::{SpaceHook, SpaceStep};

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use rangehold_map::RangeId;

/// Called after each step, with the range that the step was about. A test stops time there, or the process.
/// The default does nothing.
#[derive(Clone)]
pub struct Hook<S>(Arc<dyn Fn(S, RangeId) -> Stopped + Send + Sync>);

type Stopped = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<S> Hook<S> {
    /// A hook that runs the future that `after` returns for each step.
    pub fn new<F>(after: impl Fn(S, RangeId) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(move |step, range| Box::pin(after(step, range))))
    }

    pub(crate) async fn after(&self, step: S, range: RangeId) {
        (self.0)(step, range).await;
    }
}

impl<S> Default for Hook<S> {
    fn default() -> Self {
        Self::new(|_, _| ready(()))
    }
}

impl<S> fmt::Debug for Hook<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}
