//! Why a request did not succeed: by a fault of the client, or by ours.

use rangehold_engine::{ReadError, WriteError, with_causes};
use rangehold_protocol::error::{ErrorCode, TableError};
use tracing::error;

/// A request that did not succeed. In a batch it also says which operation it was.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct Failure {
    /// The error for the client.
    pub(crate) error: TableError,
    /// Index of the operation in a batch that failed.
    pub(crate) operation: Option<usize>,
}

impl Failure {
    /// The same failure, of operation `index` of a batch.
    pub(crate) fn of_operation(self, index: usize) -> Self {
        Self { operation: self.operation.or(Some(index)), ..self }
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        Self { error, operation: None }
    }
}

impl From<ErrorCode> for Failure {
    fn from(code: ErrorCode) -> Self {
        TableError::from(code).into()
    }
}

/// Stored bytes that cannot be read. The client cannot do anything about it, so the operator is told in the log.
pub(crate) fn damaged(error: impl std::fmt::Display) -> Failure {
    error!(%error, "a stored row is damaged");
    ErrorCode::InternalError.into()
}

/// Why a range is not served. This ends soon by itself.
const BEING_OPENED: &str = "The server is busy: the range is being opened.";
/// Why a range is not served. This lasts until somebody sets the range online.
const OFFLINE: &str = "The server is busy: the range was taken offline.";

impl From<ReadError> for Failure {
    fn from(failed: ReadError) -> Self {
        match failed {
            ReadError::TableDropped => ErrorCode::TableNotFound.into(),
            ReadError::NotOwned | ReadError::Unavailable(_) => busy(BEING_OPENED),
            ReadError::Offline(_) => busy(OFFLINE),
            ReadError::Damaged(error) => damaged(with_causes(&error)),
        }
    }
}

impl<E: Into<Self> + std::fmt::Display> From<WriteError<E>> for Failure {
    fn from(failed: WriteError<E>) -> Self {
        match failed {
            WriteError::Refused(refusal) => refusal.into(),
            WriteError::TableDropped => ErrorCode::TableNotFound.into(),
            // Only a write of an object can meet a closed bucket or a fence.
            WriteError::NotOwned
            | WriteError::Unavailable(_)
            | WriteError::BucketClosed
            | WriteError::Fenced(_) => busy(BEING_OPENED),
            WriteError::Offline(_) => busy(OFFLINE),
            WriteError::Busy(why) => busy(format!("The server is busy: {why}.")),
            // Where the data is concerns the operator. The log names the directory when the disk becomes low.
            WriteError::DiskFull { reserve_bytes, .. } => busy(format!(
                "The server is busy: less than {} MiB are free on its disk. Reads are served; writes go on when there is \
                 room.",
                reserve_bytes >> 20
            )),
            WriteError::OutcomeUnknown(why) => {
                error!(why = with_causes(&why), "the outcome of a write is unknown");
                ErrorCode::OperationTimedOut.into()
            }
            WriteError::Damaged(error) => damaged(with_causes(&error)),
        }
    }
}

fn busy(text: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    TableError::new(ErrorCode::ServerBusy, text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_learns_that_the_disk_is_full_and_not_where_the_data_is() {
        let full: WriteError<TableError> =
            WriteError::DiskFull { root: "/srv/secret-place".to_owned(), reserve_bytes: 64 << 20 };
        let failure = Failure::from(full);
        assert_eq!(failure.error.code, ErrorCode::ServerBusy);
        assert!(failure.error.text.contains("64 MiB are free on its disk"), "{failure}");
        assert!(!failure.error.text.contains("secret-place"), "{failure}");
    }
}
