//! Observes a hot range for a minute or more before it is judged.
//!
//! The time is divided into looks of equal length:
//!
//! ```text
//!   look   A          B          ...          C
//!          |----------|----------|--- ... ----|----------|
//!          0          W          2W                      T
//! ```
//!
//! **A** samples the partitions that will be tried as cuts. **B** and **C** measure the balance of each cut,
//! `T - 2W` apart, with requests that are not in A's sample. So a cut that suits only the past is found out,
//! and the drift between B and C tells how the balance will go on. One look alone could not do this: if keys
//! grow, and arrive late by seconds or minutes, a cut that was just sampled looks balanced for a while.
//!
//! All looks from B on give three more figures:
//! * the *swing* of a cut: its imbalance in single seconds. A job that goes through all keys every ten
//!   seconds is balanced in every look, but never at a single moment;
//! * the *climb* from look to look: the share of requests above the highest sample of the look before, less the
//!   share below its lowest sample. Growing keys climb evenly; a hot spot that jumps does not;
//! * the *jump*: the greatest change of the mean balance of all cuts from one second to the next. A load that
//!   moves slowly for its width hardly goes beyond its edges from one look to the next, but it also never
//!   makes a large part of its way within one second.
//!
//! **How long a look is.** The standard deviation of a balance over `n` requests is 1/sqrt(n), and that of
//! the difference of two looks is sqrt(2/n). The looks grow until the smallest drift that matters is
//! [`LoadPolicy::sigmas`] such deviations. With looks of 10 s and a judgement after 60 s that takes 13,000
//! requests in a look; if the looks lie three times as far apart it takes only 2,500, because the drift had
//! more time.

use std::time::Duration;

use super::edges::Edges;
use super::look::{Gaps, Look, mean_balance};
use super::policy::LoadPolicy;
use super::reservoir::{Reservoir, cuts_around};
use super::top_keys::TopKey;
use super::{Access, Sample};
use crate::insight::chance::Chance;

/// How much too early a look may end. Ticks do not come exactly each second, and to wait for the next one
/// would make every look a tenth longer.
const EARLY: Duration = Duration::from_millis(500);

/// Everything by which the judge decides.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    /// The cuts that were tried, in order. The last is just above all samples of A.
    pub(super) cuts: Vec<Vec<u8>>,
    pub(super) b: Look,
    pub(super) c: Look,
    /// The partitions that each look from B to C sampled, in order.
    pub(super) samples: Vec<Vec<Vec<u8>>>,
    /// The length of a look, and the time from the middle of B to the middle of C.
    pub(super) look: Duration,
    pub(super) gap: Duration,
    /// For each cut, the mean imbalance in single seconds from B on.
    pub(super) swings: Vec<f64>,
    /// The climb from each look to the next.
    pub(super) climbs: Vec<f64>,
    /// The greatest change of the mean balance of all cuts from one second to the next, from B on.
    pub(super) jump: f64,
    /// The partition with the most load at the end of B and at the end of C.
    pub(super) top_b: Option<TopKey>,
    pub(super) top_c: Option<TopKey>,
}

impl Evidence {
    /// The sample of B.
    pub(super) fn samples_b(&self) -> &[Vec<u8>] {
        self.samples.first().map_or(&[], Vec::as_slice)
    }

    /// The sample of C.
    pub(super) fn samples_c(&self) -> &[Vec<u8>] {
        self.samples.last().map_or(&[], Vec::as_slice)
    }
}

/// Observes one range until there is enough evidence.
#[derive(Debug, Clone)]
pub(super) struct Finder {
    began: Duration,
    look_began: Duration,
    /// Known when A has ended.
    schedule: Option<Schedule>,
    reservoir: Reservoir,
    edges: Edges,
    cuts: Vec<Vec<u8>>,
    second: Gaps,
    look: Look,
    b: Option<Ended>,
    swings: Vec<Swing>,
    climbs: Vec<f64>,
    samples: Vec<Vec<Vec<u8>>>,
    /// The mean balance of all cuts in the last second, from B on.
    height: Option<f64>,
    jump: f64,
}

/// A look that is over.
#[derive(Debug, Clone)]
struct Ended {
    at: Duration,
    look: Look,
    top: Option<TopKey>,
}

/// Sum over seconds of |L-R|, and of L+R.
#[derive(Debug, Clone, Copy, Default)]
struct Swing {
    apart: u64,
    both: u64,
}

/// When each look ends, and when the last one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Schedule {
    look: Duration,
    end: Duration,
}

impl Finder {
    /// Begins look A.
    pub(super) fn new(now: Duration) -> Self {
        Self {
            began: now,
            look_began: now,
            schedule: None,
            reservoir: Reservoir::default(),
            edges: Edges::default(),
            cuts: Vec::new(),
            second: Gaps::new(0),
            look: Look::new(0),
            b: None,
            swings: Vec::new(),
            climbs: Vec::new(),
            samples: Vec::new(),
            height: None,
            jump: 0.0,
        }
    }

