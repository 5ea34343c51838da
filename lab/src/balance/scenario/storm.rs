//! Clients that try again after thirty seconds without service.
//!
//! No planner takes part: the scenario shows what the planner relies on, that servers recover by themselves. There is
//! one server, since each has to recover alone: its clients come back to it, and other servers cannot change that. It
//! bears 10,000/s and is asked for 7,000/s of new requests. A refusal costs a tenth of an answer. Clients with the
//! documented backoff wait `min(3 + random(0.8, 1.2) 4 (2^n - 1), 120)` seconds after the n-th failure, and give up
//! after some tries. Naive clients ask again after a tenth of a second and never stop.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::TWO_HOURS;
use crate::balance::outcome::{Curve, Outcome, percent, seconds};

const CAPACITY: f64 = 10_000.0;
const NEW: f64 = 7_000.0;
const REFUSAL_COSTS: f64 = 0.1;
const STEPS_PER_SECOND: usize = 10;
const OUTAGE: std::ops::Range<usize> = 60..90;
const SECONDS: usize = TWO_HOURS as usize;
/// The part of that time that the picture shows.
const PICTURED: usize = 300;
/// Tries of one request.
const TRIES: usize = 4;
/// The requests that fail in one step are divided into this many parts, each with a wait of its own.
const PARTS: usize = 20;

/// When a client asks again.
#[derive(Clone, Copy)]
enum Backoff {
    /// As the documents say: 3 s at least, steps of 4 s, 120 s at most.
    Documented,
    /// After a tenth of a second.
    Naive,
}

pub(super) fn run(outcome: &mut Outcome) {
    let [documented, naive] = [Backoff::Documented, Backoff::Naive].map(goodput);
    let after = recovered(&documented);
    outcome.ask(
        "documented backoff: goodput >= 95 % within 60 s",
        after.is_some_and(|after| after <= 60.0),
        format!("after {}", seconds(after)),
    );
    let (after, last) = (recovered(&naive), percent(naive[naive.len() - 1] / NEW));
    outcome.ask(
        "naive clients: fail (for comparison)",
        after.is_none(),
        format!("recovered: {}; goodput at last {last}", seconds(after)),
    );
    let pictured = PICTURED * STEPS_PER_SECOND;
    let times: Vec<f64> = (0..pictured).map(|step| step as f64 / STEPS_PER_SECOND as f64).collect();
    let curves = [("documented backoff", &documented), ("naive", &naive)];
    let curves = curves.map(|(name, answers)| Curve::new(name, &times, &answers[..pictured]));
    let title = "retry storm: answers, outage from 60 s to 90 s";
    outcome.curves(title, "answers/s", Some(NEW), curves.into());
}

/// Answers per second in each step.
fn goodput(backoff: Backoff) -> Vec<f64> {
    let steps = SECONDS * STEPS_PER_SECOND;
    let mut dice = StdRng::seed_from_u64(21);
    // Requests that come in each step, by how often they were tried.
    let mut due = vec![[0.0; TRIES + 1]; steps + 1];
    let mut answers = Vec::with_capacity(steps);
    for step in 0..steps {
        due[step][0] += NEW / STEPS_PER_SECOND as f64;
        let coming: f64 = due[step].iter().sum();
        let up = !OUTAGE.contains(&(step / STEPS_PER_SECOND));
        let answered = if up { answered(coming) } else { 0.0 };
        answers.push(answered * STEPS_PER_SECOND as f64);
        let failed = if coming > 0.0 { 1.0 - answered / coming } else { 0.0 };
        for tried in 0..=TRIES {
            let requests = due[step][tried] * failed;
            for _ in 0..PARTS {
                let Some((wait, tries)) = again(backoff, tried + 1, &mut dice) else { break };
                let at = step + (wait * STEPS_PER_SECOND as f64).ceil() as usize;
                if let Some(due) = due.get_mut(at) {
                    due[tries] += requests / PARTS as f64;
                }
            }
        }
    }
    answers
}

/// What a server answers in one step. It spends work on refusals as well.
fn answered(coming: f64) -> f64 {
    let work = CAPACITY / STEPS_PER_SECOND as f64;
    if coming <= work { coming } else { ((work - REFUSAL_COSTS * coming) / (1.0 - REFUSAL_COSTS)).max(0.0) }
}

/// How long a client waits after its n-th failure, and how often it counts as tried then.
fn again(backoff: Backoff, failures: usize, dice: &mut StdRng) -> Option<(f64, usize)> {
    match backoff {
        Backoff::Documented if failures >= TRIES => None,
        Backoff::Documented => {
            let step = 4.0 * dice.random_range(0.8..1.2) * ((failures as f64).exp2() - 1.0);
            Some(((3.0 + step).min(120.0), failures))
        }
        Backoff::Naive => Some((0.1, failures.min(TRIES))),
    }
}

/// How long after the outage answers were at least 95 % of new requests, for ten seconds.
fn recovered(answers: &[f64]) -> Option<f64> {
    let end = OUTAGE.end * STEPS_PER_SECOND;
    let good = |window: &[f64]| window.iter().all(|answers| *answers >= 0.95 * NEW);
    let at = answers[end..].windows(10 * STEPS_PER_SECOND).position(good)?;
    Some(at as f64 / STEPS_PER_SECOND as f64)
}
