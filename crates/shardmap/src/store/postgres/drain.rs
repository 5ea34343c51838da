//! Ends the transactions on keys that go offline, and no others.
//!
//! A change that takes keys away closes their fences (`close_fences` in `fence.sql`), which waits for the
//! transactions that hold them. To end the wait, a second connection cancels their statements, and after a
//! grace period it ends their sessions, because a session that is idle inside a transaction has no statement
//! to cancel. A session outside a transaction holds no fence. It stays, and its next transaction is refused.
//!
//! Between the look at the locks and the signal, a session can end its transaction and begin another one. Then the
//! new transaction is cancelled, and its client tries it again. This can happen only within microseconds on the
//! server.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::time::{Instant, sleep};
use tokio_postgres::types::{ToSql, Type};

use super::{PostgresDatabase, PostgresTx, error_text};
use crate::limits::LOCK_TIMEOUT;
use crate::store::{Failure, StoreError, Value};

/// The time that the fences have to close by themselves. After that their holders are looked for. It is also the
/// pause between later looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The longest lock timeout that PostgreSQL accepts.
const LOCK_TIMEOUT_MS_MAX: i64 = i32::MAX as i64;

const CLOSE: &str = "select __shard_management.close_fences($1, $2)";
/// The transactions that hold one of the fences. Every role may read this: `pg_stat_activity` hides the time at which
/// a transaction of another role began, but `pg_locks` has the number of the transaction. A prepared transaction has no
/// session. Its name is found by the lock on its own id.
const HOLDERS: &str = "select l.pid, l.virtualtransaction, a.usename::text, a.application_name,
        (select min(p.gid) from pg_locks t join pg_prepared_xacts p on p.transaction = t.transactionid
            where t.pid is null and t.locktype = 'transactionid' and t.virtualtransaction = l.virtualtransaction)
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.classid = 1380469828 and l.objsubid = 2 and l.granted and l.mode = 'ShareLock'
        and l.database = (select oid from pg_database where datname = current_database())
        and l.objid in (select (fence & 2147483647)::int::oid from unnest($1::bigint[]) fence)";
/// Each signal looks again whether the transaction still holds a fence.
const CANCEL: &str =
    "select pg_cancel_backend(l.pid) from pg_locks l where l.pid = $1 and l.virtualtransaction = $2
    and l.locktype = 'advisory' and l.classid = 1380469828 limit 1";
const TERMINATE: &str = "select pg_terminate_backend(l.pid) from pg_locks l where l.pid = $1
    and l.virtualtransaction = $2 and l.locktype = 'advisory' and l.classid = 1380469828 limit 1";

/// Waits until no transaction holds one of the fences, and keeps others from taking them before this
/// transaction ends. With a grace period, it cancels the statements of their holders meanwhile, and ends
/// their sessions after it.
///
/// To end them, this role needs the right to signal them: as a superuser, as the same role, or as a member of
/// `pg_signal_backend`. Without it, the holders are waited for, until the lock timeout is over. Then the error is
/// [`Failure::NotDrained`], and names them.
pub(super) async fn close_fences(
    tx: &mut PostgresTx,
    fences: &[i64],
    grace: Option<Duration>,
) -> Result<(), StoreError> {
    if fences.is_empty() {
        return Ok(());
    }
    let database = tx.database.clone();
    // A transaction that was ended needs time to undo its work.
    let wait_ms = (grace.unwrap_or_default() + LOCK_TIMEOUT).as_millis();
    let wait_ms = i64::try_from(wait_ms).unwrap_or(LOCK_TIMEOUT_MS_MAX).min(LOCK_TIMEOUT_MS_MAX);
    let values = [Value::from(fences), Value::from(wait_ms)];
    let closing = tx.execute(CLOSE, &values);
    let closed = match grace {
        None => closing.await,
        Some(grace) => {
            tokio::pin!(closing);
            tokio::select! {
                biased;
                closed = &mut closing => closed,
                ended = end_holders(&database, fences, grace) => {
                    let Err(error) = ended;
                    tracing::warn!(?fences, %error, "transactions that hold a fence can't be ended; waiting for them");
                    closing.await
                }
            }
        }
    };
    match closed {
        Err(error) if error.failure == Failure::Busy => Err(not_drained(&database, fences, error).await),
        closed => closed.map(drop),
    }
}

/// The error for fences that stayed held. It names the transactions that hold them.
async fn not_drained(database: &PostgresDatabase, fences: &[i64], error: StoreError) -> StoreError {
    let found = match database.pool.get().await {
        Ok(client) => holders(&client, fences).await.unwrap_or_default(),
        Err(_) => Vec::new(),
    };
    if found.is_empty() {
        return error;
    }
    let names: Vec<String> = found.iter().map(Holder::to_string).collect();
    let text = format!(
        "transactions on the keys did not end: {}. End them, or give this role the right to do so \
        (grant pg_signal_backend)",
        names.join("; ")
    );
    StoreError::new(&database.location, Failure::NotDrained, text)
}

/// Goes on until it is dropped, or until it fails.
async fn end_holders(
    database: &PostgresDatabase,
    fences: &[i64],
    grace: Duration,
) -> Result<Infallible, StoreError> {
    let began = Instant::now();
    sleep(LOOK_EVERY).await;
    let unreachable = |error| StoreError::new(&database.location, Failure::Unreachable, error_text(&error));
    let client = database.pool.get().await.map_err(unreachable)?;
    let mut cancelled = BTreeSet::new();
    loop {
        for holder in holders(&client, fences).await.map_err(|error| database.failed(&error))? {
            if began.elapsed() >= grace {
                signal(&client, TERMINATE, &holder).await;
            } else if cancelled.insert(holder.clone()) {
                signal(&client, CANCEL, &holder).await;
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

/// A transaction that holds a fence. The next transaction of the same session is another holder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    /// Absent for a prepared transaction.
    pid: Option<i32>,
    transaction: String,
    role: Option<String>,
    application: Option<String>,
    /// The name of a prepared transaction.
    gid: Option<String>,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(pid) = self.pid else {
            return write!(
                f,
                "the prepared transaction {:?}",
                self.gid.as_deref().unwrap_or(&self.transaction)
            );
        };
        let role = self.role.as_deref().unwrap_or("unknown");
        write!(
            f,
            "pid {pid} of the role {role}, application {:?}",
            self.application.as_deref().unwrap_or_default()
        )
    }
}

async fn holders(client: &Object, fences: &[i64]) -> Result<Vec<Holder>, tokio_postgres::Error> {
    let rows = client.query_typed(HOLDERS, &[(&fences, Type::INT8_ARRAY)]).await?;
    let holder = |row: &tokio_postgres::Row| Holder {
        pid: row.get(0),
        transaction: row.get(1),
        role: row.get(2),
        application: row.get(3),
        gid: row.get(4),
    };
    Ok(rows.iter().map(holder).collect())
}

/// The server may refuse this for one session and not for others. So a refusal is only logged.
async fn signal(client: &Object, sql: &str, holder: &Holder) {
    let Some(pid) = holder.pid else { return };
    let values: [(&(dyn ToSql + Sync), Type); 2] = [(&pid, Type::INT4), (&holder.transaction, Type::TEXT)];
    if let Err(error) = client.query_typed(sql, &values).await {
        let why = error_text(&error);
        tracing::warn!(%holder, error = why, "a transaction that holds a fence was not ended");
    }
}
