//! The way to the housekeeper of the process: databases that are open are told to it, and requests are put to it.
//!
//! The housekeeper itself (`crate::housekeeping`) stands above: it compacts databases and collects their garbage.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use slatedb::Db;
use tokio::sync::{mpsc, oneshot};

use super::Place;

/// A way to the housekeeper. Clones lead to the same one.
#[derive(Clone)]
pub(crate) struct HousekeeperHandle(Arc<Inner>);

struct Inner {
    /// Unbounded: there is one for each opening of a database and each order, none for a request of a client.
    requests: mpsc::UnboundedSender<HousekeeperRequest>,
    /// The other end, until the housekeeper runs.
    not_yet: Mutex<Option<mpsc::UnboundedReceiver<HousekeeperRequest>>>,
}

/// What the housekeeper is asked for.
pub(crate) enum HousekeeperRequest {
    /// Take care of a database that was opened.
    Enter { place: Place, db: Db },
    /// Do nothing to it any more.
    Leave { path: String, left: oneshot::Sender<()> },
    /// Replace all its files.
    Rewrite { path: String, done: oneshot::Sender<Result<(), String>> },
    /// Tell what all databases pin.
    Pins { answer: oneshot::Sender<Pins> },
}

/// By the paths of databases, the paths of those that each pins something in.
pub(crate) type Pins = BTreeMap<String, Vec<String>>;

impl HousekeeperHandle {
    /// A way to a housekeeper that is not yet running.
    pub(crate) fn new() -> Self {
        let (requests, receiver) = mpsc::unbounded_channel();
        Self(Arc::new(Inner { requests, not_yet: Mutex::new(Some(receiver)) }))
    }

    /// The requests, for the task that is the housekeeper. `None` if there is one already.
    pub(crate) fn take_requests(&self) -> Option<mpsc::UnboundedReceiver<HousekeeperRequest>> {
        self.not_yet().take()
    }

    /// Takes care of a database from now on, until it is closed or [leaves](Self::leave).
    pub(super) fn enter(&self, place: &Place, db: &Db) {
        // Without a housekeeper nothing is kept; the process is ending.
        let _ = self.0.requests.send(HousekeeperRequest::Enter { place: place.clone(), db: db.clone() });
    }

    /// Lets go of a database: when it returns nothing is compacted, collected or written there by
    /// the housekeeper any more. A range that is frozen needs that: its last rows must be the last.
    pub(crate) async fn leave(&self, path: &str) {
        if self.not_yet().is_some() {
            return;
        }
        let (left, wait) = oneshot::channel();
        let _ = self.0.requests.send(HousekeeperRequest::Leave { path: path.to_owned(), left });
        // An error means that there is no housekeeper any more.
        let _ = wait.await;
    }

    /// Has every file replaced that the database has now, those of others included. Returns when
    /// that is done, or why it is not. What is only in memory is the caller's to flush before.
    pub(crate) async fn rewrite(&self, path: &str) -> Result<(), String> {
        let (done, wait) = oneshot::channel();
        let _ = self.0.requests.send(HousekeeperRequest::Rewrite { path: path.to_owned(), done });
        wait.await.unwrap_or_else(|_| Err("the database was closed meanwhile".to_owned()))
    }

    /// What the databases that are open here pin in others.
    pub(crate) async fn pins(&self) -> Pins {
        if self.not_yet().is_some() {
            return Pins::new();
        }
        let (answer, wait) = oneshot::channel();
        let _ = self.0.requests.send(HousekeeperRequest::Pins { answer });
        wait.await.unwrap_or_default()
    }

    fn not_yet(&self) -> MutexGuard<'_, Option<mpsc::UnboundedReceiver<HousekeeperRequest>>> {
        // A holder takes it or looks.
        self.0.not_yet.lock()
    }
}
