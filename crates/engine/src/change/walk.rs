//! One walk of a split or a merge: does what [the table](super::table) says, until the end.
//!
//! The process that makes a change walks by [`make`]. A process that finds it broken off walks by [`resume`]: it
//! finishes the change or undoes it. Every step may be done again by another walk, after a crash of this one.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join;
use tokio::sync::OwnedMutexGuard;
use tokio::time::sleep;
use uuid::Uuid;

use super::intent::NotPublished;
use super::record::{self, Decided, Decision};
use super::replacement::Replacement;
use super::table::{Act, Attempt, End, Map, Phase, Row, Saw, Seen};
use super::{ChangeError, Changed, StepError, heirs, intent, parents};
use crate::error::with_causes;
use crate::limits::{DECIDE_AGAIN_AFTER, DECIDE_ATTEMPTS_MAX};
use crate::map_store::Maps;
use crate::partition_server::PartitionServer;
use crate::range::{Frozen, Inheritance, Range, WarmRows};
use crate::record_name::RecordName;
use crate::steps::Step;

/// Makes a change whose intent is in the map. The server serves the parents, and will serve the heirs.
pub(crate) async fn make(
    maps: &Maps,
    server: &PartitionServer,
    change: Replacement,
) -> Result<Changed, ChangeError> {
    let range = change.begun().id;
    let mut walk = Walk::new(maps, server, change, Seen::making());
    match walk.run().await? {
        Some(changed) => Ok(changed),
        None => Err(walk.failed.unwrap_or(StepError::UndoneElsewhere).undone(range)),
    }
}

/// Brings a change that was broken off to its end. The server opens the ranges; it serves the heirs if the change
/// counts, unless one of the `others` serves them already. If it does not count, the parents are closed again and the
/// map says so.
pub(crate) async fn resume(
    maps: &Maps,
    server: &PartitionServer,
    others: &[PartitionServer],
    change: Replacement,
) -> Result<(), ChangeError> {
    Walk { others, ..Walk::new(maps, server, change, Seen::resuming()) }.run().await.map(drop)
}

struct Walk<'a> {
    maps: &'a Maps,
    /// The server that opens the ranges, and serves the heirs.
    server: &'a PartitionServer,
    /// Servers that may serve the heirs already.
    others: &'a [PartitionServer],
    change: Replacement,
    seen: Seen,
    /// Whether this process makes the change, and had the parents before it began.
    makes: bool,
    parents: Vec<Arc<Range>>,
    /// Keeps other changes away from the parents.
    alone: Vec<OwnedMutexGuard<()>>,
    frozen: Vec<Frozen>,
    checkpoints: Vec<Uuid>,
    warm: WarmRows,
    inheritance: Inheritance,
    heirs: Vec<Arc<Range>>,
    map_version: u64,
    held_for: Duration,
    /// Why the change is not made, or is broken off.
    failed: Option<StepError>,
}

impl<'a> Walk<'a> {
    fn new(maps: &'a Maps, server: &'a PartitionServer, change: Replacement, seen: Seen) -> Self {
        Self {
            maps,
            server,
            others: &[],
            change,
            seen,
            makes: seen.phase == Phase::Making,
            parents: Vec::new(),
            alone: Vec::new(),
            frozen: Vec::new(),
            checkpoints: Vec::new(),
            warm: WarmRows::default(),
            inheritance: Inheritance::default(),
            heirs: Vec::new(),
            map_version: 0,
            held_for: Duration::ZERO,
            failed: None,
        }
    }

    /// Walks to the end. Returns what was changed; `None` if the change is undone.
    async fn run(&mut self) -> Result<Option<Changed>, ChangeError> {
        loop {
            let act = self.seen.next();
            if let Act::End(end) = act {
                return self.end(end).await;
            }
            tracing::debug!(range = %self.change.begun().id, step = %act, "a step of a change");
            let saw = match self.step(act).await {
                Ok(saw) => saw,
                Err(error) => {
                    let (range, why) = (self.change.begun().id, with_causes(&error));
                    tracing::warn!(%range, step = %act, error = why, "a step of a change failed");
                    // Why a change is undone is the first failure; why it is broken off, the last.
                    self.failed = Some(error);
                    Saw::Failed
                }
            };
            self.seen = self.seen.after(act, saw);
        }
    }

