//! No manager, two managers, old maps.
//!
//! For nearly two hours nobody plans while load drifts: nothing may fail for that, balance may suffer. Then
//! two managers plan at once, each from a map and observations that are some changes old, on a real map
//! whose every change is checked: changes that are late have to be refused, and all rules hold. And
//! front ends with old maps ask the wrong server: once for each change they had not heard of.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_map::plan::{Observations, Policy, RangeObservation, ServerObservation, Standing, plan};
use rangehold_map::{Change, ChangeRefused, DatabaseName, Generation, Home, RangeId, RangeMap, ServerId};

use super::{RANGES, TWO_HOURS, even};
use crate::balance::demand::Demand;
use crate::balance::keys;
use crate::balance::outcome::{Curve, Line, Outcome, percent};
use crate::balance::world::{Setting, World};

const NAME: &str = "managers";
/// Front ends; and how long a change takes to be heard of by one that listens.
const FRONT_ENDS: f64 = 100.0;
const HEARD_AFTER: f64 = 1.0;
/// Rounds in which both managers plan.
const ROUNDS: usize = 400;

pub(super) fn run() -> Outcome {
    let mut outcome = Outcome::default();
    let alone = live(0.0);
    let orphaned = live(TWO_HOURS - 600.0);
    let (failed, worst) =
        (orphaned.trace.failed_share(0.0, TWO_HOURS), orphaned.trace.max_over_mean.iter().copied());
    let back = orphaned.trace.first_minute(TWO_HOURS - 600.0, |trace, step| trace.max_over_mean[step] <= 1.1);
    outcome.add(Line::new(
        NAME,
        "no manager for 110 min: nothing fails, then even again",
        format!(
            "{} failed; max/mean rose to {:.2} and was even {:.0} s after one was back",
            percent(failed),
            worst.fold(0.0, f64::max),
            back.unwrap_or(f64::INFINITY) - (TWO_HOURS - 600.0)
        ),
        failed == 0.0 && back.is_some(),
    ));
    outcome.add(misrouted(&alone));
    outcome.add(two_managers());
    outcome.balance(
        "managers: load drifts with and without one",
        1.1,
        vec![
            Curve::max_over_mean("a manager", &alone.trace),
            Curve::max_over_mean("none until 6,600 s", &orphaned.trace),
        ],
    );
    outcome
}

/// Load that drifts; no manager until then.
fn live(away_until: f64) -> World {
    let zones = 24;
    let mut world =
        World::new(Setting { step: 5.0, ..Setting::fast(18) }, Demand::new(&even(RANGES, 55.0, 19), zones));
    world.manager_away_until = away_until;
    world.run(TWO_HOURS, |world| {
        for (zone, factor) in world.demand.factors.iter_mut().enumerate() {
            let phase = world.now / 5_400.0 + zone as f64 / zones as f64;
            *factor = 1.0 + 0.5 * (phase * std::f64::consts::TAU).sin();
        }
    });
    world
}

/// A request that goes to the wrong server costs one internal retry, after which its front end has the new
/// map. So each change misroutes what goes to its range while the news travels; and for a front end that
/// hears no news for an hour, the first request to it.
fn misrouted(world: &World) -> Line {
    let trace = &world.trace;
    let changes = trace.moves as f64;
    let travelling: f64 = trace.churn.iter().sum::<f64>() * HEARD_AFTER;
    let deaf = changes * FRONT_ENDS * 0.05;
    let share = (travelling + deaf) / trace.totals.0;
    Line::new(
        NAME,
        "old maps: misrouted < 0.004 %, errors 0",
        format!("{} of all, each one retry; {} moves under drift", percent(share), trace.moves),
        share < 4e-5,
    )
}

fn two_managers() -> Line {
    let mut duel = Duel::new();
    for _ in 0..ROUNDS {
        duel.round();
    }
    let ratio = duel.max_over_mean();
    Line::new(
        NAME,
        "two managers with old maps: late changes refused, all rules hold, even",
        format!(
            "{} changes made, {} refused; {} findings; max/mean {ratio:.2}",
            duel.made, duel.refused, duel.findings
        ),
        duel.findings == 0 && duel.refused > 0 && ratio <= 1.2,
    )
}

