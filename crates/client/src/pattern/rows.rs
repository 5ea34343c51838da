//! One entity under several RowKeys.
//!
//! ```text
//!   PartitionKey  RowKey
//!   marathon      AGE:055__1234__John__M      the same properties
//!   marathon      BIB:01234__John__M__55      in each row
//! ```
//!
//! A query by bib number reads the rows that begin with `BIB:`, one by age those with `AGE:`. Each row has all properties, so
//! no second read is needed. All rows are written in one batch, and every change is conditional on the row that was
//! read; so as long as all writers use this module, all rows of an entity are the same at every moment.

use crate::entity::{Entity, Keys};
use crate::request::{Change, Condition, Invalid};

/// Makes the RowKeys of an entity.
type RowKeys = dyn Fn(&Entity) -> Vec<String> + Send + Sync;

/// The RowKeys of an entity, by its properties.
pub struct SecondaryRows {
    row_keys: Box<RowKeys>,
}

impl SecondaryRows {
    /// Rows with the keys that `row_keys` makes of an entity's properties. It must make the same keys each time, all of
    /// them different, and at most 50, because one batch replaces them. [`composite`](crate::keys::composite) makes keys of several fields.
    pub fn new(row_keys: impl Fn(&Entity) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self { row_keys: Box::new(row_keys) }
    }

    fn rows(&self, entity: &Entity) -> Vec<Entity> {
        let row = |row_key| Entity {
            keys: Keys::new(&entity.keys.partition_key, row_key),
            properties: entity.properties.clone(),
            etag: None,
            timestamp: None,
        };
        (self.row_keys)(entity).into_iter().map(row).collect()
    }

    /// The batch that inserts an entity. Its own RowKey does not count.
    pub fn insert(&self, entity: &Entity) -> Vec<Change> {
        self.rows(entity).into_iter().map(Change::Insert).collect()
    }

    /// The batch that replaces `old`, which was read by one of its rows, by `new` in the same partition. The service
    /// refuses it with 412 or 404 if another change came first.
    ///
    /// Fails if `old` was not read from the table, or is in another partition.
    pub fn replace(&self, old: &Entity, new: &Entity) -> Result<Vec<Change>, Invalid> {
        if old.keys.partition_key != new.keys.partition_key {
            return Err(Invalid(format!(
                "{} cannot move to the partition {:?}",
                old.keys, new.keys.partition_key
            )));
        }
        let mut olds = self.conditions(old)?;
        let mut changes = Vec::new();
        for row in self.rows(new) {
            let at = olds.iter().position(|(keys, _)| *keys == row.keys);
            changes.push(match at.map(|at| olds.swap_remove(at)) {
                Some((_, condition)) => Change::Replace(row, condition),
                None => Change::Insert(row),
            });
        }
        changes.extend(olds.into_iter().map(|(keys, condition)| Change::Delete(keys, condition)));
        Ok(changes)
    }

    /// The batch that deletes `old`, which was read by one of its rows.
    ///
    /// Fails if `old` was not read from the table.
    pub fn delete(&self, old: &Entity) -> Result<Vec<Change>, Invalid> {
        let rows = self.conditions(old)?.into_iter();
        Ok(rows.map(|(keys, condition)| Change::Delete(keys, condition)).collect())
    }

    /// All rows of `old`. The one that was read has its version as a condition, which guards the others too.
    fn conditions(&self, old: &Entity) -> Result<Vec<(Keys, Condition)>, Invalid> {
        let version = old.etag.as_ref();
        let version =
            version.ok_or_else(|| Invalid(format!("{} has no version: read it first", old.keys)))?;
        let rows: Vec<_> = self.rows(old).into_iter().map(|row| row.keys).collect();
        if !rows.contains(&old.keys) {
            return Err(Invalid(format!("{} is not one of the rows that its properties make", old.keys)));
        }
        let condition = |keys: &Keys| match *keys == old.keys {
            true => Condition::from(version),
            false => Condition::Any,
        };
        Ok(rows.into_iter().map(|keys| (keys.clone(), condition(&keys))).collect())
    }
}
