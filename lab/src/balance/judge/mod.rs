//! The judges, which say where a hot range is split.
//!
//! The real finder, [`RangeLoad`], gets every request of a range that is warm, drawn from the range's demand. That
//! costs some 200 ns for each request. So if load is spread evenly and does not change, and thousands of ranges get
//! hot, its verdict is calculated instead ([`Rule::Arithmetic`]): a range that was hot for as long as the finder takes
//! is split in the middle of its load, or is found to have a hot key. The rules of other systems are there for
//! comparison.

mod draw;

use rand::RngExt;
use rand::rngs::StdRng;
use rangehold_map::load::{Access, Cause, LoadPolicy, RangeLoad, Sample};

use super::demand::{Demand, Place};
use super::keys::{self, Rows};
use super::parts::{Facts, Flow};
use super::watched::{Eyes, Finder, Rule, Watched};
use draw::Draws;

/// Requests drawn for one range in one second at most. If there are more, some stand for several.
const DRAWS_MAX: f64 = 2_000.0;
/// The same limit for refused requests. One request that stands for many would tell the finder less than the many do.
const REFUSED_DRAWS_MAX: f64 = 1_000.0;
const QUANTUM: f64 = 15.0;

/// Watches the warm ranges.
pub(super) struct Judge {
    rule: Rule,
    policy: LoadPolicy,
    rows: Rows,
}

impl Judge {
    pub(super) fn new(rule: Rule, policy: LoadPolicy) -> Self {
        Self { rule, policy, rows: Rows::new() }
    }

    /// The rate from which a range is watched.
    pub(super) fn mark(&self) -> f64 {
        if self.rule == Rule::Never { f64::INFINITY } else { self.policy.cap * self.policy.warm_share }
    }

    /// Shows the rule one second of load, which begins at `now`, of the ranges at the places `warm`.
    pub(super) fn watch(
        &mut self,
        warm: &[usize],
        demand: &Demand,
        flows: &mut [Flow],
        facts: &mut [Facts],
        now: f64,
        dice: &mut StdRng,
    ) {
        for index in warm {
            let (flow, facts) = (&mut flows[*index], &mut facts[*index]);
            let begun = facts.watched.take();
            let mut watched = begun.unwrap_or_else(|| Box::new(self.begin(facts.low, now)));
            self.look(&mut watched, demand, flow, (facts.low, facts.high), now, dice);
            // A real range is always measured. Here it is measured from warm to clearly cold, or while a verdict
            // holds.
            let clearly_cold = flow.answered.max(flow.rate()) < self.policy.cap * 0.5;
            flow.watched = !clearly_cold || watched.cause.is_some() && flow.answered > 0.0;
            facts.watched = flow.watched.then_some(watched);
        }
    }

    fn begin(&self, low: Place, now: f64) -> Watched {
        let eyes = match self.rule {
            Rule::Finder => Eyes::Finder(Box::new(RangeLoad::new(self.policy.clone(), low))),
            Rule::FifteenSeconds => Eyes::FifteenSeconds { began: now, places: Vec::new() },
            Rule::Cockroach => Eyes::Cockroach(Box::new(Finder::new(self.hot_rate()))),
            Rule::Arithmetic | Rule::Never => Eyes::Arithmetic { hot_since: None, judged: now },
        };
        Watched { eyes, cause: None }
    }

    fn hot_rate(&self) -> f64 {
        self.policy.cap * self.policy.hot_share
    }

    fn look(
        &mut self,
        watched: &mut Watched,
        demand: &Demand,
        flow: &Flow,
        (low, high): (Place, Place),
        now: f64,
        dice: &mut StdRng,
    ) {
        let hot = self.hot_rate();
        match &mut watched.eyes {
            Eyes::Finder(load) => {
                let per_request = self.policy.entities_per_request;
                feed(load, per_request, &mut self.rows, &Draws::new(demand, low, high), flow, dice);
                load.tick(std::time::Duration::from_secs_f64(now + 1.0));
                watched.cause = load.observe().verdict.map(|verdict| verdict.cause);
            }
            Eyes::Arithmetic { hot_since, judged } => {
                let still = flow.answered >= hot || flow.answered >= hot * 0.875 && hot_since.is_some();
                *hot_since = still.then(|| hot_since.unwrap_or(now));
                let patience = (self.policy.warm_for + self.policy.hot_for).as_secs_f64();
                let due = hot_since.is_some_and(|since| now - since >= patience);
                match &watched.cause {
                    _ if hot_since.is_none() => watched.cause = None,
                    None if due => (watched.cause, *judged) = (Some(self.work_out(demand, low, high)), now),
                    Some(Cause::Split { .. }) if now - *judged >= self.policy.split_kept.as_secs_f64() => {
                        (watched.cause, *hot_since) = (None, Some(now));
                    }
                    _ => {}
                }
            }
            Eyes::FifteenSeconds { began, places } => {
                let draws = Draws::new(demand, low, high);
                places.extend((0..100).map(|_| draws.place(dice)));
                if now - *began >= QUANTUM {
                    places.sort_unstable();
                    let median = places[places.len() / 2];
                    watched.cause = (flow.rate() >= hot && median > low).then(|| split_at(median));
                    *began = now;
                    places.clear();
                }
            }
            Eyes::Cockroach(finder) => {
                let draws = Draws::new(demand, low, high);
                let requests = flow.answered.min(DRAWS_MAX).round() as usize;
                let found =
                    finder.second((0..requests).map(|_| draws.place(dice)).collect(), now, dice.random());
                // A suggestion stands until it is followed, or until the load is gone.
                let suggested = found.filter(|at| *at > low).map(split_at);
                watched.cause = suggested.or(watched.cause.take().filter(|_| flow.rate() >= hot));
            }
        }
    }

    /// The verdict on load that does not change.
    fn work_out(&self, demand: &Demand, low: Place, high: Place) -> Cause {
        let all = demand.between(low, high);
        let keys = demand.pieces.iter().filter(|piece| piece.is_key() && piece.within(low, high) > 0.0);
        match keys.max_by(|a, b| a.rate.total_cmp(&b.rate)) {
            Some(key) if key.rate >= all * self.policy.hot_key_share => {
                Cause::HotKey { key: keys::boundary(key.low), share: key.rate / all, row: None }
            }
            _ => split_at(demand.median(low, high)),
        }
    }
}

fn split_at(place: Place) -> Cause {
    Cause::Split { at: keys::boundary(place), above: 0.5, frontier: false }
}

/// Gives the real finder the requests of one second.
fn feed(
    load: &mut RangeLoad,
    per_request: u32,
    rows: &mut Rows,
    draws: &Draws<'_>,
    flow: &Flow,
    dice: &mut StdRng,
) {
    for stands_for in portions(flow.answered, DRAWS_MAX) {
        let key = rows.key(draws.place(dice));
        let entities = stands_for * per_request;
        load.record(&Sample { access: Access::Write, key, high: None, entities, bytes: 300 });
    }
    for stands_for in portions(flow.wanted - flow.answered, REFUSED_DRAWS_MAX) {
        load.throttled(rows.key(draws.place(dice)), Access::Write, stands_for);
    }
}

/// Divides requests into at most this many portions, of equal size or nearly so.
fn portions(requests: f64, portions_max: f64) -> impl Iterator<Item = u32> {
    let requests = requests.max(0.0).round() as u32;
    let portions = requests.min(portions_max as u32);
    (0..portions).map(move |place| requests / portions + u32::from(place < requests % portions))
}
