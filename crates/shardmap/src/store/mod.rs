//! The seam to databases: opens transactions and runs statements in them.
//!
//! The protocol's statements are written once, in the SQL that PostgreSQL and SQLite both understand. They have `$1`
//! for values, and `__shard_management.` before the names of tables. Each thing that the two do not share is a method
//! here: how a transaction begins, the schema, the time, and what an error means. For a database whose statements
//! differ (SQL Server has no `on conflict`), each statement would need a text of its own here.

mod cell;
mod error;
pub mod postgres;
mod reading;
mod sqlite;
mod value;
mod version;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use uuid::Uuid;

pub use cell::{Cell, FromCell};
pub use error::StoreError;
pub(crate) use postgres::Mark;
use postgres::{PostgresDatabase, PostgresTx};
pub(crate) use reading::{Brake, Line, Stop};
use sqlite::{SqliteDatabase, SqliteTx};
pub(crate) use value::{Row, Value};
pub use version::STORE_VERSION;
pub(crate) use version::expect_version;

pub(crate) use crate::error::Failure;
use crate::limits::{FENCES_CLOSED_AT_ONCE_MAX, LOCK_TIMEOUT, ROWS_PER_STATEMENT_MAX, STOPPED_WITHIN_MIN};
use crate::location::Location;
use postgres::PostgresAccess;

/// The databases that a manager uses. Each is opened when it is first needed.
#[derive(Clone)]
pub(crate) struct Databases(Arc<Shared>);

struct Shared {
    postgres: Option<PostgresAccess>,
    /// How long a transaction that writes may wait for its next statement.
    stopped_within: Duration,
    open: Mutex<HashMap<Location, Database>>,
}

/// The answer of a database, later.
pub(crate) type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// One database.
#[derive(Clone)]
pub(crate) struct Database {
    kind: Kind,
    /// How many transactions this process has begun here.
    begun: Arc<AtomicU64>,
}

#[derive(Clone)]
enum Kind {
    Postgres(PostgresDatabase),
    Sqlite(SqliteDatabase),
}

/// A transaction. If it is dropped without [`Tx::commit`], it is undone.
pub(crate) enum Tx {
    Postgres(PostgresTx),
    Sqlite(SqliteTx),
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// For reading: one consistent view, and no writes.
    Reading,
    /// For writing. If rows are read to be changed, the statement that reads them locks them.
    Writing,
    /// For a step of an operation: for writing, and found by its mark ([`Tx::end_sessions`]).
    Step(Mark),
}

/// What becomes of transactions on keys that go offline or away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// Their statements are cancelled at once. After this time, their sessions are ended.
    End(Duration),
    /// They are waited for. If one has not ended after this time, the change is given up.
    GiveUp(Duration),
    /// They go on. If keys leave the shard, they are waited for like other locks, since two shards must not serve a key.
    Leave,
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
    /// Databases for a process with this lease. If the process stops inside a transaction, the server ends that
    /// transaction when the lease is over, so that the process that takes over does not wait for its locks.
    pub(crate) fn new(postgres: Option<PostgresAccess>, lease: Duration) -> Self {
        let stopped_within = lease.max(STOPPED_WITHIN_MIN);
        Self(Arc::new(Shared { postgres, stopped_within, open: Mutex::new(HashMap::new()) }))
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
                Kind::Postgres(PostgresDatabase::new(location, access, self.0.stopped_within)?)
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
    ///
    /// It is boxed, as the calls of a transaction are. The futures of the two stores are large, and otherwise every
    /// future above would contain them.
    pub(crate) fn begin(&self, purpose: For) -> Answer<'_, Tx> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            match &self.kind {
                Kind::Postgres(database) => database.begin(purpose).await.map(Tx::Postgres),
                Kind::Sqlite(database) => database.begin(purpose, false).await.map(Tx::Sqlite),
            }
        })
    }

    /// The same. A SQLite file is made if it does not exist.
    pub(crate) async fn begin_or_create(&self, purpose: For) -> Result<Tx, StoreError> {
        match &self.kind {
            Kind::Postgres(_) => self.begin(purpose).await,
            Kind::Sqlite(database) => {
                self.begun.fetch_add(1, Ordering::Relaxed);
                database.begin(purpose, true).await.map(Tx::Sqlite)
            }
        }
    }

    /// Begins a short transaction that writes, beside another one of this process that is open here. `None` for SQLite,
    /// where a file has one writer.
    pub(crate) async fn begin_errand(&self) -> Result<Option<Tx>, StoreError> {
        match &self.kind {
            Kind::Postgres(database) => database.begin_errand().await.map(Tx::Postgres).map(Some),
            Kind::Sqlite(_) => Ok(None),
        }
    }

    /// Its location.
    pub(crate) fn location(&self) -> &Location {
        match &self.kind {
            Kind::Postgres(database) => database.location(),
            Kind::Sqlite(database) => database.location(),
        }
    }

    /// How many transactions this process has begun here.
    pub(crate) fn transactions(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}

