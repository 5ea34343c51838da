//! The store in SQLite: files, and transactions in them.
//!
//! SQLite works on the thread that calls it, so each statement goes to a thread that may block. A connection belongs
//! to its transaction or lies in the pool of its database. Two transactions never share one. A writing transaction
//! takes the file's write lock when it begins, so nothing that it has read changes before it writes.

mod reading;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, params_from_iter};
use tokio::sync::oneshot;

use crate::limits::{CONNECTIONS_PER_DATABASE_MAX, LOCK_TIMEOUT};
use crate::location::Location;
use crate::store::{Failure, For, Row, Schema, StoreError, Value};

/// The tables of a global map.
const GLOBAL_SQL: &str = include_str!("global.sql");
/// The tables of a local map.
const LOCAL_SQL: &str = include_str!("local.sql");

/// The present time in microseconds since 1970.
pub(crate) const NOW_SQL: &str = "cast(unixepoch('subsec') * 1000000 as integer)";

/// One file, with the connections that are kept to it.
#[derive(Clone)]
pub(crate) struct SqliteDatabase {
    location: Location,
    path: Arc<Path>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

/// A transaction.
pub(crate) struct SqliteTx {
    database: SqliteDatabase,
    /// It is absent while a statement runs, and after a statement was given up. If it is dropped, what is open is
    /// undone.
    connection: Option<Connection>,
    /// While rows are streamed, the connection comes back from here.
    lent: Option<oneshot::Receiver<Connection>>,
}

impl SqliteDatabase {
    pub(crate) fn new(location: &Location, path: &str) -> Self {
        Self { location: location.clone(), path: Path::new(path).into(), idle: Arc::default() }
    }

    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) async fn begin(&self, purpose: For, create: bool) -> Result<SqliteTx, StoreError> {
        let database = self.clone();
        let begun = blocking(&self.location, move || {
            let connection = match database.take_idle() {
                Some(connection) => connection,
                None => database.open(create)?,
            };
            let begin = if purpose == For::Reading { "begin" } else { "begin immediate" };
            connection.execute_batch(begin).map_err(|error| database.failed(&error))?;
            Ok(connection)
        });
        Ok(SqliteTx { database: self.clone(), connection: Some(begun.await?), lent: None })
    }

    fn take_idle(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < CONNECTIONS_PER_DATABASE_MAX {
            idle.push(connection);
        }
    }

    /// A new connection. A file that we make gets a write-ahead log, so that readers and a writer do not wait for
    /// each other. An existing file stays as its owner has it.
    fn open(&self, create: bool) -> Result<Connection, StoreError> {
        let is_new = create && !self.path.exists();
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if create {
            flags |= OpenFlags::SQLITE_OPEN_CREATE;
        }
        let open = || {
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(LOCK_TIMEOUT)?;
            connection.execute_batch("pragma foreign_keys = on; pragma synchronous = full")?;
            if is_new {
                connection.query_row("pragma journal_mode = wal", [], |_| Ok(()))?;
            }
            Ok(connection)
        };
        open().map_err(|error: rusqlite::Error| self.failed(&error))
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::new(&self.location, meaning(error), error.to_string())
    }
}

