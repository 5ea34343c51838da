//! The housekeeper: one task that decides what is done to which database, and when.
//!
//! It owns what is known of each (when it failed last, what was collected), looks at all manifests
//! once a second and whenever something ended, and starts work as far as its lanes are free. The
//! work itself is done by tasks of their own; they touch nothing here and say only how it ended.

use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Tenant;
use super::budget::Budget;
use super::chores::{Chores, Lane};
use super::compactor::compact;
use super::garbage::{Due, collect};
use super::limits::{
    GARBAGE_FOUND_EVERY, GARBAGE_PER_POLL_MAX, HOUSEKEEPING_POLL, LAYERED_EVERY, REWRITING_AT_ONCE_MAX,
    REWRITTEN_BYTES_PER_SECOND, TIDYING_AT_ONCE_MAX,
};
use crate::database::{HousekeeperRequest, Surroundings};

/// See the module.
pub(super) struct Housekeeper {
    around: Surroundings,
    budget: Arc<Budget>,
    chores: Vec<Chores>,
    /// Counts tenants; a number is never given twice.
    numbers: u64,
    work: JoinSet<(u64, Ended)>,
    /// How many may be collected before the next look, those in a hurry apart.
    collections_left: usize,
    /// No collection of one that is as it was found begins before.
    found_at: Instant,
    /// No database is made one run before, only because it was left alone.
    layers_at: Instant,
}

/// How a piece of work ended.
enum Ended {
    Compacted(Result<(), String>),
    Collected(Due),
}

impl Housekeeper {
    pub(super) fn new(around: Surroundings) -> Self {
        Self {
            around,
            budget: Arc::new(Budget::new(REWRITTEN_BYTES_PER_SECOND)),
            chores: Vec::new(),
            numbers: 0,
            work: JoinSet::new(),
            collections_left: 0,
            found_at: Instant::now(),
            layers_at: Instant::now(),
        }
    }

    /// Keeps house for ever.
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
                    // A thousand of them come at once when a server opens.
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
                // The one before was closed, or will be told by the epoch that it was.
                let before = self.chores.iter_mut().filter(|chores| chores.is_at(&place.path));
                before.for_each(|chores| chores.leave(None));
                self.numbers += 1;
                self.chores.push(Chores::new(self.numbers, Tenant::new(place, db)));
            }
            HousekeeperRequest::Leave { path, left } => {
                match self.chores.iter_mut().find(|chores| chores.is_at(&path)) {
                    Some(chores) => chores.leave(Some(left)),
                    None => drop(left.send(())),
                }
            }
            HousekeeperRequest::Rewrite { path, done } => {
                match self.chores.iter_mut().find(|chores| chores.is_at(&path)) {
                    Some(chores) => chores.order(Some(done)),
                    None => drop(done.send(Err("the database is not open here".to_owned()))),
                }
            }
            HousekeeperRequest::Pins { answer } => {
                drop(answer.send(self.chores.iter().filter_map(Chores::pins).collect()))
            }
        }
        self.chores.retain_mut(Chores::stays);
    }

    fn forget_closed(&mut self) {
        self.chores.iter_mut().for_each(Chores::look);
        self.chores.retain_mut(Chores::stays);
    }

    fn note(&mut self, number: u64, ended: Ended) {
        let Some(chores) = self.chores.iter_mut().find(|chores| chores.number == number) else {
            return;
        };
        match ended {
            Ended::Compacted(result) => chores.compacted(result),
            Ended::Collected(due) => chores.collected(due),
        }
        self.chores.retain_mut(Chores::stays);
    }

    /// Starts collections: of all that are in a hurry, of a few that have changed, and now and then of one that
    /// was only opened.
    fn assign_collections(&mut self) {
        let now = Instant::now();
        for chores in &mut self.chores {
            let due = chores.due(now);
            match due {
                Due::Nothing => continue,
                Due::Rest if chores.is_as_found() => {
                    if now < self.found_at {
                        continue;
                    }
                    self.found_at = now + GARBAGE_FOUND_EVERY;
                }
                Due::Rest if self.collections_left == 0 => continue,
                Due::Rest => self.collections_left -= 1,
                Due::Log | Due::All => {}
            }
            chores.collecting = true;
            let (around, tenant, number) = (self.around.clone(), Arc::clone(&chores.tenant), chores.number);
            self.work.spawn(async move {
                collect(&around, &tenant, due).await;
                (number, Ended::Collected(due))
            });
        }
    }

    /// Starts compactors while there are lanes: where most files overlap, and where most is
    /// borrowed, first.
    fn assign_compactors(&mut self) {
        let now = Instant::now();
        let mut tidying: Vec<(usize, usize)> = Vec::new();
        let mut rewriting: Vec<(usize, usize)> = Vec::new();
        for (index, chores) in self.chores.iter_mut().enumerate() {
            let needs = chores.needs(now);
            if let (Some(overlapping), None) = (needs.tidying, chores.compactor) {
                tidying.push((overlapping, index));
            }
            if needs.rewriting > 0 && chores.compactor != Some(Lane::Rewriting) {
                rewriting.push((needs.rewriting, index));
            }
        }
        // Of equals the one that entered first.
        tidying.sort_by_key(|&(overlapping, index)| (usize::MAX - overlapping, index));
        rewriting.sort_by_key(|&(urgency, index)| (usize::MAX - urgency, index));
        for (_, index) in rewriting {
            if self.count(Lane::Rewriting) < REWRITING_AT_ONCE_MAX {
                self.start(index, Lane::Rewriting);
            }
        }
        for (_, index) in tidying {
            if self.chores[index].compactor.is_none() && self.count(Lane::Tidying) < TIDYING_AT_ONCE_MAX {
                self.start(index, Lane::Tidying);
            }
        }
    }

    /// Has one database made one run that was left alone in layers, if nothing else is rewritten.
    fn order_one_run(&mut self) {
        let now = Instant::now();
        if now < self.layers_at || self.count(Lane::Rewriting) > 0 {
            return;
        }
        if let Some(chores) = self.chores.iter_mut().find(|chores| chores.is_left_in_layers(now)) {
            self.layers_at = now + LAYERED_EVERY;
            chores.order(None);
        }
    }

    fn count(&self, lane: Lane) -> usize {
        self.chores.iter().filter(|chores| chores.compactor == Some(lane)).count()
    }

    /// Starts a compactor in a lane, or has the one that tidies go on to rewrite.
    fn start(&mut self, index: usize, lane: Lane) {
        let chores = &mut self.chores[index];
        if lane == Lane::Rewriting {
            chores.tenant.goal.set(chores.goal());
        }
        if chores.compactor.replace(lane).is_some() {
            return;
        }
        let (around, tenant) = (self.around.clone(), Arc::clone(&chores.tenant));
        let (budget, number) = (Arc::clone(&self.budget), chores.number);
        self.work.spawn(async move { (number, Ended::Compacted(compact(around, tenant, budget).await)) });
    }
}
