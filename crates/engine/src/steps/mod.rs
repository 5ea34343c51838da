//! The named steps of work that may be broken off anywhere, and hooks that are called after each.
//!
//! A process may die between any two steps. Tests and the simulation stop it there, by a [`Hook`], and
//! check what the next process does with the state that is left.

mod blob;
mod change;
mod names;
mod scan;
mod space;

pub use blob::{BlobHook, BlobStep};
pub use change::{Step, StepHook};
pub use names::{NamesHook, NamesStep};
pub use scan::{ScanHook, ScanStep};
pub use space::{SpaceHook, SpaceStep};

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use rangehold_map::RangeId;

/// Called after each step, with the range, the blob or the name that the step was about. A test stops time there, or the process.
/// The default does nothing.
#[derive(Clone)]
pub struct Hook<S, A = RangeId>(Arc<dyn Fn(S, A) -> Stopped + Send + Sync>);

type Stopped = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<S, A> Hook<S, A> {
    /// A hook that runs the future that `after` returns for each step.
    pub fn new<F>(after: impl Fn(S, A) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(move |step, about| Box::pin(after(step, about))))
    }

    /// Calls the hook, and waits as long as it wants.
    pub async fn after(&self, step: S, about: A) {
        (self.0)(step, about).await;
    }
}

impl<S, A> Default for Hook<S, A> {
    fn default() -> Self {
        Self::new(|_, _| ready(()))
    }
}

impl<S, A> fmt::Debug for Hook<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}
