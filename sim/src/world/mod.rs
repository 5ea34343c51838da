//! The simulated cluster: processes over one store, the faults that strike them, and the way to talk to them.
//!
//! ```text
//!   clients  --pipes-->  front end, partition servers   (the real code)   process 1
//!                        front end, partition servers                     process 2
//!                                   |  Door
//!                                 Bucket
//! ```
//!
//! All of it is tasks of one runtime with one thread. Its clock stands still while there is something to do, and jumps
//! when all tasks wait. When a process crashes, its door to the store is closed for good and its connections break;
//! its tasks may still run, but nothing that they do can be seen.

mod freeze;
mod manager;
mod nemesis;
mod planner;
mod process;
mod supervisor;

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::DateTime;
use object_store::path::Path;
use rangehold_engine::Step;
use tokio::sync::watch;
use tokio::time::sleep;

pub(crate) use freeze::Freezer;
pub use planner::Planned;
pub use process::Process;

use crate::chance::{Chance, Dice};
use crate::events::Events;
use crate::faults::Weather;
use crate::store::{Bucket, Refused};

/// The wall clock when a run begins: 14 November 2023.
const EPOCH_SECONDS: i64 = 1_700_000_000;

/// See the module. Clones are the same world.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    events: Events,
    weather: Weather,
    chance: Chance,
    bucket: Arc<Mutex<Bucket>>,
    slots: Vec<Slot>,
    size: Size,
    /// Where a process is to crash: at the end of this step of a change.
    trap: Mutex<Option<Step>>,
    findings: Mutex<Vec<String>>,
    asked: AtomicU64,
    changed: AtomicU64,
    planned: Arc<Planned>,
}

/// How large a cluster is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Number of processes.
    pub processes: usize,
    /// Partition servers in each process.
    pub servers: u64,
    /// Whether the real manager plans too. Only in a cluster of one process, since this manager assumes that all
    /// servers live and end with its own process.
    pub planner: Option<Planner>,
    /// Whether the service answers by the rules of the profile `cloud`; then also what one partition may have, in
    /// entities per second.
    pub cloud: Option<f64>,
    /// Whether ranges are split, merged and moved at random.
    pub random: bool,
    /// Whether there is a table of 3,000 rows.
    pub large: bool,
    /// Whether there are objects.
    pub objects: bool,
    /// After what time a page ends, if it is not the time of the profile.
    pub page_within: Option<Duration>,
    /// When the workloads end.
    pub lasts: Duration,
}

/// The load that the real manager plans for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Planner {
    /// The capacity of a server; the manager moves ranges.
    Moves(f64),
    /// The capacity of a range; the manager splits, merges and moves ranges.
    Splits(f64),
}

impl Default for Size {
    /// One process with one server. Only random changes happen in it.
    fn default() -> Self {
        Self {
            processes: 1,
            servers: 1,
            planner: None,
            cloud: None,
            random: true,
            large: false,
            objects: false,
            page_within: None,
            lasts: Duration::from_secs(60),
        }
    }
}

/// The place of a process, through all its lives.
struct Slot {
    /// The moment at which it came up, went down or was stopped.
    since: Mutex<Duration>,
    /// Whether it should run.
    wanted: watch::Sender<bool>,
    up: watch::Sender<Option<Arc<Process>>>,
    /// A life before that of `up`, which still runs.
    old: watch::Sender<Option<Arc<Process>>>,
    lives: AtomicU64,
    /// How far its wall clock is off.
    clock_ticks: AtomicI64,
}