    async fn step(&mut self, act: Act) -> Result<Saw, StepError> {
        match act {
            Act::Hold => self.hold().await,
            Act::Retire => self.retire().await,
            Act::MakeHeirs => self.make_heirs().await,
            Act::Record(attempt) => self.record(attempt).await,
            Act::OpenParents => self.open_parents().await,
            Act::Decide => self.decide().await,
            Act::SettleOther => self.settle_other().await,
            Act::LookAtMap => self.look_at_map().await,
            Act::OpenHeirs(attempt) => self.open_heirs(attempt).await,
            Act::AskLease => self.ask_lease().await,
            Act::Serve => self.serve().await,
            Act::Inherit => self.inherit().await,
            Act::PublishDone => self.publish_done().await,
            Act::Unretire => self.unretire().await,
            Act::PublishUndone => self.publish_undone().await,
            Act::End(_) => unreachable!("the end is not a step"),
        }
    }

    async fn hold(&mut self) -> Result<Saw, StepError> {
        for entry in self.change.parents() {
            self.parents.push(self.server.held(entry.id, entry.generation)?);
        }
        // In the order of keys, so that two changes that want the same two ranges do not wait for each other.
        for range in &self.parents {
            self.alone.push(range.change_alone().await);
        }
        heirs::make_directories(self.server, &self.change).await;
        for range in &self.parents {
            let not_ready = |waits_for| StepError::NotReady { range: range.id(), waits_for };
            range.get_ready(Duration::ZERO).await.map_err(not_ready)?;
        }
        let mut frozen = parents::freeze(&self.parents).await?;
        self.after(Step::Frozen).await;
        // From here on the ranges may be retired, and must not be served as they are.
        frozen.iter_mut().for_each(Frozen::seal);
        self.frozen = frozen;
        Ok(Saw::Worked)
    }

    async fn retire(&mut self) -> Result<Saw, StepError> {
        self.checkpoints = parents::retire(&self.parents, self.record_name()).await?;
        self.after(Step::Retired).await;
        let inherited = self.parents.iter().map(|range| range.inheritance());
        self.inheritance = inherited.reduce(Inheritance::union).unwrap_or_default();
        Ok(Saw::Worked)
    }

    async fn make_heirs(&mut self) -> Result<Saw, StepError> {
        let attempt = heirs::make(self.server, &self.change, &self.parents, &self.checkpoints).await?;
        // Not before: a second attempt to make the heirs retires the parents again, by another row.
        self.warm = WarmRows::of(&self.parents);
        self.after(Step::Cloned).await;
        Ok(Saw::Made(attempt))
    }

    /// The commit point.
    async fn record(&mut self, attempt: Attempt) -> Result<Saw, StepError> {
        let recording = self.decide_done(attempt);
        // At the same time, because writes are held. Open does not mean served, and heirs that do not count lie where
        // nobody will look, because no path is used twice.
        let opening = heirs::open(self.server, &self.change, attempt, &self.inheritance);
        let (decided, opened) = join(recording, opening).await;
        match (decided, opened) {
            (Ok(Decided::ByUs), Ok(opened)) => {
                self.heirs = opened;
                self.after(Step::HeirsOpen).await;
                Ok(Saw::Worked)
            }
            // It counts, and the heirs are still to be opened.
            (Ok(Decided::ByUs), Err(error)) => {
                self.failed = Some(error.into());
                Ok(Saw::Decided(Some(attempt)))
            }
            (decided, opened) => {
                heirs::give_up(self.server, opened.unwrap_or_default());
                match decided? {
                    Decided::ByUs => unreachable!("seen above"),
                    Decided::Before(decision) => Ok(self.decided(decision).await),
                }
            }
        }
    }

    async fn decide_done(&self, attempt: Attempt) -> Result<Decided, StepError> {
        let done = Decision::Done { attempt, inheritance: self.inheritance.clone() };
        let decided = self.decide_record(&done).await?;
        if decided == Decided::ByUs {
            self.after(Step::Recorded).await;
        }
        Ok(decided)
    }

