//! Two managers over one map, each with what it saw last, which is some changes old.
//!
//! Every change is made on a real map, which refuses a change that was made for another generation. After each round
//! the map is checked: all rules must hold, and load must become even. It is run twice. The first run has the size of
//! the service and few rounds, since each change makes a new map of all its ranges. The second has few servers and
//! many rounds, in which load goes up and down and both managers often merge the same ranges.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_map::plan::{Observations, Policy, RangeObservation, ServerObservation, Standing, plan};
use rangehold_map::{Change, ChangeRefused, RangeEntry, RangeId, RangeMap, ServerId};

use super::RANGES;
use crate::balance::demand::CELL;
use crate::balance::outcome::Outcome;
use crate::balance::parts::home;
use crate::balance::trace::greatest;
use crate::balance::world::{Setting, entry};

/// How large a duel is.
#[derive(Clone, Copy)]
struct Size {
    servers: usize,
    ranges: usize,
    /// Mean load of a range at first, per second; about 60 % of what the servers bear.
    rate: f64,
    /// Rounds in which both managers plan.
    rounds: usize,
    /// Changes of a plan that a manager carries out in a round; then it plans again.
    changes_max: usize,
    /// Number of servers that have half as many ranges again as the others at first.
    laden: usize,
}

const LARGE: Size =
    Size { servers: 1_000, ranges: RANGES, rate: 60.0, rounds: 30, changes_max: 16, laden: 4 };
const SMALL: Size =
    Size { servers: 10, ranges: 200, rate: 250.0, rounds: 400, changes_max: usize::MAX, laden: 0 };
/// Where the load of a range stays, in shares of its mean at first.
const RATES: (f64, f64) = (0.08, 6.0);
/// The busiest server's load over the mean at which load counts as even, while both managers err.
const EVEN: f64 = 1.2;

/// Both duels, each judged by the same rules.
pub(super) fn run(outcome: &mut Outcome) {
    for size in [LARGE, SMALL] {
        let mut duel = Duel::new(size);
        let first = duel.max_over_mean();
        for _ in 0..size.rounds {
            duel.round();
        }
        let last = duel.max_over_mean();
        outcome.ask(
            format!("two managers, {} servers: late changes refused, rules hold, even", size.servers),
            duel.findings == 0 && duel.refused > 0 && duel.moves > 0 && last <= EVEN,
            format!(
                "{} rounds: {} moves, {} merges, {} refused; {} findings; max/mean {first:.2} to {last:.2}",
                size.rounds, duel.moves, duel.merges, duel.refused, duel.findings
            ),
        );
    }
}

struct Duel {
    size: Size,
    map: RangeMap,
    rates: BTreeMap<RangeId, f64>,
    /// What each manager last saw.
    seen: [(RangeMap, Observations); 2],
    dice: StdRng,
    moves: usize,
    merges: usize,
    refused: usize,
    findings: usize,
}

impl Duel {
    fn new(size: Size) -> Self {
        let entries: Vec<RangeEntry> = (0..size.ranges).map(|cell| first(size, cell)).collect();
        let rates = entries.iter().map(|entry| (entry.id, size.rate)).collect();
        let map = RangeMap::new(1, RangeId(size.ranges as u64 + 1), entries);
        let nothing = (map.clone(), Observations::default());
        let dice = StdRng::seed_from_u64(20);
        let mut duel = Self {
            size,
            map,
            rates,
            seen: [nothing.clone(), nothing],
            dice,
            moves: 0,
            merges: 0,
            refused: 0,
            findings: 0,
        };
        duel.seen = [duel.look(), duel.look()];
        duel
    }

    /// In a round, load changes, one manager looks, both plan from what they have seen, and their changes arrive
    /// mixed.
    fn round(&mut self) {
        let (low, high) = (self.size.rate * RATES.0, self.size.rate * RATES.1);
        for rate in self.rates.values_mut() {
            *rate = (*rate * self.dice.random_range(0.9..1.11)).clamp(low, high);
        }
        let looks = self.dice.random_range(0..2);
        self.seen[looks] = self.look();
        let policy = Policy { ranges_per_server_low: 5, ..Policy::fast() };
        let plans = [0, 1].map(|manager: usize| {
            let (map, observations) = &self.seen[manager];
            plan(map, observations, &policy)
        });
        let longest = plans.iter().map(|plan| plan.changes.len()).max().unwrap_or(0);
        for index in 0..longest.min(self.size.changes_max) {
            for plan in &plans {
                if let Some(change) = plan.changes.get(index) {
                    self.carry_out(change);
                }
            }
        }
        self.findings += self.map.check_homes().len();
    }

    fn look(&self) -> (RangeMap, Observations) {
        let range = |entry: &RangeEntry| RangeObservation {
            generation: entry.generation,
            rate: self.rates.get(&entry.id).copied().unwrap_or(0.0),
            peak: self.rates.get(&entry.id).copied(),
            ..RangeObservation::quiet(entry.id)
        };
        let server = |id| ServerObservation {
            id: ServerId(id),
            standing: Standing::Serving,
            capacity: Setting::fast(0).capacity,
        };
        let ranges = self.map.entries().iter().map(range).collect();
        let servers = (1..=self.size.servers as u64).map(server).collect();
        (self.map.clone(), Observations { ranges, servers })
    }

    fn carry_out(&mut self, change: &Change) {
        match self.made(change) {
            Ok(map) => {
                match change {
                    Change::Move { .. } => self.moves += 1,
                    Change::Merge { .. } => self.merges += 1,
                    _ => {}
                }
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
                begun.merge_done(*left, home(into, server.0 as usize - 1))
            }
            _ => Ok(begun),
        }
    }

    fn max_over_mean(&self) -> f64 {
        let mut loads = vec![0.0; self.size.servers];
        for entry in self.map.entries() {
            loads[entry.place.server.0 as usize - 1] += self.rates[&entry.id];
        }
        greatest(&loads) / (loads.iter().sum::<f64>() / loads.len() as f64)
    }
}

/// The line of the first map for a cell: cells go to the servers in turn, and more of them to the servers that begin
/// with more.
fn first(size: Size, cell: usize) -> RangeEntry {
    let share = size.ranges / size.servers;
    let owner = if cell < size.laden * share / 2 { cell % size.laden } else { cell % size.servers };
    let low = cell as u64 * CELL;
    let high = (cell + 1 < size.ranges).then_some(low + CELL);
    entry(RangeId(cell as u64 + 1), owner, low, high)
}