impl World {
    /// A cluster of the given size, which starts at once: the first process makes the first range,
    /// the others follow.
    pub fn begin(chance: Chance, weather: Weather, events: Events, size: Size) -> Self {
        let epoch = DateTime::from_timestamp(EPOCH_SECONDS, 0).expect("it is a time");
        let slot = |_| Slot {
            wanted: watch::Sender::new(true),
            since: Mutex::new(Duration::ZERO),
            up: watch::Sender::new(None),
            old: watch::Sender::new(None),
            lives: AtomicU64::new(0),
            clock_ticks: AtomicI64::new(0),
        };
        let world = Self(Arc::new(Inner {
            events,
            weather,
            chance,
            bucket: Arc::new(Mutex::new(Bucket::new(epoch))),
            slots: (0..size.processes).map(slot).collect(),
            size,
            trap: Mutex::default(),
            findings: Mutex::default(),
            asked: AtomicU64::new(0),
            changed: AtomicU64::new(0),
            planned: Arc::default(),
        }));
        for number in 0..size.processes {
            tokio::spawn(world.clone().keep_up(number));
            tokio::spawn(world.clone().manage(number));
        }
        world
    }

    /// The log.
    pub fn events(&self) -> &Events {
        &self.0.events
    }

    /// The faults.
    pub fn weather(&self) -> &Weather {
        &self.0.weather
    }

    /// A generator for the purpose that `name` names.
    pub fn dice(&self, name: &str) -> Dice {
        self.0.chance.dice(name)
    }

    /// Time since the run began.
    pub fn now(&self) -> Duration {
        self.0.events.now()
    }

    /// How many processes there are; those that are down count too.
    pub fn processes(&self) -> usize {
        self.0.slots.len()
    }

    /// Process `number`, if it is up.
    pub fn process(&self, number: usize) -> Option<Arc<Process>> {
        self.0.slots[number].up.borrow().clone()
    }

    /// Notes that something is not as it must be.
    pub fn found(&self, finding: impl fmt::Display) {
        self.0.events.add("check", format_args!("FOUND {finding}"));
        self.0.findings.lock().unwrap_or_else(PoisonError::into_inner).push(finding.to_string());
    }

