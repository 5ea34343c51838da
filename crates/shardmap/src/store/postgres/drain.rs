//! Ends the transactions on keys that go offline, and no others.
//!
//! A change that takes keys away closes their fences (`close_fences` in `fence.sql`), which waits for the transactions
//! that hold them. New transactions on the keys queue behind this wait. So it is a short one: if a fence is still held after
//! [`STEP`], the change steps back behind a savepoint, lets the others pass, and tries again after [`PAUSE`].
//!
//! To close a fence takes one of the locks that all transactions of the server share. So if the fences are many, the keys are
//! first refused, in a transaction of its own, and the next transaction takes the locks of a few fences at a time, and gives
//! them back (`pass_fences`): a fence that was free once stays free.
//!
//! Between two steps, a second connection looks for the holders, cancels their statements, and after a grace period ends
//! their sessions, because a session that is idle inside a transaction has no statement to cancel. A session outside a
//! transaction holds no fence. It stays, and its next transaction is refused.
//!
//! Between the look at the locks and the signal, a session can end its transaction and begin another one. Then the
//! new transaction is cancelled, and its client tries it again. This can happen only within microseconds on the
//! server.

use std::collections::BTreeSet;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::time::{Instant, sleep};
use tokio_postgres::types::{ToSql, Type};

use super::{PostgresDatabase, PostgresTx, error_text};
use crate::limits::{FENCES_CLOSED_AT_ONCE_MAX, LOCK_TIMEOUT};
use crate::store::{Drain, Failure, StoreError, Value};

/// How long one attempt waits for the transactions that hold a fence. New ones wait behind it.
const STEP: Duration = Duration::from_millis(50);
/// The time between two attempts, in which new transactions pass.
const PAUSE: Duration = Duration::from_millis(50);

const CLOSE: &str = "select __shard_management.close_fences($1, $2)";
/// The transactions that hold one of the fences, as transactions on the keys do, or as any role can that takes the
/// advisory lock by its number. Every role may read this: `pg_stat_activity` hides the time at which
/// a transaction of another role began, but `pg_locks` has the number of the transaction. A prepared transaction has no
/// session. Its name is found by the lock on its own id.
const HOLDERS: &str = "select l.pid, l.virtualtransaction, a.usename::text, a.application_name,
        (select min(p.gid) from pg_locks t join pg_prepared_xacts p on p.transaction = t.transactionid
            where t.pid is null and t.locktype = 'transactionid' and t.virtualtransaction = l.virtualtransaction)
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.classid = 1380469828 and l.objsubid = 2 and l.granted
        and l.database = (select oid from pg_database where datname = current_database())
        and l.objid in (select (fence & 2147483647)::int::oid from unnest($1::bigint[]) fence)";
/// Each signal looks again whether the transaction still holds a fence.
const CANCEL: &str =
    "select pg_cancel_backend(l.pid) from pg_locks l where l.pid = $1 and l.virtualtransaction = $2
    and l.locktype = 'advisory' and l.classid = 1380469828 limit 1";
const TERMINATE: &str = "select pg_terminate_backend(l.pid) from pg_locks l where l.pid = $1
    and l.virtualtransaction = $2 and l.locktype = 'advisory' and l.classid = 1380469828 limit 1";

/// Waits until no transaction holds one of the fences, and keeps others from taking them before this transaction ends.
///
/// To end transactions, this role needs the right to signal them: as a superuser, as the same role, or as a member of
/// `pg_signal_backend`. Without it, the holders are waited for, until [`LOCK_TIMEOUT`] is over. Then the error is
/// [`Failure::NotDrained`], and names them.
pub(super) async fn close_fences(
    tx: &mut PostgresTx,
    fences: &[i64],
    drain: Drain,
) -> Result<(), StoreError> {
    if fences.is_empty() {
        return Ok(());
    }
    Waiting::new(fences, drain).until(tx, Attempt::Close(fences)).await
}

/// Waits until each transaction has ended that held one of the fences when the wait began. Takes the locks of a few fences at
/// a time, and gives them back. So the caller makes sure that no transaction can enter the keys any more.
pub(super) async fn pass_fences(tx: &mut PostgresTx, fences: &[i64], drain: Drain) -> Result<(), StoreError> {
    let mut waiting = Waiting::new(fences, drain);
    for few in fences.chunks(FENCES_CLOSED_AT_ONCE_MAX) {
        waiting.until(tx, Attempt::Pass(few)).await?;
    }
    Ok(())
}

/// Changes rows which transactions that hold one of the fences may have locked: they are ended or waited for, as those that
/// hold a fence.
pub(super) async fn write_past(
    tx: &mut PostgresTx,
    sql: &str,
    values: &[Value],
    fences: &[i64],
    drain: Drain,
) -> Result<(), StoreError> {
    Waiting::new(fences, drain).until(tx, Attempt::Write(sql, values)).await
}