/// A statement that inserts `rows` rows.
fn insertion(into: &str, after: &str, columns: usize, rows: usize) -> String {
    let row = |row: usize| {
        let values: Vec<String> =
            (1..=columns).map(|column| format!("${}", row * columns + column)).collect();
        format!("({})", values.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!("{into} values {} {after}", rows.join(", "))
}

impl Tx {
    /// The rows of a query.
    pub(crate) fn query<'a>(&'a mut self, sql: &'a str, values: &'a [Value]) -> Answer<'a, Vec<Row>> {
        match self {
            Self::Postgres(tx) => Box::pin(tx.query(sql, values)),
            Self::Sqlite(tx) => Box::pin(tx.query(sql, values)),
        }
    }

    /// The one row of a query, if there is one.
    pub(crate) async fn query_one(&mut self, sql: &str, values: &[Value]) -> Result<Option<Row>, StoreError> {
        Ok(self.query(sql, values).await?.into_iter().next())
    }

    /// Runs a statement. Returns how many rows it changed.
    pub(crate) fn execute<'a>(&'a mut self, sql: &'a str, values: &'a [Value]) -> Answer<'a, u64> {
        match self {
            Self::Postgres(tx) => Box::pin(tx.execute(sql, values)),
            Self::Sqlite(tx) => Box::pin(tx.execute(sql, vec![values.to_vec()])),
        }
    }

    /// Runs a statement once for each list of values, without waiting for each answer. Returns how many rows were
    /// changed in all.
    pub(crate) fn execute_each<'a>(&'a mut self, sql: &'a str, each: Vec<Vec<Value>>) -> Answer<'a, u64> {
        match self {
            Self::Postgres(tx) => Box::pin(async move { tx.execute_each(sql, &each).await }),
            Self::Sqlite(tx) => Box::pin(tx.execute(sql, each)),
        }
    }

    /// Runs a statement for many ids at once. `sql` stands before the list of ids (`... where mapping_id in`). Returns how
    /// many rows were changed in all.
    pub(crate) async fn execute_for(&mut self, sql: &str, ids: &[Uuid]) -> Result<u64, StoreError> {
        let mut changed = 0;
        for chunk in ids.chunks(ROWS_PER_STATEMENT_MAX) {
            let numbers: Vec<String> = (1..=chunk.len()).map(|number| format!("${number}")).collect();
            let values: Vec<Value> = chunk.iter().map(|id| Value::from(*id)).collect();
            changed += self.execute(&format!("{sql} ({})", numbers.join(", ")), &values).await?;
        }
        Ok(changed)
    }

    /// Inserts rows. `into` ends with the names of the columns, and `after` stands after the values (`on conflict ...`).
    pub(crate) fn insert<'a>(
        &'a mut self,
        into: &'a str,
        after: &'a str,
        rows: Vec<Vec<Value>>,
    ) -> Answer<'a, u64> {
        match self {
            Self::Postgres(tx) => Box::pin(async move { tx.insert(into, after, &rows).await }),
            Self::Sqlite(tx) => Box::pin(async move {
                let Some(columns) = rows.first().map(Vec::len) else { return Ok(0) };
                tx.execute(&insertion(into, after, columns, 1), rows).await
            }),
        }
    }

    /// Makes the tables of a part of the schema, if they do not exist. A shard of another major version is refused.
    pub(crate) fn install(&mut self, schema: Schema) -> Answer<'_, ()> {
        Box::pin(async move {
            if schema == Schema::Local {
                self.expect_local_version().await?;
            }
            match self {
                Self::Postgres(tx) => tx.install(schema).await?,
                Self::Sqlite(tx) => tx.install(schema).await?,
            }
            if schema == Schema::Local {
                let sql = "insert into __shard_management.local_meta (one, version_major, version_minor)
                    values (1, $1, $2) on conflict do nothing";
                self.execute(sql, &[STORE_VERSION.0.into(), STORE_VERSION.1.into()]).await?;
            }
            Ok(())
        })
    }

    /// Whether a table of ours exists. Stores that an earlier version made may not have it.
    pub(crate) async fn has_table(&mut self, name: &str) -> Result<bool, StoreError> {
        let sql = match self {
            Self::Postgres(_) => "select to_regclass('__shard_management.' || $1)::text",
            Self::Sqlite(_) => "select name from sqlite_master where name = '__shard_management_' || $1",
        };
        let row = self.query_one(sql, &[name.into()]).await?;
        Ok(row.map(|mut row| row.optional(Row::text)).transpose()?.flatten().is_some())
    }

    /// Whether this role may change and lock the rows of a table of ours.
    pub(crate) async fn may_update(&mut self, name: &str) -> Result<bool, StoreError> {
        match self {
            Self::Postgres(_) => {
                let sql = "select has_table_privilege('__shard_management.' || $1, 'update')";
                self.query_one(sql, &[name.into()]).await?.map_or(Ok(false), |mut row| row.bool())
            }
            Self::Sqlite(_) => Ok(true),
        }
    }

    /// Removes the tables of the global map.
    pub(crate) fn remove_global(&mut self) -> Answer<'_, ()> {
        match self {
            Self::Postgres(tx) => Box::pin(tx.remove_global()),
            Self::Sqlite(tx) => Box::pin(tx.remove_global()),
        }
    }

    /// The SQL for the present time by the database's clock, in microseconds since 1970.
    pub(crate) fn now_sql(&self) -> &'static str {
        match self {
            Self::Postgres(_) => postgres::NOW_SQL,
            Self::Sqlite(_) => sqlite::NOW_SQL,
        }
    }

    /// The present time by the database's clock, in microseconds since 1970.
    pub(crate) fn now(&mut self) -> Answer<'_, i64> {
        match self {
            Self::Postgres(tx) => Box::pin(tx.now()),
            Self::Sqlite(tx) => Box::pin(tx.now()),
        }
    }

    /// Waits until no transaction holds one of the fences, and lets no transaction take them before this one ends.
    /// `drain` says what happens to the transactions that hold them.
    pub(crate) fn close_fences<'a>(&'a mut self, fences: &'a [i64], drain: Drain) -> Answer<'a, ()> {
        match self {
            Self::Postgres(tx) => Box::pin(tx.close_fences(fences, drain)),
            // A writer has the whole file to itself, so all transactions on the keys have ended.
            Self::Sqlite(_) => Box::pin(std::future::ready(Ok(()))),
        }
    }

    /// How many fences may be closed at once here. For more, the keys are first refused ([`Tx::write_past`]), and the next
    /// transaction waits for those inside ([`Tx::pass_fences`]). In SQLite a fence takes no lock.
    pub(crate) fn fences_at_once_max(&self) -> usize {
        match self {
            Self::Postgres(_) => FENCES_CLOSED_AT_ONCE_MAX,
            Self::Sqlite(_) => usize::MAX,
        }
    }

    /// Waits until no transaction holds one of the fences. Others must be kept from entering by what is committed already.
    pub(crate) fn pass_fences<'a>(&'a mut self, fences: &'a [i64], drain: Drain) -> Answer<'a, ()> {
        match self {
            Self::Postgres(tx) => Box::pin(tx.pass_fences(fences, drain)),
            Self::Sqlite(_) => Box::pin(std::future::ready(Ok(()))),
        }
    }

    /// Runs a statement that changes the rows of mappings whose fences are not closed. `drain` says what happens to the
    /// transactions that hold one of the fences and have locked such a row.
    pub(crate) fn write_past<'a>(
        &'a mut self,
        sql: &'a str,
        values: &'a [Value],
        fences: &'a [i64],
        drain: Drain,
    ) -> Answer<'a, ()> {
        match self {
            Self::Postgres(tx) => Box::pin(tx.write_past(sql, values, fences, drain)),
            Self::Sqlite(tx) => {
                Box::pin(async move { tx.execute(sql, vec![values.to_vec()]).await.map(drop) })
            }
        }
    }

    /// Ends the sessions here of an owner whose operation was taken over. Returns the names of those that this role may
    /// not end. In SQLite there is none: a process that stopped keeps the file until it goes on or dies.
    pub(crate) fn end_sessions(&mut self, of: Mark) -> Answer<'_, Vec<String>> {
        match self {
            Self::Postgres(tx) => Box::pin(tx.end_sessions(of)),
            Self::Sqlite(_) => Box::pin(std::future::ready(Ok(Vec::new()))),
        }
    }

    /// Makes the numbers the same again by which transactions see that no mapping has changed. Returns for how many maps they
    /// differed. In SQLite there are none, and shards that an earlier version made must be upgraded first.
    pub(crate) async fn mend_counts(&mut self) -> Result<i64, StoreError> {
        let Self::Postgres(_) = self else { return Ok(0) };
        let sql = "select to_regprocedure('__shard_management.mend_counts()') is not null";
        let exists = self.query_one(sql, &[]).await?.map(|mut row| row.bool()).transpose()?;
        if exists != Some(true) {
            return Ok(0);
        }
        let row = self.query_one("select __shard_management.mend_counts()", &[]).await?;
        row.map_or(Ok(0), |mut row| row.int())
    }

    /// Removes the constraint by which earlier versions kept the mappings of a shard apart, if it is there. For that, no other
    /// transaction may have read the mappings. So it tries for a moment at a time, as long as one waits for a lock.
    pub(crate) async fn drop_exclusion(&mut self) -> Result<(), StoreError> {
        let Self::Postgres(_) = self else { return Ok(()) };
        let sql = "select exists (select from pg_constraint where conname = 'local_mappings_do_not_overlap'
            and contype = 'x' and conrelid = '__shard_management.local_mappings'::regclass)";
        let exists = self.query_one(sql, &[]).await?.map(|mut row| row.bool()).transpose()?;
        if exists != Some(true) {
            return Ok(());
        }
        let sql =
            "alter table __shard_management.local_mappings drop constraint local_mappings_do_not_overlap";
        self.write_past(sql, &[], &[], Drain::Leave).await.map_err(|mut error| {
            if error.failure == Failure::NotDrained {
                error.failure = Failure::Busy;
                error.message = format!(
                    "the shard is upgraded, but for the constraint local_mappings_do_not_overlap of an earlier version: in {} s \
                    there was no moment without a transaction that had read the shard's mappings. With the constraint large \
                    changes take longer, and all else is as it should be. Upgrade again when no transaction stays open for long",
                    LOCK_TIMEOUT.as_secs()
                );
            }
            error
        })
    }

    /// Runs a user's script: statements with semicolons between them. If a statement ends the transaction, that is an
    /// error, and what it did stays.
    pub(crate) async fn script(&mut self, sql: &str) -> Result<(), StoreError> {
        match self {
            Self::Postgres(tx) => tx.script(sql).await,
            Self::Sqlite(tx) => tx.script(sql).await,
        }
    }

    /// Commits.
    pub(crate) fn commit(self) -> Answer<'static, ()> {
        match self {
            Self::Postgres(tx) => Box::pin(tx.commit()),
            Self::Sqlite(tx) => Box::pin(tx.commit()),
        }
    }
}
