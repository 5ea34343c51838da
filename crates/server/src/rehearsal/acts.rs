//! Decides which answer a request gets from a range that rehearses. Pure: time and chance are passed in.

use std::time::Duration;

use rand::Rng;
use rand::RngExt;
use rangehold_map::RangeId;

use crate::profile::MovingAnswers;

/// The most rehearsals at once.
pub(super) const REHEARSALS_MAX: usize = 64;
/// The longest time that a rehearsal may last.
pub(super) const LASTING_MAX: Duration = Duration::from_secs(3600);
/// The longest delay of an answer. Requests end by themselves after 30 s.
pub(super) const LATE_MAX: Duration = Duration::from_secs(30);
/// The share of writes that are done although the answer is a time-out.
const DONE_ALL_THE_SAME: f64 = 0.5;

/// How a range misbehaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Act {
    /// Every request gets 503 `ServerBusy`, and a page of a query ends before the range.
    Offline,
    /// A share of the requests gets 503 `ServerBusy`.
    Busy {
        /// The share of the requests, above 0 and at most 1.
        rate: f64,
    },
    /// A share of the requests gets 500 `OperationTimedOut`.
    Timeout {
        /// The share of the requests, above 0 and at most 1.
        rate: f64,
        /// The time from the request to its answer.
        late: Duration,
        /// Whether the status is 504, as a gateway between client and server would answer.
        gateway: bool,
    },
}

/// Why a rehearsal was not begun.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotRehearsed {
    /// The share is not above 0 and at most 1.
    #[error("a rate of {0} is not a share of the requests: give one above 0, and at most 1")]
    Rate(f64),
    /// The time is zero or too long.
    #[error("it would last {0:?}: give a time above 0, and {LASTING_MAX:?} at most")]
    Lasting(Duration),
    /// The delay of the answer is too long.
    #[error("an answer {0:?} late would come after the request has ended: give {LATE_MAX:?} at most")]
    Late(Duration),
    /// There are too many rehearsals already.
    #[error("{REHEARSALS_MAX} rehearsals are under way, which is the most: wait for one to end")]
    TooMany,
}

/// The answer to a request for a range that rehearses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Staged {
    /// 503, at once.
    Busy,
    /// A time-out, after a delay.
    TimedOut {
        /// The delay from now.
        late: Duration,
        /// 504 instead of 500.
        gateway: bool,
        /// Whether the request is carried out before the answer.
        done: bool,
    },
}

/// The rehearsals under way.
#[derive(Debug, Default)]
pub(crate) struct Playing(Vec<Rehearsal>);

#[derive(Debug)]
struct Rehearsal {
    range: RangeId,
    act: Act,
    until: Duration,
    /// Whether it shows a move of the range. Then no user asked for it.
    moving: bool,
}

impl Act {
    /// Checks whether the act can be played.
    fn check(&self) -> Result<(), NotRehearsed> {
        match *self {
            Self::Busy { rate } | Self::Timeout { rate, .. } if !(rate > 0.0 && rate <= 1.0) => {
                Err(NotRehearsed::Rate(rate))
            }
            Self::Timeout { late, .. } if late > LATE_MAX => Err(NotRehearsed::Late(late)),
            _ => Ok(()),
        }
    }
}

impl Playing {
    /// Begins a rehearsal. Several rehearsals of one range add up, in the order in which they were begun.
    pub(crate) fn begin(
        &mut self,
        now: Duration,
        range: RangeId,
        act: Act,
        lasting: Duration,
    ) -> Result<(), NotRehearsed> {
        self.add(now, Rehearsal { range, act, until: now.saturating_add(lasting), moving: false }, lasting)
    }

    fn add(&mut self, now: Duration, rehearsal: Rehearsal, lasting: Duration) -> Result<(), NotRehearsed> {
        rehearsal.act.check()?;
        if lasting.is_zero() || lasting > LASTING_MAX {
            return Err(NotRehearsed::Lasting(lasting));
        }
        self.forget_ended(now);
        if self.0.len() >= REHEARSALS_MAX {
            return Err(NotRehearsed::TooMany);
        }
        self.0.push(rehearsal);
        Ok(())
    }

    /// Begins to show a move of the range, as the profile says. This replaces what the range showed of an earlier
    /// move.
    pub(crate) fn begin_move(
        &mut self,
        now: Duration,
        range: RangeId,
        moving: &MovingAnswers,
    ) -> Result<(), NotRehearsed> {
        if moving.lasting.is_zero() {
            return Ok(());
        }
        self.0.retain(|rehearsal| !(rehearsal.range == range && rehearsal.moving));
        let busy = Act::Busy { rate: moving.busy };
        let timeouts = Act::Timeout { rate: moving.timeouts, late: moving.late, gateway: false };
        [busy, timeouts].into_iter().try_for_each(|act| {
            let rehearsal = Rehearsal { range, act, until: now + moving.lasting, moving: true };
            self.add(now, rehearsal, moving.lasting)
        })
    }

    /// Whether nothing is rehearsed.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ends all rehearsals, and returns how many there were.
    pub(crate) fn end_all(&mut self) -> usize {
        std::mem::take(&mut self.0).len()
    }

    /// All rehearsals: the range, its act, and the time that is left.
    pub(crate) fn list(&self, now: Duration) -> impl Iterator<Item = (RangeId, Act, Duration)> {
        self.0
            .iter()
            .map(move |rehearsal| (rehearsal.range, rehearsal.act, rehearsal.until.saturating_sub(now)))
    }

    /// Ends the rehearsals whose time is over.
    pub(crate) fn forget_ended(&mut self, now: Duration) {
        self.0.retain(|rehearsal| now < rehearsal.until);
    }

