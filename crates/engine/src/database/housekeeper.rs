//! A handle to the housekeeper of the process: it tells the housekeeper which databases are open, and sends
//! requests to it.
//!
//! The housekeeper itself (`crate::housekeeping`) is in a layer above. It compacts databases and collects
//! their garbage.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use slatedb::Db;
use tokio::sync::{mpsc, oneshot};

use super::Place;
use crate::error::ReadError;

/// A handle to the housekeeper. Clones lead to the same one.
#[derive(Clone)]
pub(crate) struct HousekeeperHandle(Arc<Inner>);

struct Inner {
    /// Unbounded, since there is one request for each opening of a database and each order, and none for a
    /// request of a client.
    requests: mpsc::UnboundedSender<HousekeeperRequest>,
    /// The receiving end, until the housekeeper runs.
    not_yet: Mutex<Option<mpsc::UnboundedReceiver<HousekeeperRequest>>>,
}

/// A request to the housekeeper.
pub(crate) enum HousekeeperRequest {
    /// Take care of a database that was opened.
    Enter { place: Place, db: Db },
    /// Stop all work on a database.
    Leave { path: String, left: oneshot::Sender<()> },
    /// Replace all files of a database.
    Rewrite { path: String, done: oneshot::Sender<Result<(), CompactionError>> },
    /// Tell in which databases each open database pins something.
    Pins { answer: oneshot::Sender<Pins> },
}

/// Why a database was not compacted, or not all of it. It is compacted later, so nobody has to ask again.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CompactionError {
    /// The database was closed, or handed over.
    #[error("the database is not open here")]
    NotOpen,
    /// Rows that were only in memory could not be saved first.
    #[error("its rows in memory could not be saved")]
    NotSaved(#[source] ReadError),
    /// The compactor stopped before it was told to.
    #[error("its compactor stopped by itself")]
    Stopped,
    /// The compactor tries again and again, and makes nothing.
    #[error("its compactions fail again and again")]
    Stuck,
    /// The compactor failed. Several callers may get this error, so they share its source.
    #[error("its compactor failed")]
    Failed(#[source] Arc<slatedb::Error>),
}

impl CompactionError {
    /// Whether the database is open elsewhere now, as after a move. Then nothing has failed.
    pub(crate) fn is_handed_over(&self) -> bool {
        match self {
            Self::NotOpen => true,
            Self::Failed(source) => {
                matches!(source.kind(), slatedb::ErrorKind::Closed(slatedb::CloseReason::Fenced))
            }
            Self::NotSaved(_) | Self::Stopped | Self::Stuck => false,
        }
    }
}

/// For the path of each database, the paths of the databases in which it pins something.
pub(crate) type Pins = BTreeMap<String, Vec<String>>;

impl HousekeeperHandle {
    /// A handle to a housekeeper that does not run yet.
    pub(crate) fn new() -> Self {
        let (requests, receiver) = mpsc::unbounded_channel();
        Self(Arc::new(Inner { requests, not_yet: Mutex::new(Some(receiver)) }))
    }

    /// The requests, for the task that is the housekeeper. `None` if another task has taken them already.
    pub(crate) fn take_requests(&self) -> Option<mpsc::UnboundedReceiver<HousekeeperRequest>> {
        self.0.not_yet.lock().take()
    }

    /// Has the housekeeper take care of a database from now on, until it is closed or
    /// [leaves](Self::leave).
    pub(super) fn enter(&self, place: &Place, db: &Db) {
        // An error means that there is no housekeeper any more, since the process is ending.
        let _ = self.0.requests.send(HousekeeperRequest::Enter { place: place.clone(), db: db.clone() });
    }

    /// Ends the work on a database: after this returns, the housekeeper compacts, collects and writes
    /// nothing there any more. A range that is frozen needs this: its last rows must be the last.
    pub(crate) async fn leave(&self, path: &str) {
        if self.0.not_yet.lock().is_some() {
            return;
        }
        let (left, wait) = oneshot::channel();
        let _ = self.0.requests.send(HousekeeperRequest::Leave { path: path.to_owned(), left });
        // An error means that there is no housekeeper any more.
        let _ = wait.await;
    }

    /// Has every file replaced that the database has now, including files of other databases. Returns when
    /// that is done, or fails. Rows that are only in memory must be flushed by the
    /// caller before.
    pub(crate) async fn rewrite(&self, path: &str) -> Result<(), CompactionError> {
        let (done, wait) = oneshot::channel();
        let _ = self.0.requests.send(HousekeeperRequest::Rewrite { path: path.to_owned(), done });
        wait.await.unwrap_or(Err(CompactionError::NotOpen))
    }

    /// What the databases that are open here pin in other databases.
    pub(crate) async fn pins(&self) -> Pins {
        if self.0.not_yet.lock().is_some() {
            return Pins::new();
        }
        let (answer, wait) = oneshot::channel();
        let _ = self.0.requests.send(HousekeeperRequest::Pins { answer });
        wait.await.unwrap_or_default()
    }
}
