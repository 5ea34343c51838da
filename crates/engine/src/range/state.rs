//! Whether a range can be asked, and by which opening of its database.

use std::sync::Arc;

use parking_lot::Mutex;
use slatedb::{Db, DbStatus};
use tokio::sync::watch;

use super::Range;
use super::cache::{RowBudget, RowCache};
use super::flush::Flusher;
use super::unflushed::{Unflushed, Unsorted};
use crate::database::{Borrowed, FileReader, SortedFiles};
use crate::error::{Damaged, ReadError, Reason, with_causes};

/// Whether the range can be asked.
pub(super) enum State {
    Open(Arc<Opening>),
    /// The engine below closed the database; it is being opened again.
    Reopening(Reason),
    /// It cannot be opened again: a file is missing, or does not hold what was written.
    Damaged(Damaged),
    /// Another server opened the database, and serves the range now.
    Fenced,
    /// It was handed over. Its last opening is still to be closed.
    Gone {
        last: Option<Arc<Opening>>,
    },
    /// It was closed here.
    Closed,
}

/// One opening of the database. A read that began in one is not answered in the next.
pub(crate) struct Opening {
    pub(super) number: u64,
    pub(super) db: Db,
    pub(super) status: watch::Receiver<DbStatus>,
    pub(super) flusher: Flusher,
    pub(super) unflushed: Unflushed,
    pub(super) rows: RowCache,
    pub(super) file_reader: FileReader,
    /// The sorted files as they were when a scan last took them.
    pub(super) files: Mutex<Option<Arc<SortedFiles>>>,
    /// The sequence number of the last row that was there when it was opened. The rows that were replayed from the log were
    /// not announced to the cache.
    pub(super) replayed: u64,
}

impl Range {
    /// An opening of its database, which was just opened.
    pub(super) fn opening(&self, number: u64, db: Db) -> Opening {
        Opening::new(number, db, &self.rows, self.databases.file_reader(&self.place.path))
    }

    /// The database as it is open now.
    pub(super) fn open_now(&self) -> Result<Arc<Opening>, ReadError> {
        match &*self.state.read() {
            State::Open(opening) => Ok(Arc::clone(opening)),
            State::Reopening(why) => Err(ReadError::Unavailable(why.clone())),
            State::Damaged(damage) => Err(ReadError::Damaged(damage.clone())),
            State::Fenced | State::Gone { .. } => Err(ReadError::NotOwned),
            State::Closed => Err(ReadError::Unavailable(Reason::Found("the service is being shut down"))),
        }
    }

    /// Whether the caller may answer with what it read from `opening`. Call this *after* reading: by then the range
    /// may have been handed over, its database opened again, or the server's lease may have run out.
    pub(super) fn still_serves(&self, opening: &Opening) -> Result<(), ReadError> {
        let now = self.open_now()?;
        if !self.lease.holds() {
            return Err(ReadError::NotOwned);
        }
        if now.number == opening.number {
            Ok(())
        } else {
            Err(ReadError::Unavailable(Reason::Found("its database was opened again meanwhile")))
        }
    }

    /// Changes to `state`, and returns whether it did. A range that was closed or handed over stays so,
    /// whatever its supervisor finds out at the same time.
    pub(super) fn change_state(&self, state: State) -> bool {
        let mut now = self.state.write();
        if matches!(*now, State::Closed | State::Gone { .. }) {
            return false;
        }
        *now = state;
        true
    }

    /// Whether this range will not be served here again: another server has its database or will have it, or it was
    /// closed.
    pub(crate) fn is_lost(&self) -> bool {
        let state = self.state.read();
        matches!(*state, State::Fenced | State::Gone { .. } | State::Closed)
    }

    /// What keeps it from being served now, in words.
    pub(crate) fn trouble(&self) -> Option<String> {
        match &*self.state.read() {
            State::Open(_) => None,
            State::Reopening(why) => Some(format!("it is being opened again: {}", with_causes(why))),
            State::Damaged(damage) => Some(with_causes(damage)),
            State::Fenced => Some("it was opened by another server".to_owned()),
            State::Gone { .. } | State::Closed => Some("it is closed".to_owned()),
        }
    }

    /// What it holds that is not yet in sorted files; nothing while it is not open.
    pub(crate) fn unsorted(&self) -> Unsorted {
        self.open_now().map_or_else(
            |_| Unsorted::default(),
            |opening| opening.unflushed.unsorted(opening.sorted_sequence()),
        )
    }
}

impl Opening {
    pub(super) fn new(number: u64, db: Db, rows: &Arc<RowBudget>, file_reader: FileReader) -> Self {
        Self {
            number,
            // Nothing if the database is closed already; then no row is read.
            replayed: last_sequence(&db).unwrap_or(u64::MAX),
            file_reader,
            files: Mutex::default(),
            status: db.subscribe(),
            db,
            flusher: Flusher::default(),
            unflushed: Unflushed::default(),
            rows: RowCache::new(rows),
        }
    }

    /// The sequence number up to which rows are durable.
    pub(super) fn durable_sequence(&self) -> u64 {
        self.status.borrow().durable_seq
    }

    /// The sequence number up to which rows are in sorted files.
    pub(super) fn sorted_sequence(&self) -> u64 {
        self.status.borrow().current_manifest.last_l0_seq()
    }

    pub(super) fn unflushed_bytes(&self) -> u64 {
        self.unflushed.unsorted(self.sorted_sequence()).bytes
    }

    pub(super) fn borrowed(&self) -> Borrowed {
        Borrowed::in_manifest(&self.status.borrow().current_manifest)
    }
}

/// The sequence number of the last row that was written; `None` if the database is closed.
pub(super) fn last_sequence(db: &Db) -> Option<u64> {
    db.snapshot().ok().map(|snapshot| snapshot.seq())
}
