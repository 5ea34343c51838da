//! Writing: a write is judged on the newest rows, put into the log as one batch, and answered when it is durable.
//!
//! The order of the steps matters; see the picture in [`super`]. Three things are easy to get wrong:
//!
//! * **A refusal waits too.** The answer "it exists already" is about a row that may not be durable yet. If
//!   a crash took that row back, the client would have heard of a row that never existed.
//! * **A request that gives up does not unlock early.** The step that puts the batch into the log runs to
//!   its end even if the request is dropped; see [`crate::run_to_end`].
//! * **An unknown outcome is not a failure.** From the moment the batch is on its way, a passed deadline or a
//!   closed database means [`WriteError::OutcomeUnknown`]. A refusal has no batch: if it cannot be
//!   sent in time, the write was still not made, and the client may safely ask again.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::future::BoxFuture;
use rangehold_map::key::is_of_objects;
use rangehold_map::{PartitionPrefix, Timestamp};
use slatedb::{WriteBatch, WriteHandle};
use tokio::time::{Instant, timeout, timeout_at};

use super::cache::Change;
use super::flush::Ticket;
use super::gate::{Admitted, TurnedAway};
use super::request::{Judge, RowChanges, WriteRequest};
use super::stripes::{Newest, StripeGuard, Stripes};
use super::timestamps::{Grain, Stamp};
use super::{Opening, Range, meta};
use crate::error::{ReadError, Reason, WriteError};
use crate::limits::OWN_WRITE_WAITS_MAX;
use crate::run_to_end::RunToEnd;
use crate::store::Space;

/// A batch that is to enter the log.
struct Batch {
    batch: WriteBatch,
    /// The rows in it that clients read.
    rows: Vec<Change>,
    /// About how many bytes it takes.
    bytes: u64,
}

/// What a write holds on its way into the log.
struct Entrance {
    /// Its turn among the writes of its stripe.
    guard: StripeGuard,
    /// A freeze waits for its entry; closing the range waits for its place.
    admitted: Admitted,
}

impl Range {
    /// See [`crate::PartitionServer::write`].
    pub(crate) async fn write(
        &self,
        request: &WriteRequest<'_>,
        judge: &mut Judge<'_>,
    ) -> Result<Timestamp, WriteError<()>> {
        let WriteRequest { partition, keys, deadline, .. } = *request;
        self.check_disk(request.space)?;
        if is_of_objects(partition.as_bytes()) {
            let marked = self.store.mark_objects();
            marked.map_err(|error| WriteError::Unavailable(Reason::failed(error)))?;
        }
        let admitted = self.gate.enter(request.bytes, deadline).await.map_err(|turned| match turned {
            TurnedAway::Elsewhere => WriteError::NotOwned,
            TurnedAway::Busy(why) => WriteError::Busy(why),
        })?;
        let stripe = Stripes::of(partition);
        let guard = in_time(deadline, self.stripes.lock(stripe)).await?;
        let opening = self.open_now()?;
        if self.lease.has_ended() {
            return Err(WriteError::NotOwned);
        }
        if self.dropped.covers(partition.as_bytes()) {
            return Err(WriteError::TableDropped);
        }
        if !request.of_closed && self.closed.covers(partition.as_bytes()) {
            return Err(WriteError::BucketClosed);
        }
        if let Some(fence) = request.seen.and_then(|seen| self.fences.refuses(partition.as_bytes(), seen)) {
            return Err(WriteError::Fenced(fence));
        }
        let current = in_time(deadline, opening.newest_rows(partition, keys)).await??;
        let stamp = self.next_stamp(partition);
        match judge(&current, stamp.at) {
            Err(()) => {
                let newest = *guard;
                let turn = keys
                    .first()
                    .zip(request.tried_again_by)
                    .and_then(|(key, client)| self.turns.enter(key, client, opening.rows.is_changing(key)));
                drop((guard, admitted.entry));
                self.counts.refusals.fetch_add(1, Ordering::Relaxed);
                self.meter.judged(keys);
                wait_until_durable(&opening, newest, deadline).await?;
                if let Some(turn) = turn {
                    drop(admitted.place);
                    turn.come().await;
                }
                // A refusal tells the client something about the rows that were read, so it is checked like a read.
                self.still_serves(&opening)?;
                Err(WriteError::Refused(()))
            }
            Ok(changes) if changes.is_empty() => {
                let newest = *guard;
                drop((guard, admitted.entry));
                wait_until_durable(&opening, newest, deadline).await?;
                self.still_serves(&opening)?;
                Ok(stamp.at)
            }
            Ok(changes) => {
                self.meter.wrote(&changes);
                let batch = self.batch(partition, changes, stripe, stamp);
                self.commit(opening, Entrance { guard, admitted }, batch, stamp, request).await
            }
        }
    }

