//! The rows of all shards, in one stream.

use std::sync::{Arc, OnceLock};

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::read::{Common, Item, read};
use super::snapshot::Opened;
use super::{Cell, FromCell, MultiShardQuery, Policy, QueryError, ShardFailure};
use crate::error::Error;
use crate::limits::ROWS_IN_FLIGHT_MAX;
use crate::location::Location;

/// A row, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryRow {
    shard: Arc<Location>,
    version: i64,
    columns: Arc<Vec<String>>,
    cells: Vec<Cell>,
}

impl QueryRow {
    pub(super) fn new(
        shard: Arc<Location>,
        version: i64,
        columns: Arc<Vec<String>>,
        cells: Vec<Cell>,
    ) -> Self {
        Self { shard, version, columns, cells }
    }

    /// The shard that it is from.
    pub fn shard(&self) -> &Location {
        &self.shard
    }

    /// The version of the map in that shard when the row was read: it grows with each change there.
    pub fn map_version(&self) -> i64 {
        self.version
    }

    /// The names of its columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| name(column))
    }

    /// Its values, in the order of the columns.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The value in a column, as a Rust type; of two columns of one name the first.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`] where there is no such column, or it holds another type.
    pub fn get<T: FromCell>(&self, column: &str) -> Result<T, Error> {
        let found = self.columns().position(|found| found == column);
        let cell = found.and_then(|index| self.cells.get(index));
        let missing = || {
            let columns: Vec<&str> = self.columns().collect();
            Error::argument(format!("there is no column {column:?}: there are {}", columns.join(", ")))
        };
        cell.ok_or_else(missing)?.to()
    }
}

/// A column is kept as `name type`; SQLite's have no type, and then nothing follows the name.
fn name(column: &str) -> &str {
    column.rsplit_once('\t').map_or(column, |(name, _)| name)
}

/// The rows of all shards of a query, in the order in which they come. Dropped before its end, it stops what
/// the shards are still doing.
pub struct QueryRows {
    query: MultiShardQuery,
    items: mpsc::Receiver<Item>,
    readers: JoinSet<()>,
    failures: Vec<ShardFailure>,
    asked: usize,
    deadline: Option<Instant>,
}

impl std::fmt::Debug for QueryRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "QueryRows({:?}, {} readers)", self.query, self.readers.len())
    }
}

impl QueryRows {
    /// Lets all shards be read.
    pub(super) fn begin(
        query: MultiShardQuery,
        opened: Opened,
        deadline: Option<Instant>,
    ) -> Result<Self, QueryError> {
        let (sender, items) = mpsc::channel(ROWS_IN_FLIGHT_MAX);
        let common = Common {
            query: query.clone(),
            items: sender,
            turns: Arc::new(Semaphore::new(query.at_once)),
            columns: Arc::new(OnceLock::new()),
        };
        let (failures, asked) = (opened.failed().cloned().collect(), opened.asked());
        let mut readers = JoinSet::new();
        for snapshot in opened.snapshots.into_values() {
            readers.spawn(read(common.clone(), snapshot));
        }
        let rows = Self { query, items, readers, failures, asked, deadline };
        rows.some_left()?;
        Ok(rows)
    }

    /// The next row; `None` after the last of the last shard.
    ///
    /// # Errors
    ///
    /// [`QueryError::Shards`], where results are to be complete and a shard has failed, or where all have;
    /// [`QueryError::TimedOut`]. After an error nothing more comes.
    pub async fn next(&mut self) -> Result<Option<QueryRow>, QueryError> {
        loop {
            let item = match self.deadline {
                None => self.items.recv().await,
                Some(at) => match tokio::time::timeout_at(at, self.items.recv()).await {
                    Ok(item) => item,
                    Err(_) => return Err(self.give_up(self.query.timed_out())),
                },
            };
            match item {
                None => return Ok(None),
                Some(Item::Row(row)) => return Ok(Some(row)),
                Some(Item::Ended(Ok(()))) => {}
                Some(Item::Ended(Err(failure))) => self.note(failure)?,
            }
        }
    }

    /// All rows, in the order in which they come.
    ///
    /// # Errors
    ///
    /// As [`QueryRows::next`].
    pub async fn all(&mut self) -> Result<Vec<QueryRow>, QueryError> {
        let mut all = Vec::new();
        while let Some(row) = self.next().await? {
            all.push(row);
        }
        Ok(all)
    }

    /// The shards that have failed so far, where results may be partial.
    pub fn failures(&self) -> &[ShardFailure] {
        &self.failures
    }

    /// Stops all shards, and waits until they have.
    pub async fn cancel(mut self) {
        self.readers.shutdown().await;
    }

    fn note(&mut self, failure: ShardFailure) -> Result<(), QueryError> {
        self.failures.push(failure);
        if self.query.policy == Policy::Complete {
            let failures = std::mem::take(&mut self.failures);
            return Err(self.give_up(QueryError::Shards { failures, asked: self.asked }));
        }
        self.some_left()
    }

    /// An error if every shard has failed.
    fn some_left(&self) -> Result<(), QueryError> {
        if self.failures.len() < self.asked {
            return Ok(());
        }
        Err(QueryError::Shards { failures: self.failures.clone(), asked: self.asked })
    }

    fn give_up(&mut self, error: QueryError) -> QueryError {
        self.readers.abort_all();
        self.items.close();
        while self.items.try_recv().is_ok() {}
        error
    }
}
