//! Why a change was not made, by what the caller can do next.

use rangehold_map::{ChangeRefused, DatabaseName, RangeId, ServerId};
use thiserror::Error;

use crate::database::DatabaseError;
use crate::error::{Damaged, ReadError};
use crate::map_store::MapError;
use crate::partition_server::NotHeld;
use crate::range::NotReady;
use crate::record_name::RecordName;
use crate::store::ObjectError;

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
    Map(#[from] MapError),
    /// The map names a range that a change has replaced.
    #[error(
        "stored data is damaged: the map names {0}, which was replaced by others ({1} says so): the map is older than \
         the ranges; restore both from one backup"
    )]
    MapTooOld(RangeId, RecordName),
    /// A range could not be opened.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The lease of a server could not be read or ended.
    #[error(transparent)]
    Lease(#[from] ObjectError),
    /// The dropped tables could not be read from the catalogue.
    #[error("the catalogue of tables could not be read")]
    Catalogue(#[source] ReadError),
}

impl ChangeError {
    /// The damage, if stored bytes of a range are not what was written. The ranges whose files are whole can still be
    /// served. What is stored for all ranges together (the map, the catalogue) does not count.
    pub(crate) fn damage(&self) -> Option<Damaged> {
        match self {
            Self::Database(error) | Self::BrokenOff { source: StepError::Database(error), .. } => {
                error.damage()
            }
            _ => None,
        }
    }
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
    /// The stored map could not be read.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The change record could not be read or created. If it was to be created, it is not known whether it was: ask
    /// again.
    #[error(transparent)]
    Record(#[from] ObjectError),
    /// The change record is not what was written.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// A database could not be opened.
    #[error(transparent)]
    Database(#[from] DatabaseError),
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
        source: DatabaseError,
    },
    /// The server lost its lease before it could serve.
    #[error("server {0} has lost its lease")]
    NoLease(ServerId),
    /// Another process undid the change while it was made.
    #[error("another process undid it meanwhile")]
    UndoneElsewhere,
}

impl StepError {
    /// Whether the store gave no answer, so that the same step may work if it is done again.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self, Self::Map(MapError::Store(_)) | Self::Record(_))
    }

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
