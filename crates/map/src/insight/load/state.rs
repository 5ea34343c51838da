//! The states of a range from cold to judged, and its verdict.

use std::time::Duration;

use super::finder::{Evidence, Finder};
use super::judge::{judge, still_holds};
use super::policy::LoadPolicy;
use super::top_keys::TopKeys;
use super::verdict::{Cause, Verdict};

/// How often in a row a cause must be missed before its verdict is dropped.
const MISSES_MAX: u32 = 2;

/// How hot a range is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HotState {
    /// Well below its cap.
    Cold,
    /// Near its cap.
    Warm,
    /// At its cap, and being observed.
    Candidate,
    /// At its cap, with a verdict.
    Judged,
}

/// The load, as shares of the cap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heat {
    /// Over the last few seconds.
    pub(super) quick: f64,
    /// Over the last ten or so.
    pub(super) steady: f64,
    /// The share of requests that were refused.
    pub(super) refused: f64,
}

impl Heat {
    fn is_warm(&self, policy: &LoadPolicy) -> bool {
        self.quick >= policy.warm_share
    }

    fn is_hot(&self, policy: &LoadPolicy) -> bool {
        self.quick >= policy.hot_share || self.is_refusing(policy)
    }

    fn is_refusing(&self, policy: &LoadPolicy) -> bool {
        self.refused > policy.throttled_share
    }

    /// Whether it refuses requests and is also busy. The share of refused requests alone stays high for
    /// minutes after all requests have stopped.
    fn is_held_back(&self, policy: &LoadPolicy) -> bool {
        self.is_refusing(policy) && !self.fell_below(policy.warm_share, policy)
    }

    /// Whether the load is clearly below a mark, and was so for some seconds.
    fn fell_below(&self, mark: f64, policy: &LoadPolicy) -> bool {
        self.quick.max(self.steady) < mark - policy.slack
    }
}

/// The state of a range, with the finder and the verdict.
#[derive(Debug, Clone)]
pub(super) struct State {
    phase: Phase,
    /// The last verdict, even if the load has changed since.
    judgement: Option<Judgement>,
    /// `Unclear` verdicts in a row: each holds longer than the one before.
    doubts: u32,
}

#[derive(Debug, Clone)]
enum Phase {
    /// Since when the load has been above the mark of warm, if it is.
    Cold(Option<Duration>),
    Warm,
    Candidate(Box<Finder>),
    /// The finder observes whether the cause is still there.
    Judged(Box<Finder>),
}

#[derive(Debug, Clone)]
struct Judgement {
    verdict: Verdict,
    /// How often in a row the cause was not seen.
    misses: u32,
}

impl State {
    pub(super) fn new() -> Self {
        Self { phase: Phase::Cold(None), judgement: None, doubts: 0 }
    }

    pub(super) fn hot_state(&self) -> HotState {
        match self.phase {
            Phase::Cold(_) => HotState::Cold,
            Phase::Warm => HotState::Warm,
            Phase::Candidate(_) => HotState::Candidate,
            Phase::Judged(_) => HotState::Judged,
        }
    }

    pub(super) fn verdict(&self) -> Option<&Verdict> {
        self.judgement.as_ref().map(|judgement| &judgement.verdict)
    }

    /// The finder, which must be told of every request.
    pub(super) fn finder(&mut self) -> Option<&mut Finder> {
        match &mut self.phase {
            Phase::Candidate(finder) | Phase::Judged(finder) => Some(finder),
            Phase::Cold(_) | Phase::Warm => None,
        }
    }

    /// Ends a second.
    pub(super) fn tick(&mut self, now: Duration, heat: Heat, top: &TopKeys, policy: &LoadPolicy) {
        let evidence = self.finder().and_then(|finder| finder.tick(now, || top.first(), policy));
        if matches!(self.phase, Phase::Cold(_) | Phase::Warm) && self.ended(now) {
            self.judgement = None;
            self.doubts = 0;
        }
        self.phase = match std::mem::replace(&mut self.phase, Phase::Warm) {
            Phase::Cold(since) => self.tick_cold(since, now, heat, policy),
            Phase::Warm => self.tick_warm(now, heat, policy),
            Phase::Candidate(finder) => self.tick_candidate(finder, evidence, now, heat, policy),
            Phase::Judged(finder) => self.tick_judged(finder, evidence, now, heat, policy),
        };
    }

