//! Split and merge: ranges of one server are replaced by others of the same server.
//!
//! Both are the same walk, from one retired range to two heirs or from two to one. Nothing in it
//! depends on which, but for the keys that each heir has of each range.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, join_all};
use rangehold_map::{DatabaseName, Generation, KeyRange, RangeId};
use tokio::time::sleep;
use uuid::Uuid;

use super::clone::{self, Source};
use super::record::{self, Decided, Decision};
use super::resolve::end_all;
use super::{ChangeError, undone};
use crate::error::OpenError;
use crate::limits::{CLONE_ATTEMPTS_MAX, DECIDE_AGAIN_AFTER, DECIDE_ATTEMPTS_MAX};
use crate::map_store::{self, heir};
use crate::mutants::{self, Mutant};
use crate::partition_server::PartitionServer;
use crate::range::{Frozen, Identity, Inheritance, Range};
use crate::record_name::RecordName;
use crate::steps::Step;

/// A split, as its intent in the map says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SplitOrder {
    /// The range.
    pub(crate) range: RangeId,
    /// The generation for which the split was made.
    pub(crate) generation: Generation,
    /// The first key of the right half.
    pub(crate) at: Vec<u8>,
    /// The range that will hold the keys below `at`.
    pub(crate) left: RangeId,
    /// The range that will hold the rest.
    pub(crate) right: RangeId,
}

/// A merge, as its intents in the map say. Both ranges are on the server that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergeOrder {
    /// The range with the lower keys, and the generation for which the merge was made.
    pub(crate) left: (RangeId, Generation),
    /// Its neighbour.
    pub(crate) right: (RangeId, Generation),
    /// The range that will hold the keys of both.
    pub(crate) into: RangeId,
}

/// Ranges that were replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replaced {
    /// The databases of the new ranges, in the order of their keys.
    pub(crate) databases: Vec<DatabaseName>,
    /// How long writes were held.
    pub(crate) held_for: Duration,
}

/// What is to become of which ranges.
struct Plan {
    record: RecordName,
    old: Vec<Arc<Range>>,
    /// The ids of the new ranges and their keys.
    new: Vec<(RangeId, KeyRange)>,
    /// Checkpoints that were made before the freeze, by [`Mutant::EarlyCheckpoint`].
    early: Vec<Uuid>,
}

/// What counts from now on.
struct Committed {
    attempt: u64,
    inheritance: Inheritance,
    /// Open, and not yet served.
    heirs: Result<Vec<Arc<Range>>, OpenError>,
}

impl PartitionServer {
    /// Carries out a split whose intent is in the map.
    pub(crate) async fn split(&self, order: &SplitOrder) -> Result<Replaced, ChangeError> {
        let range = self.held(order.range, order.generation)?;
        let keys = range.keys();
        let left = KeyRange::new(keys.low().to_vec(), Some(order.at.clone()));
        let right = KeyRange::new(order.at.clone(), keys.high().map(<[u8]>::to_vec));
        self.replace(Plan {
            record: RecordName { range: order.range, generation: order.generation.next() },
            old: vec![range],
            new: vec![(order.left, left), (order.right, right)],
            early: Vec::new(),
        })
        .await
    }

    /// Carries out a merge whose intents are in the map.
    pub(crate) async fn merge(&self, order: &MergeOrder) -> Result<Replaced, ChangeError> {
        let left = self.held(order.left.0, order.left.1)?;
        let right = self.held(order.right.0, order.right.1)?;
        let keys = KeyRange::new(left.keys().low().to_vec(), right.keys().high().map(<[u8]>::to_vec));
        self.replace(Plan {
            record: RecordName { range: order.left.0, generation: order.left.1.next() },
            old: vec![left, right],
            new: vec![(order.into, keys)],
            early: Vec::new(),
        })
        .await
    }

    /// Brings a range near the state in which its freeze is short; see [`ChangeError::NotYet`].
    pub(crate) async fn get_ready(
        &self,
        range: RangeId,
        generation: Generation,
        within: Duration,
    ) -> Result<(), ChangeError> {
        let held = self.held(range, generation)?;
        held.get_ready(within).await.map_err(|waits_for| ChangeError::NotYet { range, waits_for })
    }

