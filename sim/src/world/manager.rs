//! The simulated manager. It gives the ranges of processes that do not answer to other processes, opens ranges that no
//! server holds, and splits, merges and moves ranges at random.
//!
//! Each process could be the manager. The first one that is up is the manager; with [`Fault::TwoManagers`] a second
//! one believes that it is the manager too. With [`Fault::WrongSuspicion`] a manager also takes the ranges of processes
//! that work. A manager does one thing at a time, in a task of its own. If its process
//! crashes, or the process that it waits for crashes, the task is dropped where it is.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rangehold_engine::{ChangeError, Executor, PartitionServer, Visit};
use rangehold_map::key::{BucketId, bucket_objects, table_prefix};
use rangehold_map::script::{Asked, Command, Names, Step};
use rangehold_map::{Change, Home, Key, PartitionPrefix, RangeEntry, RangeId, RangeMap, ServerId};
use rangehold_server::accounts::WELL_KNOWN_ACCOUNT;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{Process, World};
use crate::chance::Dice;
use crate::faults::Fault;

/// How long a process must be silent before its ranges are given to others.
const SILENT_FOR: Duration = Duration::from_secs(2);
/// How long a manager waits for one thing before it does another.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long a manager may be dead before the next one takes its place.
const ELECTED_AFTER: Duration = Duration::from_secs(1);
/// How long looking for a place to split may take.
const SCANNED_WITHIN: Duration = Duration::from_secs(2);
/// How long a split of a range that was taken from its process is waited for.
const SPLIT_WITHIN: Duration = Duration::from_secs(10);
/// With this many ranges nothing is split any more.
const RANGES_MAX: usize = 6;
/// While managers suspect wrongly: how many of their turns take the ranges of a process that may well work.
const SUSPICION_SHARE: f64 = 0.2;
/// How many of the splits are within a bucket, in runs whose scans are held up.
const WITHIN_BUCKET_SHARE: f64 = 0.8;

/// The things that a manager can do.
#[derive(Debug)]
enum Job {
    TakeOver(ServerId),
    OpenAll,
    Change(Change),
}

impl fmt::Display for Job {
    /// A change is written as a command of [`rangehold_map::script`], with the ids of tables as names. So the changes
    /// in a log are a script.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakeOver(server) => write!(f, "takes over from {server}"),
            Self::OpenAll => f.write_str("opens all"),
            Self::Change(change) => {
                let asked = Asked::of(change, &Names::new(WELL_KNOWN_ACCOUNT));
                write!(f, "{}", Command::Change { step: Step::Whole, asked })
            }
        }
    }
}

impl World {
    /// The manager in process `number`: acts while this process is the manager.
    pub(super) async fn manage(self, number: usize) {
        let mut dice = self.dice(&format!("manager {number}"));
        loop {
            sleep(Duration::from_millis(dice.between(150, 900))).await;
            let Some(process) = self.process(number).filter(|_| self.is_manager(number)) else { continue };
            let Some(job) = self.what_to_do(&process, &mut dice).await else { continue };
            self.do_one(&process, job).await;
        }
    }

    /// Whether process `number` believes that it is the manager.
    fn is_manager(&self, number: usize) -> bool {
        if self.weather().rages(Fault::ManagerDead) {
            return false;
        }
        let able = |number: &usize| {
            self.process(*number).is_some_and(|process| process.is_able())
                || self.for_how_long(*number) < ELECTED_AFTER
        };
        let managers = if self.weather().rages(Fault::TwoManagers) { 2 } else { 1 };
        (0..self.processes()).filter(able).take(managers).any(|manager| manager == number)
    }

    async fn what_to_do(&self, process: &Process, dice: &mut Dice) -> Option<Job> {
        let map = process.executor().maps().current();
        let silent = |entry: &&RangeEntry| entry.online && self.is_silent(entry.place.server);
        if let Some(entry) = map.entries().iter().find(silent) {
            return Some(Job::TakeOver(entry.place.server));
        }
        if self.weather().rages(Fault::WrongSuspicion) && dice.happens(SUSPICION_SHARE) {
            return Some(Job::TakeOver(dice.pick(map.entries()).place.server));
        }
        let broken_off = |entry: &RangeEntry| entry.intent.is_some();
        let unheld = |entry: &RangeEntry| entry.online && !self.holds(entry.place.server, entry.id);
        if map.entries().iter().any(|entry| broken_off(entry) || unheld(entry)) {
            return Some(Job::OpenAll);
        }
        if self.for_how_long(process.number) < Duration::from_secs(1) || !dice.happens(0.5) {
            return None;
        }
        if !self.0.size.random {
            return None;
        }
        self.some_change(&map, dice).await.map(Job::Change)
    }

