//! The housekeeper: one task that decides what is done with which database, and when.
//!
//! It keeps what it knows of each database (when its last failure was, what was collected). It looks at all
//! manifests once a second, and after each piece of work. It starts as much work as there are free lanes.
//! Each piece of work is a task of its own, which changes nothing here and only reports how it ended.

use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::OpenDatabase;
use super::budget::Budget;
use super::compactor::compact;
use super::garbage::{Due, collect};
use super::limits::{
    GARBAGE_FOUND_EVERY, GARBAGE_PER_POLL_MAX, HOUSEKEEPING_POLL, LAYERED_EVERY, REWRITING_AT_ONCE_MAX,
    REWRITTEN_BYTES_PER_SECOND, TIDYING_AT_ONCE_MAX,
};
use super::upkeep::{Lane, Upkeep};
use crate::database::{CompactionError, Databases, HousekeeperRequest};

/// Decides what is done with the databases. The module says how.
pub(super) struct Housekeeper {
    databases: Databases,
    budget: Arc<Budget>,
    upkeep: Vec<Upkeep>,
    /// Counts the databases that were entered. No number is given twice.
    numbers: u64,
    work: JoinSet<(u64, Ended)>,
    /// How many databases may still be collected before the next look. Urgent collections do not count.
    collections_left: usize,
    /// Before this time, no database is collected that has not changed since it was opened.
    found_at: Instant,
    /// Before this time, no database is rewritten into one run merely because it has not changed for a
    /// while.
    layers_at: Instant,
}

/// How a piece of work ended.
enum Ended {
    Compacted(Result<(), CompactionError>),
    Collected(Due),
}

impl Housekeeper {
    pub(super) fn new(databases: Databases) -> Self {
        Self {
            databases,
            budget: Arc::new(Budget::new(REWRITTEN_BYTES_PER_SECOND)),
            upkeep: Vec::new(),
            numbers: 0,
            work: JoinSet::new(),
            collections_left: 0,
            found_at: Instant::now(),
            layers_at: Instant::now(),
        }
    }

