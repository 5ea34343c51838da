//! Why a request did not succeed: the client's fault, or ours.

use rangehold_engine::{ReadError, WriteError};
use rangehold_protocol::table::error::{ErrorCode, TableError};
use tracing::error;

/// A request that did not succeed. In a batch it also says which operation it was.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What the client is told.
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