    async fn open_parents(&mut self) -> Result<Saw, StepError> {
        parents::open(self.server, self.change.parents(), &mut self.parents).await?;
        Ok(Saw::Row(self.row()))
    }

    /// What the parents' databases say, of all parents together.
    fn row(&self) -> Row {
        let retired: Vec<RecordName> = self.parents.iter().filter_map(|range| range.retired()).collect();
        if retired.is_empty() {
            return Row::Absent;
        }
        if retired.iter().all(|record| *record == self.record_name()) { Row::This } else { Row::Another }
    }

    async fn decide(&mut self) -> Result<Saw, StepError> {
        let decision = match self.decide_record(&Decision::Undone).await? {
            Decided::ByUs => Decision::Undone,
            Decided::Before(decision) => decision,
        };
        Ok(self.decided(decision).await)
    }

    /// Takes over what the record says.
    async fn decided(&mut self, decision: Decision) -> Saw {
        match decision {
            Decision::Undone => {
                self.after(Step::UndoDecided).await;
                Saw::Decided(None)
            }
            Decision::Done { attempt, inheritance } => {
                self.inheritance = inheritance;
                Saw::Decided(Some(attempt))
            }
        }
    }

    async fn settle_other(&mut self) -> Result<Saw, StepError> {
        for range in &self.parents {
            let Some(other) = range.retired().filter(|other| *other != self.record_name()) else { continue };
            if let parents::Other::Counts = parents::settle_other(self.maps, range, other).await? {
                return Ok(Saw::MapTooOld);
            }
        }
        Ok(Saw::Row(self.row()))
    }

    async fn look_at_map(&mut self) -> Result<Saw, StepError> {
        let map = until_answered(|| self.maps.refresh()).await?;
        if !self.change.is_begun_in(&map) || self.heirs.iter().any(|heir| heir.retired().is_some()) {
            return Ok(Saw::Map(Map::GoneOn));
        }
        if self.heirs.is_empty()
            && let Some((server, heirs)) = self.served_heirs()
        {
            (self.server, self.heirs) = (server, heirs);
            return Ok(Saw::Served);
        }
        Ok(Saw::Map(Map::Ours))
    }

    /// The heirs, if the change counts and one server serves all of them.
    fn served_heirs(&self) -> Option<(&'a PartitionServer, Vec<Arc<Range>>)> {
        let Phase::Finishing(attempt) = self.seen.phase else { return None };
        self.others.iter().find_map(|server| {
            let heirs = self.change.heirs_of(attempt).map(|heir| server.serving(heir.id, heir.database));
            Some((server, heirs.collect::<Option<Vec<_>>>()?))
        })
    }

    async fn open_heirs(&mut self, attempt: Attempt) -> Result<Saw, StepError> {
        self.heirs = heirs::open(self.server, &self.change, attempt, &self.inheritance).await?;
        if self.makes {
            self.after(Step::HeirsOpen).await;
        }
        Ok(Saw::Worked)
    }

    async fn ask_lease(&mut self) -> Result<Saw, StepError> {
        let holds = self.server.may_serve().await;
        if !holds {
            self.failed = Some(StepError::NoLease(self.server.id()));
        }
        Ok(Saw::Lease(holds))
    }

    async fn serve(&mut self) -> Result<Saw, StepError> {
        if !self.makes {
            self.server.replace_in_set(&[], &self.heirs);
            return Ok(Saw::Worked);
        }
        // Nobody may read the old rows once a new one can be acknowledged.
        self.parents.iter().for_each(|range| range.let_go());
        std::mem::take(&mut self.warm).hand_over(&self.heirs);
        self.server.replace_in_set(&self.parents, &self.heirs);
        self.after(Step::Served).await;
        self.held_for = self.frozen.drain(..).map(Frozen::pass_on).max().unwrap_or_default();
        self.server.abandon(self.parents.clone());
        Ok(Saw::Worked)
    }

    async fn inherit(&mut self) -> Result<Saw, StepError> {
        heirs::save_inheritance(&self.heirs, &self.inheritance).await?;
        self.after(Step::Inherited).await;
        Ok(Saw::Worked)
    }

