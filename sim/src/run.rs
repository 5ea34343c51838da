//! One run: a cluster, its clients, the faults that strike it, and what was wrong.
//!
//! ```text
//!   0 s           tables are made, workloads begin, faults strike
//!   end - CALM    no more faults; everything comes back
//!   end           workloads end; everything is read once more and checked
//! ```
//!
//! The end is after a minute, or after ten in a long run, in which the space of old databases is collected too. If
//! faults keep the tables from being made within ten seconds, everything else happens that much later.

use std::fmt;
use std::panic;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, RngSeed, Runtime};
use tokio::time::sleep;

use crate::chance::Chance;
use crate::client::Client;
use crate::events::Events;
use crate::faults::{Fault, Weather};
use crate::workload::mix::Mix;
use crate::world::{Planner, Size, World};

/// By when the tables are made, unless faults delay that.
const SET_UP_BY: Duration = Duration::from_secs(10);
/// How long the calm at the end lasts.
const CALM: Duration = Duration::from_secs(15);
/// When workloads end in a long run.
const LONG: Duration = Duration::from_secs(600);
/// The share of clusters that answer by the rules of the profile `cloud`.
const CLOUD_SHARE: f64 = 0.2;
/// The share of clusters that have a table of 3,000 rows, among those without budgets.
const LARGE_SHARE: f64 = 0.3;
/// The share of clusters that have objects, among those without budgets.
const OBJECTS_SHARE: f64 = 0.35;
/// The share of clusters in which pages run out of time, and the bounds of that time in milliseconds.
const HURRIED_SHARE: f64 = 0.25;
const HURRIED_MS: (f64, f64) = (5.0, 200.0);
/// A run that has not ended after this time hangs.
const HANGS_AFTER: Duration = Duration::from_secs(1_800);

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// What was wrong, in words. Empty when the run has passed.
    pub findings: Vec<String>,
    /// Requests of clients.
    pub requests: u64,
    /// Simulated time.
    pub simulated: Duration,
    /// Events in the log, and its hash.
    pub digest: (u64, u64),
    /// The switches that were on, with how often each fault struck.
    pub faults: Vec<(Fault, u64)>,
    /// Histories too complex to be decided.
    pub undecided: usize,
    /// Changes of ranges that were chosen at random and carried out.
    pub changes: u64,
    /// Splits, merges and moves that the real manager planned and carried out.
    pub planned: [u64; 3],
}

/// Panics since the last run began, in words. A panic of a background task is otherwise silent.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Makes panics count as findings, and prints each of them if `loud`. Call it once, at the start of the program.
pub fn watch_panics(loud: bool) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
        if loud {
            usual(info);
        }
    }));
}

/// Runs `seed`; prints its log if it is asked for.
pub fn run(seed: u64, print_log: bool) -> Outcome {
    run_in(seed, Weather::of(Chance::of_seed(seed)), print_log)
}

/// Runs `seed` for ten simulated minutes; prints its log if it is asked for.
pub fn run_long(seed: u64, print_log: bool) -> Outcome {
    let chance = Chance::of_seed(seed);
    run_of(seed, Weather::of(chance), Size { lasts: LONG, ..size(chance) }, print_log)
}

/// Runs `seed` with faults that the caller chooses.
pub fn run_in(seed: u64, weather: Weather, print_log: bool) -> Outcome {
    run_of(seed, weather, size(Chance::of_seed(seed)), print_log)
}

