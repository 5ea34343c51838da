//! The gate before a range's writes. It is open; or held, while the range changes hands; or sealed, once another
//! server may have opened the database, or the range may be retired; or gone, once the range is served elsewhere.
//!
//! ```text
//!   Open  --freeze-->  Held  --drop--> Open         the change was given up before it counted
//!                      Held  --seal--> Sealed       the range must not go on as it is
//!                                      Sealed  --open-->  Open      the change was undone: it may go on
//!                      Held or         Sealed  --pass_on--> Gone    the range is elsewhere: ask there
//! ```
//!
//! A write gets two things at the gate. It keeps its *entry* until its rows are in the log, or until it is
//! judged and refused. It keeps its *place* until the rows are durable. A freeze holds the gate and then takes
//! every entry. When it has them all, the log holds every write that was let in, and no further write can come.
//! A freeze does not wait until those writes are durable: the caller has to save the range anyway, and the same
//! flush then saves the last rows of the range and the rows of those writes. A held write has not entered the
//! engine. Once the gate is `Gone`, the write is answered [`TurnedAway::Elsewhere`], and its sender may send it
//! again to the new owner.
//!
//! Held writes have limits: their number for each range, their bytes for each range and for the process, and the
//! time for each write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout, timeout_at};

use crate::limits::{
    HELD_BYTES_MAX, HELD_BYTES_OF_PROCESS_MAX, HELD_FOR_MAX, HELD_WRITES_MAX, WRITES_IN_FLIGHT_MAX,
};

/// All entries, or all places: a few thousand.
const ALL: u32 = WRITES_IN_FLIGHT_MAX as u32;

/// The state of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passage {
    Open,
    Held,
    Sealed,
    Gone,
}

impl Passage {
    /// Whether writes wait, because it is not yet known where they go.
    const fn waits(self) -> bool {
        matches!(self, Self::Held | Self::Sealed)
    }
}

/// Why a write was turned away. It has not entered the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnedAway {
    /// The range is served elsewhere now.
    Elsewhere,
    /// Too many writes are under way or held, or this one was held for too long.
    Busy(&'static str),
}

/// Bytes of all held writes of the process.
#[derive(Debug, Default)]
pub(crate) struct HeldBytes(AtomicU64);

/// See the module.
#[derive(Debug)]
pub(crate) struct Gate {
    passage: watch::Sender<Passage>,
    entries: Arc<Semaphore>,
    places: Arc<Semaphore>,
    held: AtomicUsize,
    held_bytes: AtomicU64,
    of_process: Arc<HeldBytes>,
}

/// A write that was let in.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// Given back when the write is in the log, or when it is known that it will not be.
    pub(crate) entry: OwnedSemaphorePermit,
    /// Given back when the rows that it wrote are durable or, if it was refused, the rows that it was refused for.
    pub(crate) place: OwnedSemaphorePermit,
}

/// A held gate, with no write on its way to the log any more. Dropping it opens the gate again, unless it
/// was [`Frozen::seal`]ed or the gate is gone.
#[derive(Debug)]
pub(crate) struct Frozen {
    gate: Arc<Gate>,
    entries: Option<OwnedSemaphorePermit>,
    since: Instant,
}

impl Gate {
    pub(crate) fn new(of_process: Arc<HeldBytes>) -> Self {
        Self {
            passage: watch::Sender::new(Passage::Open),
            entries: Arc::new(Semaphore::new(WRITES_IN_FLIGHT_MAX)),
            places: Arc::new(Semaphore::new(WRITES_IN_FLIGHT_MAX)),
            held: AtomicUsize::new(0),
            held_bytes: AtomicU64::new(0),
            of_process,
        }
    }

    /// Lets a write of `bytes` in. It waits while the gate is held, up to [`HELD_FOR_MAX`] and the write's
    /// own deadline.
    pub(crate) async fn enter(&self, bytes: u64, deadline: Instant) -> Result<Admitted, TurnedAway> {
        let mut until = None;
        loop {
            let passage = *self.passage.borrow();
            match passage {
                Passage::Gone => return Err(TurnedAway::Elsewhere),
                Passage::Open => match self.admit() {
                    Some(admitted) => return Ok(admitted),
                    // A freeze holds the gate first and then takes the entries. So look at the gate again.
                    None if *self.passage.borrow() == Passage::Open => {
                        return Err(TurnedAway::Busy("too many writes are under way"));
                    }
                    None => {}
                },
                Passage::Held | Passage::Sealed => {
                    let until = *until.get_or_insert_with(|| deadline.min(Instant::now() + HELD_FOR_MAX));
                    self.wait_held(bytes, until).await?;
                }
            }
        }
    }