    /// Refuses a write if the disk has too little space.
    fn check_disk(&self, space: Space) -> Result<(), WriteError<()>> {
        self.store.disk().has_room_for(space).map_err(|reserve_bytes| {
            let root = self.store.root();
            WriteError::DiskFull {
                root: root.map_or_else(String::new, |root| root.display().to_string()),
                reserve_bytes,
            }
        })
    }

    fn next_stamp(&self, partition: &PartitionPrefix) -> Stamp {
        self.high_water.lock().next(self.databases.clock.now(), Grain::of(partition))
    }

    /// The rows of one batch, with the reservation that they have to carry.
    fn batch(&self, partition: &PartitionPrefix, changes: RowChanges, stripe: u16, stamp: Stamp) -> Batch {
        let mut batch = WriteBatch::new();
        let mut rows = Vec::with_capacity(changes.len());
        let mut bytes = 0;
        if let Some(reservation) = stamp.reserve {
            batch.put(meta::reservation_key(stripe), meta::encode_time(reservation));
        }
        for (key, value) in changes {
            // The lock protects this partition only, and the database below would accept any key.
            assert!(
                key.starts_with(partition.as_bytes()) && self.identity.keys.contains(&key),
                "a write of a partition may change that partition's rows only"
            );
            bytes += key.len() as u64 + value.as_ref().map_or(0, |value| value.len() as u64);
            let (key, value) = (Bytes::from(key), value.map(Bytes::from));
            match &value {
                Some(value) => batch.put_bytes(key.clone(), value.clone()),
                None => batch.delete(&key),
            }
            rows.push((key, value));
        }
        Batch { batch, rows, bytes }
    }

    /// Puts the batch into the log, releases the stripe, and waits until the batch is durable.
    async fn commit(
        &self,
        opening: Arc<Opening>,
        entrance: Entrance,
        batch: Batch,
        stamp: Stamp,
        request: &WriteRequest<'_>,
    ) -> Result<Timestamp, WriteError<()>> {
        let keys: Vec<Bytes> = batch.rows.iter().map(|(key, _)| key.clone()).collect();
        let WriteRequest { deadline, tried_again_by: winner, .. } = *request;
        let entering = RunToEnd::new(enter(Arc::clone(&opening), batch, Some(entrance)));
        let durable = async {
            let (ticket, sequence) = entering.await.map_err(WriteError::OutcomeUnknown)?;
            settled(ticket).await.map_err(WriteError::OutcomeUnknown)?;
            // A read that comes after the answer must see the rows.
            opening.rows.durable(sequence);
            self.turns.next(keys.iter().map(|key| key.as_ref()), winner);
            Ok::<_, WriteError<()>>(())
        };
        match timeout_at(deadline, durable).await {
            Ok(result) => result?,
            Err(_) => {
                let why = Reason::Found("the deadline passed before it was durable");
                return Err(WriteError::OutcomeUnknown(why));
            }
        }
        if let Some(reservation) = stamp.reserve {
            self.high_water.lock().reserved_durably(reservation);
        }
        // The epoch should have kept the write out if the range was given to another server. If it did not, the row
        // is in a database that is served no more, and must not be acknowledged.
        if self.lease.has_ended() {
            return Err(WriteError::OutcomeUnknown(Reason::Found(
                "the lease of the server was ended meanwhile",
            )));
        }
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        Ok(stamp.at)
    }

    /// Writes rows that no client's write can touch (meta rows) and waits until they are durable. The gate holds or turns away
    /// this write like any other. No client reads these rows, so the cache is not told of them.
    pub(super) async fn write_own(&self, batch: WriteBatch) -> Result<(), ReadError> {
        self.write_gated(Batch { batch, rows: Vec::new(), bytes: 0 }).await
    }

    /// The same for rows of a dropped table, which it deletes. The cache is told, so that no scan takes them from sorted
    /// files.
    pub(super) async fn delete_own(&self, keys: &[Bytes]) -> Result<(), ReadError> {
        let mut batch = WriteBatch::new();
        keys.iter().for_each(|key| batch.delete(key));
        let rows = keys.iter().map(|key| (key.clone(), None)).collect();
        self.write_gated(Batch { batch, rows, bytes: 0 }).await
    }

    async fn write_gated(&self, batch: Batch) -> Result<(), ReadError> {
        let deadline = Instant::now() + OWN_WRITE_WAITS_MAX;
        let _admitted = self.gate.enter(0, deadline).await.map_err(|turned| match turned {
            TurnedAway::Elsewhere => ReadError::NotOwned,
            TurnedAway::Busy(why) => ReadError::Unavailable(Reason::Found(why)),
        })?;
        self.write_now(batch).await
    }

    /// Like [`Range::write_own`], but past the gate: for the caller that has frozen the range.
    pub(super) async fn write_ungated(&self, batch: WriteBatch) -> Result<(), ReadError> {
        self.write_now(Batch { batch, rows: Vec::new(), bytes: 0 }).await
    }

