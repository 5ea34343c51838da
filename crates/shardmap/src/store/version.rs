//! The version of the store, and which versions this program refuses.

use super::error::StoreError;
use super::{Row, Tx};
use crate::error::Failure;

/// The version of the store that this program writes. It reads every store of the same major version.
pub const STORE_VERSION: (i64, i64) = (1, 1);

impl Tx {
    /// Refuses a shard of another major version. A database without a local map is not one.
    pub(crate) async fn expect_local_version(&mut self) -> Result<(), StoreError> {
        if !self.has_table("local_meta").await? {
            return Ok(());
        }
        let sql = "select version_major, version_minor from __shard_management.local_meta where one = 1";
        match self.query_one(sql, &[]).await? {
            Some(mut row) => expect_version(&mut row),
            None => Ok(()),
        }
    }
}

/// Refuses a local map of another major version. The next two columns of the row have its version.
pub(crate) fn expect_version(row: &mut Row) -> Result<(), StoreError> {
    let (major, minor) = (row.optional(Row::int)?, row.optional(Row::int)?);
    let (Some(major), Some(minor)) = (major, minor) else { return Ok(()) };
    if major == STORE_VERSION.0 {
        return Ok(());
    }
    let what = format!(
        "the shard is of version {major}.{minor}, and this program writes {}.{}: use a program of its version",
        STORE_VERSION.0, STORE_VERSION.1
    );
    Err(row.error(Failure::OtherVersion, what))
}