    fn admit(&self) -> Option<Admitted> {
        let take = |of: &Arc<Semaphore>| Arc::clone(of).try_acquire_owned().ok();
        Some(Admitted { entry: take(&self.entries)?, place: take(&self.places)? })
    }

    async fn wait_held(&self, bytes: u64, until: Instant) -> Result<(), TurnedAway> {
        let _held = Held::begin(self, bytes)?;
        let mut passage = self.passage.subscribe();
        let released = timeout_at(until, passage.wait_for(|&passage| !passage.waits())).await.is_ok();
        let why = "the range is changing hands, which took longer than a write is held";
        released.then_some(()).ok_or(TurnedAway::Busy(why))
    }

    /// Holds the gate and waits until no write is on its way to the log; gives up after `within`. `None` also if the gate is
    /// not open.
    pub(crate) async fn freeze(self: &Arc<Self>, within: Duration) -> Option<Frozen> {
        let since = Instant::now();
        if !self.turn(Passage::Open, Passage::Held) {
            return None;
        }
        // It opens the gate again if this ends without the entries, also if the caller gives up.
        let mut frozen = Frozen { gate: Arc::clone(self), entries: None, since };
        let entries = timeout(within, Arc::clone(&self.entries).acquire_many_owned(ALL)).await;
        frozen.entries = Some(entries.ok()?.ok()?);
        Some(frozen)
    }

    /// Whether new writes are held.
    pub(crate) fn is_held(&self) -> bool {
        self.passage.borrow().waits()
    }

    /// Whether new writes are held, and the range must not take them as it is.
    pub(crate) fn is_sealed(&self) -> bool {
        *self.passage.borrow() == Passage::Sealed
    }

    /// Turns every write away from now on, also those that are held.
    pub(crate) fn close(&self) {
        self.passage.send_replace(Passage::Gone);
    }

    /// Refuses new writes, and waits until no write is under way and the range is not frozen. False after `within`.
    /// For closing a range for good.
    pub(crate) async fn drain(&self, within: Duration) -> bool {
        self.close();
        let all = async {
            let _entries = self.entries.acquire_many(ALL).await;
            let _places = self.places.acquire_many(ALL).await;
        };
        timeout(within, all).await.is_ok()
    }

    /// False if the gate was not in the state `from`. Then it stays as it is.
    fn turn(&self, from: Passage, to: Passage) -> bool {
        self.passage.send_if_modified(|passage| {
            let turns = *passage == from;
            if turns {
                *passage = to;
            }
            turns
        })
    }
}

impl Frozen {
    /// Waits until every write that was let in before is durable, or is known not to be durable; false after
    /// `within`. Before that, the database must not be closed: those writes still use it.
    pub(crate) async fn settled(&self, within: Duration) -> bool {
        timeout(within, self.gate.places.acquire_many(ALL)).await.is_ok()
    }

    /// From here on dropping it does not open the gate, because the target of a move may have opened the database, or the
    /// range may be retired.
    pub(crate) fn seal(&mut self) {
        self.gate.turn(Passage::Held, Passage::Sealed);
    }

    /// Takes the seal back. Does nothing if the gate is gone.
    pub(crate) fn unseal(&mut self) {
        self.gate.turn(Passage::Sealed, Passage::Held);
    }

    /// The range is served elsewhere now, and the held writes may go there. Returns how long the gate was held.
    pub(crate) fn pass_on(self) -> Duration {
        self.gate.close();
        self.since.elapsed()
    }

    /// Ends the freeze: the range is served here as before.
    pub(crate) fn open(mut self) {
        self.unseal();
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // First the entries: a write that finds the gate open must not find it without entries.
        self.entries = None;
        self.gate.turn(Passage::Held, Passage::Open);
    }
}

/// One held write, counted for as long as it lives.
struct Held<'a> {
    gate: &'a Gate,
    bytes: u64,
}

