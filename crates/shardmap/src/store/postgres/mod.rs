//! The store in PostgreSQL: connections with management credentials, and transactions on them.
//!
//! Statements are not prepared, and are sent with the types of their values, in one round trip each. So there may be
//! a pooler in transaction mode between. If a transaction is dropped, its connection is closed. Then the server
//! undoes the transaction, and the pool never gets a connection with an open transaction.

mod access;
mod connect;
mod drain;
mod owners;
mod reading;
mod values;

use std::time::Duration;

use deadpool::managed::TimeoutType;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod};
use futures::future::try_join_all;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres_rustls::MakeRustlsConnect;

pub use access::{Credentials, PostgresAccess, Roots, Tls};
pub(crate) use owners::Mark;

use crate::limits::{
    CONNECT_TIMEOUT, CONNECTIONS_PER_DATABASE_MAX, ERRAND_CONNECTIONS_PER_DATABASE, LOCK_TIMEOUT,
    ROWS_IN_FLIGHT_MAX, ROWS_PER_STATEMENT_MAX,
};
use crate::location::Location;
use crate::store::{Drain, Failure, For, Row, Schema, StoreError, Value, insertion};

/// The tables of a global map.
pub const GLOBAL_SQL: &str = include_str!("global.sql");
/// The tables of a local map.
pub const LOCAL_SQL: &str = include_str!("local.sql");
/// The functions with which a transaction enters a key, in any program. They are installed after the local map.
pub const FENCE_SQL: &str = concat!(
    include_str!("fence.sql"),
    include_str!("keys.sql"),
    include_str!("values.sql"),
    include_str!("guard.sql")
);
/// The functions with which any program finds a key's shard. They are installed after the global map.
pub const LOCATE_SQL: &str = concat!(include_str!("keys.sql"), include_str!("locate.sql"));

/// The present time in microseconds since 1970.
pub(crate) const NOW_SQL: &str = "(extract(epoch from clock_timestamp()) * 1000000)::bigint";

/// One PostgreSQL database, with the connections that are kept to it.
#[derive(Clone)]
pub(crate) struct PostgresDatabase {
    location: Location,
    pool: Pool,
    /// Connections for errands.
    errands: Pool,
    /// Requests to cancel a statement use connections of their own, which this makes.
    connector: Option<MakeRustlsConnect>,
    /// How long a transaction that writes may wait for its next statement, and the server for an answer to be taken.
    stopped_within: Duration,
}

/// A transaction.
pub(crate) struct PostgresTx {
    database: PostgresDatabase,
    /// It is there until the transaction is dropped.
    client: Option<Object>,
    open: bool,
}

impl PostgresDatabase {
    pub(crate) fn new(
        location: &Location,
        access: &PostgresAccess,
        stopped_within: Duration,
    ) -> Result<Self, StoreError> {
        let failed = |what: &str| StoreError::new(location, Failure::Other, what);
        let config = access
            .config(location)
            .ok_or_else(|| failed("this is not the location of a PostgreSQL database"))?;
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = |size: usize| {
            let connecting = connect::Connecting::new(location, access);
            let manager = Manager::from_connect(config.clone(), connecting, recycling.clone());
            let pool = Pool::builder(manager)
                .max_size(size)
                .runtime(deadpool_postgres::Runtime::Tokio1)
                .wait_timeout(Some(LOCK_TIMEOUT))
                .create_timeout(Some(CONNECT_TIMEOUT))
                .build();
            pool.map_err(|error| failed(&error.to_string()))
        };
        Ok(Self {
            location: location.clone(),
            pool: pool(CONNECTIONS_PER_DATABASE_MAX)?,
            errands: pool(ERRAND_CONNECTIONS_PER_DATABASE)?,
            connector: access.connector(),
            stopped_within,
        })
    }

    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// Connects, and begins a transaction. A connection that broke in the pool is replaced by a new one, because
    /// nothing was done on it.
    pub(crate) async fn begin(&self, purpose: For) -> Result<PostgresTx, StoreError> {
        self.begin_on(&self.pool, purpose).await
    }

    /// Begins a short transaction, for a process that has another one open here.
    pub(crate) async fn begin_errand(&self) -> Result<PostgresTx, StoreError> {
        self.begin_on(&self.errands, For::Writing).await
    }