    async fn replace(&self, mut plan: Plan) -> Result<Replaced, ChangeError> {
        let first = plan.record.range;
        // One at a time; in the order of keys, so that two who want two ranges do not wait for
        // each other.
        let mut changing = Vec::with_capacity(plan.old.len());
        for range in &plan.old {
            changing.push(range.change_alone().await);
        }
        clone::make_directories(&self.owner().store, plan.new.iter().map(|(id, _)| heir(*id, 1))).await;
        for range in &plan.old {
            range.get_ready(Duration::ZERO).await.map_err(|why| not_yet(range.id(), why))?;
        }
        if mutants::active(Mutant::EarlyCheckpoint) {
            for range in &plan.old {
                plan.early.push(range.checkpoint().await.map_err(undone(first))?);
            }
        }
        let freezing = plan.old.iter().map(async |range| {
            let why = "the writes under way did not come to the log in time";
            range.freeze().await.ok_or_else(|| not_yet(range.id(), why.to_owned()))
        });
        // At the same time: the first would be held while the second ends its writes.
        let mut frozen = join_all(freezing).await.into_iter().collect::<Result<Vec<Frozen>, _>>()?;
        self.after(Step::Frozen, first).await;
        // From here on the ranges may be retired, and must not be served as they are.
        frozen.iter_mut().for_each(Frozen::seal);
        let Committed { attempt, inheritance, heirs } = match self.commit(&plan).await {
            Ok(committed) => committed,
            Err(why) => match self.undo(&plan, &why).await? {
                Some(committed) => committed,
                None => {
                    frozen.into_iter().for_each(Frozen::open);
                    return Err(ChangeError::Undone { range: first, why });
                }
            },
        };
        // There is no way back: the ranges stay held until the heirs are served, here or elsewhere.
        let heirs = heirs.map_err(|error| broken_off(first, &error))?;
        self.after(Step::HeirsOpen, first).await;
        self.take_over(&plan, &heirs).await?;
        self.replace_in_set(&plan.old, &heirs);
        self.after(Step::Served, first).await;
        let held_for = frozen.into_iter().map(Frozen::pass_on).max().unwrap_or_default();
        self.abandon(plan.old.clone());
        for heir in &heirs {
            heir.save_inheritance(&inheritance).await.map_err(|error| broken_off(first, &error))?;
        }
        self.after(Step::Inherited, first).await;
        if mutants::active(Mutant::HeirBeforeRecord) {
            self.record(&plan, attempt, &inheritance).await.map_err(|why| broken_off(first, &why))?;
        }
        Ok(Replaced { databases: heirs.iter().map(|heir| heir.database()).collect(), held_for })
    }

    /// From frozen ranges to the change record and open heirs. An error says what failed before it.
    async fn commit(&self, plan: &Plan) -> Result<Committed, String> {
        let first = plan.record.range;
        let retired = self.retire(plan).await?;
        self.after(Step::Retired, first).await;
        let inheritance = plan.old.iter().map(|range| range.inheritance());
        let inheritance = inheritance.reduce(Inheritance::union).unwrap_or_default();
        let attempt = self.make_heirs(plan, retired).await?;
        self.after(Step::Cloned, first).await;
        let recording = async {
            if mutants::active(Mutant::HeirBeforeRecord) {
                return Ok(());
            }
            self.record(plan, attempt, &inheritance).await
        };
        // At the same time, since writes are held: open is not yet served, and an heir that does not
        // count lies where nobody will look, since no path is used twice.
        let (recorded, heirs) = join(recording, self.open_heirs(plan, attempt, &inheritance)).await;
        if let Err(why) = recorded {
            self.give_up(heirs.unwrap_or_default());
            return Err(why);
        }
        Ok(Committed { attempt, inheritance, heirs })
    }

    /// The commit point: creates the change record.
    async fn record(&self, plan: &Plan, attempt: u64, inheritance: &Inheritance) -> Result<(), String> {
        let done = Decision::Done { attempt, inheritance: inheritance.clone() };
        match self.decide(plan.record, &done).await? {
            Decided::ByUs => {}
            Decided::Before(_) => return Err("it was undone by somebody else meanwhile".to_owned()),
        }
        self.after(Step::Recorded, plan.record.range).await;
        Ok(())
    }

