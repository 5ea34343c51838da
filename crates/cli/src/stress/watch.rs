//! Looks at the ranges of the service while the peak runs, if the service is one of ours.

use std::sync::Arc;

use anyhow::Result;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::limits::WATCH_EVERY;
use super::seen::Seen;
use crate::admin::{ANSWER_WITHIN, AdminClient, encoded};

/// A look that goes on in the background.
pub(super) struct Watch {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Watch {
    /// Begins to watch the ranges of a table. Fails if there is no admin endpoint, or if its service does not have the table:
    /// then it is another service than the one that is tested.
    pub(super) async fn begin(admin: AdminClient, table: String, begun: Instant) -> Result<Self> {
        let admin = Arc::new(admin);
        let first = {
            let (admin, table) = (admin.clone(), table.clone());
            tokio::task::spawn_blocking(move || last_event(&admin, &table)).await??
        };
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let task = tokio::spawn({
            let seen = seen.clone();
            async move {
                let mut after = first;
                let mut every = tokio::time::interval(WATCH_EVERY);
                loop {
                    every.tick().await;
                    let (admin, table, seen) = (admin.clone(), table.clone(), seen.clone());
                    let looked = tokio::task::spawn_blocking(move || {
                        // A look that fails, because the service is busy, is left out.
                        look(&admin, &table, begun, &seen, after).unwrap_or(after)
                    });
                    after = looked.await.unwrap_or(after);
                }
            }
        });
        Ok(Self { seen, task })
    }

    /// Ends the watch; returns what was seen.
    pub(super) fn end(self) -> Seen {
        self.task.abort();
        self.seen.lock().clone()
    }
}

/// The number of the last event before the peak. Fails if the service does not know the table.
fn last_event(admin: &AdminClient, table: &str) -> Result<u64> {
    admin.get(&format!("/v1/map?range={}", encoded(&format!("{table}/*"))), ANSWER_WITHIN)?;
    let events = admin.get("/v1/events?after=0&wait=0", ANSWER_WITHIN)?;
    let last = events["events"].as_array().and_then(|events| events.last()?["number"].as_u64());
    Ok(last.unwrap_or(0))
}

fn look(admin: &AdminClient, table: &str, begun: Instant, seen: &Mutex<Seen>, after: u64) -> Result<u64> {
    let ranges = admin.get("/v1/ranges", ANSWER_WITHIN)?;
    let events = admin.get(&format!("/v1/events?after={after}&wait=0"), ANSWER_WITHIN)?;
    let at_s = begun.elapsed().as_secs_f64();
    let mut seen = seen.lock();
    seen.ranges(at_s, table, &ranges);
    Ok(seen.events(at_s, &events, after))
}
