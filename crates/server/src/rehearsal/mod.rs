//! Rehearsal: a chosen range misbehaves for a while, as ranges in the cloud do now and then.
//!
//! ```text
//!   rehearse offline r7 --for 10s                    503 ServerBusy at once; a page of a query ends before r7
//!   rehearse busy    r7 --rate 0.3 --for 10s         503 ServerBusy for three in ten
//!   rehearse timeout r7 --rate 0.1 --late 2s --for 10s   500 OperationTimedOut, two seconds late, for one in ten
//!   rehearse move    r7                              the manager moves it; in `cloud` that shows as both kinds
//! ```
//!
//! What is decided is pure (`acts`). The handlers of tables ask, once they know which range a request is
//! for, and act; while nothing is rehearsed that costs them one load of an atomic.
//!
//! **Time-outs tell nothing.** A write that timed out may have been done, and programs that retry it
//! must bear that. So half of the writes that are answered with a time-out are done.
//!
//! A range that is split or merged meanwhile is no more, and its rehearsal ends with it.

mod acts;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rangehold_map::RangeId;
use tokio::time::Instant;
use tracing::warn;

use self::acts::Playing;
pub(crate) use self::acts::Staged;
pub use self::acts::{Act, NotRehearsed};
use crate::profile::MovingAnswers;

/// The rehearsals of one front end.
#[derive(Debug)]
pub struct Rehearsals {
    begun: Instant,
    moving: MovingAnswers,
    any: AtomicBool,
    playing: Mutex<(Playing, StdRng)>,
}

impl Rehearsals {
    /// None yet. `moving` is what is shown of a range that moves, `seed` of what chance decides.
    pub fn new(moving: MovingAnswers, seed: u64) -> Self {
        let playing = Mutex::new((Playing::default(), StdRng::seed_from_u64(seed)));
        Self { begun: Instant::now(), moving, any: AtomicBool::new(false), playing }
    }

    /// Lets `range` play `act` from now on. Fails on what cannot be played, and above the number
    /// of rehearsals that there may be at once.
    pub fn begin(&self, range: RangeId, act: Act, lasting: Duration) -> Result<(), NotRehearsed> {
        self.change(|playing, now| playing.begin(now, range, act, lasting))
    }

    /// To be told by whoever moves ranges: `range` begins to move. What that shows is up to the profile.
    pub fn range_moves(&self, range: RangeId) {
        if let Err(why) = self.change(|playing, now| playing.begin_move(now, range, &self.moving)) {
            warn!(%range, %why, "the range moves, and clients are not shown what they would see in the cloud");
        }
    }

    /// Ends all that are under way; how many there were.
    pub fn end_all(&self) -> usize {
        self.change(|playing, _| playing.end_all())
    }

    /// Each that is under way: its range, what it plays, and how much longer.
    pub fn list(&self) -> Vec<(RangeId, Act, Duration)> {
        let Some(playing) = self.locked() else { return Vec::new() };
        playing.0.list(self.begun.elapsed()).collect()
    }

    /// What a request for `range` is answered with instead of its own answer, if anything.
    pub(crate) fn stage(&self, range: RangeId) -> Option<Staged> {
        let now = self.begun.elapsed();
        let (playing, chance) = &mut *self.locked()?;
        playing.stage(now, range, chance)
    }

    /// Whether `range` plays offline.
    pub(crate) fn is_offline(&self, range: RangeId) -> bool {
        let now = self.begun.elapsed();
        self.locked().is_some_and(|playing| playing.0.is_offline(now, range))
    }

    /// Whether anything is rehearsed, so that a request's range has to be known.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    fn locked(&self) -> Option<MutexGuard<'_, (Playing, StdRng)>> {
        if !self.any() {
            return None;
        }
        let mut locked = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        locked.0.forget_ended(self.begun.elapsed());
        self.any.store(!locked.0.is_empty(), Ordering::Relaxed);
        Some(locked)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Playing, Duration) -> T) -> T {
        let now = self.begun.elapsed();
        let mut locked = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut locked.0, now);
        self.any.store(!locked.0.is_empty(), Ordering::Relaxed);
        changed
    }
}
