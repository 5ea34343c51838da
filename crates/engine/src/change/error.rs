//! Why a change was not made, by what the caller can do next.

use rangehold_map::{ChangeRefused, DatabaseName, RangeId, ServerId};
use thiserror::Error;

use crate::error::{OpenError, ReadError};
use crate::partition_server::NotHeld;
use crate::range::NotReady;

/// Why a change was not made.
#[derive(Debug, Error)]
pub enum ChangeError {
    /// It does not fit the map. Nothing was done.
    #[error(transparent)]
    Refused(#[from] ChangeRefused),
    /// The server does not hold the range in that generation: read the map and ask again.
    #[error(transparent)]
    NotHeld(#[from] NotHeld),
    /// There is no such server, or it does not run.
    #[error("there is no server {0} here")]
    NoServer(ServerId),
    /// The server may not serve ranges. The process has to be started again, if the server's ranges were given to
    /// others.
    #[error("server {0} has no lease")]
    NoLease(ServerId),
    /// Nothing was done yet, because the range is not ready. Asking again helps.
    #[error("{range} cannot change hands yet: {waits_for}")]
    NotYet {
        /// The range.
        range: RangeId,
        /// What it waits for.
        waits_for: NotReady,
    },
    /// It was begun, failed and was undone: the range goes on as before. Asking again may help.
    #[error("the change of {range} failed and was undone: {source}")]
    Undone {
        /// The range.
        range: RangeId,
        /// What failed.
        source: StepError,
    },
    /// Another process has settled the change, or gives the range to another server. Read the map to see how.
    #[error(
        "the place of {range} in the map was changed by another process meanwhile; read the map before you ask again"
    )]
    Overtaken {
        /// The range.
        range: RangeId,
    },
    /// It was begun and is neither done nor undone, for example because the store gives no answer. The manager brings
    /// it to its end within seconds if it can; so does the next start of the process.
    #[error("the change of {range} is broken off: {source}")]
    BrokenOff {
        /// The range.
        range: RangeId,
        /// What failed.
        source: StepError,
    },
    /// The stored map could not be read or changed.
    #[error(transparent)]
    Store(#[from] OpenError),
}

/// What failed in a step of a change.
#[derive(Debug, Error)]
pub enum StepError {
    /// A range that is replaced is not held by the server.
    #[error(transparent)]
    NotHeld(#[from] NotHeld),
    /// A range is not ready to change hands.
    #[error("{range} cannot change hands yet: {waits_for}")]
    NotReady {
        /// The range.
        range: RangeId,
        /// What it waits for.
        waits_for: NotReady,
    },
    /// A range's own rows could not be read or written.
    #[error(transparent)]
    Rows(#[from] ReadError),
    /// A database could not be opened, or the store failed.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The database of a new range could not be made.
    #[error("database {database} could not be made")]
    NotMade {
        /// The database.
        database: DatabaseName,
        /// What SlateDB said.
        source: slatedb::Error,
    },
    /// The target of a move could not open the database.
    #[error("server {server} could not open it: {source}")]
    NotTaken {
        /// The target.
        server: ServerId,
        /// Its error.
        source: OpenError,
    },
    /// The server lost its lease before it could serve.
    #[error("server {0} has lost its lease")]
    NoLease(ServerId),
    /// Another process undid the change while it was made.
    #[error("another process undid it meanwhile")]
    UndoneElsewhere,
}

impl StepError {
    /// The error of a change that was undone because of this.
    pub(super) fn undone(self, range: RangeId) -> ChangeError {
        match self {
            // Nothing had been done to any range.
            Self::NotHeld(error) => ChangeError::NotHeld(error),
            Self::NotReady { range, waits_for } => ChangeError::NotYet { range, waits_for },
            source => ChangeError::Undone { range, source },
        }
    }
}
