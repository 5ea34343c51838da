//! The counter of the global map. It gives numbers that strictly grow: epochs of operations, and fences of mappings.
//!
//! All maps have one counter, so its row is locked for all of them. Within a map the numbers are taken while the map's row is
//! locked. So the epochs of a map are in the order of its changes, also if they are taken in a transaction of their own.

use super::Operations;
use crate::limits::MAPPINGS_OF_A_SHORT_CHANGE_MAX;
use crate::store::{StoreError, Tx};

impl Operations {
    /// Takes so many numbers for a change of so many mappings, and returns the first. They are greater than `above`, which a
    /// shard may have from another global map.
    ///
    /// A long change takes them in a transaction of its own. So the counter is locked only for a moment, and changes of other
    /// maps do not wait for the long one.
    pub(crate) async fn take_numbers(
        &self,
        tx: &mut Tx,
        above: i64,
        count: usize,
        mappings: usize,
    ) -> Result<i64, StoreError> {
        if mappings > MAPPINGS_OF_A_SHORT_CHANGE_MAX
            && let Some(mut errand) = self.global.begin_errand().await?
        {
            let first = take(&mut errand, above, count).await?;
            errand.commit().await?;
            return Ok(first);
        }
        take(tx, above, count).await
    }
}

/// Takes so many numbers in this transaction, greater than `above`, and returns the first.
pub(super) async fn take(tx: &mut Tx, above: i64, count: usize) -> Result<i64, StoreError> {
    let last = read_serial(tx).await?.max(above);
    set_serial(tx, last.saturating_add(i64::try_from(count).unwrap_or(i64::MAX))).await?;
    Ok(last + 1)
}

/// The last number that was given. Its row is locked, so this transaction may give more numbers.
pub(super) async fn read_serial(tx: &mut Tx) -> Result<i64, StoreError> {
    let sql = "select serial from __shard_management.global_meta where one = 1 for update";
    match tx.query_one(sql, &[]).await? {
        Some(mut row) => row.int(),
        None => Ok(0),
    }
}

pub(super) async fn set_serial(tx: &mut Tx, serial: i64) -> Result<(), StoreError> {
    let sql = "update __shard_management.global_meta set serial = $1 where one = 1";
    tx.execute(sql, &[serial.into()]).await.map(|_| ())
}
