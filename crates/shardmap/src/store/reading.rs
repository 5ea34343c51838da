//! Rows one by one, for queries over many shards.

use std::pin::Pin;
use std::sync::Arc;

use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_postgres::{CancelToken, NoTls, RowStream};
use tokio_postgres_rustls::MakeRustlsConnect;
use uuid::Uuid;

use super::{Cell, Row, StoreError, Tx};
use crate::limits::CANCEL_AGAIN_AFTER;

/// The rows of one shard, as they come.
pub(crate) enum ShardRows {
    /// The stream of the driver, and the columns after the first row has come.
    Postgres { rows: Pin<Box<RowStream>>, columns: Option<Arc<Vec<String>>> },
    /// What comes from the thread that runs the statement.
    Sqlite(mpsc::Receiver<Result<Line, StoreError>>),
}

/// The columns and the values of one row. A column is its name, a tab and its type.
pub(crate) type Line = (Arc<Vec<String>>, Vec<Cell>);

/// Stops the statement of a transaction when it is dropped, if it was not released before. SQLite does not need it,
/// because a statement there notices that its rows are no longer taken.
pub(crate) struct Brake(Option<Stop>);

/// How a statement at a server is stopped.
pub(crate) struct Stop {
    pub(crate) token: CancelToken,
    pub(crate) connector: Option<MakeRustlsConnect>,
}

impl Brake {
    pub(crate) fn new(stop: Option<Stop>) -> Self {
        Self(stop)
    }

    /// There is nothing left to stop. Otherwise the next statement of the connection could be stopped instead.
    pub(crate) fn release(&mut self) {
        self.0 = None;
    }
}

impl Drop for Brake {
    fn drop(&mut self) {
        // The request uses a connection of its own and is not waited for. The server ends the statement, or notices
        // that its client is gone. The connection of the statement is not used again, so nothing else is stopped.
        if let (Some(stop), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                stop.ask().await;
                tokio::time::sleep(CANCEL_AGAIN_AFTER).await;
                stop.ask().await;
            });
        }
    }
}

impl Stop {
    async fn ask(&self) {
        let _ = match &self.connector {
            Some(tls) => self.token.cancel_query(tls.clone()).await,
            None => self.token.cancel_query(NoTls).await,
        };
    }
}

impl Tx {
    /// The version of a map in this shard, which is the epoch of the last change here, and the version of the shard
    /// that this database is. `None` if the map was never here, or is not here.
    pub(crate) async fn map_version(&mut self, map: Uuid) -> Result<(Option<i64>, Option<Uuid>), StoreError> {
        let sql = match self {
            // This calls functions, because readers have no rights on the tables.
            Self::Postgres(_) => {
                "select __shard_management.map_version($1), __shard_management.shard_version($1)"
            }
            Self::Sqlite(_) => {
                "select (select epoch from __shard_management.local_epochs where map_id = $1),
                    (select version from __shard_management.local_shards where map_id = $1)"
            }
        };
        let row = self.query_one(sql, &[map.into()]).await?;
        row.map_or(Ok((None, None)), |mut row| Ok((row.optional(Row::int)?, row.optional(Row::uuid)?)))
    }

    /// The same from a shard whose fence was installed by an earlier version. It does not say which shard it is.
    pub(crate) async fn map_version_before(&mut self, map: Uuid) -> Result<Option<i64>, StoreError> {
        let row = self.query_one("select __shard_management.map_version($1)", &[map.into()]).await?;
        row.map_or(Ok(None), |mut row| row.optional(Row::int))
    }

    /// Begins a statement that reads. Until all its rows are read, nothing else may be done.
    pub(crate) async fn stream(&mut self, sql: &str, parameters: &[Cell]) -> Result<ShardRows, StoreError> {
        match self {
            Self::Postgres(tx) => {
                let rows = tx.stream(sql, parameters).await?;
                Ok(ShardRows::Postgres { rows: Box::pin(rows), columns: None })
            }
            Self::Sqlite(tx) => tx.stream(sql, parameters).map(ShardRows::Sqlite),
        }
    }

    /// Stops the present or the next statement when it is dropped.
    pub(crate) fn brake(&self) -> Brake {
        match self {
            Self::Postgres(tx) => tx.brake(),
            Self::Sqlite(_) => Brake::new(None),
        }
    }

    /// A row of the driver's stream as cells.
    pub(crate) fn cells(
        &mut self,
        row: Result<tokio_postgres::Row, tokio_postgres::Error>,
        columns: &mut Option<std::sync::Arc<Vec<String>>>,
    ) -> Result<Line, StoreError> {
        match self {
            Self::Postgres(tx) => tx.database().cells(row, columns),
            Self::Sqlite(_) => unreachable!("a stream of PostgreSQL belongs to a transaction there"),
        }
    }
}

impl ShardRows {
    /// The next row of the shard; `None` after the last one.
    pub(crate) async fn next(&mut self, tx: &mut Tx) -> Option<Result<Line, StoreError>> {
        match self {
            Self::Postgres { rows, columns } => {
                let row = rows.as_mut().next().await?;
                Some(tx.cells(row, columns))
            }
            Self::Sqlite(rows) => rows.recv().await,
        }
    }
}
