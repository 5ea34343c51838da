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
//! A pause between two steps, or a crash, leaves a state from which the next look goes on: [`SpaceStep`]
//! lists the steps, and what each leaves.
//!
//! All of it runs on threads of low priority. Tidying and rewriting have lanes of their own, so that
//! no database waits behind the rewriting of a large one; and rewriting is paced, for all databases
//! together, to what is hardly felt.

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
    /// Files that have to go.
    goal: Goal,
    /// Whether everything that is done to it must come to an end.
    left: watch::Sender<bool>,
}

impl OpenDatabase {
    fn new(place: Place, db: Db) -> Self {
        Self { place, status: db.subscribe(), db, goal: Goal::default(), left: watch::Sender::new(false) }
    }
}

/// Keeps house until it is stopped. To be run as a task, once, on the background's runtime.
pub(crate) async fn keep_house(databases: Databases) {
    let requests = databases.housekeeper.take_requests().expect("the housekeeper is run once");
    Housekeeper::new(databases).run(requests).await;
}

/// Notes that a step is done at the database, or the records, at `path`.
async fn step_is_done(databases: &Databases, step: SpaceStep, path: &str) {
    if let Some(range) = range_of(path) {
        databases.after_space_step.after(step, RangeId(range)).await;
    }
}

/// The number of the range whose database lies at `ranges/<range>-<generation>-<attempt>`, or whose
/// records at `changes/<range>`.
fn range_of(path: &str) -> Option<u64> {
    path.rsplit('/').next()?.split('-').next()?.parse().ok()
}
