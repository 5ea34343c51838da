//! A flash crowd: ten neighbouring ranges (0.01 % of the keys) of one server suddenly want fifty times as much, which
//! is five times what that server bears. The same is run with other rules.
//!
//! Relief means that no request is refused any more, for a minute at least.

use rangehold_map::load::LoadPolicy;
use rangehold_map::plan::Policy;

use super::{RANGES, TWO_HOURS, even};
use crate::balance::demand::{CELL, Demand, Piece};
use crate::balance::outcome::{Curve, Line, Outcome, Picture, percent, seconds};
use crate::balance::watched::Rule;
use crate::balance::world::{Setting, World};

const NAME: &str = "flash crowd";
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

pub(super) fn run() -> Outcome {
    let mut outcome = Outcome::default();
    let fast = Setting { rule: Rule::Finder, range_limit: LIMIT, ..Setting::fast(3) };
    let ours = live(fast.clone(), TWO_HOURS);
    let cloud = live(
        Setting { policy: Policy::cloud(), load_policy: LoadPolicy::cloud(), ..fast.clone() },
        TWO_HOURS,
    );
    for (name, world, limit) in [("fast", &ours, 75.0), ("cloud", &cloud, 300.0)] {
        let all = whenever_it_begins(world);
        let best = all.iter().copied().fold(f64::INFINITY, f64::min);
        let worst = all.into_iter().fold(0.0, f64::max);
        outcome.add(Line::new(
            NAME,
            format!("{name}: relieved <= {limit:.0} s, whenever in a tick it begins"),
            format!("{best:.0} to {worst:.0} s; refused until then {}", percent(refused(world))),
            worst <= limit,
        ));
    }
    outcome.add(p99_line(&ours));
    outcome.add(Line::new(
        NAME,
        "no useless split",
        format!("{} of {}", ours.useless.useless, ours.trace.splits),
        ours.useless.useless == 0,
    ));
    let mut curves = vec![Curve::max_over_mean("planner, fast", &ours.trace)];
    for (name, setting) in rivals(&fast) {
        let world = live(setting, 720.0);
        outcome.add(Line::compared(
            NAME,
            name,
            format!(
                "relieved after {}; max/mean at last {:.2}; {} splits, {} moves, at most {} of all load moved in a tick",
                seconds(relieved(&world)),
                world.trace.max_over_mean.last().copied().unwrap_or(0.0),
                world.trace.splits,
                world.trace.moves,
                percent(world.trace.churn_max() / 5e6),
            ),
        ));
        curves.push(Curve::max_over_mean(name, &world.trace));
    }
    let refused = Curve::new("planner, fast", &ours.trace.times, &ours.trace.refused);
    outcome.pictures.push(Picture::Curves {
        title: "flash crowd: share of all requests refused".to_owned(),
        unit: "share",
        limit: None,
        curves: vec![refused, Curve::new("planner, cloud", &cloud.trace.times, &cloud.trace.refused)],
    });
    outcome.balance("flash crowd at 120 s", 1.1, curves);
    outcome.heat("flash crowd: utilisation of servers", &ours.trace);
    outcome
}

/// The same crowd under other rules, and without the budget for moves.
fn rivals(fast: &Setting) -> Vec<(&'static str, Setting)> {
    let boundless = Policy { churn: 1.0, churn_emergency: 1.0, ..Policy::fast() };
    vec![
        ("static hashing", Setting { rule: Rule::Never, balances: false, ..fast.clone() }),
        ("split rule: every 15 s (WAS)", Setting { rule: Rule::FifteenSeconds, ..fast.clone() }),
        ("split rule: CockroachDB", Setting { rule: Rule::Cockroach, ..fast.clone() }),
        ("without churn budget", Setting { policy: boundless, ..fast.clone() }),
    ]
}

/// How long relief takes if the crowd comes at once after a plan was made, a second later, and so on.
fn whenever_it_begins(world: &World) -> Vec<f64> {
    let tick = world.setting.policy.tick.as_secs();
    let later = (1..tick).step_by(tick.div_ceil(5) as usize).map(|later| SOONER + later as f64);
    let later =
        later.map(|begins| relieved_after(&come(world.setting.clone(), begins, begins + 300.0), begins));
    std::iter::once(relieved_after(world, BEGINS))
        .chain(later)
        .map(|after| after.unwrap_or(f64::INFINITY))
        .collect()
}

fn live(setting: Setting, until: f64) -> World {
    come(setting, BEGINS, until)
}

fn come(setting: Setting, begins: f64, until: f64) -> World {
    let mut cells = even(RANGES, 50.0, 4);
    let owners: Vec<usize> = (0..RANGES as u64)
        .map(|cell| if CROWD.contains(&cell) { 0 } else { (cell as usize * 7_919) % setting.servers })
        .collect();
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
fn relieved(world: &World) -> Option<f64> {
    relieved_after(world, BEGINS)
}

fn relieved_after(world: &World, begins: f64) -> Option<f64> {
    let trace = &world.trace;
    trace.first_minute(begins, |trace, step| trace.refused[step] < 1e-9).map(|at| at - begins)
}

/// The share of the crowd's requests that was refused until it was relieved.
fn refused(world: &World) -> f64 {
    let until = BEGINS + relieved(world).unwrap_or(world.now - BEGINS);
    let crowd = BEFORE * TIMES * (CROWD.end - CROWD.start) as f64;
    let all = 50.0 * RANGES as f64 + crowd;
    world.trace.failed_share(BEGINS, until) * all / crowd
}

/// The latency of the other requests, if each server is a queue of its own (M/M/1): the worst second against the time
/// before.
fn p99_line(world: &World) -> Line {
    let column = |minute: usize| &world.trace.heat[minute];
    let minute = (BEGINS / 60.0) as usize;
    let before = p99(column(minute - 1));
    let worst = (minute..minute + 10).map(|minute| p99(column(minute))).fold(0.0, f64::max);
    Line::new(
        NAME,
        "others' p99 < 2 x (each server a queue)",
        format!("{:.2} x", worst / before),
        worst / before < 2.0,
    )
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