/// Runs `seed` with faults and a cluster that the caller chooses.
pub fn run_of(seed: u64, weather: Weather, size: Size, print_log: bool) -> Outcome {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let runtime = runtime(seed);
    let mut outcome = runtime.block_on(async {
        let events = Events::begin(print_log);
        let chance = Chance::of_seed(seed);
        let world = World::begin(chance, weather.clone(), events.clone(), size);
        let undecided = match tokio::time::timeout(HANGS_AFTER, live(&world)).await {
            Ok(undecided) => undecided,
            Err(_) => {
                world.found(format_args!("the run did not end within {HANGS_AFTER:?}"));
                0
            }
        };
        Outcome {
            seed,
            findings: world.findings(),
            requests: world.requests(),
            simulated: events.now(),
            digest: events.digest(),
            faults: Fault::ALL
                .into_iter()
                .filter(|fault| weather.is_on(*fault))
                .map(|fault| (fault, weather.count(fault)))
                .collect(),
            undecided,
            changes: world.changes(),
            planned: world.planned().counts(),
        }
    });
    drop(runtime);
    outcome.findings.append(&mut PANICS.lock().unwrap_or_else(PoisonError::into_inner));
    outcome
}

/// A runtime for one run, with one thread and a clock that jumps.
pub fn runtime(seed: u64) -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .rng_seed(RngSeed::from_bytes(&seed.to_le_bytes()))
        .build()
        .expect("a runtime without IO always builds")
}

/// How large the cluster is.
fn size(chance: Chance) -> Size {
    let mut dice = chance.dice("size");
    let processes = *dice.pick(&[1, 2, 2, 3]);
    let servers = if processes == 1 { 3 } else { dice.between(1, 2) };
    let moves = (processes == 1 && dice.happens(0.5)).then(|| Planner::Moves(dice.spread(2.0, 40.0)));
    // This has dice of its own, so that older seeds keep the rest of their size.
    let mut dice = chance.dice("planner");
    let splits = (processes == 1 && dice.happens(0.5)).then(|| Planner::Splits(dice.spread(4.0, 16.0)));
    let mut dice = chance.dice("profile");
    let cloud = dice.happens(CLOUD_SHARE).then(|| dice.spread(8.0, 60.0));
    let mut dice = chance.dice("pages");
    let large = dice.happens(LARGE_SHARE) && cloud.is_none();
    let page_within = dice.happens(HURRIED_SHARE).then(|| dice.spread(HURRIED_MS.0, HURRIED_MS.1));
    let page_within = page_within.map(|ms| Duration::from_micros((ms * 1_000.0) as u64));
    let objects = chance.dice("objects at all").happens(OBJECTS_SHARE) && cloud.is_none();
    // If the real manager plans splits too, no random changes cross its plans.
    let random = splits.is_none();
    Size {
        processes,
        servers,
        planner: splits.or(moves),
        cloud,
        random,
        large,
        objects,
        page_within,
        ..Size::default()
    }
}

/// The whole of a run. Returns how many histories could not be decided.
async fn live(world: &World) -> usize {
    // It lives until the end, with its connections: a connection that closes earlier makes another run of a seed.
    let mut first = Client::new(world, "setup", None).only_once();
    let mix = Mix::set_up(world, &mut first).await;
    world.let_loose();

    // Faults of the store strike from the start, and can make the setup take long.
    let late = world.now().saturating_sub(SET_UP_BY);
    let end_at = world.size().lasts + late;
    let calm_at = end_at.saturating_sub(CALM);
    let mut workloads = mix.begin(calm_at, end_at);
    sleep(calm_at.saturating_sub(world.now())).await;
    world.heal();
    while let Some(ended) = workloads.join_next().await {
        if let Err(error) = ended {
            world.found(format_args!("a workload failed: {error}"));
        }
    }
    mix.go_on().await;
    mix.read_all().await
}

impl Outcome {
    /// Whether nothing was wrong.
    pub fn passed(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, requests, digest, changes, planned: [splits, merges, moves], .. } = self;
        let verdict = if self.passed() { "passed" } else { "FAILED" };
        write!(
            f,
            "seed {seed} {verdict}: {requests} requests, {changes} changes, planned {splits} splits, {merges} merges, {moves} moves, {} events in {} s, log {:016x}",
            digest.0,
            self.simulated.as_secs(),
            digest.1
        )?;
        for (fault, struck) in &self.faults {
            write!(f, ", {fault} {struck}")?;
        }
        for finding in &self.findings {
            write!(f, "\n    {finding}")?;
        }
        Ok(())
    }
}
