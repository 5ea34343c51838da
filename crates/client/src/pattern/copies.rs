//! One entity under other PartitionKeys.
//!
//! The *primary* is where the entity is written. Its copies lie in other partitions, where other queries look. A change
//! goes through these steps:
//!
//! ```text
//!   1  one batch:  the primary with its new version, and an intent beside it    <- the change has happened
//!   2  each copy:  written, unless a newer version is there
//!   3  each copy that the entity no longer has:  a tombstone with the version
//!   4  the intent is removed
//! ```
//!
//! Before step 1 nothing has happened, so a crash there leaves nothing to undo. After step 1 the change is finished, by the
//! program that began it or by the next one that changes the entity or calls [`Copies::recover`]. A program that
//! wakes up after another one has finished its change does no harm, because a copy is replaced only by a newer
//! version. That is also why a copy that goes leaves a tombstone: it keeps a late program from bringing the copy back.

use futures::TryStreamExt;

use crate::entity::{Entity, Keys, Timestamp, Value};
use crate::error::Error;
use crate::limits::COPY_TRIES;
use crate::request::{Change, Condition, Filter, Invalid, Query};
use crate::table::Table;

/// Counts the versions of an entity, in the primary and in its copies.
const VERSION: &str = "CopyVersion";
/// The keys of the primary, in each copy.
const OF_PARTITION: &str = "CopyOfPartition";
const OF_ROW: &str = "CopyOfRow";
/// Whether a copy is a tombstone.
const GONE: &str = "CopyGone";
/// The copies that a change may have to remove, in an intent.
const OLD: &str = "OldCopies";
/// The token of a batch.
const TOKEN: &str = "CopyToken";
/// The end of an intent's RowKey, after that of its entity.
const INTENT: &str = "~intent";

/// Where the copies of an entity are.
type CopyKeys = dyn Fn(&Entity) -> Vec<Keys> + Send + Sync;

/// Keeps copies of entities of one table. Only changes that go through it keep the copies right.
pub struct Copies {
    table: Table,
    copy_keys: Box<CopyKeys>,
}

/// How old a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// It was the newest version when the primary was read.
    Newest,
    /// The primary has had another version since this time, by the clock of the service.
    BehindSince(Timestamp),
}

/// A copy that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Copied {
    /// The entity, under the keys of the copy, without the properties that this module adds.
    pub entity: Entity,
    /// Where the primary is.
    pub primary: Keys,
    /// How old it is.
    pub age: Age,
}

impl Copies {
    /// Copies in `table` under the keys that `copy_keys` makes of an entity's properties. It must make the same keys each
    /// time, and in each copy's place the copies of one entity only.
    pub fn new(table: Table, copy_keys: impl Fn(&Entity) -> Vec<Keys> + Send + Sync + 'static) -> Self {
        Self { table: table.with_token(TOKEN), copy_keys: Box::new(copy_keys) }
    }

    /// Writes an entity and its copies, whether it existed before or not.
    ///
    /// Fails with status 409 or 412 if another change came first. If it fails in any other way, the change has happened or
    /// not; if it has, the copies are finished later.
    pub async fn put(&self, entity: Entity) -> Result<(), Error> {
        let Keys { partition_key, row_key } = &entity.keys;
        self.finish(partition_key, row_key).await?;
        let old = self.table.get(partition_key, row_key).await?;
        let version = old.as_ref().and_then(|old| old.integer(VERSION)).unwrap_or(0) + 1;
        let old_copies = old.as_ref().map(&self.copy_keys).unwrap_or_default();
        let intent = Entity::new(partition_key, intent_row(row_key)).with(OLD, write_keys(&old_copies));
        let primary = entity.with(VERSION, version);
        let keys = primary.keys.clone();
        let first = match old.and_then(|old| old.etag) {
            None => Change::Insert(primary),
            Some(etag) => Change::Replace(primary, Condition::Version(etag)),
        };
        self.table.batch(vec![first, Change::Insert(intent)]).await?;
        self.finish(&keys.partition_key, &keys.row_key).await
    }

    /// Finishes all changes of a partition that a program has left. Call it when a program starts.
    pub async fn recover(&self, partition_key: &str) -> Result<usize, Error> {
        let rows = self.table.query(Query::of(Filter::partition(partition_key)).select(["RowKey"]));
        let rows: Vec<Entity> = rows.try_collect().await?;
        let open: Vec<&str> = rows.iter().filter_map(|row| row.keys.row_key.strip_suffix(INTENT)).collect();
        for row_key in &open {
            self.finish(partition_key, row_key).await?;
        }
        Ok(open.len())
    }