    /// Retires the old ranges; returns the checkpoints of that.
    async fn retire(&self, plan: &Plan) -> Result<Vec<Uuid>, String> {
        // All to their ends, whatever becomes of one: what is still under way could not be undone.
        let retired = join_all(plan.old.iter().map(|range| range.retire(plan.record))).await;
        retired.into_iter().collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    /// Makes the databases of the new ranges; says in which attempt it succeeded.
    async fn make_heirs(&self, plan: &Plan, retired: Vec<Uuid>) -> Result<u64, String> {
        let mut checkpoints = if plan.early.is_empty() { retired } else { plan.early.clone() };
        let mut failed = String::new();
        for attempt in 1..=CLONE_ATTEMPTS_MAX {
            if attempt > 1 {
                // The memtable may have been cut between the last row and the flush.
                checkpoints = self.retire(plan).await?;
            }
            match self.make_attempt(plan, attempt, &checkpoints).await {
                Ok(()) => return Ok(attempt),
                Err(why) => failed = why,
            }
        }
        Err(failed)
    }

    async fn make_attempt(&self, plan: &Plan, attempt: u64, checkpoints: &[Uuid]) -> Result<(), String> {
        let making = plan.new.iter().map(async |(id, keys)| {
            let sources: Vec<Source<'_>> = plan
                .old
                .iter()
                .zip(checkpoints)
                .map(|(range, checkpoint)| Source {
                    range,
                    checkpoint: *checkpoint,
                    keys: range.keys().intersect(keys),
                })
                .collect();
            clone::make(&self.owner().around, heir(*id, attempt), &sources).await
        });
        // Each writes a checkpoint into the manifest of the same range, and again if the other was faster.
        join_all(making).await.into_iter().collect()
    }

    /// Refuses to serve heirs if the stored map no longer says that the old ranges are being replaced.
    /// Who takes long to open them may find that somebody else has finished the change, and that the
    /// heirs were split in their turn: what is written to them then nobody would find.
    async fn are_heirs_awaited(&self, plan: &Plan, heirs: &[Arc<Range>]) -> Result<(), String> {
        let map = until_answered(|| map_store::load(&self.owner().around.objects)).await?;
        let is_begun = |range: &Arc<Range>| {
            map.as_ref()
                .and_then(|map| map.get(range.id()))
                .is_some_and(|entry| entry.intent.is_some() && entry.generation == range.generation())
        };
        if !plan.old.iter().all(is_begun) || heirs.iter().any(|heir| heir.retired().is_some()) {
            return Err("somebody else has brought it to its end meanwhile".to_owned());
        }
        if self.may_serve().await { Ok(()) } else { Err("the server has lost its lease".to_owned()) }
    }

    /// Opens the heirs of an attempt, to be served if it counts.
    async fn open_heirs(
        &self,
        plan: &Plan,
        attempt: u64,
        inheritance: &Inheritance,
    ) -> Result<Vec<Arc<Range>>, OpenError> {
        let opening = plan.new.iter().map(|(id, keys)| {
            let identity = Identity { id: *id, keys: keys.clone(), database: heir(*id, attempt) };
            self.open_heir(identity, inheritance)
        });
        // All to their ends: one that is left half open would stay so.
        let (mut heirs, mut failed) = (Vec::new(), None);
        for opened in join_all(opening).await {
            match opened {
                Ok(heir) => heirs.push(heir),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let Some(error) = failed else { return Ok(heirs) };
        self.give_up(heirs);
        Err(error)
    }

    /// Ends heirs that were never served, in the background.
    fn give_up(&self, heirs: Vec<Arc<Range>>) {
        heirs.iter().for_each(|heir| heir.let_go());
        self.abandon(heirs);
    }

    /// The last look before the heirs of a change that counts are served.
    async fn take_over(&self, plan: &Plan, heirs: &[Arc<Range>]) -> Result<(), ChangeError> {
        if let Err(why) = self.are_heirs_awaited(plan, heirs).await {
            end_all(heirs).await;
            return Err(broken_off(plan.record.range, &why));
        }
        // Nobody may read the old rows once a new one can be acknowledged.
        plan.old.iter().for_each(|range| range.let_go());
        Ok(())
    }

    /// Undoes what was not recorded. If it was recorded after all (the answer was lost), goes on with that.
    async fn undo(&self, plan: &Plan, why: &str) -> Result<Option<Committed>, ChangeError> {
        let first = plan.record.range;
        tracing::warn!(range = %first, why, "undoing a change");
        match self.decide(plan.record, &Decision::Undone).await.map_err(|why| broken_off(first, &why))? {
            Decided::ByUs | Decided::Before(Decision::Undone) => {}
            Decided::Before(Decision::Done { attempt, inheritance }) => {
                let heirs = self.open_heirs(plan, attempt, &inheritance).await;
                return Ok(Some(Committed { attempt, inheritance, heirs }));
            }
        }
        self.after(Step::UndoDecided, first).await;
        for range in &plan.old {
            range.unretire().await.map_err(|error| broken_off(range.id(), &error))?;
        }
        self.after(Step::Restored, first).await;
        Ok(None)
    }

    async fn decide(&self, record: RecordName, decision: &Decision) -> Result<Decided, String> {
        until_answered(|| record::decide(record, &self.owner().around.objects, decision)).await
    }
}

/// Asks the store again and again, up to [`DECIDE_ATTEMPTS_MAX`] times: without an answer nothing can go on.
async fn until_answered<T, E, F>(ask: impl Fn() -> F) -> Result<T, String>
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    let mut failed = String::new();
    for _ in 0..DECIDE_ATTEMPTS_MAX {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => failed = error.to_string(),
        }
        sleep(DECIDE_AGAIN_AFTER).await;
    }
    Err(failed)
}

fn not_yet(range: RangeId, waits_for: String) -> ChangeError {
    ChangeError::NotYet { range, waits_for }
}

fn broken_off(range: RangeId, why: &dyn Display) -> ChangeError {
    ChangeError::BrokenOff { range, why: why.to_string() }
}