    /// Carries a change out by the first process that is up, to its end or until it must be given up.
    pub async fn ask_for(&self, change: Change) {
        if let Some(process) = (0..self.processes()).find_map(|number| self.process(number)) {
            self.do_one(&process, Job::Change(change)).await;
        }
    }

    /// Does one thing, to its end or until it must be given up.
    async fn do_one(&self, process: &Arc<Process>, job: Job) {
        let (executor, life) = (process.executor().clone(), process.life);
        let number = process.number;
        self.events().add(format_args!("m{number}"), format_args!("{job}"));
        let is_change = matches!(job, Job::Change(_));
        let working: JoinHandle<Result<String, ChangeError>> =
            tokio::spawn(async move { work(&executor, job).await });
        let abort = working.abort_handle();
        let done = async {
            match working.await {
                Ok(Ok(done)) => {
                    self.0.changed.fetch_add(u64::from(is_change), Ordering::Relaxed);
                    self.events().add(format_args!("m{number}"), format_args!("{done}"));
                }
                Ok(Err(error)) => {
                    self.events().add(format_args!("m{number}"), format_args!("not done: {error}"))
                }
                Err(error) if error.is_cancelled() => {}
                Err(error) => self.found(format_args!("the manager in p{number} panicked: {error}")),
            }
        };
        let lives = || (0..self.processes()).map(|other| self.process(other).map(|up| up.life));
        let before: Vec<Option<u64>> = lives().collect();
        let lost = async {
            loop {
                sleep(Duration::from_millis(100)).await;
                let same = self.process(number).is_some_and(|process| process.life == life);
                // A manager gives up if the process that it waits for does not answer or was started again.
                let again = lives().zip(&before).any(|(now, before)| now.is_some() && now != *before);
                if !same || again || (0..self.processes()).any(|other| self.is_gone(other)) {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = done => return,
            () = lost => {}
            () = sleep(PATIENCE) => self.events().add(format_args!("m{number}"), format_args!("gives up")),
        }
        // If other processes got the work, it goes on there, but nothing waits for it here.
        if self.process(number).is_none_or(|process| process.life != life) {
            abort.abort();
        }
    }

    fn is_gone(&self, number: usize) -> bool {
        self.process(number).is_none_or(|process| !process.is_able())
            && self.for_how_long(number) > SILENT_FOR
    }

    /// Whether the process of a server has been silent for so long that it counts as dead.
    fn is_silent(&self, server: ServerId) -> bool {
        self.is_gone(self.process_of(server))
    }

    fn process_of(&self, server: ServerId) -> usize {
        usize::try_from((server.0 - 1) / self.0.size.servers).unwrap_or(usize::MAX)
    }

    fn holds(&self, server: ServerId, range: RangeId) -> bool {
        let Some(process) = self.process(self.process_of(server)) else { return false };
        let server = process.servers().iter().find(|own| own.id() == server);
        server.is_some_and(|server| server.holds(range))
    }

    /// The ranges that the map gives to the servers of process `number`.
    pub(super) fn held_by(&self, number: usize) -> Vec<RangeId> {
        let Some(process) = self.process(number) else { return Vec::new() };
        let map = process.executor().maps().current();
        let its = |entry: &&RangeEntry| self.process_of(entry.place.server) == number;
        map.entries().iter().filter(its).map(|entry| entry.id).collect()
    }

    /// Has one of these ranges, which process `number` held, split by the process that has taken it, if none of them was
    /// split or merged before. False if no other process has taken one, or if it could not be split.
    pub(super) async fn replace_taken(&self, number: usize, ranges: &[RangeId], dice: &mut Dice) -> bool {
        let mut up = (0..self.processes()).filter_map(|other| self.process(other));
        let Some(other) = up.find(|other| other.number != number && other.is_able()) else {
            return false;
        };
        let map = other.executor().maps().current();
        if ranges.iter().any(|range| map.get(*range).is_none()) {
            return true;
        }
        let taken = |entry: &&RangeEntry| {
            ranges.contains(&entry.id) && entry.online && self.process_of(entry.place.server) != number
        };
        let Some(entry) = map.entries().iter().find(taken) else { return false };
        let Some(split) = self.some_split(entry, dice).await else { return false };
        let (executor, job) = (other.executor().clone(), Job::Change(split));
        self.events().add("world", format_args!("{job}, which p{number} held before"));
        let working = tokio::spawn(async move { work(&executor, job).await });
        matches!(timeout(SPLIT_WITHIN, working).await, Ok(Ok(Ok(_))))
    }

    /// A change that makes sense, chosen at random.
    async fn some_change(&self, map: &RangeMap, dice: &mut Dice) -> Option<Change> {
        let entries = map.entries();
        // A range that is offline comes back soon, and at once during the calm.
        let offline = entries.iter().position(|entry| !entry.online);
        let back = offline.filter(|_| dice.happens(0.4) || self.weather().is_calm());
        let at = back.unwrap_or_else(|| dice.index(entries.len()));
        let entry = &entries[at];
        let (range, generation) = (entry.id, entry.generation);
        match dice.below(20) {
            _ if !entry.online => Some(Change::Online { range, generation }),
            0 if !self.weather().is_harmless() && !self.weather().is_calm() => {
                Some(Change::Offline { range, generation })
            }
            1..10 if entries.len() < RANGES_MAX => self.some_split(entry, dice).await,
            10..15 => {
                let right = entries.get(at + 1).filter(|right| right.online)?;
                Some(Change::Merge {
                    left: range,
                    left_generation: generation,
                    right: right.id,
                    right_generation: right.generation,
                })
            }
            15.. => {
                let up = (0..self.processes()).filter_map(|number| self.process(number));
                let servers: Vec<ServerId> = up
                    .flat_map(|process| process.servers().iter().map(PartitionServer::id).collect::<Vec<_>>())
                    .filter(|server| *server != entry.place.server)
                    .collect();
                let server = *servers.get(dice.index(servers.len().max(1)))?;
                Some(Change::Move { range, generation, to: Home { server, ..entry.place } })
            }
            _ => None,
        }
    }

    /// A split at the beginning of some existing partition, table or bucket. If scans are held up between ranges, it is often one
    /// within a bucket, however few names that has: else hardly any page of objects would be read from two ranges.
    async fn some_split(&self, entry: &RangeEntry, dice: &mut Dice) -> Option<Change> {
        let process = self.process(self.process_of(entry.place.server))?;
        let server = process.servers().iter().find(|own| own.id() == entry.place.server)?;
        let mut boundaries: Vec<Vec<u8>> = Vec::new();
        let mut buckets: BTreeMap<BucketId, Vec<Vec<u8>>> = BTreeMap::new();
        let mut visit = |key: &[u8], _: &bytes::Bytes| {
            for boundary in boundaries_at(key) {
                if boundary.as_slice() > entry.keys.low() && boundaries.last() != Some(&boundary) {
                    boundaries.push(boundary);
                }
            }
            if let Ok(Key::Object(object)) = Key::decode(key) {
                let boundary = PartitionPrefix::object(object.bucket, &object.name).as_bytes().to_vec();
                if boundary.as_slice() > entry.keys.low() {
                    buckets.entry(object.bucket).or_default().push(boundary);
                }
            }
            Visit::Next
        };
        let scanned = timeout(SCANNED_WITHIN, server.scan(&entry.keys, &mut visit)).await;
        if !matches!(scanned, Ok(Ok(_))) || boundaries.is_empty() {
            return None;
        }
        let within_bucket =
            self.weather().is_on(Fault::SlowScan) && !buckets.is_empty() && dice.happens(WITHIN_BUCKET_SHARE);
        let boundaries = match within_bucket {
            true => {
                let number = dice.index(buckets.len());
                buckets.into_values().nth(number)?
            }
            false => boundaries,
        };
        let at = dice.pick(&boundaries).clone();
        Some(Change::Split { range: entry.id, generation: entry.generation, at })
    }
}

/// Where ranges may be cut near a row: before its table or bucket, and before its partition.
fn boundaries_at(key: &[u8]) -> Vec<Vec<u8>> {
    match Key::decode(key) {
        Ok(Key::Entity { account, table, partition_key, .. }) => vec![
            table_prefix(&account, table),
            PartitionPrefix::entity(&account, table, &partition_key).as_bytes().to_vec(),
        ],
        Ok(Key::Object(object)) => vec![
            bucket_objects(object.bucket),
            PartitionPrefix::object(object.bucket, &object.name).as_bytes().to_vec(),
        ],
        Ok(Key::Blob { blob, .. }) => vec![PartitionPrefix::blob(blob).as_bytes().to_vec()],
        _ => Vec::new(),
    }
}

async fn work(executor: &Executor, job: Job) -> Result<String, ChangeError> {
    match job {
        Job::TakeOver(server) => {
            executor.take_over(server).await.map(|moved| format!("took over {}", moved.len()))
        }
        Job::OpenAll => executor.open_all().await.map(|()| "all open".to_owned()),
        Job::Change(change) => executor.carry_out(&change).await.map(|done| {
            format!("{:?} in version {}, held for {:?}", done.ranges, done.map_version, done.held_for)
        }),
    }
}
