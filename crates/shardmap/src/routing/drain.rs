//! Ending the transactions that stand in the way of a change, and no others.
//!
//! Who takes keys away closes their fences (`close_fences` in [`fence.sql`](super::FENCE_SQL)), which waits
//! for the transactions that hold them. So that the wait ends, this cancels what they are doing, at once, and
//! ends their sessions when a grace is over: a session that is idle inside of a transaction does nothing that
//! could be cancelled. A session outside of a transaction holds no fence. It lives, and is refused at its next
//! transaction.
//!
//! Between the look at the locks and the signal a session can end its transaction and begin another; then
//! that one is cancelled, and is tried again by whoever began it. The gap is microseconds on the server.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, Error};

/// How often the holders are looked for: the first cancel is at once, so this is how soon those are
/// found who were about to enter.
const LOOK_EVERY: Duration = Duration::from_millis(25);

const HOLDERS: &str = "SELECT pid, extract(epoch FROM began)::text FROM __shard_management.fence_holders($1)";
const CANCEL: &str = "SELECT pg_cancel_backend(pid) FROM __shard_management.fence_holders($1) \
    WHERE pid = $2 AND extract(epoch FROM began)::text = $3";
const TERMINATE: &str = "SELECT pg_terminate_backend(pid) FROM __shard_management.fence_holders($1) \
    WHERE pid = $2 AND extract(epoch FROM began)::text = $3";

/// Runs `closing`, which waits for `fences`, and meanwhile ends the transactions that hold them: cancels them
/// at once, and after `grace` ends their sessions.
///
/// `other` is a second connection to the same database, with the right to signal the sessions (a
/// superuser, or a member of `pg_signal_backend`). If it lacks that right or breaks, `closing` goes on
/// waiting as long as it is made to: its limit is the lock timeout of its transaction.
pub(crate) async fn while_draining<T>(
    closing: impl Future<Output = T>,
    other: &Client,
    fences: &[i64],
    grace: Duration,
) -> T {
    tokio::pin!(closing);
    tokio::select! {
        biased;
        closed = &mut closing => return closed,
        ended = end_holders(other, fences, grace) => {
            let Err(error) = ended;
            tracing::warn!(?fences, error = %error, "transactions that hold a fence can't be ended; waiting for them");
        }
    }
    closing.await
}

/// Goes on until it is dropped, or can't.
async fn end_holders(
    client: &Client,
    fences: &[i64],
    grace: Duration,
) -> Result<std::convert::Infallible, Error> {
    let began = Instant::now();
    let mut cancelled = BTreeSet::new();
    loop {
        for row in client.query(HOLDERS, &[&fences]).await? {
            let holder: (i32, Option<String>) = (row.get(0), row.get(1));
            let sql = if began.elapsed() >= grace {
                TERMINATE
            } else if cancelled.insert(holder.clone()) {
                CANCEL
            } else {
                continue;
            };
            if let Err(error) = client.query(sql, &[&fences, &holder.0, &holder.1]).await {
                // Of one session it may be refused, and of others not.
                tracing::warn!(pid = holder.0, error = %error, "a transaction that holds a fence could not be ended");
                if error.code().is_none() {
                    return Err(error);
                }
            }
        }
        sleep(LOOK_EVERY).await;
    }
}
