//! Reads one shard and sends its rows, one after the other, into the stream of all shards.

use std::sync::{Arc, OnceLock};

use tokio::sync::{Semaphore, mpsc};

use super::snapshot::{Snapshot, timed};
use super::{MultiShardQuery, QueryRow, ShardEvent, ShardFailure, Why};
use crate::location::Location;
use crate::store::Tx;

/// What goes through the stream of all shards.
pub(super) enum Item {
    Row(QueryRow),
    Ended(Result<(), ShardFailure>),
}

/// What the readers of one query share.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) query: MultiShardQuery,
    pub(super) items: mpsc::Sender<Item>,
    /// How many shards may be read at once.
    pub(super) turns: Arc<Semaphore>,
    /// The columns of the shard that gave the first row.
    pub(super) columns: Arc<OnceLock<Arc<Vec<String>>>>,
}

/// Reports that a shard was given up, if it was not read to its end.
struct Course<'q> {
    query: &'q MultiShardQuery,
    location: &'q Location,
    ended: bool,
}

impl Drop for Course<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.query.tell(self.location, ShardEvent::Cancelled);
        }
    }
}

/// Reads a shard to its end, or until its rows are no longer taken.
pub(super) async fn read(common: Common, snapshot: Snapshot) {
    let Snapshot { location, tx, version, .. } = snapshot;
    let mut course = Course { query: &common.query, location: &location, ended: false };
    let Ok(_turn) = common.turns.acquire().await else { return };
    common.query.tell(&location, ShardEvent::Began);
    let mut count = 0;
    let done = rows(&common, &location, tx, version, &mut count).await;
    let Some(done) = done.transpose() else { return };
    course.ended = true;
    common.query.tell(&location, if done.is_ok() { ShardEvent::Succeeded } else { ShardEvent::Failed });
    let done = done.map_err(|failure| ShardFailure { rows: count, ..failure });
    let _ = common.items.send(Item::Ended(done)).await;
}

/// Returns `None` if the rows are no longer taken.
async fn rows(
    common: &Common,
    location: &Location,
    mut tx: Tx,
    version: i64,
    count: &mut u64,
) -> Result<Option<()>, ShardFailure> {
    let query = &common.query;
    // It is dropped together with this future. So the server stops when the query is given up.
    let mut brake = tx.brake();
    let mut rows = timed(query, location, tx.stream(&query.sql, &query.parameters)).await?;
    let place = Arc::new(location.clone());
    loop {
        let next = async { rows.next(&mut tx).await.transpose() };
        let Some((columns, cells)) = timed(query, location, next).await? else { break };
        let first = common.columns.get_or_init(|| columns.clone());
        if *first != columns {
            let words = |columns: &[String]| columns.iter().map(|column| column.replace('\t', " ")).collect();
            let why = Why::OtherColumns { expected: words(first), found: words(&columns) };
            return Err(ShardFailure { location: location.clone(), why, rows: 0 });
        }
        let row = QueryRow::new(place.clone(), version, columns, cells);
        if common.items.send(Item::Row(row)).await.is_err() {
            return Ok(None);
        }
        *count += 1;
    }
    brake.release();
    drop(rows);
    timed(query, location, tx.commit()).await.map(Some)
}
