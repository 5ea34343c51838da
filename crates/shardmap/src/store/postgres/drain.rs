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
const HOLDERS: &str = "select pid, extract(epoch from began)::text from __shard_management.fence_holders($1)";
const CANCEL: &str = "select pg_cancel_backend(pid) from __shard_management.fence_holders($1)
    where pid = $2 and extract(epoch from began)::text = $3";
const TERMINATE: &str = "select pg_terminate_backend(pid) from __shard_management.fence_holders($1)
    where pid = $2 and extract(epoch from began)::text = $3";

/// Waits until no transaction holds one of the fences, and keeps others from taking them before this
/// transaction ends. With a grace period, it cancels the statements of their holders meanwhile, and ends
/// their sessions after it.
///
/// To end them, this role needs the right to signal them: as a superuser, as the same role, or as a member of
/// `pg_signal_backend`. Without it, the holders are waited for, until the lock timeout is over.
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
    let Some(grace) = grace else {
        return closing.await.map(drop);
    };
    tokio::pin!(closing);
    let closed = tokio::select! {
        biased;
        closed = &mut closing => closed,
        ended = end_holders(&database, fences, grace) => {
            let Err(error) = ended;
            tracing::warn!(?fences, %error, "transactions that hold a fence can't be ended; waiting for them");
            closing.await
        }
    };
    closed.map(drop)
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
                signal(&client, TERMINATE, fences, &holder).await;
            } else if cancelled.insert(holder.clone()) {
                signal(&client, CANCEL, fences, &holder).await;
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

/// A session, and the time at which its transaction began. So the next transaction of the same session is another
/// holder.
type Holder = (i32, Option<String>);

async fn holders(client: &Object, fences: &[i64]) -> Result<Vec<Holder>, tokio_postgres::Error> {
    let rows = client.query_typed(HOLDERS, &[(&fences, Type::INT8_ARRAY)]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// The server may refuse this for one session and not for others. So a refusal is only logged.
async fn signal(client: &Object, sql: &str, fences: &[i64], holder: &Holder) {
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&fences, Type::INT8_ARRAY), (&holder.0, Type::INT4), (&holder.1, Type::TEXT)];
    if let Err(error) = client.query_typed(sql, &values).await {
        tracing::warn!(
            pid = holder.0,
            error = error_text(&error),
            "a transaction that holds a fence was not ended"
        );
    }
}
