//! What can go wrong, sorted by what the caller must do next.
//!
//! The database below has many errors. Above it only a few kinds differ: ask again, ask another server,
//! tell the operator. Two of them must never be mixed up: *the write was not made* and *it is not known
//! whether it was made*. A write that has entered the log but was not seen to become durable may still be
//! made, so it is [`WriteError::OutcomeUnknown`], never a refusal.

use std::error::Error as StdError;
use std::sync::Arc;

use rangehold_map::RangeId;
use slatedb::{CloseReason, ErrorKind};
use thiserror::Error;

use crate::store::damaged_file;

/// Stored bytes that are not what was written: a checksum does not fit, or a file is missing. The text, or the
/// causes behind it, name the file. Asking again does not help, but restoring a backup does.
#[derive(Debug, Clone, Error)]
#[error("stored data is damaged: {0}")]
pub struct Damaged(#[source] Arc<dyn StdError + Send + Sync>);

impl Damaged {
    /// Damage that an error or a text shows.
    pub(crate) fn new(shown_by: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(shown_by.into().into())
    }
}

/// What lies behind an error, for people: what a caller does next depends on the error alone. Many requests may fail
/// for the same reason, so clones share it.
#[derive(Debug, Clone, Error)]
pub enum Reason {
    /// Something that the engine itself has found.
    #[error("{0}")]
    Found(&'static str),
    /// Something below a range failed.
    #[error(transparent)]
    Failed(Arc<dyn StdError + Send + Sync>),
}

impl Reason {
    /// The reason that something below a range failed.
    pub(crate) fn failed(error: impl StdError + Send + Sync + 'static) -> Self {
        Self::Failed(Arc::new(error))
    }
}

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
    Unavailable(#[source] Reason),
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
    /// The bucket of the object is closed, because it is being deleted. Writes may be allowed again soon, if it turns out
    /// not to be empty.
    #[error("the bucket is being deleted")]
    BucketClosed,
    /// Folders of the bucket are being renamed or deleted, or were, by the change of this number, and the sender of the
    /// write has not seen it: it must look for the folder of its object again.
    #[error("the folders of the bucket have changed: change {0} was not seen")]
    Fenced(u64),
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
    Unavailable(#[source] Reason),
    /// The write may or may not have been made.
    #[error("it is not known whether the write was made: {0}")]
    OutcomeUnknown(#[source] Reason),
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
    /// The same, with another reason of a refusal.
    pub(crate) fn map_refusal<F>(self, reason: impl FnOnce(E) -> F) -> WriteError<F> {
        match self {
            Self::Refused(refusal) => WriteError::Refused(reason(refusal)),
            Self::NotOwned => WriteError::NotOwned,
            Self::TableDropped => WriteError::TableDropped,
            Self::BucketClosed => WriteError::BucketClosed,
            Self::Fenced(number) => WriteError::Fenced(number),
            Self::Offline(range) => WriteError::Offline(range),
            Self::DiskFull { root, reserve_bytes } => WriteError::DiskFull { root, reserve_bytes },
            Self::Busy(why) => WriteError::Busy(why),
            Self::Unavailable(why) => WriteError::Unavailable(why),
            Self::OutcomeUnknown(why) => WriteError::OutcomeUnknown(why),
            Self::Damaged(damaged) => WriteError::Damaged(damaged),
        }
    }

    /// See [`ReadError::is_failure`].
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::DiskFull { .. }
            | Self::Busy(_)
            | Self::Unavailable(_)
            | Self::OutcomeUnknown(_)
            | Self::Damaged(_) => true,
            Self::Refused(_)
            | Self::NotOwned
            | Self::TableDropped
            | Self::BucketClosed
            | Self::Fenced(_)
            | Self::Offline(_) => false,
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
pub(crate) fn read_error(error: slatedb::Error) -> ReadError {
    if let Some(file) = damaged_file(&error) {
        return ReadError::Damaged(Damaged::new(file.clone()));
    }
    match error.kind() {
        ErrorKind::Data => ReadError::Damaged(Damaged::new(error)),
        ErrorKind::Closed(CloseReason::Fenced) => ReadError::NotOwned,
        _ => ReadError::Unavailable(Reason::failed(error)),
    }
}

/// An error and its causes in one line, for a log line or an answer. Errors of this crate keep what caused them as
/// their source, and the name of a file is often only in the innermost one.
pub fn with_causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        // Some errors repeat a cause in their own text, such as those of the database.
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}
