//! Housekeeping: keeps databases small, and gives their space back.
//!
//! A process may hold thousands of databases, and most of them get no requests. So no database has a
//! compactor or a collector of its own, each with its timers. Instead, one *housekeeper* looks at all of
//! them once a second, in memory, and works on a database only if something changed there:
//!
//! | what | when | where |
//! |---|---|---|
//! | tidying | files overlap, or there are several runs of like size | [`plan`], [`compactor`] |
//! | rewriting | it was ordered, or a child still reads its parent's files | the same |
//! | collecting | a manifest changed, and nothing has changed in the two minutes since | [`garbage`] |
//! | burying | a directory under `ranges/` belongs to no living range | [`burial`] |
//! | forgetting | no database can name a change record any more | [`records`] |
//!
//! **How space comes back after a split or merge.** A child is the database of an heir. Its manifest names
//! files of its parents, and a checkpoint in each parent pins them:
//!
//! ```text
//!   parent P, retired        child A: reads files of P, pins a checkpoint in P
//!                            1 rewritten: every file is A's own           (at once, paced)
//!                            2 two minutes later no checkpoint of A names P's files either:
//!     pin released      <---   A is detached from P                       (a collection of A)
//!   3 no pin is left: P is deleted, and with it its own pins in others    (a burial)
//! ```
//!
//! After a pause between two steps, or a crash, the next look at the databases goes on from the state that
//! is there. [`SpaceStep`] lists the steps, and the state that each of them leaves.
//!
//! All of this runs on threads of low priority. There are separate lanes for tidying and for rewriting, so
//! that no database waits until a large one is rewritten. Rewriting has a limit of bytes a second for all
//! databases together, so that requests are hardly slowed down.

mod budget;
mod burial;
mod compactor;
mod garbage;
mod housekeeper;
mod limits;
mod plan;
mod records;
#[cfg(test)]
mod tests;
mod upkeep;

use rangehold_map::RangeId;
use slatedb::{Db, DbStatus};
use tokio::sync::watch;

pub(crate) use self::burial::keep_burying;
use self::compactor::Goal;
use self::housekeeper::Housekeeper;
use crate::database::{Databases, Place};
use crate::steps::SpaceStep;

/// A database that is open in this process.
struct OpenDatabase {
    place: Place,
    db: Db,
    status: watch::Receiver<DbStatus>,
    /// Files that must be replaced.
    goal: Goal,
    /// True once the work on it must end.
    left: watch::Sender<bool>,
}

impl OpenDatabase {
    fn new(place: Place, db: Db) -> Self {
        Self { place, status: db.subscribe(), db, goal: Goal::default(), left: watch::Sender::new(false) }
    }
}

/// Runs the housekeeper until it is stopped. Run this as a task, once, on the runtime of the background.
pub(crate) async fn keep_house(databases: Databases) {
    let requests = databases.housekeeper.take_requests().expect("the housekeeper is run once");
    Housekeeper::new(databases).run(requests).await;
}

/// Reports that a step is done for the database, or the records, at `path`.
async fn step_is_done(databases: &Databases, step: SpaceStep, path: &str) {
    if let Some(range) = range_of(path) {
        databases.after_space_step.after(step, RangeId(range)).await;
    }
}

/// The number of the range: its database is at `ranges/<range>-<generation>-<attempt>`, its records are at
/// `changes/<range>`.
fn range_of(path: &str) -> Option<u64> {
    path.rsplit('/').next()?.split('-').next()?.parse().ok()
}
