//! One workload with one seed: from the first request to the verdict, and whether the verdict was right.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rangehold_map::load::{Access, Cause, LoadPolicy, RangeLoad, Sample, Verdict};

use super::keys::Keys;
use super::stream::Requests;
use super::truth::{self, Effect, Traffic};
use super::words;
use super::workload::Workload;

/// Requests per second to which the policy's cap belongs: a little more than that.
pub(super) const USUAL_RATE: f64 = 3_000.0;

/// What a trial runs with.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) policy: &'a LoadPolicy,
    /// Requests per second.
    pub(super) rate: f64,
    /// Go on until this second, no matter what is decided, unless it is a split.
    pub(super) until: u32,
}

/// How a trial ended.
pub(super) struct Outcome {
    /// Seconds until the last verdict.
    pub(super) seconds: u32,
    pub(super) verdict: Option<Verdict>,
    /// Whether its sentence tells a user what was found.
    pub(super) is_told: bool,
    /// Of a split, what it did to the traffic of minutes later.
    pub(super) effect: Option<Effect>,
    pub(super) is_splittable: bool,
}

/// What is wrong with an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// A split that was useless minutes later.
    Useless,
    /// A good cut was there, and none was made.
    Missed,
    /// The verdict names another cause than the workload has.
    Wrong,
    /// The verdict is right, and its sentence does not tell it.
    Unsaid,
}

impl Outcome {
    pub(super) fn name(&self) -> &'static str {
        self.verdict.as_ref().map_or("none", |verdict| verdict.cause.name())
    }

    pub(super) fn miss(&self, workload: &Workload) -> Option<Miss> {
        match self.effect {
            Some(effect) if effect.is_useless() => Some(Miss::Useless),
            None if self.is_splittable && workload.causes != ["none"] => Some(Miss::Missed),
            _ if !workload.causes.contains(&self.name()) => Some(Miss::Wrong),
            _ if !self.is_told => Some(Miss::Unsaid),
            _ => None,
        }
    }
}

/// Runs one trial.
pub(super) fn run(workload: &Workload, setting: &Setting<'_>, seed: u64) -> Outcome {
    let cap = setting.policy.cap * setting.rate / USUAL_RATE * workload.scale;
    let policy = LoadPolicy { cap, ..setting.policy.clone() };
    let mut dice = StdRng::seed_from_u64(seed);
    let requests = (workload.make)(&mut dice);
    let mut load = RangeLoad::new(policy.clone(), seed);
    let mut keys = Keys::new(workload.shape);
    let mut verdict = None;
    let mut seconds = 0;
    // Long enough for a slow range; one that is not judged by then has the verdict `none`.
    let mut end = setting.until.max(5 * policy.hot_for.as_secs() as u32);
    while seconds < end {
        let count = (workload.pace)(f64::from(seconds)) * setting.rate * workload.scale;
        second(&mut load, &mut keys, &requests, f64::from(seconds), count.round() as u32, &mut dice);
        seconds += 1;
        load.tick(Duration::from_secs(u64::from(seconds)));
        let found = load.observe().verdict;
        if found.is_some() && found != verdict {
            let is_first = verdict.is_none();
            verdict = found;
            if matches!(verdict, Some(Verdict { cause: Cause::Split { .. }, .. })) {
                break;
            }
            if is_first {
                end = setting.until.max(seconds + workload.patience);
            }
        }
    }
    prove(verdict, seconds, &requests, &mut keys, &policy, &mut dice)
}

fn second(
    load: &mut RangeLoad,
    keys: &mut Keys,
    requests: &Requests,
    from: f64,
    count: u32,
    dice: &mut StdRng,
) {
    let mut high = Vec::new();
    for request in 0..count {
        let draw = requests(dice, from + f64::from(request) / f64::from(count));
        if draw.access == Access::Scan {
            high.clear();
            high.extend_from_slice(keys.key(draw.to, u32::MAX));
        }
        let key = keys.key(draw.place, draw.row);
        load.record(&Sample {
            access: draw.access,
            key,
            high: Some(&high),
            entities: draw.entities,
            bytes: 300,
        });
    }
}

fn prove(
    verdict: Option<Verdict>,
    seconds: u32,
    requests: &Requests,
    keys: &mut Keys,
    policy: &LoadPolicy,
    dice: &mut StdRng,
) -> Outcome {
    let now = f64::from(seconds);
    let later = Traffic::later(requests, now, policy, dice);
    let before = Traffic::before(requests, now, policy, dice);
    let effect = match &verdict {
        Some(Verdict { cause: Cause::Split { at, .. }, .. }) => Some(later.effect(keys.place_of(at))),
        _ => None,
    };
    let is_splittable = truth::is_splittable(&before, &later);
    let is_told = verdict.as_ref().is_none_or(|verdict| words::are_told(verdict, keys));
    Outcome { seconds, verdict, is_told, effect, is_splittable }
}