    fn tick_cold(
        &mut self,
        since: Option<Duration>,
        now: Duration,
        heat: Heat,
        policy: &LoadPolicy,
    ) -> Phase {
        if !heat.is_warm(policy) {
            return Phase::Cold(None);
        }
        let since = since.unwrap_or(now);
        // The first second above the mark ended at `since`, and it counts.
        if now.saturating_sub(since) + Duration::from_secs(1) < policy.warm_for {
            return Phase::Cold(Some(since));
        }
        self.tick_warm(now, heat, policy)
    }

    fn tick_warm(&self, now: Duration, heat: Heat, policy: &LoadPolicy) -> Phase {
        if heat.fell_below(policy.warm_share, policy) {
            Phase::Cold(None)
        } else if !heat.is_hot(policy) {
            Phase::Warm
        } else if self.judgement.is_none() || self.ended(now) {
            Phase::Candidate(Box::new(Finder::new(now)))
        } else {
            Phase::Judged(Box::new(Finder::new(now)))
        }
    }

    fn tick_candidate(
        &mut self,
        finder: Box<Finder>,
        evidence: Option<Evidence>,
        now: Duration,
        heat: Heat,
        policy: &LoadPolicy,
    ) -> Phase {
        let cooled = heat.fell_below(policy.hot_share, policy) && !heat.is_held_back(policy);
        // The load has just paused, so the evidence does not show the load at its height.
        let paused = heat.quick < policy.hot_share - policy.slack && !heat.is_held_back(policy);
        match evidence {
            _ if cooled => Phase::Warm,
            Some(_) if paused => Phase::Warm,
            Some(evidence) => {
                self.pronounce(judge(&evidence, policy), now, policy);
                Phase::Judged(Box::new(Finder::new(now)))
            }
            None => Phase::Candidate(finder),
        }
    }

    fn tick_judged(
        &mut self,
        finder: Box<Finder>,
        evidence: Option<Evidence>,
        now: Duration,
        heat: Heat,
        policy: &LoadPolicy,
    ) -> Phase {
        let watched = evidence.is_some();
        if self.ended(now) || evidence.is_some_and(|evidence| self.has_changed(&evidence, policy)) {
            self.drop_split();
            if let Some(judgement) = &mut self.judgement {
                judgement.verdict.until = judgement.verdict.until.min(now);
            }
            return Phase::Candidate(Box::new(Finder::new(now)));
        }
        if heat.fell_below(policy.warm_share, policy) {
            self.drop_split();
            return Phase::Cold(None);
        }
        Phase::Judged(if watched { Box::new(Finder::new(now)) } else { finder })
    }

    /// Drops a verdict for a split, which must not be made any more. A reason against a split may be shown a
    /// while longer.
    fn drop_split(&mut self) {
        self.judgement.take_if(|judgement| matches!(judgement.verdict.cause, Cause::Split { .. }));
    }

    /// Whether the cause of the verdict was missed too often.
    fn has_changed(&mut self, evidence: &Evidence, policy: &LoadPolicy) -> bool {
        let Some(judgement) = &mut self.judgement else {
            return true;
        };
        let holds = still_holds(&judgement.verdict.cause, evidence, policy);
        judgement.misses = if holds { 0 } else { judgement.misses + 1 };
        judgement.misses >= MISSES_MAX
    }

    /// Whether there is no verdict, or it has ended.
    fn ended(&self, now: Duration) -> bool {
        self.judgement.as_ref().is_none_or(|judgement| now >= judgement.verdict.until)
    }

    fn pronounce(&mut self, cause: Cause, now: Duration, policy: &LoadPolicy) {
        self.doubts = if matches!(cause, Cause::Unclear(_)) { self.doubts + 1 } else { 0 };
        let kept = match cause {
            Cause::Split { .. } => policy.split_kept,
            Cause::Unclear(_) => {
                let doublings = (self.doubts - 1).min(16);
                policy.retry_first.saturating_mul(1 << doublings).min(policy.verdict_kept)
            }
            _ => policy.verdict_kept,
        };
        let verdict = Verdict { cause, at: now, until: now + kept };
        self.judgement = Some(Judgement { verdict, misses: 0 });
    }
}