/// What waits for the transactions inside.
#[derive(Clone, Copy)]
enum Attempt<'a> {
    /// Takes the locks of the fences.
    Close(&'a [i64]),
    /// Takes the locks of the fences, and gives them back.
    Pass(&'a [i64]),
    /// Runs a statement, which waits for rows.
    Write(&'a str, &'a [Value]),
}

impl Attempt<'_> {
    /// One attempt. If it fails, nothing is locked, also none of what was free.
    async fn once(self, tx: &mut PostgresTx) -> Result<bool, StoreError> {
        let step_ms = i64::try_from(STEP.as_millis()).unwrap_or(i64::MAX);
        tx.batch("savepoint closing").await?;
        let done = match self {
            Self::Close(fences) | Self::Pass(fences) => {
                tx.execute(CLOSE, &[Value::from(fences), Value::from(step_ms)]).await
            }
            Self::Write(sql, values) => {
                tx.batch(&format!("set local lock_timeout = {step_ms}")).await?;
                tx.execute(sql, values).await
            }
        };
        let (ends, is_done) = match (done, self) {
            (Ok(_), Self::Close(_)) => ("", true),
            (Ok(_), Self::Pass(_)) => (BACK, true),
            (Ok(_), Self::Write(..)) => {
                let lock_timeout = format!("set local lock_timeout = {}", LOCK_TIMEOUT.as_millis());
                tx.batch(&lock_timeout).await?;
                ("", true)
            }
            (Err(error), _) if error.failure == Failure::Busy => (BACK, false),
            (Err(error), _) => return Err(error),
        };
        tx.batch(&format!("{ends}release savepoint closing")).await?;
        Ok(is_done)
    }
}

/// Gives back what was locked since the savepoint.
const BACK: &str = "rollback to savepoint closing; ";

/// The wait for the transactions that hold some fences. All of them are asked to end at its beginning.
struct Waiting<'f> {
    fences: &'f [i64],
    drain: Drain,
    began: Instant,
    cancelled: BTreeSet<Holder>,
}

impl<'f> Waiting<'f> {
    fn new(fences: &'f [i64], drain: Drain) -> Self {
        Self { fences, drain, began: Instant::now(), cancelled: BTreeSet::new() }
    }

    /// Tries until it is done, or until the transactions have had their time.
    async fn until(&mut self, tx: &mut PostgresTx, attempt: Attempt<'_>) -> Result<(), StoreError> {
        let wait = match self.drain {
            // A transaction that was ended needs time to undo its work.
            Drain::End(grace) => grace + LOCK_TIMEOUT,
            Drain::GiveUp(wait) => wait,
            Drain::Leave => LOCK_TIMEOUT,
        };
        while !attempt.once(tx).await? {
            let elapsed = self.began.elapsed();
            if elapsed >= wait {
                return Err(not_drained(&tx.database, self.fences, self.drain).await);
            }
            if let Drain::End(grace) = self.drain
                && let Err(error) =
                    end_holders(&tx.database, self.fences, elapsed >= grace, &mut self.cancelled).await
            {
                let fences = self.fences.len();
                tracing::warn!(fences, %error, "transactions that hold a fence can't be ended; waiting for them");
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }
}

/// The error for fences that stayed held. It names the transactions that hold them.
async fn not_drained(database: &PostgresDatabase, fences: &[i64], drain: Drain) -> StoreError {
    let found = match database.errands.get().await {
        Ok(client) => holders(&client, fences).await.unwrap_or_default(),
        Err(_) => Vec::new(),
    };
    let names = match found.as_slice() {
        [] => "others came again and again".to_owned(),
        found => found.iter().map(Holder::to_string).collect::<Vec<_>>().join("; "),
    };
    let advice = match drain {
        Drain::End(_) => "End them, or give this role the right to do so (grant pg_signal_backend)",
        Drain::GiveUp(_) | Drain::Leave => "End them, wait longer, or let this change end them",
    };
    let text = format!("transactions on the keys did not end: {names}. {advice}");
    StoreError::new(&database.location, Failure::NotDrained, text)
}

/// Cancels the statements of the holders, each once, or ends their sessions.
async fn end_holders(
    database: &PostgresDatabase,
    fences: &[i64],
    grace_is_over: bool,
    cancelled: &mut BTreeSet<Holder>,
) -> Result<(), StoreError> {
    let client = database.errands.get().await.map_err(|error| database.unreachable(&error))?;
    for holder in holders(&client, fences).await.map_err(|error| database.failed(&error))? {
        if grace_is_over {
            signal(&client, TERMINATE, &holder).await;
        } else if cancelled.insert(holder.clone()) {
            signal(&client, CANCEL, &holder).await;
        }
    }
    Ok(())
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