    /// The answer that a request for `range` gets instead of its usual one, if any.
    pub(crate) fn stage(&self, now: Duration, range: RangeId, chance: &mut impl Rng) -> Option<Staged> {
        let playing = self.0.iter().filter(|rehearsal| rehearsal.range == range && now < rehearsal.until);
        for rehearsal in playing {
            match rehearsal.act {
                Act::Offline => return Some(Staged::Busy),
                Act::Busy { rate } if chance.random::<f64>() < rate => return Some(Staged::Busy),
                Act::Timeout { rate, late, gateway } if chance.random::<f64>() < rate => {
                    let done = chance.random::<f64>() < DONE_ALL_THE_SAME;
                    return Some(Staged::TimedOut { late, gateway, done });
                }
                Act::Busy { .. } | Act::Timeout { .. } => {}
            }
        }
        None
    }

    /// Whether `range` plays offline. The page of a query ends before such a range.
    pub(crate) fn is_offline(&self, now: Duration, range: RangeId) -> bool {
        self.0.iter().any(|rehearsal| {
            rehearsal.range == range && rehearsal.act == Act::Offline && now < rehearsal.until
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;
    use crate::profile::Profile;

    const SECOND: Duration = Duration::from_secs(1);
    const RANGE: RangeId = RangeId(7);

    /// Of ten thousand requests at `now`, the numbers that are busy, that time out undone, and that time out done.
    fn of_ten_thousand(rehearsals: &Playing, now: Duration, range: RangeId) -> [u32; 3] {
        let mut chance = StdRng::seed_from_u64(1);
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            match rehearsals.stage(now, range, &mut chance) {
                Some(Staged::Busy) => counts[0] += 1,
                Some(Staged::TimedOut { done, .. }) => counts[1 + usize::from(done)] += 1,
                None => {}
            }
        }
        counts
    }

    #[test]
    fn a_rehearsal_is_of_one_range_and_ends() {
        let mut rehearsals = Playing::default();
        rehearsals.begin(SECOND, RANGE, Act::Offline, SECOND).unwrap();
        assert_eq!(of_ten_thousand(&rehearsals, SECOND, RANGE), [10_000, 0, 0]);
        assert_eq!(of_ten_thousand(&rehearsals, SECOND, RangeId(8)), [0, 0, 0]);
        assert!(rehearsals.is_offline(SECOND, RANGE) && !rehearsals.is_offline(2 * SECOND, RANGE));
        assert_eq!(of_ten_thousand(&rehearsals, 2 * SECOND, RANGE), [0, 0, 0]);
        rehearsals.forget_ended(2 * SECOND);
        assert!(rehearsals.is_empty());
    }

    #[test]
    fn rates_are_kept() {
        let mut rehearsals = Playing::default();
        rehearsals.begin(SECOND, RANGE, Act::Busy { rate: 0.3 }, SECOND).unwrap();
        let timeout = Act::Timeout { rate: 0.2, late: SECOND, gateway: true };
        rehearsals.begin(SECOND, RANGE, timeout, SECOND).unwrap();
        let [busy, undone, done] = of_ten_thousand(&rehearsals, SECOND, RANGE);
        assert!(busy.abs_diff(3_000) < 150, "{busy}");
        // Of the seven tenths that are not busy, a fifth times out. Half of these are done.
        assert!(undone.abs_diff(700) < 80 && done.abs_diff(700) < 80, "{undone} {done}");
    }

    #[test]
    fn a_move_shows_both_kinds_in_cloud_and_nothing_in_fast() {
        let mut rehearsals = Playing::default();
        rehearsals.begin_move(SECOND, RANGE, &Profile::fast().moving).unwrap();
        assert!(rehearsals.is_empty());
        rehearsals.begin_move(SECOND, RANGE, &Profile::cloud().moving).unwrap();
        let [busy, undone, done] = of_ten_thousand(&rehearsals, SECOND, RANGE);
        assert!(busy > 4_000 && undone > 100 && done > 100 && busy + undone + done < 7_000);
        // The range moves again at once. There are no more busy answers and time-outs than before.
        rehearsals.begin_move(SECOND, RANGE, &Profile::cloud().moving).unwrap();
        assert_eq!(of_ten_thousand(&rehearsals, SECOND, RANGE), [busy, undone, done]);
        assert_eq!(of_ten_thousand(&rehearsals, 6 * SECOND, RANGE), [0, 0, 0]);
    }

    #[test]
    fn what_cannot_be_played_is_refused_with_its_value() {
        let mut rehearsals = Playing::default();
        let mut refused =
            |act, lasting| rehearsals.begin(SECOND, RANGE, act, lasting).unwrap_err().to_string();
        assert!(refused(Act::Busy { rate: 1.5 }, SECOND).contains("1.5"));
        assert!(refused(Act::Busy { rate: f64::NAN }, SECOND).contains("NaN"));
        assert!(refused(Act::Offline, Duration::ZERO).contains("0ns"));
        assert!(refused(Act::Offline, Duration::MAX).contains("18446744073709551615"));
        let late = Act::Timeout { rate: 0.5, late: 31 * SECOND, gateway: false };
        assert!(refused(late, SECOND).contains("31s"));
        for _ in 0..REHEARSALS_MAX {
            rehearsals.begin(SECOND, RANGE, Act::Offline, SECOND).unwrap();
        }
        assert_eq!(rehearsals.begin(SECOND, RANGE, Act::Offline, SECOND), Err(NotRehearsed::TooMany));
        // The rehearsals that ended make room.
        assert_eq!(rehearsals.begin(2 * SECOND, RANGE, Act::Offline, SECOND), Ok(()));
    }
}
