//! Housekeeping: what keeps databases small, and gives their space back.
//!
//! A process may hold thousands of databases, most of which nobody asks. So no database has a
//! compactor or a collector of its own, each with its timers; one *housekeeper* looks at all of them
//! once a second, in memory, and does something only where something changed:
//!
//! | what | when | where |
//! |---|---|---|
//! | tidying | files overlap, or there are several runs of like size | [`plan`], [`compactor`] |
//! | rewriting | somebody ordered it, or a child still reads its parent's files | the same |
//! | collecting | a manifest changed, and then nothing for two minutes | [`garbage`] |
//! | burying | a directory under `ranges/` belongs to no living range | [`burial`] |
//! | forgetting | change records that no database can name any more | [`records`] |
//!
//! **How space comes back after a split or merge.** Children name their parents' files and pin them:
//!
//! ```text
//!   parent P, retired        child A: reads files of P, pins a checkpoint in P
//!                            1 rewritten: every file is A's own           (at once, paced)
//!                            2 two minutes later no checkpoint of A names P's files either:
//!     pin released      <---   A is detached from P                       (a collection of A)
//!   3 no pin is left: P is deleted, and with it its own pins in others    (a burial)
//! ```
//!
//! A pause between two steps, or a crash, leaves a state from which the next look goes on: [`step`]
//! lists the steps, and what each leaves.
//!
//! All of it runs on threads of low priority. Tidying and rewriting have lanes of their own, so that
//! no database waits behind the rewriting of a large one; and rewriting is paced, for all databases
//! together, to what is hardly felt.

mod borrowed;
mod budget;
mod burial;
mod chores;
mod compactor;
mod garbage;
mod housekeeper;
mod limits;
mod plan;
mod records;
mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use slatedb::{Db, DbStatus};
use tokio::sync::{mpsc, oneshot, watch};

pub use self::borrowed::Borrowed;
pub(crate) use self::burial::bury_for_ever;
use self::compactor::Goal;
use self::housekeeper::Housekeeper;
pub use self::step::{SpaceHook, SpaceStep};
use crate::range::{Place, Surroundings};

/// The way to the housekeeper of a process. Clones lead to the same one.
#[derive(Clone)]
pub(crate) struct Housekeeping(Arc<Inner>);

struct Inner {
    /// Unbounded: there is one for each opening of a database and each order, none for a request.
    requests: mpsc::UnboundedSender<Request>,
    /// The other end, until the housekeeper runs.
    not_yet: Mutex<Option<mpsc::UnboundedReceiver<Request>>>,
    after_step: SpaceHook,
}

/// What the housekeeper is asked for.
enum Request {
    Enter(Tenant),
    Leave { path: String, left: oneshot::Sender<()> },
    Rewrite { path: String, done: oneshot::Sender<Result<(), String>> },
    Pins { answer: oneshot::Sender<Pins> },
}

/// By the paths of databases, the paths of those that each pins something in.
type Pins = BTreeMap<String, Vec<String>>;

/// A database that is open in this process.
struct Tenant {
    place: Place,
    db: Db,
    status: watch::Receiver<DbStatus>,
    /// Files that have to go.
    goal: Goal,
    /// Whether everything that is done to it must come to an end.
    left: watch::Sender<bool>,
}

impl Default for Housekeeping {
    fn default() -> Self {
        Self::new(SpaceHook::default())
    }
}

impl Housekeeping {
    /// One that is not yet running, and calls the hook after each step.
    pub(crate) fn new(after_step: SpaceHook) -> Self {
        let (requests, receiver) = mpsc::unbounded_channel();
        Self(Arc::new(Inner { requests, not_yet: Mutex::new(Some(receiver)), after_step }))
    }

    /// Notes that a step is done at the database, or the records, at `path`.
    async fn after(&self, step: SpaceStep, path: &str) {
        step::after(&self.0.after_step, step, path).await;
    }

    /// Keeps house for ever. To be run as a task, once, on the [background's](crate::compaction)
    /// runtime.
    pub(crate) async fn run(self, around: Surroundings) {
        let receiver = self.not_yet().take().expect("the housekeeper is run once");
        Housekeeper::new(around).run(receiver).await;
    }

    /// Takes care of a database from now on, until it is closed or [leaves](Self::leave).
    pub(crate) fn enter(&self, place: &Place, db: &Db) {
        let tenant = Tenant {
            place: place.clone(),
            status: db.subscribe(),
            db: db.clone(),
            goal: Goal::default(),
            left: watch::Sender::new(false),
        };
        // Without a housekeeper nothing is kept; the process is ending.
        let _ = self.0.requests.send(Request::Enter(tenant));
    }

    /// Lets go of a database: when it returns nothing is compacted, collected or written there by
    /// the housekeeper any more. For who freezes a range: its last rows must be the last.
    pub(crate) async fn leave(&self, path: &str) {
        if self.not_yet().is_some() {
            return;
        }
        let (left, wait) = oneshot::channel();
        let _ = self.0.requests.send(Request::Leave { path: path.to_owned(), left });
        // An error means that there is no housekeeper any more.
        let _ = wait.await;
    }

    /// Has every file replaced that the database has now, those of others included. Returns when
    /// that is done, or why it is not. What is only in memory is the caller's to flush before.
    pub(crate) async fn rewrite(&self, path: &str) -> Result<(), String> {
        let (done, wait) = oneshot::channel();
        let _ = self.0.requests.send(Request::Rewrite { path: path.to_owned(), done });
        wait.await.unwrap_or_else(|_| Err("the database was closed meanwhile".to_owned()))
    }

    /// What the databases that are open here pin in others.
    async fn pins(&self) -> Pins {
        if self.not_yet().is_some() {
            return Pins::new();
        }
        let (answer, wait) = oneshot::channel();
        let _ = self.0.requests.send(Request::Pins { answer });
        wait.await.unwrap_or_default()
    }

    fn not_yet(&self) -> std::sync::MutexGuard<'_, Option<mpsc::UnboundedReceiver<Request>>> {
        // A holder takes it or looks.
        self.0.not_yet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
