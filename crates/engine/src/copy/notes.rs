//! What a copy notes about its ranges, so that a later copy can be [based](super::base) on it.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use object_store::ObjectStoreExt;
use object_store::path::Path;
use rangehold_map::DatabaseName;
use serde::{Deserialize, Serialize};
use slatedb::manifest::VersionedManifest;

use super::contents::Contents;
use super::{CopyError, location};
use crate::database::{DatabaseError, Databases, database_path, inspect};
use crate::error::read_error;
use crate::store::{ObjectError, Store, check_log};

/// The object with the notes.
const NOTES: &str = "cluster/copied";

/// The databases of a copy, by what the databases held that were copied.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Notes(BTreeMap<Contents, CopiedRange>);

/// The database of a range in a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CopiedRange {
    database: String,
    /// What it held when it was complete.
    pub(super) contents: Contents,
    /// Rows, including those that the range keeps about itself.
    pub(super) rows: u64,
    /// The bytes of their keys and values.
    pub(super) bytes: u64,
}

impl CopiedRange {
    /// Of a database that is complete, and closed.
    pub(super) async fn of(
        database: DatabaseName,
        databases: &Databases,
        (rows, bytes): (u64, u64),
    ) -> Result<Self, CopyError> {
        let held = held_by(database, databases).await?;
        let (_, contents) = held.ok_or_else(|| DatabaseError::Missing(database_path(database)))?;
        Ok(Self { database: database.to_string(), contents, rows, bytes })
    }

    /// The same range in another copy, where its database has this name.
    pub(super) fn at(&self, database: DatabaseName) -> Self {
        Self { database: database.to_string(), ..self.clone() }
    }

    /// Its database, in the copy that has the notes.
    pub(super) fn database(&self) -> Option<DatabaseName> {
        DatabaseName::from_str(&self.database).ok()
    }
}

impl Notes {
    /// Reads the notes of a copy.
    pub(super) async fn read(copy: &Store) -> Result<Self, CopyError> {
        let path = Path::from(NOTES);
        let read = async { copy.object_store().get(&path).await?.bytes().await };
        let notes = match read.await {
            Ok(bytes) => serde_json::from_slice(&bytes).ok(),
            Err(object_store::Error::NotFound { .. }) => None,
            Err(error) => return Err(ObjectError::while_doing("reading", &path)(error).into()),
        };
        notes.ok_or_else(|| CopyError::NoNotes { base: location(copy) })
    }

    /// Stores the notes in a copy.
    pub(super) async fn store(&self, copy: &Store) -> Result<(), CopyError> {
        let path = Path::from(NOTES);
        let bytes = serde_json::to_vec(self).expect("texts and numbers");
        let stored = copy.object_store().put(&path, bytes.into()).await;
        stored.map(drop).map_err(|error| ObjectError::while_doing("writing", &path)(error).into())
    }

    /// The range whose copied database held these rows.
    pub(super) fn find(&self, contents: &Contents) -> Option<&CopiedRange> {
        self.0.get(contents)
    }

    /// Notes that a database which held `contents` is in the copy.
    pub(super) fn add(&mut self, contents: Contents, copied: CopiedRange) {
        self.0.insert(contents, copied);
    }
}

/// The newest manifest of a database that nobody writes now, and what the database holds; `None` where none is.
pub(super) async fn held_by(
    database: DatabaseName,
    databases: &Databases,
) -> Result<Option<(VersionedManifest, Contents)>, CopyError> {
    let path = database_path(database);
    let objects = &databases.objects;
    let Some(manifest) = inspect(databases, &path).await? else { return Ok(None) };
    let log = check_log(objects, &path, manifest.replay_after_wal_id()).await;
    let log = log.map_err(ObjectError::while_doing("listing the log of", &path))?;
    let contents = Contents::of(&path, Arc::clone(objects), &manifest, &log, u64::MAX).await;
    let contents = contents.map_err(read_error).map_err(DatabaseError::reading(&path))?;
    Ok(Some((manifest, contents)))
}