    async fn write_now(&self, batch: Batch) -> Result<(), ReadError> {
        let opening = self.open_now()?;
        let written = async {
            let (ticket, _) = RunToEnd::new(enter(opening, batch, None)).await?;
            settled(ticket).await
        };
        // A change of the range waits for this. It must come to its end also on a full disk.
        let written = timeout(OWN_WRITE_WAITS_MAX, written).await;
        let late = Reason::Found("its own rows did not become durable in time (a full disk?)");
        written.unwrap_or(Err(late)).map_err(ReadError::Unavailable)
    }
}

/// Waits for a step that comes before the batch enters the log.
async fn in_time<E, T>(deadline: Instant, step: impl Future<Output = T>) -> Result<T, WriteError<E>> {
    timeout_at(deadline, step)
        .await
        .map_err(|_| WriteError::Busy("the deadline passed while the write waited for its turn"))
}

/// Stands for the sequence number of rows whose write failed.
const NEVER_DURABLE: u64 = u64::MAX;

/// Puts a batch into the log and takes a ticket for its flush. The write keeps its stripe and its entry until
/// then, and its place until it is durable.
fn enter(
    opening: Arc<Opening>,
    Batch { batch, rows, bytes }: Batch,
    entrance: Option<Entrance>,
) -> BoxFuture<'static, Result<(Ticket, u64), Reason>> {
    Box::pin(async move {
        let number = opening.rows.announce(rows);
        let written = opening.db.write(batch).await;
        match &written {
            Ok(handle) => opening.rows.entered(number, handle.seqnum()),
            Err(_) => opening.rows.shut(),
        }
        let mut admitted = None;
        if let Some(Entrance { guard: mut newest, admitted: let_in }) = entrance {
            admitted = Some(let_in);
            // A write that fails closes the database. Before the database is closed, the next write may be shown the
            // rows of the failed one. That next write then waits until the database is closed.
            let sequence = written.as_ref().map_or(NEVER_DURABLE, WriteHandle::seqnum);
            *newest = Some(Newest { opening: opening.number, sequence });
        }
        let handle = written.map_err(Reason::failed)?;
        opening.unflushed.add(handle.seqnum(), bytes);
        // Take the ticket before giving the entry back: a freeze then takes its own ticket later, and that one is not
        // settled before this one.
        let (entry, place) = admitted.map(|Admitted { entry, place }| (entry, place)).unzip();
        let ticket = opening.flusher.ticket(place);
        drop(entry);
        Ok((ticket, handle.seqnum()))
    })
}

async fn settled(ticket: Ticket) -> Result<(), Reason> {
    ticket.await.unwrap_or(Err(Reason::Found("the range was given up")))
}

/// Waits until the newest row that went through a stripe is durable. The write of that row asks for the flush.
async fn wait_until_durable<E>(
    opening: &Opening,
    newest: Option<Newest>,
    deadline: Instant,
) -> Result<(), WriteError<E>> {
    // Rows that an earlier opening wrote were either durable when this opening began, or are gone.
    let Some(newest) = newest.filter(|newest| newest.opening == opening.number) else {
        return Ok(());
    };
    if opening.durable_sequence() >= newest.sequence {
        opening.rows.durable(newest.sequence);
        return Ok(());
    }
    let mut status = opening.status.clone();
    let reached = status.wait_for(|s| s.durable_seq >= newest.sequence || s.close_reason.is_some());
    // The status is not kept: while it is borrowed, the database cannot change it.
    let reached = timeout_at(deadline, reached).await.map(|seen| seen.map(|status| status.durable_seq));
    match reached {
        Ok(Ok(sequence)) if sequence >= newest.sequence => {
            // A read that comes after the refusal must see the rows.
            opening.rows.durable(newest.sequence);
            Ok(())
        }
        Ok(_) => Err(WriteError::Unavailable(Reason::Found(
            "its database closed before the rows were durable on which the write was judged",
        ))),
        // The outcome is known, since nothing was put into the log. So this is not `OutcomeUnknown`.
        Err(_) => Err(WriteError::Busy(
            "the deadline passed before the rows were durable on which the write was judged",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn nobody_is_judged_on_rows_whose_write_failed() {
        let range = Range::in_memory().await;
        let opening = range.open_now().unwrap();
        opening.db.close().await.unwrap();
        let mut batch = WriteBatch::new();
        batch.put(b"\x20key", b"value");
        let deadline = Instant::now() + Duration::from_secs(5);
        let guard = range.stripes.lock(7).await;
        let entrance = Entrance { guard, admitted: range.gate.enter(0, deadline).await.unwrap() };
        let batch = Batch { batch, rows: Vec::new(), bytes: 0 };
        assert!(enter(Arc::clone(&opening), batch, Some(entrance)).await.is_err());
        let newest = *range.stripes.lock(7).await;
        let told = wait_until_durable::<()>(&opening, newest, deadline).await;
        assert!(matches!(told, Err(WriteError::Unavailable(_))), "{told:?}");
    }
}
