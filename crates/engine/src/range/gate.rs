//! The gate before a range's writes: open, held while the range changes hands, closed behind it.
//!
//! ```text
//!   Open  --freeze-->  Held  --drop-->  Open        the change was given up before it counted
//!                      Held  --pass_on--> Gone      the range is elsewhere: ask there
//! ```
//!
//! A write passes the gate with two things. Its *entry* it keeps until its rows are in the log, or until
//! it is judged and refused; its *place* until the rows are durable. To freeze is to hold the gate and
//! then to take every entry: when that succeeds the log holds all that was let in, and nothing can come.
//! What is still to become durable need not be waited for: whoever freezes has to save the range anyway,
//! and its last rows and those of the writes then go by the same flush. A held write has not entered the
//! engine; once the gate is `Gone` it is answered [`TurnedAway::Elsewhere`], and whoever sent it may send it
//! again to the new owner.
//!
//! What is held is bounded in number, bytes and time, by range and by process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout, timeout_at};

use crate::limits::{
    HELD_BYTES_MAX, HELD_BYTES_OF_PROCESS_MAX, HELD_FOR_MAX, HELD_WRITES_MAX, WRITES_IN_FLIGHT_MAX,
};
use crate::mutants::{self, Mutant};

/// All entries, or all places: a few thousand.
const ALL: u32 = WRITES_IN_FLIGHT_MAX as u32;

/// What a write meets at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passage {
    Open,
    Held,
    Gone,
}

/// Why a write was turned away. It has not entered the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnedAway {
    /// The range is served elsewhere now.
    Elsewhere,
    /// Too much is under way or held, or it was held for too long.
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
    /// Given back when the write has come to the log, or is known not to.
    pub(crate) entry: OwnedSemaphorePermit,
    /// Given back when what it wrote is durable, or what it was refused for.
    pub(crate) place: OwnedSemaphorePermit,
}

/// A held gate with no write behind it on its way to the log. Dropping it opens the gate again, unless it
/// was [`Frozen::seal`]ed.
#[derive(Debug)]
pub(crate) struct Frozen {
    gate: Arc<Gate>,
    _entries: OwnedSemaphorePermit,
    since: Instant,
    sealed: bool,
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
                    // A freeze holds the gate first and then takes the entries: look again.
                    None if *self.passage.borrow() == Passage::Open => {
                        return Err(TurnedAway::Busy("too many writes are under way"));
                    }
                    None => {}
                },
                Passage::Held => {
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
        let released = timeout_at(until, passage.wait_for(|passage| *passage != Passage::Held)).await.is_ok();
        if released && mutants::active(Mutant::HeldDropped) {
            std::future::pending::<()>().await;
        }
        let why = "the range is changing hands, which took longer than a write is held";
        released.then_some(()).ok_or(TurnedAway::Busy(why))
    }

    /// Holds the gate and waits until no write is on its way to the log; gives up after `within`.
    pub(crate) async fn freeze(self: &Arc<Self>, within: Duration) -> Option<Frozen> {
        let since = Instant::now();
        if mutants::active(Mutant::FreezeForgotten) {
            let entry = Arc::clone(&self.entries).try_acquire_owned().ok()?;
            return Some(Frozen { gate: Arc::clone(self), _entries: entry, since, sealed: false });
        }
        self.passage.send_replace(Passage::Held);
        match timeout(within, Arc::clone(&self.entries).acquire_many_owned(ALL)).await {
            Ok(Ok(entries)) => {
                Some(Frozen { gate: Arc::clone(self), _entries: entries, since, sealed: false })
            }
            _ => {
                self.reopen();
                None
            }
        }
    }

    /// Whether new writes are held.
    pub(crate) fn is_held(&self) -> bool {
        *self.passage.borrow() == Passage::Held
    }

    /// Turns everything away from now on, what is held included.
    pub(crate) fn close(&self) {
        self.passage.send_replace(Passage::Gone);
    }

    /// Waits until no write is under way and nobody has frozen the range, refusing new writes; for closing
    /// for good.
    pub(crate) async fn drain(&self, within: Duration) -> bool {
        self.close();
        let all = async {
            let _entries = self.entries.acquire_many(ALL).await;
            let _places = self.places.acquire_many(ALL).await;
        };
        timeout(within, all).await.is_ok()
    }

    fn reopen(&self) {
        self.passage.send_if_modified(|passage| {
            let held = *passage == Passage::Held;
            if held {
                *passage = Passage::Open;
            }
            held
        });
    }
}

impl Frozen {
    /// Waits until every write that was let in before is durable, or is known not to be; false after `within`.
    /// Only then may the database be closed under them.
    pub(crate) async fn settled(&self, within: Duration) -> bool {
        timeout(within, self.gate.places.acquire_many(ALL)).await.is_ok()
    }

    /// From here on only [`Frozen::pass_on`] and [`Frozen::open`] end the freeze: dropping it leaves
    /// the range held, because what the database says by now must not be served as it was.
    pub(crate) fn seal(&mut self) {
        self.sealed = true;
    }

    /// The range is served elsewhere: what is held may go there. Returns how long it was held.
    pub(crate) fn pass_on(mut self) -> Duration {
        self.sealed = true;
        self.gate.close();
        self.since.elapsed()
    }

    /// The range goes on here.
    pub(crate) fn open(mut self) {
        self.sealed = false;
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        if !self.sealed {
            self.gate.reopen();
        }
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
        // Counted first, so that two who come at once are not both let in at the limit.
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
