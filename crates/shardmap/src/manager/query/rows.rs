//! The rows of all shards, in one stream.

use std::sync::{Arc, OnceLock};

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::read::{Common, Item, read};
use super::row::QueryRow;
use super::snapshot::Opened;
use super::{MultiShardQuery, Policy, QueryError, ShardFailure};
use crate::limits::ROWS_IN_FLIGHT_MAX;

/// The rows of all shards of a query, in the order in which they come. If it is dropped before its end, the shards
/// stop what they are still doing.
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
    /// Begins to read all shards.
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
    /// [`QueryError::Shards`], if results must be complete and a shard has failed, or if all shards have failed;
    /// [`QueryError::TimedOut`]. After an error no more rows come.
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

    /// The shards that have failed so far, if results may be partial.
    pub fn failures(&self) -> &[ShardFailure] {
        &self.failures
    }

    /// Stops all shards, and waits until they have stopped.
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

    /// Fails if every shard has failed.
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