    /// Counts one or several requests that begin in `partition`, with the sum of their costs and the sum of the
    /// squares of their costs.
    pub(super) fn record(
        &mut self,
        partition: &[u8],
        sample: &Sample<'_>,
        (cost, squares): (u32, u64),
        chance: &mut Chance,
    ) {
        let begin = self.gap_of(partition);
        let end = match (sample.access, sample.high) {
            (Access::PointRead | Access::Write, _) => begin,
            (Access::Scan, Some(high)) => self.gap_of(high).max(begin),
            (Access::Scan, None) => self.cuts.len(),
        };
        self.second.add(begin, end, cost, sample.access != Access::Write);
        self.look.cost += u64::from(cost);
        self.look.squares += squares;
        self.edges.add(partition, cost);
        self.reservoir.offer(partition, cost, chance);
    }

    /// The gap that holds `key`: the number of cuts at `key` or below.
    fn gap_of(&self, key: &[u8]) -> usize {
        self.cuts.partition_point(|cut| cut.as_slice() <= key)
    }

    /// Ends a second. Returns the evidence after the last look. `top` gives the partition with the most load
    /// now.
    pub(super) fn tick(
        &mut self,
        now: Duration,
        top: impl FnOnce() -> Option<TopKey>,
        policy: &LoadPolicy,
    ) -> Option<Evidence> {
        self.end_second();
        let in_look = now.saturating_sub(self.look_began);
        let Some(schedule) = self.schedule else {
            if let Some(schedule) = self.schedule_after(in_look, policy) {
                self.schedule = Some(schedule);
                self.end_a(now);
            }
            return None;
        };
        if in_look + EARLY < schedule.look {
            return None;
        }
        let look = self.end_look(now);
        let is_last = now.saturating_sub(self.began) + EARLY >= schedule.end;
        match self.b.take() {
            None => self.b = Some(Ended { at: now, look, top: top() }),
            Some(b) if is_last => {
                let c = Ended { at: now, look, top: top() };
                return Some(self.evidence(b, c, schedule.look));
            }
            b => self.b = b,
        }
        None
    }

    fn end_second(&mut self) {
        let second = self.second.take();
        let height = mean_balance(&second);
        let before = self.height.replace(height).unwrap_or(height);
        self.jump = self.jump.max((height - before).abs());
        for ((sum, swing), sides) in self.look.sides.iter_mut().zip(&mut self.swings).zip(second) {
            sum.add(&sides);
            swing.apart += sides.left.abs_diff(sides.right);
            swing.both += sides.left + sides.right;
        }
    }

    /// The schedule, if look A has lasted long enough. `elapsed` is how long it has lasted.
    fn schedule_after(&self, elapsed: Duration, policy: &LoadPolicy) -> Option<Schedule> {
        if elapsed + EARLY < policy.look {
            return None;
        }
        let schedule = Schedule::of(elapsed, policy);
        let per_look = self.look.sample(self.look.cost);
        let firm =
            policy.sigmas * spread(per_look, per_look) <= policy.drift_max * schedule.gap().as_secs_f64();
        (firm || elapsed >= policy.look_max).then_some(schedule)
    }

    fn end_a(&mut self, now: Duration) {
        let samples = self.reservoir.take();
        self.edges.turn(&self.look, &samples);
        self.cuts = cuts_around(&samples);
        self.second = Gaps::new(self.cuts.len());
        self.swings = vec![Swing::default(); self.cuts.len()];
        self.height = None;
        self.begin_look(now);
    }

    fn end_look(&mut self, now: Duration) -> Look {
        let samples = self.reservoir.take();
        self.climbs.push(self.edges.turn(&self.look, &samples));
        self.samples.push(samples);
        self.begin_look(now)
    }

    fn begin_look(&mut self, now: Duration) -> Look {
        self.look_began = now;
        std::mem::replace(&mut self.look, Look::new(self.cuts.len()))
    }

    fn evidence(&mut self, b: Ended, c: Ended, look: Duration) -> Evidence {
        let swing = |swing: &Swing| {
            if swing.both == 0 { 0.0 } else { swing.apart as f64 / swing.both as f64 }
        };
        Evidence {
            cuts: std::mem::take(&mut self.cuts),
            b: b.look,
            c: c.look,
            samples: std::mem::take(&mut self.samples),
            look,
            gap: c.at.saturating_sub(b.at),
            swings: self.swings.iter().map(swing).collect(),
            climbs: std::mem::take(&mut self.climbs),
            jump: self.jump,
            top_b: b.top,
            top_c: c.top,
        }
    }
}

impl Schedule {
    /// At least six looks of this length. The last one ends when the range was hot for long enough.
    fn of(look: Duration, policy: &LoadPolicy) -> Self {
        let looks = policy.hot_for.as_secs_f64() / look.as_secs_f64();
        Self { look, end: look.mul_f64(looks.ceil().max(6.0)) }
    }

    /// From the middle of B to the middle of C.
    fn gap(&self) -> Duration {
        self.end.saturating_sub(self.look * 2)
    }
}

/// The standard deviation of the difference of two balances that were measured over `b` and `c` requests.
pub(super) fn spread(b: f64, c: f64) -> f64 {
    if b <= 0.0 || c <= 0.0 { f64::INFINITY } else { (1.0 / b + 1.0 / c).sqrt() }
}