    async fn begin_on(&self, pool: &Pool, purpose: For) -> Result<PostgresTx, StoreError> {
        let within = self.stopped_within.as_millis();
        let begin = match purpose {
            For::Reading => "begin isolation level repeatable read read only".to_owned(),
            // The steps of an operation in several databases follow each other. So each step must be durable when it
            // is done.
            // A process that stops without dying keeps its connection, and with it its locks. Only the server can end
            // that: while it waits for the next statement, and while it sends an answer that is not taken.
            For::Writing | For::Step(_) => format!(
                "begin isolation level read committed; set local synchronous_commit = on; set local lock_timeout = {};
                set local idle_in_transaction_session_timeout = {within}; set local tcp_user_timeout = {within}; {}",
                LOCK_TIMEOUT.as_millis(),
                if let For::Step(mark) = purpose { mark.sql() } else { String::new() }
            ),
        };
        for _ in 0..=CONNECTIONS_PER_DATABASE_MAX {
            let client = pool.get().await.map_err(|error| self.unreachable(&error))?;
            // It counts as open before it begins. If the caller gives up meanwhile, the server may begin it nevertheless.
            let tx = PostgresTx { database: self.clone(), client: Some(client), open: true };
            match tx.client()?.batch_execute(&begin).await {
                Ok(()) => return Ok(tx),
                Err(error) if error.as_db_error().is_none() => drop(tx),
                Err(error) => return Err(self.failed(&error)),
            }
        }
        Err(StoreError::new(&self.location, Failure::Unreachable, "every connection breaks at once"))
    }

    /// The error for a connection that could not be had, in other words than the pool's.
    fn unreachable(&self, error: &PoolError) -> StoreError {
        let text = match error {
            PoolError::Backend(error) => error_text(error),
            PoolError::Timeout(TimeoutType::Wait) => {
                format!("no connection became free within {LOCK_TIMEOUT:?}")
            }
            PoolError::Timeout(_) => format!("no answer within {CONNECT_TIMEOUT:?}"),
            other => error_text(other),
        };
        StoreError::new(&self.location, Failure::Unreachable, text)
    }

    fn failed(&self, error: &tokio_postgres::Error) -> StoreError {
        StoreError::new(&self.location, meaning(error), error_text(error))
    }
}

