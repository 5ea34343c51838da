//! The seam to databases: somebody who opens transactions and runs statements in them.
//!
//! The protocol's statements are written once, in what PostgreSQL and SQLite both understand, with
//! `$1` for values and `__shard_management.` before names of tables. What the two do not share is a method
//! here: how a transaction begins, the schema, the time, and what an error means. A database whose
//! statements differ (SQL Server has no `on conflict`) would come in here with a text of its own for each.

mod error;
mod reading;
mod value;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use error::{Failure, StoreError};
pub(crate) use reading::Brake;
pub(crate) use value::{Row, Value};

use crate::location::Location;
use crate::postgres::{PostgresAccess, PostgresDatabase, PostgresTx};
use crate::sqlite::{SqliteDatabase, SqliteTx};

/// The databases that a manager has to do with, each opened when it is first needed.
#[derive(Clone)]
pub(crate) struct Databases(Arc<Shared>);

struct Shared {
    postgres: Option<PostgresAccess>,
    open: Mutex<HashMap<Location, Database>>,
}

/// One database.
#[derive(Clone)]
pub(crate) struct Database {
    kind: Kind,
    /// How many transactions were begun here by this process.
    begun: Arc<AtomicU64>,
}

#[derive(Clone)]
enum Kind {
    Postgres(PostgresDatabase),
    Sqlite(SqliteDatabase),
}

/// A transaction. Dropped without [`Tx::commit`], it is undone.
pub(crate) enum Tx {
    Postgres(PostgresTx),
    Sqlite(SqliteTx),
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// One consistent view, no writes.
    Reading,
    /// Writes; rows that are read to be changed are locked by the statement that reads them.
    Writing,
}

/// The two parts of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    /// The global map's tables.
    Global,
    /// A shard's tables, and its fence.
    Local,
}

impl Databases {
    pub(crate) fn new(postgres: Option<PostgresAccess>) -> Self {
        Self(Arc::new(Shared { postgres, open: Mutex::new(HashMap::new()) }))
    }

    /// The database at `location`. Nothing is connected yet.
    pub(crate) fn at(&self, location: &Location) -> Result<Database, StoreError> {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(database) = open.get(location) {
            return Ok(database.clone());
        }
        let kind = match location {
            Location::Postgres { .. } => {
                let access = self.0.postgres.as_ref().ok_or_else(|| {
                    let how = "no credentials for PostgreSQL were given to the manager";
                    StoreError::new(location, Failure::Unreachable, how)
                })?;
                Kind::Postgres(PostgresDatabase::new(location, access)?)
            }
            Location::Sqlite { path } => Kind::Sqlite(SqliteDatabase::new(location, path)),
        };
        let database = Database { kind, begun: Arc::default() };
        open.insert(location.clone(), database.clone());
        Ok(database)
    }
}

impl Database {
    /// Begins a transaction.
    pub(crate) async fn begin(&self, purpose: For) -> Result<Tx, StoreError> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        match &self.kind {
            Kind::Postgres(database) => database.begin(purpose).await.map(Tx::Postgres),
            Kind::Sqlite(database) => database.begin(purpose, false).await.map(Tx::Sqlite),
        }
    }

    /// Begins a transaction that writes, in a SQLite file that is made if it is not there.
    pub(crate) async fn begin_or_create(&self) -> Result<Tx, StoreError> {
        match &self.kind {
            Kind::Postgres(_) => self.begin(For::Writing).await,
            Kind::Sqlite(database) => {
                self.begun.fetch_add(1, Ordering::Relaxed);
                database.begin(For::Writing, true).await.map(Tx::Sqlite)
            }
        }
    }

    /// How many transactions this process has begun here.
    pub(crate) fn transactions(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}

impl Tx {
    /// The rows of a query.
    pub(crate) async fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        match self {
            Self::Postgres(tx) => tx.query(sql, values).await,
            Self::Sqlite(tx) => tx.query(sql, values).await,
        }
    }

    /// The one row of a query, if there is one.
    pub(crate) async fn query_one(&mut self, sql: &str, values: &[Value]) -> Result<Option<Row>, StoreError> {
        Ok(self.query(sql, values).await?.into_iter().next())
    }

    /// Runs a statement; gives how many rows it changed.
    pub(crate) async fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        match self {
            Self::Postgres(tx) => tx.execute(sql, values).await,
            Self::Sqlite(tx) => tx.execute(sql, vec![values.to_vec()]).await,
        }
    }

    /// Runs a statement once for each list of values, without waiting for each answer; gives how many rows
    /// were changed in all.
    pub(crate) async fn execute_each(&mut self, sql: &str, each: Vec<Vec<Value>>) -> Result<u64, StoreError> {
        match self {
            Self::Postgres(tx) => tx.execute_each(sql, &each).await,
            Self::Sqlite(tx) => tx.execute(sql, each).await,
        }
    }

    /// Makes the tables of a part of the schema, where they are not there yet.
    pub(crate) async fn install(&mut self, schema: Schema) -> Result<(), StoreError> {
        match self {
            Self::Postgres(tx) => tx.install(schema).await,
            Self::Sqlite(tx) => tx.install(schema).await,
        }
    }

    /// Removes the tables of the global map.
    pub(crate) async fn remove_global(&mut self) -> Result<(), StoreError> {
        match self {
            Self::Postgres(tx) => tx.remove_global().await,
            Self::Sqlite(tx) => tx.remove_global().await,
        }
    }

    /// This moment by the database's clock, in microseconds since 1970.
    pub(crate) async fn now(&mut self) -> Result<i64, StoreError> {
        match self {
            Self::Postgres(tx) => tx.now().await,
            Self::Sqlite(tx) => tx.now().await,
        }
    }

    /// Waits until no transaction holds one of the fences, and lets none take them before this transaction
    /// ends. With a grace the holders are cancelled at once, and ended after it; without one they are waited
    /// for, no longer than for other locks.
    pub(crate) async fn close_fences(
        &mut self,
        fences: &[i64],
        grace: Option<Duration>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Postgres(tx) => tx.close_fences(fences, grace).await,
            // A writer has the whole file to itself: whoever used the keys has ended.
            Self::Sqlite(_) => Ok(()),
        }
    }

    /// Runs a script of its user's: statements parted by semicolons. One that ends the transaction is an
    /// error, and then what it did stays.
    pub(crate) async fn script(&mut self, sql: &str) -> Result<(), StoreError> {
        match self {
            Self::Postgres(tx) => tx.script(sql).await,
            Self::Sqlite(tx) => tx.script(sql).await,
        }
    }

    /// Commits.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        match self {
            Self::Postgres(tx) => tx.commit().await,
            Self::Sqlite(tx) => tx.commit().await,
        }
    }
}
