//! Why a request did not succeed: by a fault of the client, or by ours.

use rangehold_engine::blob::BlobError;
use rangehold_engine::{Damaged, ReadError, WriteError, with_causes};
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::write::Refusal;
use tracing::error;

/// A request that did not succeed, with the error for its client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(pub(crate) ObjectError);

/// Why a range is not served. This ends soon by itself.
const BEING_OPENED: &str = "The range is being opened. Try again.";
/// Why a range is not served. This lasts until somebody sets the range online.
const OFFLINE: &str = "The range was taken offline.";

impl Failure {
    /// The request can be repeated: the server cannot answer it now.
    pub(crate) fn unavailable(text: impl Into<String>) -> Self {
        Self(ObjectError::new(ErrorKind::Unavailable, text))
    }

    /// The name was a source of other changes again and again.
    pub(crate) fn moved_again() -> Self {
        Self::unavailable("The object is moved again and again. Try again.")
    }

    /// Whether the write that failed may have been made all the same. Then nothing that it names may be removed.
    pub(crate) fn is_unknown(&self) -> bool {
        self.0.kind == ErrorKind::OutcomeUnknown
    }
}

impl From<ObjectError> for Failure {
    fn from(refused: ObjectError) -> Self {
        if refused.kind == ErrorKind::Internal {
            // The client cannot do anything about it, so the operator is told in the log.
            error!(error = refused.message, "a stored row is damaged");
        }
        Self(refused)
    }
}

/// Stored bytes that cannot be read. The file that the error names concerns the operator, who is told in the log.
fn damaged(damage: &Damaged) -> Failure {
    error!(error = with_causes(damage), "stored bytes are damaged");
    Failure(ObjectError::damaged("the log of the server names the file"))
}

impl From<ReadError> for Failure {
    fn from(failed: ReadError) -> Self {
        match failed {
            // The rows of a bucket are gone only after the bucket is.
            ReadError::TableDropped => ObjectError::no_such_bucket().into(),
            ReadError::NotOwned | ReadError::Unavailable(_) => Self::unavailable(BEING_OPENED),
            ReadError::Offline(_) => Self::unavailable(OFFLINE),
            ReadError::Damaged(damage) => damaged(&damage),
        }
    }
}

impl<E: Into<Self>> From<WriteError<E>> for Failure {
    fn from(failed: WriteError<E>) -> Self {
        match failed {
            WriteError::Refused(refusal) => refusal.into(),
            WriteError::TableDropped => ObjectError::no_such_bucket().into(),
            WriteError::BucketClosed => {
                Self::unavailable("The bucket is being deleted. Try again, if it should not be empty.")
            }
            WriteError::Fenced(_) => Self::unavailable("Folders of the bucket are being changed. Try again."),
            WriteError::NotOwned | WriteError::Unavailable(_) => Self::unavailable(BEING_OPENED),
            WriteError::Offline(_) => Self::unavailable(OFFLINE),
            WriteError::Busy(why) => Self::unavailable(format!("The server is busy: {why}.")),
            // Where the data is concerns the operator. The log names the directory when the disk becomes low.
            WriteError::DiskFull { reserve_bytes, .. } => Self::unavailable(format!(
                "Less than {} MiB are free on the disk. Reads are served; writes go on when there is room.",
                reserve_bytes >> 20
            )),
            WriteError::OutcomeUnknown(why) => {
                error!(why = with_causes(&why), "the outcome of a write is unknown");
                let text = "It is not known whether the write was made. Read, or try again.";
                Self(ObjectError::new(ErrorKind::OutcomeUnknown, text))
            }
            WriteError::Damaged(damage) => damaged(&damage),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Refused(error) => error.into(),
            Refusal::Intent(intent) => {
                Self::unavailable(format!("The object is being moved to {:?}. Try again.", intent.target))
            }
        }
    }
}

impl From<BlobError> for Failure {
    fn from(failed: BlobError) -> Self {
        match failed {
            BlobError::Read(error) => error.into(),
            BlobError::Damaged(damage) => damaged(&damage),
            full @ BlobError::DiskFull { .. } => Self::unavailable(format!("{full}. Reads are served.")),
            other => {
                error!(error = with_causes(&other), "a blob cannot be used");
                Self::unavailable("The bytes of the object cannot be stored or read now. Try again.")
            }
        }
    }
}

/// A body that could not be read.
impl From<TableError> for Failure {
    fn from(refused: TableError) -> Self {
        let kind = match refused.code {
            ErrorCode::RequestBodyTooLarge => ErrorKind::TooLarge,
            ErrorCode::RequestTimedOut => ErrorKind::Timeout,
            ErrorCode::ServerBusy => ErrorKind::Unavailable,
            _ => ErrorKind::Invalid,
        };
        Self(ObjectError::new(kind, refused.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_learns_that_the_disk_is_full_and_not_where_the_data_is() {
        let full: WriteError<ObjectError> =
            WriteError::DiskFull { root: "/srv/secret-place".to_owned(), reserve_bytes: 64 << 20 };
        let failure = Failure::from(full);
        assert_eq!(failure.0.kind, ErrorKind::Unavailable);
        assert!(failure.to_string().contains("64 MiB are free on the disk"), "{failure}");
        assert!(!failure.to_string().contains("secret-place"), "{failure}");
    }
}