/// Two managers over one map.
struct Duel {
    map: RangeMap,
    rates: std::collections::BTreeMap<RangeId, f64>,
    /// What each manager last saw.
    seen: [(RangeMap, Observations); 2],
    dice: StdRng,
    made: usize,
    refused: usize,
    findings: usize,
}

const SERVERS: u64 = 10;
const CAPACITY: f64 = 10_000.0;

impl Duel {
    fn new() -> Self {
        let dice = StdRng::seed_from_u64(20);
        let place = Home { server: ServerId(1), database: database(RangeId(1)) };
        let mut map = RangeMap::single(RangeId(1), place);
        let mut last = RangeId(1);
        for cut in 1..200u64 {
            let change =
                Change::Split { range: last, generation: Generation::FIRST, at: keys::boundary(cut << 32) };
            let begun = map.begin(&change).expect("each cut is above the one before");
            let (left, right) = (map.next_range(), map.next_range().next());
            let at =
                |range: RangeId| Home { server: ServerId(range.0 % SERVERS + 1), database: database(range) };
            map = begun.split_done(last, at(left), at(right)).expect("it was begun");
            last = right;
        }
        let rates = map.entries().iter().map(|entry| (entry.id, 250.0)).collect();
        let nothing = (map.clone(), Observations::default());
        let mut duel =
            Self { map, rates, seen: [nothing.clone(), nothing], dice, made: 0, refused: 0, findings: 0 };
        duel.seen = [duel.look(), duel.look()];
        duel
    }

    /// Load changes; one manager looks; both plan from what they have seen; changes arrive mixed.
    fn round(&mut self) {
        for rate in self.rates.values_mut() {
            *rate = (*rate * self.dice.random_range(0.9..1.11)).clamp(20.0, 1_500.0);
        }
        let looks = self.dice.random_range(0..2);
        self.seen[looks] = self.look();
        let policy = Policy { ranges_per_server_low: 5, ..Policy::fast() };
        let plans = [0, 1].map(|manager: usize| {
            let (map, observations) = &self.seen[manager];
            plan(map, observations, &policy)
        });
        let longest = plans.iter().map(|plan| plan.changes.len()).max().unwrap_or(0);
        for index in 0..longest {
            for plan in &plans {
                if let Some(change) = plan.changes.get(index) {
                    self.carry_out(change);
                }
            }
        }
        self.findings += self.map.check_homes().len();
    }

    fn look(&self) -> (RangeMap, Observations) {
        let range = |entry: &rangehold_map::RangeEntry| RangeObservation {
            generation: entry.generation,
            rate: self.rates.get(&entry.id).copied().unwrap_or(0.0),
            peak: self.rates.get(&entry.id).copied(),
            ..RangeObservation::quiet(entry.id)
        };
        let server =
            |id| ServerObservation { id: ServerId(id), standing: Standing::Serving, capacity: CAPACITY };
        let ranges = self.map.entries().iter().map(range).collect();
        (self.map.clone(), Observations { ranges, servers: (1..=SERVERS).map(server).collect() })
    }

    fn carry_out(&mut self, change: &Change) {
        match self.made(change) {
            Ok(map) => {
                self.made += 1;
                self.map = map;
            }
            Err(_) => self.refused += 1,
        }
    }

    /// The map with a change begun and done.
    fn made(&mut self, change: &Change) -> Result<RangeMap, ChangeRefused> {
        let begun = self.map.begin(change)?;
        match change {
            Change::Move { range, .. } => begun.move_done(*range),
            Change::Merge { left, right, .. } => {
                let into = self.map.next_range();
                let rate = self.rates[left] + self.rates[right];
                self.rates.insert(into, rate);
                let server = self.map.get(*left).expect("the change was taken").place.server;
                begun.merge_done(*left, Home { server, database: database(into) })
            }
            Change::Split { .. } | Change::Offline { .. } | Change::Online { .. } => Ok(begun),
        }
    }

    fn max_over_mean(&self) -> f64 {
        let mut loads = vec![0.0; SERVERS as usize];
        for entry in self.map.entries() {
            loads[entry.place.server.0 as usize - 1] += self.rates[&entry.id];
        }
        loads.iter().copied().fold(0.0, f64::max) / (loads.iter().sum::<f64>() / loads.len() as f64)
    }
}

fn database(range: RangeId) -> DatabaseName {
    DatabaseName { range, generation: Generation::FIRST, attempt: 1 }
}
