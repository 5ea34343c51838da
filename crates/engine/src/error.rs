//! What can go wrong, sorted by what the caller must do next.
//!
//! The database below has many errors. Above it only a few kinds differ: ask again, ask another server,
//! tell the operator. Two of them must never be mixed up: *the write was not made* and *it is not known
//! whether it was made*. A write that has entered the log but was not seen to become durable may still be
//! made, so it is [`WriteError::OutcomeUnknown`], never a refusal.

use std::error::Error as StdError;
use std::fmt::Write as _;

use rangehold_map::RangeId;
use slatedb::{CloseReason, ErrorKind};
use thiserror::Error;

use crate::store::{StoreError, damaged_file};

/// Why a data directory could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store answered a request with an error.
    #[error("the store failed while {doing}")]
    Object {
        /// What was being done, with the object's name.
        doing: String,
        /// The store's error.
        #[source]
        source: object_store::Error,
    },
    /// The stored map of ranges is not a valid map.
    #[error("{object} is not a map of ranges: {why}")]
    BadMap {
        /// The object's name.
        object: String,
        /// What is wrong with it.
        why: String,
    },
    /// A version of the map that breaks the rules of maps was about to be stored. It was not stored, since
    /// no process could have opened the store after that.
    #[error(
        "version {version} of the map of ranges was not stored, because {why}: this is a bug in Rangehold; the \
         map in the store is unchanged"
    )]
    UnsoundMap {
        /// The version that was about to be stored.
        version: u64,
        /// The rules that it breaks.
        why: String,
    },
    /// There are ranges with rows, and no map that names them.
    #[error(
        "{path} holds rows, but the store has no map of ranges: a copy into it was interrupted (run it \
         again into an empty place) or the objects under cluster/map were deleted (restore them)"
    )]
    NoMap {
        /// The database with rows.
        path: String,
    },
    /// The map names a database that is not there.
    #[error("the map names {path}, which has no manifest: its files were deleted; restore them or a backup")]
    MissingDatabase {
        /// Where the database should be.
        path: String,
    },
    /// Stored bytes are not what was written.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// Another process has opened the database since.
    #[error("another process has opened {path}")]
    Fenced {
        /// Where the database is.
        path: String,
    },
    /// The database could not be opened for another reason.
    #[error("{path} could not be opened: {why}")]
    Database {
        /// Where the database is.
        path: String,
        /// The database's error, with its causes.
        why: String,
    },
    /// The catalogue could not be read.
    #[error("the catalogue of tables could not be read")]
    Catalogue(#[source] ReadError),
    /// A change of ranges that was broken off could not be brought to its end.
    #[error("a change of ranges that was broken off could not be brought to its end: {0}")]
    Change(String),
    /// The operating system gave no thread for compaction.
    #[error("the compaction runtime could not be started")]
    Runtime(#[source] std::io::Error),
    /// The given memory is too little to work with.
    #[error("{given} bytes of memory are too few: give at least {least}")]
    TooLittleMemory {
        /// What was given.
        given: u64,
        /// The least that works.
        least: u64,
    },
}

/// Stored bytes that are not what was written: a checksum does not fit, or a file is missing. The text
/// names the file. Asking again does not help, but restoring a backup does.
#[derive(Debug, Clone, Error)]
#[error("stored data is damaged: {0}")]
pub struct Damaged(pub String);

/// Why a read was not answered. The caller must throw away what it has read so far.
#[derive(Debug, Clone, Error)]
pub enum ReadError {
    /// This server does not hold the key's range (any more): ask the one that does.
    #[error("this server does not hold the range of the key")]
    NotOwned,
    /// The key's table was dropped.
    #[error("the table was dropped")]
    TableDropped,
    /// The range was set offline; it answers when it is set online.
    #[error("{0} is offline")]
    Offline(RangeId),
    /// The range cannot be read at the moment; asking again may help.
    #[error("the range cannot be read at the moment: {0}")]
    Unavailable(String),
    /// What is stored cannot be trusted.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}

/// Why a write was not acknowledged. Every error except [`WriteError::OutcomeUnknown`] means that the write
/// was not made.
#[derive(Debug, Clone, Error)]
pub enum WriteError<E> {
    /// The caller's judge refused the write, and the rows by which it judged are durable.
    #[error("refused by its conditions")]
    Refused(E),
    /// This server does not hold the key's range (any more): ask the one that does.
    #[error("this server does not hold the range of the key")]
    NotOwned,
    /// The key's table was dropped.
    #[error("the table was dropped")]
    TableDropped,
    /// The disk has too little space left. Reads are still answered, and writes again once there is room.
    #[error("less than {} MiB are free on the disk of {root}", reserve_bytes >> 20)]
    DiskFull {
        /// The data directory.
        root: String,
        /// Free bytes below which writes are refused.
        reserve_bytes: u64,
    },
    /// Too many writes are under way already, or the deadline passed before it was the write's turn, or
    /// before its refusal could be answered.
    #[error("the range is busy: {0}")]
    Busy(&'static str),
    /// The range was set offline; it answers when it is set online.
    #[error("{0} is offline")]
    Offline(RangeId),
    /// The range cannot be written at the moment; asking again may help.
    #[error("the range cannot be written at the moment: {0}")]
    Unavailable(String),
    /// The write may or may not have been made.
    #[error("it is not known whether the write was made: {0}")]
    OutcomeUnknown(String),
    /// What is stored cannot be trusted.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}

impl ReadError {
    /// Whether this is a failure of the range. It is not if the client asked the wrong server, or for
    /// something that is not there.
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Damaged(_) => true,
            Self::NotOwned | Self::TableDropped | Self::Offline(_) => false,
        }
    }
}

impl<E> WriteError<E> {
    /// See [`ReadError::is_failure`].
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::DiskFull { .. }
            | Self::Busy(_)
            | Self::Unavailable(_)
            | Self::OutcomeUnknown(_)
            | Self::Damaged(_) => true,
            Self::Refused(_) | Self::NotOwned | Self::TableDropped | Self::Offline(_) => false,
        }
    }
}

