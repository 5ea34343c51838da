//! Makes stored keys of written ones, and written keys of stored ones.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::key_name::{KeyName, TableName, TableRef, is_plain};
use super::object_name::{BucketRef, ObjectName, is_bucket_name};
use crate::codec::Reader;
use crate::key::{
    BucketId, KIND_CATALOGUE, KIND_ENTITY, KIND_OBJECT, PartitionPrefix, TableId, account_prefix,
    bucket_objects, table_prefix,
};
use crate::load::BucketTitle;
use crate::names::Namespace;
use crate::range::KeyRange;

/// A written table or bucket that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnknownTable {
    /// It does not exist.
    #[error("there is no table {name:?} in account {account:?}: create it first, or name another")]
    Absent {
        /// The account.
        account: String,
        /// The name.
        name: String,
    },
    /// It may exist: not all tables are known.
    #[error(
        "table {name:?} of account {account:?} is not known, because the catalogue of tables cannot be read now, or has \
         too many tables: name a range by its number, such as r4"
    )]
    Unsure {
        /// The account.
        account: String,
        /// The name.
        name: String,
    },
    /// A bucket of this name is not known.
    #[error("bucket {0:?} is not known: create it first, or name it by its id, such as gs://#17/*")]
    Bucket(String),
}

/// What is needed for written keys: the account that is meant if none is written, and the ids of tables.
#[derive(Debug, Clone)]
pub struct Names {
    account: String,
    /// By account and name in lower case.
    ids: BTreeMap<(String, String), TableId>,
    /// By account and id; the names as they were given.
    names: BTreeMap<(String, TableId), String>,
    buckets: BTreeMap<String, BucketId>,
    bucket_names: BTreeMap<BucketId, String>,
    /// The buckets whose objects lie in folders.
    with_folders: BTreeSet<BucketId>,
    /// Whether there may be tables that are not among these.
    are_partial: bool,
}

impl Names {
    /// No tables yet. `account` is meant if none is written.
    pub fn new(account: &str) -> Self {
        Self {
            account: account.to_owned(),
            ids: BTreeMap::new(),
            names: BTreeMap::new(),
            buckets: BTreeMap::new(),
            bucket_names: BTreeMap::new(),
            with_folders: BTreeSet::new(),
            are_partial: false,
        }
    }

    /// The same tables, but there may be others: of a table that is not among these it is not said that it does not
    /// exist.
    pub fn partial(self) -> Self {
        Self { are_partial: true, ..self }
    }

    /// Gives a table of `account` (`None` is the script's own) its id. A table that had the same name before
    /// is written by its id from now on.
    pub fn add_table(&mut self, account: Option<&str>, name: &str, id: TableId) {
        let account = account.unwrap_or(&self.account).to_owned();
        if let Some(before) = self.ids.insert((account.clone(), name.to_ascii_lowercase()), id) {
            self.names.remove(&(account.clone(), before));
        }
        self.names.insert((account, id), name.to_owned());
    }

    /// Gives a bucket its id. A bucket that had the same name before is written by its id from now on.
    pub fn add_bucket(&mut self, name: &str, id: BucketId) {
        if let Some(before) = self.buckets.insert(name.to_owned(), id) {
            self.bucket_names.remove(&before);
        }
        self.bucket_names.insert(id, name.to_owned());
    }

    /// Notes that the objects of a bucket lie in folders.
    pub fn add_folders(&mut self, id: BucketId) {
        self.with_folders.insert(id);
    }

    /// How a bucket is called in sentences, if it is known.
    pub fn bucket_title(&self, id: BucketId) -> Option<BucketTitle> {
        let name = self.bucket_names.get(&id)?.clone();
        let namespace = if self.with_folders.contains(&id) { Namespace::Folders } else { Namespace::Flat };
        Some(BucketTitle { name, namespace })
    }

    fn bucket(&self, bucket: &BucketRef) -> Result<BucketId, UnknownTable> {
        match bucket {
            BucketRef::Id(id) => Ok(*id),
            BucketRef::Name(name) => {
                self.buckets.get(name).copied().ok_or_else(|| UnknownTable::Bucket(name.clone()))
            }
        }
    }

    /// The stored bytes of a written key. Fails if it names an unknown table.
    pub fn key(&self, name: &KeyName) -> Result<Vec<u8>, UnknownTable> {
        let account = |account: &Option<String>| account.clone().unwrap_or_else(|| self.account.clone());
        Ok(match name {
            KeyName::Start => KeyRange::whole().low().to_vec(),
            KeyName::Entities => vec![KIND_ENTITY],
            KeyName::Catalogue { account: of } => {
                PartitionPrefix::catalogue(&account(of)).as_bytes().to_vec()
            }
            KeyName::Account { account: of } => account_prefix(&account(of)),
            KeyName::Table(table) => table_prefix(&account(&table.account), self.id(table)?),
            KeyName::Partition { table, partition_key } => {
                self.partition(table, partition_key)?.as_bytes().to_vec()
            }
            KeyName::Entity { table, partition_key, row_key } => {
                self.partition(table, partition_key)?.key(row_key)
            }
            KeyName::Objects(ObjectName::All) => vec![KIND_OBJECT],
            KeyName::Objects(ObjectName::Bucket(bucket)) => bucket_objects(self.bucket(bucket)?),
            KeyName::Objects(ObjectName::Object { bucket, name }) => {
                PartitionPrefix::object(self.bucket(bucket)?, name).as_bytes().to_vec()
            }
            KeyName::Bytes(bytes) => bytes.clone(),
        })
    }

