//! The operations in the log of the global map: a look at them, and the end of those that were abandoned.

use super::ShardMapManager;
use crate::error::{Category, Error};
use crate::operation::{Met, PendingOperation, operations};
use crate::store::StoreError;

impl ShardMapManager {
    /// The operations that are under way or were abandoned, the oldest first.
    ///
    /// # Errors
    ///
    /// [`crate::Code::StorageOperationFailure`].
    pub async fn pending_operations(&self) -> Result<Vec<PendingOperation>, Error> {
        let found = operations(&self.0.operations.global).await;
        found.map_err(|error: StoreError| error.seen_by(Category::Manager))
    }

    /// Ends every abandoned operation: does it if possible, and otherwise undoes it. Call this from time to time.
    /// Returns how many were ended, and for the others why they could not be ended. A caller that tells how far it is
    /// calls [`ShardMapManager::end_abandoned`] for each.
    ///
    /// # Errors
    ///
    /// [`crate::Code::StorageOperationFailure`], if the log cannot be read.
    pub async fn recover_pending(&self) -> Result<(usize, Vec<Error>), Error> {
        let (mut ended, mut failed) = (0, Vec::new());
        for operation in self.pending_operations().await?.into_iter().filter(|operation| operation.abandoned)
        {
            match self.end_abandoned(&operation).await {
                Ok(()) => ended += 1,
                Err(error) => failed.push(error),
            }
        }
        Ok((ended, failed))
    }

    /// Ends one abandoned operation: does it if possible, and otherwise undoes it. An operation that has ended meanwhile is
    /// not an error.
    ///
    /// # Errors
    ///
    /// [`crate::Code::PendingOperation`] if its owner has renewed its lease, or if the operation can be neither done nor
    /// undone now; [`crate::Code::StorageOperationFailure`].
    pub async fn end_abandoned(&self, operation: &PendingOperation) -> Result<(), Error> {
        let met = Met { operation: operation.id };
        self.0.operations.settle(&met, Category::Manager, true).await
    }
}
