//! Clients that put load on a server until they are told to stop.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use rangehold_testkit::client::{self, Client, Credential, Request, Step};

/// Bytes of text in an entity.
const TEXT_BYTES: usize = 200;

/// What the clients of one job were answered.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Entities that were written.
    pub(super) entities: AtomicU64,
    /// Requests that were answered 503 `ServerBusy`.
    pub(super) busy: AtomicU64,
}

/// A batch of so many new entities of one partition.
pub(super) fn inserts(table: &str, partition: &str, rows: impl Iterator<Item = u64>) -> Request {
    let row = client::row([("s", "x".repeat(TEXT_BYTES).into())]);
    let insert =
        |row_key: u64| client::change(Step::Upsert, table, (partition, &format!("{row_key:012}")), &row, "*");
    client::batch(&rows.map(insert).collect::<Vec<_>>())
}

/// Sends batches of `size` entities that `next` makes, one after the other and at most one in `pace`, until
/// `stop`; waits a little after each refusal, as a client that tries again does.
pub(super) fn write(
    address: SocketAddr,
    (size, pace): (u64, Duration),
    answers: &Answers,
    stop: &AtomicBool,
    mut next: impl FnMut(u64) -> Request,
) -> Result<()> {
    let mut client = Client::new(address, Credential::SharedKey);
    let mut begun = Instant::now();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let answer = client.send(next(number), "job")?;
        let text = answer.body;
        // The results of the operations are in the parts of the answer.
        if answer.status == 503 || text.contains("ServerBusy") {
            answers.busy.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(100));
        } else if text.contains("OperationTimedOut") {
            // A range that moves answers so in this profile.
            thread::sleep(Duration::from_millis(100));
        } else if answer.status == 202 && !text.contains("odata.error") {
            answers.entities.fetch_add(size, Ordering::Relaxed);
            number += 1;
        } else {
            bail!("a batch was answered {}: {text}", answer.status);
        }
        thread::sleep(pace.saturating_sub(begun.elapsed()));
        begun = Instant::now();
    }
    Ok(())
}