    fn partition(&self, table: &TableName, partition_key: &str) -> Result<PartitionPrefix, UnknownTable> {
        let account = table.account.as_ref().unwrap_or(&self.account);
        Ok(PartitionPrefix::entity(account, self.id(table)?, partition_key))
    }

    fn id(&self, table: &TableName) -> Result<TableId, UnknownTable> {
        let account = table.account.as_ref().unwrap_or(&self.account);
        match &table.table {
            TableRef::Id(id) => Ok(*id),
            TableRef::Name(name) => {
                let id = self.ids.get(&(account.clone(), name.to_ascii_lowercase()));
                id.copied().ok_or_else(|| self.unknown(account.clone(), name.clone()))
            }
        }
    }

    fn unknown(&self, account: String, name: String) -> UnknownTable {
        match self.are_partial {
            true => UnknownTable::Unsure { account, name },
            false => UnknownTable::Absent { account, name },
        }
    }

    /// The written form of a stored key. [`Names::key`] makes the same bytes of it.
    pub fn name(&self, key: &[u8]) -> KeyName {
        if key == KeyRange::whole().low() {
            return KeyName::Start;
        }
        // Keys without words, such as the rows of a catalogue, are written as bytes.
        self.in_words(key).unwrap_or_else(|| KeyName::Bytes(key.to_vec()))
    }

    fn in_words(&self, key: &[u8]) -> Option<KeyName> {
        let mut reader = Reader::new(key);
        let kind = reader.u8().ok()?;
        if kind == KIND_ENTITY && reader.is_at_end() {
            return Some(KeyName::Entities);
        }
        if kind == KIND_OBJECT {
            return self.object_in_words(reader).map(KeyName::Objects);
        }
        if kind != KIND_ENTITY && kind != KIND_CATALOGUE {
            return None;
        }
        let of = reader.text().ok().filter(|account| is_plain(account))?;
        let account = (of != self.account).then(|| of.clone());
        if kind == KIND_CATALOGUE {
            return reader.is_at_end().then_some(KeyName::Catalogue { account });
        }
        if reader.is_at_end() {
            return Some(KeyName::Account { account });
        }
        let id = TableId(reader.u64().ok()?);
        let name = self.names.get(&(of, id)).filter(|name| is_plain(name)).cloned();
        let table = TableName { account, table: name.map_or(TableRef::Id(id), TableRef::Name) };
        if reader.is_at_end() {
            return Some(KeyName::Table(table));
        }
        let partition_key = reader.text().ok()?;
        if reader.is_at_end() {
            return Some(KeyName::Partition { table, partition_key });
        }
        let row_key = reader.text().ok()?;
        reader.is_at_end().then_some(KeyName::Entity { table, partition_key, row_key })
    }

    /// The written form of a key of objects; `reader` is after the kind.
    fn object_in_words(&self, mut reader: Reader<'_>) -> Option<ObjectName> {
        if reader.is_at_end() {
            return Some(ObjectName::All);
        }
        let id = BucketId(reader.u64().ok()?);
        let name = self.bucket_names.get(&id).filter(|name| is_bucket_name(name)).cloned();
        let bucket = name.map_or(BucketRef::Id(id), BucketRef::Name);
        if reader.is_at_end() {
            return Some(ObjectName::Bucket(bucket));
        }
        let name = reader.name().ok()?.into_owned();
        reader.is_at_end().then_some(ObjectName::Object { bucket, name })
    }

    /// The written form of an interval of stored keys, such as `[marathon/Half, end)`.
    pub fn range(&self, keys: &KeyRange) -> String {
        let high = keys.high().map_or_else(|| "end".to_owned(), |high| self.name(high).to_string());
        format!("[{}, {high})", self.name(keys.low()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_that_is_known_is_called_by_its_name() {
        let mut names = Names::new("acme");
        names.add_bucket("photos", BucketId(7));
        names.add_bucket("tree", BucketId(8));
        names.add_folders(BucketId(8));
        let title = |name: &str, namespace| Some(BucketTitle { name: name.to_owned(), namespace });
        assert_eq!(names.bucket_title(BucketId(7)), title("photos", Namespace::Flat));
        assert_eq!(names.bucket_title(BucketId(8)), title("tree", Namespace::Folders));
        assert_eq!(names.bucket_title(BucketId(9)), None);
    }
}