    /// Reads a copy, and the version of its primary; `None` if there is no copy under these keys.
    pub async fn get(&self, keys: &Keys) -> Result<Option<Copied>, Error> {
        let found = self.table.get(&keys.partition_key, &keys.row_key).await?;
        let Some(mut entity) = found.filter(|copy| copy.get(GONE).is_none()) else { return Ok(None) };
        let (Some(partition_key), Some(row_key)) = (entity.text(OF_PARTITION), entity.text(OF_ROW)) else {
            return Err(Invalid(format!("the entity {keys} is not a copy")).into());
        };
        let primary = Keys::new(partition_key, row_key);
        let newest = self.table.get(&primary.partition_key, &primary.row_key).await?;
        let newest = newest.filter(|newest| newest.integer(VERSION) != entity.integer(VERSION));
        let age = newest.and_then(|newest| newest.timestamp).map_or(Age::Newest, Age::BehindSince);
        for name in [VERSION, OF_PARTITION, OF_ROW, TOKEN] {
            entity.properties.remove(name);
        }
        Ok(Some(Copied { entity, primary, age }))
    }

    /// Steps 2 to 4 for one entity, if it has an intent.
    async fn finish(&self, partition_key: &str, row_key: &str) -> Result<(), Error> {
        let intent_row = intent_row(row_key);
        let Some(intent) = self.table.get(partition_key, &intent_row).await? else { return Ok(()) };
        let Some(primary) = self.table.get(partition_key, row_key).await? else { return Ok(()) };
        let version = primary.integer(VERSION).unwrap_or_default();
        let new = (self.copy_keys)(&primary);
        for keys in &new {
            self.write(keys, copy_of(&primary, keys, version), version).await?;
        }
        for keys in read_keys(intent.text(OLD).unwrap_or_default()).iter().filter(|keys| !new.contains(keys))
        {
            let tombstone = Entity { keys: keys.clone(), ..Entity::new("", "") };
            self.write(keys, tombstone.with(VERSION, version).with(GONE, true), version).await?;
        }
        // With its version: an intent of a later change stays.
        let condition = intent.etag.map_or(Condition::Any, Condition::Version);
        match self.table.remove(intent.keys, condition).await {
            // Another program has finished the change, or this call has, and its answer was lost.
            Err(Error::OutcomeUnknown(_)) => Ok(()),
            Err(error) if error.has_status(404) || error.has_status(412) => Ok(()),
            other => other,
        }
    }

    /// Puts a copy, or its tombstone, at `keys`, unless this version or a newer one is there.
    async fn write(&self, keys: &Keys, copy: Entity, version: i64) -> Result<(), Error> {
        let mut last = None;
        for _ in 0..COPY_TRIES {
            let there = self.table.get(&keys.partition_key, &keys.row_key).await?;
            let change = match there {
                None => Change::Insert(copy.clone()),
                Some(there) if there.integer(VERSION) >= Some(version) => return Ok(()),
                Some(Entity { etag, .. }) => {
                    Change::Replace(copy.clone(), etag.map_or(Condition::Any, Condition::Version))
                }
            };
            match self.table.apply(change).await {
                Ok(_) => return Ok(()),
                Err(error @ Error::OutcomeUnknown(_)) => last = Some(error),
                Err(error) if [404, 409, 412].iter().any(|status| error.has_status(*status)) => {
                    last = Some(error)
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.expect("there is at least one try"))
    }
}

fn intent_row(row_key: &str) -> String {
    format!("{row_key}{INTENT}")
}

fn copy_of(primary: &Entity, keys: &Keys, version: i64) -> Entity {
    let mut copy =
        Entity { keys: keys.clone(), properties: primary.properties.clone(), etag: None, timestamp: None };
    copy.properties.insert(VERSION.to_owned(), Value::Int64(version));
    copy.with(OF_PARTITION, primary.keys.partition_key.as_str()).with(OF_ROW, primary.keys.row_key.as_str())
}

fn write_keys(list: &[Keys]) -> String {
    let pairs: Vec<(&str, &str)> =
        list.iter().map(|keys| (keys.partition_key.as_str(), keys.row_key.as_str())).collect();
    serde_json::to_string(&pairs).expect("texts are JSON")
}

fn read_keys(text: &str) -> Vec<Keys> {
    let pairs: Vec<(String, String)> = serde_json::from_str(text).unwrap_or_default();
    pairs.into_iter().map(|(partition_key, row_key)| Keys::new(partition_key, row_key)).collect()
}
