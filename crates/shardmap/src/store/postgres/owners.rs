//! Ends the sessions of an owner whose operation another process has taken over.
//!
//! A process that stops inside a transaction without dying (SIGSTOP, a paused machine, a cut cable) keeps its locks. The
//! server ends such a session by itself after the lease of that process. The process that takes the operation over need
//! not wait for this. Each step of an operation holds a shared advisory lock, whose number is made from the operation
//! and the epoch of its owner: its [`Mark`]. By this lock the sessions of the former owner are found, also behind a
//! pooler.

use uuid::Uuid;

use super::PostgresTx;
use crate::store::{StoreError, Value};

/// Says in a database which operation a transaction belongs to, and which owner of the operation began it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(i32);

impl Mark {
    /// Two of them are alike once in two billion. Then the step of another operation is ended, and tried again.
    pub(crate) fn new(operation: Uuid, epoch: i64) -> Self {
        let number = (operation.as_u64_pair().1 ^ epoch.unsigned_abs()) & 0x7fff_ffff;
        Self(i32::try_from(number).expect("it has 31 bits"))
    }

    /// The statement with which a transaction takes the lock. The class of these locks is used for nothing else.
    pub(super) fn sql(self) -> String {
        format!("select pg_advisory_xact_lock_shared(1380469829, {})", self.0)
    }
}

/// The sessions of an owner. Every role may read this.
const SESSIONS: &str = "select l.pid::bigint, l.virtualtransaction, coalesce(a.usename::text, 'unknown')
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.classid = 1380469829 and l.objid::bigint = $1 and l.objsubid = 2
        and l.pid <> pg_backend_pid()
        and l.database = (select oid from pg_database where datname = current_database())";
/// Looks again whether the session is still in the same transaction.
const TERMINATE: &str = "select pg_terminate_backend(l.pid) from pg_locks l where l.pid = $1
    and l.virtualtransaction = $2 and l.locktype = 'advisory' and l.classid = 1380469829 limit 1";

/// Ends the sessions of an owner. Returns the names of those that this role may not end.
pub(super) async fn end_sessions(tx: &mut PostgresTx, of: Mark) -> Result<Vec<String>, StoreError> {
    let mut left = Vec::new();
    for mut row in tx.query(SESSIONS, &[i64::from(of.0).into()]).await? {
        let (pid, transaction, role) = (row.int()?, row.text()?, row.text()?);
        // A refusal undoes only what came after the savepoint.
        tx.batch("savepoint ending").await?;
        let values: [Value; 2] = [pid.into(), transaction.as_str().into()];
        match tx.execute(TERMINATE, &values).await {
            Ok(_) => tracing::info!(pid, role, "the session of an owner that was given up is ended"),
            Err(error) => {
                tracing::warn!(pid, role, %error, "the session of an owner that was given up is not ended");
                left.push(format!("pid {pid} of the role {role}"));
                tx.batch("rollback to savepoint ending").await?;
            }
        }
        tx.batch("release savepoint ending").await?;
    }
    Ok(left)
}
