//! A flash crowd: ten neighbouring ranges (0.01 % of the keys) of one server suddenly want fifty times as much, which
//! is five times what that server bears. The same is run with other rules.
//!
//! Relief means that no request is refused any more, for a minute at least.

use rangehold_map::load::LoadPolicy;
use rangehold_map::plan::Policy;

use super::{RANGES, TWO_HOURS, even, no_useless_split, owners};
use crate::balance::demand::{CELL, Demand, Piece};
use crate::balance::outcome::{Curve, Outcome, percent, seconds};
use crate::balance::trace::{Trace, greatest};
use crate::balance::watched::Rule;
use crate::balance::world::{Setting, World};

const BEGINS: f64 = 120.0;
/// When it begins in the runs that only try another moment of a tick; a multiple of every tick.
const SOONER: f64 = 60.0;
/// The ranges that the crowd hits.
const CROWD: std::ops::Range<u64> = 5_000..5_010;
/// What each of them wanted before, and how many times as much the crowd wants.
const BEFORE: f64 = 80.0;
const TIMES: f64 = 50.0;
/// What the other ranges of their server want, as a share of what ranges want elsewhere.
const OTHERS: f64 = 0.84;
/// What one range bears: less than the crowd wants, so that moves alone do not help.
const LIMIT: f64 = 3_000.0;

pub(super) fn run(outcome: &mut Outcome) {
    let fast = Setting { rule: Rule::Finder, range_limit: LIMIT, ..Setting::fast(3) };
    let cloud = Setting { policy: Policy::cloud(), load_policy: LoadPolicy::cloud(), ..fast.clone() };
    let [ours, cloud] = [fast.clone(), cloud].map(|setting| live(setting, BEGINS, TWO_HOURS));
    for (name, world, limit) in [("fast", &ours, 75.0), ("cloud", &cloud, 300.0)] {
        let all = whenever_it_begins(world);
        let best = all.iter().copied().fold(f64::INFINITY, f64::min);
        let worst = greatest(&all);
        outcome.ask(
            format!("{name}: relieved <= {limit:.0} s, whenever in a tick it begins"),
            worst <= limit,
            format!("{best:.0} to {worst:.0} s; refused until then {}", percent(refused(world))),
        );
    }
    let slower = p99_times(&ours.trace);
    outcome.ask("others' p99 < 2 x (each server a queue)", slower < 2.0, format!("{slower:.2} x"));
    no_useless_split(outcome, &ours);
    let boundless = Policy { churn: 1.0, churn_emergency: 1.0, ..Policy::fast() };
    let rivals = [
        ("static hashing", fast.under(Rule::Never)),
        ("split rule: every 15 s (WAS)", fast.under(Rule::FifteenSeconds)),
        ("split rule: CockroachDB", fast.under(Rule::Cockroach)),
        ("without churn budget", Setting { policy: boundless, ..fast }),
    ]
    .map(|(name, setting)| (name, live(setting, BEGINS, 720.0).trace));
    for (name, trace) in &rivals {
        let (splits, moves, churn) = (trace.splits, trace.moves, percent(greatest(&trace.churn) / 5e6));
        outcome.compare(
            name,
            format!(
                "relieved after {}; max/mean at last {:.2}; {splits} splits, {moves} moves, at most {churn} of all \
                 load moved in a tick",
                seconds(relieved(trace, BEGINS)),
                trace.max_over_mean.last().copied().unwrap_or(0.0),
            ),
        );
    }
    let refused = |name, trace: &Trace| Curve::new(name, &trace.times, &trace.refused);
    let curves = vec![refused("planner, fast", &ours.trace), refused("planner, cloud", &cloud.trace)];
    outcome.curves("flash crowd: share of all requests refused", "share", None, curves);
    let mut runs = vec![("planner, fast", &ours.trace)];
    runs.extend(rivals.iter().map(|(name, trace)| (*name, trace)));
    outcome.balance("flash crowd at 120 s", 1.1, &runs);
    outcome.heat("flash crowd: utilisation of servers", &ours.trace);
}

/// How long relief takes if the crowd comes at once after a plan was made, a second later, and so on.
fn whenever_it_begins(world: &World) -> Vec<f64> {
    let tick = world.setting.policy.tick.as_secs();
    let later = (1..tick).step_by(tick.div_ceil(5) as usize).map(|later| {
        let begins = SOONER + later as f64;
        relieved(&live(world.setting.clone(), begins, begins + 300.0).trace, begins)
    });
    let all = std::iter::once(relieved(&world.trace, BEGINS)).chain(later);
    all.map(|after| after.unwrap_or(f64::INFINITY)).collect()
}

fn live(setting: Setting, begins: f64, until: f64) -> World {
    let mut cells = even(RANGES, 50.0, 4);
    let owners = owners(&setting, CROWD);
    // That server's other ranges want less, so that it is as busy as the rest and keeps the ten.
    for (cell, _) in owners.iter().enumerate().filter(|(_, owner)| **owner == 0) {
        cells[cell] *= OTHERS;
    }
    for cell in CROWD {
        cells[cell as usize] = BEFORE;
    }
    let mut world = World::with_owners(setting, Demand::new(&cells, 1), &owners);
    world.run(until, |world| {
        if world.now >= begins && world.demand.pieces.is_empty() {
            let more = BEFORE * (TIMES - 1.0);
            let piece = |cell| Piece { low: cell * CELL, high: (cell + 1) * CELL, rate: more };
            world.demand.pieces = CROWD.map(piece).collect();
        }
    });
    world
}

/// The time from the beginning of the crowd until no request was refused any more.
fn relieved(trace: &Trace, begins: f64) -> Option<f64> {
    trace.first_minute(&trace.refused, 1e-9, begins).map(|at| at - begins)
}

/// The share of the crowd's requests that was refused until it was relieved.
fn refused(world: &World) -> f64 {
    let until = BEGINS + relieved(&world.trace, BEGINS).unwrap_or(world.now - BEGINS);
    let crowd = BEFORE * TIMES * (CROWD.end - CROWD.start) as f64;
    let all = 50.0 * RANGES as f64 + crowd;
    world.trace.failed_share(BEGINS, until) * all / crowd
}

/// The latency of the other requests, if each server is a queue of its own (M/M/1): the worst second against the time
/// before.
fn p99_times(trace: &Trace) -> f64 {
    let minute = (BEGINS / 60.0) as usize;
    let worst = trace.heat[minute..minute + 10].iter().map(|used| p99(used)).fold(0.0, f64::max);
    worst / p99(&trace.heat[minute - 1])
}

/// The time within which 99 % of the answers come, in times of service, over servers of equal shares.
fn p99(used: &[f32]) -> f64 {
    let share = |time: f64| {
        let late = |used: &f32| (-time * (1.0 - f64::from(used.clamp(0.0, 0.99)))).exp();
        used.iter().map(late).sum::<f64>() / used.len() as f64
    };
    let (mut low, mut high) = (0.0, 1_000.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if share(middle) > 0.01 { low = middle } else { high = middle }
    }
    high
}