impl SqliteTx {
    /// Runs `work` on a thread that may block.
    async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection, &SqliteDatabase) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let location = self.database.location.clone();
        let ended = || StoreError::new(&location, Failure::Lost, "the transaction has ended");
        if let Some(lent) = self.lent.take() {
            self.connection = lent.await.ok();
        }
        let connection = self.connection.take().ok_or_else(ended)?;
        let database = self.database.clone();
        let (connection, done) = blocking(&self.database.location, move || {
            let done = work(&connection, &database);
            Ok((connection, done))
        })
        .await?;
        self.connection = Some(connection);
        done
    }

    pub(crate) async fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        let (sql, values) = (translated(sql), values.to_vec());
        self.run(move |connection, database| {
            let rows = || {
                let mut statement = connection.prepare_cached(&sql)?;
                let columns = statement.column_count();
                let mut rows = statement.query(params_from_iter(values))?;
                let mut all = Vec::new();
                while let Some(row) = rows.next()? {
                    let values: Result<_, _> =
                        (0..columns).map(|column| row.get_ref(column).map(value)).collect();
                    all.push(Row::new(&database.location, values?));
                }
                Ok(all)
            };
            rows().map_err(|error: rusqlite::Error| database.failed(&error))
        })
        .await
    }

    pub(crate) async fn execute(&mut self, sql: &str, each: Vec<Vec<Value>>) -> Result<u64, StoreError> {
        let sql = translated(sql);
        self.run(move |connection, database| {
            let changed = || {
                let mut statement = connection.prepare_cached(&sql)?;
                each.into_iter().try_fold(0, |sum, values| {
                    statement.execute(params_from_iter(values)).map(|changed| sum + changed as u64)
                })
            };
            changed().map_err(|error: rusqlite::Error| database.failed(&error))
        })
        .await
    }

    pub(crate) async fn install(&mut self, schema: Schema) -> Result<(), StoreError> {
        self.batch(match schema {
            Schema::Global => GLOBAL_SQL,
            Schema::Local => LOCAL_SQL,
        })
        .await
    }

    pub(crate) async fn remove_global(&mut self) -> Result<(), StoreError> {
        self.batch(
            "drop table if exists __shard_management_global_lost_shards;
            drop table if exists __shard_management_global_schema_infos;
            drop table if exists __shard_management_global_operations;
            drop table if exists __shard_management_global_mappings;
            drop table if exists __shard_management_global_shards;
            drop table if exists __shard_management_global_maps;
            drop table if exists __shard_management_global_meta",
        )
        .await
    }

    pub(crate) async fn now(&mut self) -> Result<i64, StoreError> {
        let mut rows = self.query(&format!("select {NOW_SQL}"), &[]).await?;
        match rows.first_mut() {
            Some(row) => row.int(),
            None => {
                Err(StoreError::new(&self.database.location, Failure::Damaged, "the database has no time"))
            }
        }
    }

    pub(crate) async fn commit(mut self) -> Result<(), StoreError> {
        self.batch("commit").await?;
        if let Some(connection) = self.connection.take() {
            self.database.give_back(connection);
        }
        Ok(())
    }

    pub(crate) async fn script(&mut self, sql: &str) -> Result<(), StoreError> {
        let sql = sql.to_owned();
        self.run(move |connection, database| {
            let run = |sql: &str| connection.execute_batch(sql).map_err(|error| database.failed(&error));
            run("savepoint rangehold_script")?;
            run(&sql)?;
            // The savepoint ends with its transaction, even if the script has begun another one.
            run("release rangehold_script").map_err(|_| {
                let text = "the script ended its transaction: leave BEGIN, COMMIT and ROLLBACK out of it";
                StoreError::new(&database.location, Failure::Other, text)
            })
        })
        .await
    }

    async fn batch(&mut self, sql: &'static str) -> Result<(), StoreError> {
        self.run(move |connection, database| {
            connection.execute_batch(sql).map_err(|error| database.failed(&error))
        })
        .await
    }
}

/// Runs something that blocks on a thread that may block.
async fn blocking<T: Send + 'static>(
    location: &Location,
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::new(location, Failure::Other, error.to_string()))?
}

/// A statement of the protocol in SQLite's form: a prefix in place of the schema, and `?` for values. Rows need no
/// lock, since a writer has the whole file.
fn translated(sql: &str) -> String {
    sql.replace("__shard_management.", "__shard_management_")
        .replace('$', "?")
        .replace(" for update skip locked", "")
        .replace(" for update", "")
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        use rusqlite::types::Value as Sql;
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Sql::Null),
            Self::Bool(value) => ToSqlOutput::Owned(Sql::Integer(i64::from(*value))),
            Self::Int(value) => ToSqlOutput::Owned(Sql::Integer(*value)),
            Self::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
            Self::Bytes(value) => ToSqlOutput::Borrowed(ValueRef::Blob(value)),
            Self::Uuid(value) => ToSqlOutput::Owned(Sql::Text(value.hyphenated().to_string())),
            Self::Ints(value) => ToSqlOutput::Owned(Sql::Text(format!("{value:?}"))),
        })
    }
}

fn value(stored: ValueRef<'_>) -> Value {
    match stored {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        // None of our columns holds such a number.
        ValueRef::Real(value) => Value::Text(value.to_string()),
        ValueRef::Text(value) => Value::Text(String::from_utf8_lossy(value).into_owned()),
        ValueRef::Blob(value) => Value::Bytes(value.to_vec()),
    }
}

/// What an error of SQLite means.
fn meaning(error: &rusqlite::Error) -> Failure {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::Busy,
        Some(ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::PermissionDenied) => {
            Failure::Unreachable
        }
        Some(ErrorCode::ConstraintViolation) if text.contains("_do_not_overlap") => Failure::Overlap,
        Some(ErrorCode::ConstraintViolation) if text.contains("UNIQUE") => Failure::Duplicate,
        _ if text.contains("no such table") => Failure::NoSchema,
        _ => Failure::Other,
    }
}
