//! Rehearsal: a chosen range misbehaves for a while, as ranges in the cloud sometimes do.
//!
//! ```text
//!   rehearse offline r7 --for 10s                    503 ServerBusy at once; a page of a query ends before r7
//!   rehearse busy    r7 --rate 0.3 --for 10s         503 ServerBusy for three in ten
//!   rehearse timeout r7 --rate 0.1 --late 2s --for 10s   500 OperationTimedOut, two seconds late, for one in ten
//!   rehearse move    r7                              the manager moves it; in `cloud` clients then see both kinds
//! ```
//!
//! The decisions are pure (`acts`). The handlers of tables ask for them as soon as they know the range of a request.
//! While nothing is rehearsed, this costs one load of an atomic.
//!
//! **A time-out leaves the outcome open.** A write that timed out may have been done, and a program that tries it
//! again must be able to handle both. So half of the writes that are answered with a time-out are done.
//!
//! When a range is split or merged, it ends, and its rehearsal ends with it.

mod acts;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
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
    /// No rehearsals yet. `moving` is what clients see of a range that moves. `seed` decides everything that is
    /// random.
    pub fn new(moving: MovingAnswers, seed: u64) -> Self {
        let playing = Mutex::new((Playing::default(), StdRng::seed_from_u64(seed)));
        Self { begun: Instant::now(), moving, any: AtomicBool::new(false), playing }
    }

    /// Lets `range` play `act` from now on. Fails if the act cannot be played, or if there are too many rehearsals
    /// already.
    pub fn begin(&self, range: RangeId, act: Act, lasting: Duration) -> Result<(), NotRehearsed> {
        self.change(|playing, now| playing.begin(now, range, act, lasting))
    }

    /// Call this when `range` begins to move. The profile decides what clients see of the move.
    pub fn range_moves(&self, range: RangeId) {
        if let Err(why) = self.change(|playing, now| playing.begin_move(now, range, &self.moving)) {
            warn!(%range, %why, "the range moves, and clients are not shown what they would see in the cloud");
        }
    }

    /// Ends all rehearsals, and returns how many there were.
    pub fn end_all(&self) -> usize {
        self.change(|playing, _| playing.end_all())
    }

    /// All rehearsals: the range, its act, and the time that is left.
    pub fn list(&self) -> Vec<(RangeId, Act, Duration)> {
        let Some(playing) = self.locked() else { return Vec::new() };
        playing.0.list(self.begun.elapsed()).collect()
    }

    /// The answer that a request for `range` gets instead of its usual one, if any.
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

    /// Whether anything is rehearsed. While nothing is, the range of a request need not be known.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    fn locked(&self) -> Option<MutexGuard<'_, (Playing, StdRng)>> {
        if !self.any() {
            return None;
        }
        let mut locked = self.playing.lock();
        locked.0.forget_ended(self.begun.elapsed());
        self.any.store(!locked.0.is_empty(), Ordering::Relaxed);
        Some(locked)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Playing, Duration) -> T) -> T {
        let now = self.begun.elapsed();
        let mut locked = self.playing.lock();
        let changed = change(&mut locked.0, now);
        self.any.store(!locked.0.is_empty(), Ordering::Relaxed);
        changed
    }
}