    /// Works until the task is stopped.
    pub(super) async fn run(mut self, mut requests: mpsc::UnboundedReceiver<HousekeeperRequest>) {
        let mut poll = interval(HOUSEKEEPING_POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = poll.tick() => {
                    self.collections_left = GARBAGE_PER_POLL_MAX;
                    self.forget_closed();
                    self.assign_collections();
                    self.order_one_run();
                }
                Some(request) = requests.recv() => {
                    self.serve(request);
                    // When a server opens, a thousand requests may come at once.
                    while let Ok(request) = requests.try_recv() {
                        self.serve(request);
                    }
                }
                Some(ended) = self.work.join_next() => match ended {
                    Ok((number, ended)) => self.note(number, ended),
                    Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                    Err(_) => {}
                }
            }
            self.assign_compactors();
        }
    }

    fn serve(&mut self, request: HousekeeperRequest) {
        match request {
            HousekeeperRequest::Enter { place, db } => {
                // An earlier opening of the same database was closed, or will find by the epoch that it is
                // shut out.
                let before = self.upkeep.iter_mut().filter(|upkeep| upkeep.is_at(&place.path));
                before.for_each(|upkeep| upkeep.leave(None));
                self.numbers += 1;
                self.upkeep.push(Upkeep::new(self.numbers, OpenDatabase::new(place, db)));
            }
            HousekeeperRequest::Leave { path, left } => {
                match self.upkeep.iter_mut().find(|upkeep| upkeep.is_at(&path)) {
                    Some(upkeep) => upkeep.leave(Some(left)),
                    None => drop(left.send(())),
                }
            }
            HousekeeperRequest::Rewrite { path, done } => {
                match self.upkeep.iter_mut().find(|upkeep| upkeep.is_at(&path)) {
                    Some(upkeep) => upkeep.order(Some(done)),
                    None => drop(done.send(Err(CompactionError::NotOpen))),
                }
            }
            HousekeeperRequest::Pins { answer } => {
                drop(answer.send(self.upkeep.iter().filter_map(Upkeep::pins).collect()))
            }
        }
        self.upkeep.retain_mut(Upkeep::stays);
    }

    fn forget_closed(&mut self) {
        self.upkeep.iter_mut().for_each(Upkeep::look);
        self.upkeep.retain_mut(Upkeep::stays);
    }

    fn note(&mut self, number: u64, ended: Ended) {
        let Some(upkeep) = self.upkeep.iter_mut().find(|upkeep| upkeep.number == number) else {
            return;
        };
        match ended {
            Ended::Compacted(result) => upkeep.compacted(result),
            Ended::Collected(due) => upkeep.collected(due),
        }
        self.upkeep.retain_mut(Upkeep::stays);
    }

    /// Starts collections: of all databases where it is urgent, of a few that have changed, and now and
    /// then of one that was only opened.
    fn assign_collections(&mut self) {
        let now = Instant::now();
        for upkeep in &mut self.upkeep {
            let due = upkeep.due(now);
            match due {
                Due::Nothing => continue,
                Due::Rest if upkeep.is_as_found() => {
                    if now < self.found_at {
                        continue;
                    }
                    self.found_at = now + GARBAGE_FOUND_EVERY;
                }
                Due::Rest if self.collections_left == 0 => continue,
                Due::Rest => self.collections_left -= 1,
                Due::Log | Due::All => {}
            }
            upkeep.collecting = true;
            let (databases, database, number) =
                (self.databases.clone(), Arc::clone(&upkeep.database), upkeep.number);
            self.work.spawn(async move {
                collect(&databases, &database, due).await;
                (number, Ended::Collected(due))
            });
        }
    }

    /// Starts compactors while there are free lanes: first for the databases with the most overlapping
    /// files, and for those that borrow from the most others.
    fn assign_compactors(&mut self) {
        let now = Instant::now();
        let mut tidying: Vec<(usize, usize)> = Vec::new();
        let mut rewriting: Vec<(usize, usize)> = Vec::new();
        for (index, upkeep) in self.upkeep.iter_mut().enumerate() {
            let needs = upkeep.needs(now);
            if let (Some(overlapping), None) = (needs.tidying, upkeep.compactor) {
                tidying.push((overlapping, index));
            }
            if needs.rewriting > 0 && upkeep.compactor != Some(Lane::Rewriting) {
                rewriting.push((needs.rewriting, index));
            }
        }
        // Among equals, the database that entered first comes first.
        tidying.sort_by_key(|&(overlapping, index)| (usize::MAX - overlapping, index));
        rewriting.sort_by_key(|&(urgency, index)| (usize::MAX - urgency, index));
        for (_, index) in rewriting {
            if self.count(Lane::Rewriting) < REWRITING_AT_ONCE_MAX {
                self.start(index, Lane::Rewriting);
            }
        }
        for (_, index) in tidying {
            if self.upkeep[index].compactor.is_none() && self.count(Lane::Tidying) < TIDYING_AT_ONCE_MAX {
                self.start(index, Lane::Tidying);
            }
        }
    }

    /// Orders that one database is rewritten into one run, if it has not changed for a while and has
    /// several layers. Does nothing while another database is being rewritten.
    fn order_one_run(&mut self) {
        let now = Instant::now();
        if now < self.layers_at || self.count(Lane::Rewriting) > 0 {
            return;
        }
        if let Some(upkeep) = self.upkeep.iter_mut().find(|upkeep| upkeep.is_left_in_layers(now)) {
            self.layers_at = now + LAYERED_EVERY;
            upkeep.order(None);
        }
    }

    fn count(&self, lane: Lane) -> usize {
        self.upkeep.iter().filter(|upkeep| upkeep.compactor == Some(lane)).count()
    }

    /// Starts a compactor in a lane. If the database has a compactor that tidies, that one goes on to
    /// rewrite.
    fn start(&mut self, index: usize, lane: Lane) {
        let upkeep = &mut self.upkeep[index];
        if lane == Lane::Rewriting {
            upkeep.database.goal.set(upkeep.goal());
        }
        if upkeep.compactor.replace(lane).is_some() {
            return;
        }
        let (databases, database) = (self.databases.clone(), Arc::clone(&upkeep.database));
        let (budget, number) = (Arc::clone(&self.budget), upkeep.number);
        self.work
            .spawn(async move { (number, Ended::Compacted(compact(databases, database, budget).await)) });
    }
}