impl<'a> Held<'a> {
    fn begin(gate: &'a Gate, bytes: u64) -> Result<Self, TurnedAway> {
        let held = Self { gate, bytes };
        // Count first: at the limit, two writes that come at once are then not both let in.
        let writes = gate.held.fetch_add(1, Ordering::Relaxed) + 1;
        let range = gate.held_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let process = gate.of_process.0.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if writes > HELD_WRITES_MAX || range > HELD_BYTES_MAX || process > HELD_BYTES_OF_PROCESS_MAX {
            return Err(TurnedAway::Busy("the range is changing hands, and too many writes wait for it"));
        }
        Ok(held)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.gate.held.fetch_sub(1, Ordering::Relaxed);
        self.gate.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.gate.of_process.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    #[tokio::test(start_paused = true)]
    async fn a_freeze_begins_at_an_open_gate_only_and_leaves_it_open_if_it_is_dropped() {
        let gate = Arc::new(Gate::new(Arc::default()));
        let under_way = gate.enter(1, soon()).await.unwrap();
        drop(timeout(Duration::from_millis(1), gate.freeze(Duration::from_secs(1))).await);
        drop(under_way);
        drop(gate.enter(1, soon()).await.expect("the freeze was dropped"));
        let mut frozen = gate.freeze(Duration::from_secs(1)).await.unwrap();
        frozen.seal();
        assert!(gate.freeze(Duration::from_secs(1)).await.is_none());
        assert!(gate.is_sealed(), "it is sealed as before");
        gate.close();
        assert!(gate.freeze(Duration::from_secs(1)).await.is_none());
        drop(frozen);
        assert_eq!(gate.enter(1, soon()).await.err(), Some(TurnedAway::Elsewhere), "it is gone as before");
    }

    #[tokio::test(start_paused = true)]
    async fn a_held_write_goes_on_where_the_change_ends() {
        for passed_on in [true, false] {
            let gate = Arc::new(Gate::new(Arc::default()));
            let under_way = gate.enter(1, soon()).await.unwrap();
            assert!(gate.freeze(Duration::from_millis(10)).await.is_none(), "a write is under way");
            drop(under_way);
            let frozen = gate.freeze(Duration::from_millis(10)).await.unwrap();
            let held = gate.enter(1, soon());
            let end = async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                assert_eq!(gate.held.load(Ordering::Relaxed), 1);
                if passed_on {
                    frozen.pass_on();
                } else {
                    frozen.open();
                }
            };
            let (held, ()) = tokio::join!(held, end);
            assert_eq!(held.err(), passed_on.then_some(TurnedAway::Elsewhere));
            assert_eq!(gate.held.load(Ordering::Relaxed), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_freeze_waits_for_writes_on_their_way_to_the_log_and_not_for_the_disk() {
        let gate = Arc::new(Gate::new(Arc::default()));
        let Admitted { entry, place } = gate.enter(1, soon()).await.unwrap();
        assert!(gate.freeze(Duration::from_millis(10)).await.is_none(), "a write is on its way to the log");
        drop(entry);
        let frozen = gate.freeze(Duration::from_millis(10)).await.expect("it is in the log");
        assert!(!frozen.settled(Duration::from_millis(10)).await, "it is not durable");
        drop(place);
        assert!(frozen.settled(Duration::from_millis(10)).await);
        assert!(!gate.drain(Duration::from_millis(10)).await, "closing waits for the freeze");
        drop(frozen);
        assert!(gate.drain(Duration::from_millis(10)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_is_bounded_in_time_number_and_bytes() {
        let gate = Arc::new(Gate::new(Arc::default()));
        let mut frozen = gate.freeze(Duration::from_millis(10)).await.unwrap();
        frozen.seal();
        drop(frozen);
        let begun = Instant::now();
        assert!(matches!(gate.enter(1, soon()).await, Err(TurnedAway::Busy(_))), "a sealed freeze stays");
        assert_eq!(begun.elapsed(), HELD_FOR_MAX);
        let begun = Instant::now();
        assert!(matches!(gate.enter(HELD_BYTES_MAX + 1, soon()).await, Err(TurnedAway::Busy(_))));
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let many: Vec<_> = (0..HELD_WRITES_MAX).map(|_| Held::begin(&gate, 1).ok()).collect();
        assert!(many.iter().all(Option::is_some) && Held::begin(&gate, 1).is_err());
    }
}
