//! Why a database could not be made or opened.

use slatedb::{CloseReason, ErrorKind};
use thiserror::Error;

use crate::error::{Damaged, ReadError};
use crate::store::{ObjectError, damaged_file};

/// Why a database could not be made or opened. A database that is missing or damaged stays so until an operator
/// brings its files back, and one that is fenced belongs to another server; any other failure may end by itself. The
/// texts are paths of databases.
#[derive(Debug, Error)]
pub enum DatabaseError {
    /// The map names a database that is not there.
    #[error("the map names {0}, which has no manifest: its files were deleted; restore them or a backup")]
    Missing(String),
    /// A database was to be made where one is already.
    #[error("{0} was to be made, and a database is there already")]
    Exists(String),
    /// There are ranges with rows, and no map that names them.
    #[error(
        "{0} holds rows, but the store has no map of ranges: a copy into it was interrupted (run it \
         again into an empty place) or the objects under cluster/map were deleted (restore them)"
    )]
    NoMap(String),
    /// Stored bytes are not what was written.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// Another server, or this one in a later opening, has opened the database since.
    #[error("another server has opened {0}")]
    Fenced(String),
    /// The files of its log could not be listed.
    #[error(transparent)]
    Log(#[from] ObjectError),
    /// SlateDB could not open it.
    #[error("{0} could not be opened")]
    Failed(String, #[source] slatedb::Error),
    /// It was opened, and what it says about itself could not be read.
    #[error("{0} could not be read")]
    Unread(String, #[source] ReadError),
}

impl DatabaseError {
    /// The damage of a database that could not be opened; `None` if another reason kept it closed.
    pub(crate) fn damage(&self) -> Option<Damaged> {
        match self {
            Self::Damaged(damage) => Some(damage.clone()),
            Self::Missing(path) => Some(Damaged::new(Self::Missing(path.clone()))),
            _ => None,
        }
    }

    /// Makes an error of what SlateDB says while the database at `path` is opened.
    pub(super) fn opening(path: &str) -> impl Fn(slatedb::Error) -> Self {
        move |source| {
            if let Some(file) = damaged_file(&source) {
                return Damaged::new(file.clone()).into();
            }
            let (kind, path) = (source.kind(), path.to_owned());
            match kind {
                ErrorKind::Closed(CloseReason::Fenced) => Self::Fenced(path),
                ErrorKind::Data => Damaged::new(Self::Failed(path, source)).into(),
                _ => Self::Failed(path, source),
            }
        }
    }

    /// Makes an error of a read in the database at `path`.
    pub(crate) fn reading(path: &str) -> impl Fn(ReadError) -> Self {
        move |error| match error {
            ReadError::Damaged(damage) => Self::Damaged(damage),
            source => Self::Unread(path.to_owned(), source),
        }
    }
}