impl<E> From<ReadError> for WriteError<E> {
    /// A write that failed while it read its rows: nothing has been written yet.
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotOwned => Self::NotOwned,
            ReadError::Offline(range) => Self::Offline(range),
            ReadError::TableDropped => Self::TableDropped,
            ReadError::Unavailable(why) => Self::Unavailable(why),
            ReadError::Damaged(damage) => Self::Damaged(damage),
        }
    }
}

/// The error for a read that failed in the database below.
pub(crate) fn read_error(error: &slatedb::Error) -> ReadError {
    if let Some(file) = damaged_file(error) {
        return ReadError::Damaged(Damaged(file.to_string()));
    }
    match error.kind() {
        ErrorKind::Data => ReadError::Damaged(Damaged(with_causes(error))),
        ErrorKind::Closed(CloseReason::Fenced) => ReadError::NotOwned,
        _ => ReadError::Unavailable(with_causes(error)),
    }
}

/// The error for a database at `path` that could not be opened.
pub(crate) fn open_error(path: &str, error: &slatedb::Error) -> OpenError {
    if let Some(file) = damaged_file(error) {
        return OpenError::Damaged(Damaged(file.to_string()));
    }
    match error.kind() {
        ErrorKind::Data => OpenError::Damaged(Damaged(format!("{path}: {}", with_causes(error)))),
        ErrorKind::Closed(CloseReason::Fenced) => OpenError::Fenced { path: path.to_owned() },
        _ => OpenError::Database { path: path.to_owned(), why: with_causes(error) },
    }
}

/// An error and its causes in one line, for a log line or an answer. Errors of this crate keep what caused them as
/// their source, and the name of a file is often only in the innermost one.
pub fn with_causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        // Some errors repeat a cause in their own text, such as those of the database.
        if !text.contains(&inner_text) {
            let _ = write!(text, ": {inner_text}");
        }
        cause = inner.source();
    }
    text
}