    /// All findings so far.
    pub fn findings(&self) -> Vec<String> {
        self.0.findings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a request of a client; returns its number.
    pub fn count_request(&self) -> u64 {
        self.0.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Changes of ranges that were carried out so far.
    pub fn changes(&self) -> u64 {
        self.0.changed.load(Ordering::Relaxed)
    }

    /// The next process that comes to the end of this step of a change crashes there.
    pub fn set_trap(&self, step: Step) {
        self.0.events.add("world", format_args!("a trap at {}", step.name()));
        *self.0.trap.lock().unwrap_or_else(PoisonError::into_inner) = Some(step);
    }

    /// How many changes the real manager planned and carried out so far.
    pub fn planned(&self) -> &Planned {
        &self.0.planned
    }

    /// How large the cluster is, and how long it lives.
    pub fn size(&self) -> Size {
        self.0.size
    }

    /// Whether the service answers by the rules of the profile `cloud`.
    pub fn is_cloud(&self) -> bool {
        self.0.size.cloud.is_some()
    }

    /// Whether a real manager plans.
    pub fn has_planner(&self) -> bool {
        self.0.size.planner.is_some()
    }

    /// Ends a process at once, and keeps it down.
    pub fn crash(&self, number: usize) {
        self.0.events.add("world", format_args!("crash of p{number}"));
        self.0.slots[number].wanted.send_replace(false);
        self.mark(number);
        if let Some(process) = self.0.slots[number].up.send_replace(None) {
            process.crash();
        }
    }

    /// How long a process has been up, down or stopped.
    fn for_how_long(&self, number: usize) -> Duration {
        let since = *self.0.slots[number].since.lock().unwrap_or_else(PoisonError::into_inner);
        self.now().saturating_sub(since)
    }

    fn mark(&self, number: usize) {
        *self.0.slots[number].since.lock().unwrap_or_else(PoisonError::into_inner) = self.now();
    }

    /// Starts a process that is down.
    pub fn restart(&self, number: usize) {
        self.0.slots[number].wanted.send_replace(true);
    }

    /// Stops a process where it is, or lets it go on.
    pub fn set_paused(&self, number: usize, paused: bool) {
        if let Some(process) = self.process(number) {
            self.0
                .events
                .add("world", format_args!("p{number} {}", if paused { "paused" } else { "goes on" }));
            self.mark(number);
            process.set_paused(paused);
        }
    }

    /// Steps the wall clock of a process, in this life and in later ones.
    pub fn step_clock(&self, number: usize, ticks: i64) {
        self.0.slots[number].clock_ticks.fetch_add(ticks, Ordering::Relaxed);
        if let Some(process) = self.process(number) {
            process.clock.step(ticks);
        }
    }

    /// Lets the store refuse these calls of a process, and no others.
    pub fn set_refused(&self, number: usize, refused: Refused) {
        if let Some(process) = self.process(number).filter(|process| process.refused() != refused) {
            let what = match refused {
                Refused::All => "is refused by the store",
                Refused::AllButRanges => "is let in by the store again, but only to its ranges",
                Refused::Nothing => "is let in by the store again",
            };
            self.0.events.add("world", format_args!("p{number} {what}"));
            self.mark(number);
            process.set_refused(refused);
        }
    }

    /// Lets a process run on, and starts another life of it beside it.
    pub fn start_twice(&self, number: usize) {
        let Some(process) = self.process(number).filter(|_| self.0.slots[number].old.borrow().is_none())
        else {
            return;
        };
        self.0.events.add("world", format_args!("p{number} is started while it runs"));
        self.mark(number);
        self.0.slots[number].old.send_replace(Some(process));
        self.0.slots[number].up.send_replace(None);
    }

    /// Ends the older one of two lives of a process.
    pub fn end_old_life(&self, number: usize) {
        if let Some(old) = self.0.slots[number].old.send_replace(None) {
            self.0.events.add("world", format_args!("the old life of p{number} ends"));
            old.crash();
        }
    }

    /// The process that a client finds when it connects to process `number`: with two lives, it may be either.
    pub fn process_for_client(&self, number: usize, dice: &mut Dice) -> Option<Arc<Process>> {
        let old = self.0.slots[number].old.borrow().clone();
        match old {
            Some(old) if dice.happens(0.5) => Some(old),
            _ => self.process(number),
        }
    }

    /// Makes the calls of a process slow, or as fast as those of others.
    pub fn set_slow(&self, number: usize, slow: bool) {
        if let Some(process) = self.process(number) {
            process.set_slow(slow);
        }
    }

    /// The names of all files of the store below `prefix`, as they are now.
    pub fn stored(&self, prefix: &str) -> Vec<String> {
        let bucket = self.0.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = bucket.list(self.now(), Some(&Path::from(prefix)));
        listed.into_iter().map(|meta| meta.location.to_string()).collect()
    }

    /// Brings back everything that was down or stood still.
    pub fn heal(&self) {
        self.0.events.add("world", format_args!("calm"));
        self.0.weather.calm_down();
        for number in 0..self.processes() {
            self.set_slow(number, false);
            self.end_old_life(number);
            self.set_refused(number, Refused::Nothing);
            if self.process(number).is_some_and(|process| process.is_paused()) {
                self.set_paused(number, false);
            }
            self.restart(number);
        }
    }

    /// Whether a process has crashed or come back since `moment`, or stands still. A process that waits for an answer
    /// of another one waits forever, as calls between processes have no connection that could break.
    pub fn was_troubled_since(&self, moment: Duration) -> bool {
        let since = |slot: &Slot| *slot.since.lock().unwrap_or_else(PoisonError::into_inner);
        let stands_still = |number| self.process(number).is_some_and(|process| !process.is_able());
        self.0.slots.iter().any(|slot| since(slot) >= moment) || (0..self.processes()).any(stands_still)
    }
}

/// Tries `once` again, a while after each failure, until it returns something or time is up.
pub async fn until_some<T, F: Future<Output = Option<T>>>(
    within: Duration,
    mut once: impl FnMut() -> F,
) -> Option<T> {
    let until = tokio::time::Instant::now() + within;
    loop {
        if let Some(found) = once().await {
            return Some(found);
        }
        if tokio::time::Instant::now() >= until {
            return None;
        }
        sleep(Duration::from_millis(200)).await;
    }
}
