//! Opens snapshots of all shards until they fit together.

use std::collections::BTreeMap;
use std::future::Future;

use futures::StreamExt;
use uuid::Uuid;

use super::fit::{Next, Seen, judge};
use super::{MultiShardQuery, Policy, QueryError, ShardEvent, ShardFailure, Why};
use crate::error::{Category, Code, Error};
use crate::limits::{QUERY_ROUNDS_MAX, STEP_PAUSE_MIN};
use crate::location::Location;
use crate::operation::Met;
use crate::rows::ShardRow;
use crate::store::{Databases, Failure, For, StoreError, Tx};

/// The snapshot of one shard.
pub(super) struct Snapshot {
    pub(super) location: Location,
    pub(super) tx: Tx,
    /// The version of the map in that shard.
    pub(super) version: i64,
    /// The version of the shard, as the database says it. A fence that an earlier version installed does not say it.
    pub(super) shard_version: Option<Uuid>,
}

/// The snapshots that could be opened, and the shards whose snapshots could not.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) snapshots: BTreeMap<Uuid, Snapshot>,
    pub(super) failures: BTreeMap<Uuid, ShardFailure>,
    /// Places at which the map has no shard.
    pub(super) unknown: Vec<ShardFailure>,
}

impl Opened {
    /// How many shards were asked for.
    pub(super) fn asked(&self) -> usize {
        self.snapshots.len() + self.failures.len() + self.unknown.len()
    }

    pub(super) fn failed(&self) -> impl Iterator<Item = &ShardFailure> {
        self.unknown.iter().chain(self.failures.values())
    }
}

/// Opens the shards of a query until their snapshots fit.
pub(super) async fn open(query: &MultiShardQuery, databases: &Databases) -> Result<Opened, QueryError> {
    let mut opened = Opened::default();
    // The epochs of the shards when they were opened, or when that was tried.
    let mut epochs = BTreeMap::new();
    for _ in 0..QUERY_ROUNDS_MAX {
        let look = look(query, &mut opened).await?;
        match judge(&mut epochs, &look) {
            Next::Read => {
                expect_same(query, &look, &mut opened)?;
                return Ok(opened);
            }
            Next::Wait(operation) => {
                let operations = &query.manager.0.operations;
                operations.settle(&Met { operation }, Category::ShardMap, false).await?;
            }
            Next::Open(shards) => {
                open_each(query, databases, &shards, &mut opened).await?;
                epochs.extend(shards.iter().map(|seen| (seen.shard, seen.epoch)));
            }
        }
        opened.snapshots.retain(|shard, _| epochs.contains_key(shard));
        opened.failures.retain(|shard, _| epochs.contains_key(shard));
    }
    let text = format!(
        "shard map {:?} changed each of {QUERY_ROUNDS_MAX} times that it was looked at: try again",
        query.map.name
    );
    Err(Error::new(Category::ShardMap, Code::PendingOperation, text).into())
}

/// Each database must say that it is the shard that the global map has at its place. A copy, or another shard, fails.
fn expect_same(query: &MultiShardQuery, look: &[Seen], opened: &mut Opened) -> Result<(), QueryError> {
    for seen in look {
        let says = opened.snapshots.get(&seen.shard).and_then(|snapshot| snapshot.shard_version);
        if says.is_none_or(|version| version == seen.version) {
            continue;
        }
        opened.snapshots.remove(&seen.shard);
        let message = "the database is another shard, or a copy: see `rangehold shards check`".to_owned();
        let why = Why::Refused { message, may_pass: false };
        let failure = ShardFailure { location: seen.location.clone(), why, rows: 0 };
        query.tell(&seen.location, ShardEvent::Failed);
        opened.failures.insert(seen.shard, failure);
        if query.policy == Policy::Complete {
            let failures = opened.failed().cloned().collect();
            return Err(QueryError::Shards { failures, asked: look.len() });
        }
    }
    Ok(())
}

