//! Makes a database of other databases: a manifest that names their files. No row is copied.
//!
//! What was seen to go wrong, and what prevents it:
//!
//! * A clone is refused while the log of a source holds rows. The retirement row and the flush after it empty the log;
//!   if the memtable was cut just between them, both are repeated.
//! * A clone to a path that exists returns at once and keeps what is there. So each attempt has a path of its own.
//! * A clone takes any key. Its server refuses those outside its range.

use std::collections::Bound;
use std::sync::Arc;

use bytes::Bytes;
use rangehold_map::{DatabaseName, KeyRange};
use slatedb::CloneSourceSpec;
use uuid::Uuid;

use crate::database::{Databases, database_path};
use crate::range::Range;
use crate::store::Store;

type Bounds = (Bound<Bytes>, Bound<Bytes>);

/// A source of a clone: a retired range, as of a checkpoint made after it was frozen.
pub(crate) struct Source<'a> {
    pub(crate) range: &'a Range,
    pub(crate) checkpoint: Uuid,
    /// The keys that the clone takes from it.
    pub(crate) keys: KeyRange,
}

/// Makes the directories of databases before the databases. A directory that is made before writes are held need not be
/// made while they are held. If this fails, they are made later.
pub(crate) async fn make_directories(store: &Store, names: impl IntoIterator<Item = DatabaseName>) {
    let paths: Vec<String> =
        names.into_iter().map(|name| format!("{}/manifest", database_path(name))).collect();
    if let Err(error) = store.make_directories(&paths).await {
        tracing::debug!(%error, "the directories of the heirs could not be made beforehand");
    }
}

/// Makes the database `name` of its sources, which are in the order of their keys.
pub(crate) async fn make(
    databases: &Databases,
    name: DatabaseName,
    sources: &[Source<'_>],
) -> Result<(), slatedb::Error> {
    let admin = databases.admin(&database_path(name));
    let mut specs = sources.iter().map(|source| {
        CloneSourceSpec::with_checkpoint(database_path(source.range.database()), source.checkpoint)
            .with_projection_range(bounds(&source.keys))
    });
    let first = specs.next().expect("an heir takes its keys from a parent");
    let mut builder = admin
        .create_clone_builder_from_source(first)
        .with_system_clock(databases.clock.for_database())
        .with_seed(databases.seed ^ name.range.0 ^ name.attempt << 32);
    for spec in specs {
        builder = builder.with_source(spec);
    }
    builder.with_object_store(Arc::clone(&databases.objects)).build().await
}

fn bounds(keys: &KeyRange) -> Bounds {
    let low = Bound::Included(Bytes::copy_from_slice(keys.low()));
    let high = keys.high().map_or(Bound::Unbounded, |high| Bound::Excluded(Bytes::copy_from_slice(high)));
    (low, high)
}