impl PostgresTx {
    pub(crate) async fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        let rows = self.client()?.query_typed(sql, &typed(values)).await;
        let rows = rows.map_err(|error| self.database.failed(&error))?;
        let location = &self.database.location;
        rows.iter().map(|row| Ok(Row::new(location, values::of_row(location, row)?))).collect()
    }

    pub(crate) async fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        let done = self.client()?.execute_typed(sql, &typed(values)).await;
        done.map_err(|error| self.database.failed(&error))
    }

    /// The statements of a chunk are all sent before the first answer is awaited.
    pub(crate) async fn execute_each(&mut self, sql: &str, each: &[Vec<Value>]) -> Result<u64, StoreError> {
        let mut changed = 0;
        for chunk in each.chunks(ROWS_IN_FLIGHT_MAX) {
            let client = self.client()?;
            let one = |values: &'_ Vec<Value>| {
                let values = values.clone();
                async move { client.execute_typed(sql, &typed(&values)).await }
            };
            let counts = try_join_all(chunk.iter().map(one)).await;
            changed += counts.map_err(|error| self.database.failed(&error))?.iter().sum::<u64>();
        }
        Ok(changed)
    }

    /// Many rows go with one statement, because the server parses and plans each statement again.
    pub(crate) async fn insert(
        &mut self,
        into: &str,
        after: &str,
        rows: &[Vec<Value>],
    ) -> Result<u64, StoreError> {
        let mut inserted = 0;
        for chunk in rows.chunks(ROWS_PER_STATEMENT_MAX) {
            let sql = insertion(into, after, chunk[0].len(), chunk.len());
            inserted += self.execute(&sql, &chunk.concat()).await?;
        }
        Ok(inserted)
    }

    pub(crate) async fn install(&mut self, schema: Schema) -> Result<(), StoreError> {
        match schema {
            Schema::Global => {
                self.batch(GLOBAL_SQL).await?;
                self.batch(LOCATE_SQL).await
            }
            Schema::Local => {
                // Without this lock, two processes that install at the same time would both find no tables. Its
                // number is used for nothing else.
                self.batch("select pg_advisory_xact_lock(1380469827, 1)").await?;
                self.batch(LOCAL_SQL).await?;
                self.batch(FENCE_SQL).await
            }
        }
    }

    /// Each table is dropped by its name, because a local map may lie in the same schema.
    pub(crate) async fn remove_global(&mut self) -> Result<(), StoreError> {
        self.batch(
            "drop table if exists __shard_management.global_lost_shards, __shard_management.global_schema_infos, __shard_management.global_operations,
                __shard_management.global_shard_sizes, __shard_management.global_mappings,
                __shard_management.global_shards, __shard_management.global_maps, __shard_management.global_meta",
        )
        .await
    }

    pub(crate) async fn now(&mut self) -> Result<i64, StoreError> {
        let mut rows = self.query(&format!("select {NOW_SQL}"), &[]).await?;
        match rows.first_mut() {
            Some(row) => row.int(),
            None => Err(StoreError::new(&self.database.location, Failure::Damaged, "the server has no time")),
        }
    }

    pub(crate) async fn close_fences(&mut self, fences: &[i64], drain: Drain) -> Result<(), StoreError> {
        drain::close_fences(self, fences, drain).await
    }

    pub(crate) async fn pass_fences(&mut self, fences: &[i64], drain: Drain) -> Result<(), StoreError> {
        drain::pass_fences(self, fences, drain).await
    }

    pub(crate) async fn write_past(
        &mut self,
        sql: &str,
        values: &[Value],
        fences: &[i64],
        drain: Drain,
    ) -> Result<(), StoreError> {
        drain::write_past(self, sql, values, fences, drain).await
    }

    pub(crate) async fn end_sessions(&mut self, of: Mark) -> Result<Vec<String>, StoreError> {
        owners::end_sessions(self, of).await
    }

    pub(crate) async fn script(&mut self, sql: &str) -> Result<(), StoreError> {
        // If the script ended the transaction and began another one, the number has changed.
        const NUMBER: &str = "select pg_current_xact_id()::text";
        let before = self.query(NUMBER, &[]).await?;
        self.batch(sql).await?;
        let after = self.query(NUMBER, &[]).await?;
        let number = |rows: Vec<Row>| rows.into_iter().next().map(|mut row| row.text()).transpose();
        if number(before)? == number(after)? {
            return Ok(());
        }
        let text = "the script ended its transaction: leave BEGIN, COMMIT and ROLLBACK out of it";
        Err(StoreError::new(&self.database.location, Failure::Other, text))
    }

    pub(crate) async fn commit(mut self) -> Result<(), StoreError> {
        self.batch("commit").await?;
        self.open = false;
        Ok(())
    }

    fn client(&self) -> Result<&Object, StoreError> {
        let gone = || StoreError::new(&self.database.location, Failure::Lost, "the transaction has ended");
        self.client.as_ref().ok_or_else(gone)
    }

    async fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        self.client()?.batch_execute(sql).await.map_err(|error| self.database.failed(&error))
    }
}

impl Drop for PostgresTx {
    /// If the transaction is open, its connection is closed, and does not go back into the pool.
    fn drop(&mut self) {
        if self.open {
            drop(self.client.take().map(Object::take));
        }
    }
}

/// The values, each with the type with which it is sent. A NULL has no type, and the server finds one.
fn typed(values: &[Value]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value as &(dyn ToSql + Sync), values::type_of(value))).collect()
}

/// What an error of the server or the driver means.
fn meaning(error: &tokio_postgres::Error) -> Failure {
    let Some(code) = error.code() else {
        return Failure::Lost;
    };
    const BUSY: [&SqlState; 5] = [
        &SqlState::T_R_SERIALIZATION_FAILURE,
        &SqlState::T_R_DEADLOCK_DETECTED,
        &SqlState::LOCK_NOT_AVAILABLE,
        &SqlState::QUERY_CANCELED,
        &SqlState::TOO_MANY_CONNECTIONS,
    ];
    const NO_SCHEMA: [&SqlState; 2] = [&SqlState::UNDEFINED_TABLE, &SqlState::INVALID_SCHEMA_NAME];
    const ENDING: [&SqlState; 4] = [
        &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        &SqlState::ADMIN_SHUTDOWN,
        &SqlState::CRASH_SHUTDOWN,
        &SqlState::CANNOT_CONNECT_NOW,
    ];
    match code {
        code if BUSY.contains(&code) => Failure::Busy,
        code if NO_SCHEMA.contains(&code) => Failure::NoSchema,
        code if ENDING.contains(&code) || code.code().starts_with("08") => Failure::Lost,
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => Failure::Denied,
        code if *code == SqlState::EXCLUSION_VIOLATION => Failure::Overlap,
        code if *code == SqlState::UNIQUE_VIOLATION => Failure::Duplicate,
        _ => Failure::Other,
    }
}

/// An error with its causes, because the driver keeps the server's message in the cause.
fn error_text(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