/// The shards of the map, or those of them that the query asks for, as the global map has them now.
async fn look(query: &MultiShardQuery, opened: &mut Opened) -> Result<Vec<Seen>, Error> {
    let read = async {
        let mut tx = query.manager.reading().await?;
        let columns = ShardRow::COLUMNS;
        let sql = format!(
            "select {columns}, epoch, operation_id from __shard_management.global_shards where map_id = $1"
        );
        let rows = tx.query(&sql, &[query.map.id.into()]).await?;
        tx.commit().await?;
        let seen = |mut row| {
            let shard = ShardRow::read(&mut row)?;
            Ok(Seen {
                shard: shard.id,
                version: shard.version,
                location: shard.location,
                epoch: row.int()?,
                held: row.optional(crate::store::Row::uuid)?,
            })
        };
        rows.into_iter().map(seen).collect::<Result<Vec<_>, StoreError>>()
    };
    let mut all = read.await.map_err(|error: StoreError| error.seen_by(Category::ShardMap))?;
    if let Some(only) = &query.only {
        let missing = only.iter().filter(|place| !all.iter().any(|seen| seen.location == **place));
        opened.unknown = missing
            .map(|place| ShardFailure { location: place.clone(), why: Why::NoShard, rows: 0 })
            .collect();
        if let (Policy::Complete, Some(_)) = (query.policy, opened.unknown.first()) {
            return Err(Error::argument(opened.unknown[0].to_string()));
        }
        all.retain(|seen| only.contains(&seen.location));
    }
    query.check_count(all.len() + opened.unknown.len())?;
    Ok(all)
}

/// Opens snapshots of some shards, a few at a time.
async fn open_each(
    query: &MultiShardQuery,
    databases: &Databases,
    shards: &[Seen],
    opened: &mut Opened,
) -> Result<(), QueryError> {
    for seen in shards {
        // An earlier snapshot is given up first, with everything that it holds.
        opened.snapshots.remove(&seen.shard);
        opened.failures.remove(&seen.shard);
    }
    let opening = shards.iter().map(|seen| async move { (seen, open_one(query, databases, seen).await) });
    let mut opening = std::pin::pin!(futures::stream::iter(opening).buffer_unordered(query.at_once));
    while let Some((seen, done)) = opening.next().await {
        match done {
            Ok(snapshot) => {
                opened.snapshots.insert(seen.shard, snapshot);
            }
            Err(failure) => {
                query.tell(&seen.location, ShardEvent::Failed);
                opened.failures.insert(seen.shard, failure);
                if query.policy == Policy::Complete {
                    let failures = opened.failed().cloned().collect();
                    return Err(QueryError::Shards { failures, asked: shards.len() });
                }
            }
        }
    }
    Ok(())
}

async fn open_one(
    query: &MultiShardQuery,
    databases: &Databases,
    seen: &Seen,
) -> Result<Snapshot, ShardFailure> {
    let mut left = query.retries;
    loop {
        match timed(query, &seen.location, begin(query, databases, seen)).await {
            Ok(snapshot) => return Ok(snapshot),
            Err(failure) => {
                let may_pass = matches!(failure.why, Why::Refused { may_pass: true, .. });
                if left == 0 || !may_pass {
                    return Err(failure);
                }
            }
        }
        left -= 1;
        tokio::time::sleep(STEP_PAUSE_MIN).await;
    }
}

/// The first statement takes the snapshot. It reads the version.
async fn begin(query: &MultiShardQuery, databases: &Databases, seen: &Seen) -> Result<Snapshot, StoreError> {
    let database = databases.at(&seen.location)?;
    let mut tx = database.begin(For::Reading).await?;
    let (version, shard_version) = match tx.map_version(query.map.id).await {
        Err(error) if error.failure == Failure::Other => {
            tx = database.begin(For::Reading).await?;
            (tx.map_version_before(query.map.id).await?, None)
        }
        said => said?,
    };
    let version = version.ok_or_else(|| {
        let text = format!("the database does not know the shard map {:?}", query.map.name);
        StoreError::new(&seen.location, Failure::Other, text)
    })?;
    Ok(Snapshot { location: seen.location.clone(), tx, version, shard_version })
}

/// Waits for what a shard does, for as long as the shard may take.
pub(super) async fn timed<T>(
    query: &MultiShardQuery,
    location: &Location,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, ShardFailure> {
    match tokio::time::timeout(query.shard_within, work).await {
        Ok(done) => done.map_err(|error| ShardFailure::of_store(location, &error)),
        Err(_) => {
            let why = Why::TimedOut(query.shard_within);
            Err(ShardFailure { location: location.clone(), why, rows: 0 })
        }
    }
}