    async fn publish_done(&mut self) -> Result<Saw, StepError> {
        let Phase::Finishing(attempt) = self.seen.phase else {
            unreachable!("only a change that counts is done")
        };
        let done = |map: &_| self.change.done(map, attempt, self.server.id());
        match intent::publish(self.maps, self.change.begun(), done).await {
            Ok(map) => self.map_version = map.version(),
            Err(NotPublished::Unsound(error)) => return Err(error.into()),
            Err(NotPublished::Overtaken) => {
                // Two walks that found the same heirs served write the same map.
                let map = self.maps.current();
                if !self.change.is_done_in(&map, attempt, self.server.id()) {
                    return Ok(Saw::Overtaken);
                }
                self.map_version = map.version();
            }
        }
        self.after(Step::Published).await;
        Ok(Saw::Worked)
    }

    async fn unretire(&mut self) -> Result<Saw, StepError> {
        parents::unretire(&self.parents).await?;
        self.warm = WarmRows::default();
        self.after(Step::Restored).await;
        self.frozen.drain(..).for_each(Frozen::open);
        Ok(Saw::Worked)
    }

    async fn publish_undone(&mut self) -> Result<Saw, StepError> {
        let map = match intent::publish_undone(self.maps, self.change.begun()).await {
            Ok(map) => map,
            Err(NotPublished::Overtaken) => return Ok(Saw::Overtaken),
            Err(NotPublished::Unsound(error)) => return Err(error.into()),
        };
        if self.makes {
            for entry in self.change.parents().iter().filter_map(|parent| map.get(parent.id)) {
                self.server.renumber(entry.id, entry.generation);
            }
        }
        self.after(Step::UndoPublished).await;
        Ok(Saw::Worked)
    }

    /// Gives up what is open and not served, and says what came of the change.
    async fn end(&mut self, end: End) -> Result<Option<Changed>, ChangeError> {
        let range = self.change.begun().id;
        let is_served = self.seen.heirs == super::table::Heirs::Served;
        match end {
            End::Undone if !self.makes => {
                // They are opened again where the map wants them, in their next generation.
                parents::close_all(&self.parents).await;
            }
            End::Done | End::Undone => {}
            End::Overtaken if is_served => self.server.withdraw(&self.change.heirs(), &self.maps.current()),
            End::Overtaken | End::BrokenOff | End::MapTooOld if !is_served => {
                parents::end_all(&self.heirs).await
            }
            End::Overtaken | End::BrokenOff | End::MapTooOld => {}
        }
        if !self.makes && end != End::Undone {
            parents::end_all(&self.parents).await;
        }
        match end {
            End::Done => Ok(Some(Changed {
                map_version: self.map_version,
                ranges: self.change.heirs(),
                held_for: self.held_for,
            })),
            End::Undone => Ok(None),
            End::Overtaken => Err(ChangeError::Overtaken { range }),
            End::MapTooOld => Err(ChangeError::MapTooOld(range, self.record_name())),
            End::BrokenOff => {
                let source = self.failed.take().expect("a walk breaks off because a step failed");
                Err(ChangeError::BrokenOff { range, source })
            }
        }
    }

    fn record_name(&self) -> RecordName {
        self.change.record()
    }

    async fn decide_record(&self, decision: &Decision) -> Result<Decided, StepError> {
        until_answered(|| record::decide(self.record_name(), self.maps.objects(), decision)).await
    }

    async fn after(&self, step: Step) {
        self.server.after(step, self.change.begun().id).await;
    }
}

/// Asks the store again and again, up to [`DECIDE_ATTEMPTS_MAX`] times, while it fails: without its answer nothing can
/// go on.
async fn until_answered<T, E, F>(ask: impl Fn() -> F) -> Result<T, StepError>
where
    E: Into<StepError>,
    F: Future<Output = Result<T, E>>,
{
    for _ in 1..DECIDE_ATTEMPTS_MAX {
        match ask().await.map_err(Into::into) {
            Err(error) if error.is_unanswered() => sleep(DECIDE_AGAIN_AFTER).await,
            answer => return answer,
        }
    }
    ask().await.map_err(Into::into)
}
