//! Opening what the map names, and what becomes of changes that were broken off.
//!
//! An intent in the map says that a change was begun. Opening the range's database shuts out whoever
//! was at it, so from then on it is known whether the range is retired:
//!
//! | the database | the change record | what is done |
//! |---|---|---|
//! | not retired | (there can be none) | undone: the range is served as it was |
//! | retired | none | `Undone` is created; then as above, without the retirement row |
//! | retired | `Undone` | as above |
//! | retired | `Done` | finished: the heirs are opened and served, with what they inherit |
//!
//! A move that was broken off needs no record: the database is one, and whoever opens it owns it.
//! Every step may be done again, by anybody, after another crash.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use rangehold_map::{Change, Home, Intent, KeyRange, RangeEntry, RangeId, ServerId};

use super::record::{Decided, Decision};
use super::{ChangeError, Changed, RecordName, Step, heir};
use crate::error::{Damaged, OpenError};
use crate::executor::{Executor, undone};
use crate::lease;
use crate::limits::OPENINGS_AT_ONCE_MAX;
use crate::mutants::{self, Mutant};
use crate::partition_server::PartitionServer;
use crate::range::{Identity, Inheritance, Range};

/// What became of a change that was broken off.
enum Settled {
    /// The ranges go on.
    Undone,
    /// This attempt counts.
    Done { attempt: u64, inheritance: Inheritance },
}

impl Executor {
    /// Opens every range that the map names, at the server that it names; at another one if that
    /// one is not here. Changes that were broken off are brought to their end first.
    pub async fn open_all(&self) -> Result<(), ChangeError> {
        self.settle_where(|_| true).await?;
        let map = self.maps().current();
        let online: Vec<RangeEntry> = map.entries().iter().filter(|entry| entry.online).cloned().collect();
        futures::stream::iter(online)
            .map(|entry| async move {
                match self.server(entry.place.server) {
                    Ok(server) if server.held(entry.id, entry.generation).is_ok() => Ok(()),
                    _ => self.open_where_it_belongs(&entry).await,
                }
            })
            .buffer_unordered(OPENINGS_AT_ONCE_MAX)
            .try_collect::<()>()
            .await?;
        self.inherit_dropped().await
    }

    /// Gives the ranges of a server that does not answer to others: ends its lease, waits until it
    /// has run out, and opens them elsewhere, spread over the rest. Nothing is taken from one that was
    /// started again meanwhile.
    pub async fn take_over(&self, dead: ServerId) -> Result<Vec<Changed>, ChangeError> {
        if let Some(ended) = lease::end(self.maps().objects(), dead).await? {
            tokio::time::sleep(ended.wait).await;
            if lease::is_back(self.maps().objects(), dead, ended).await? {
                return Ok(Vec::new());
            }
        }
        self.set_servers(self.servers().into_iter().filter(|server| server.id() != dead));
        self.settle_where(|entry| entry.place.server == dead).await?;
        let map = self.maps().current();
        let mut moved = Vec::new();
        let orphans = map.entries().iter().filter(|entry| entry.place.server == dead && entry.online);
        for entry in orphans {
            if self.open_where_it_belongs(entry).await.is_ok() {
                let map_version = self.maps().current().version();
                moved.push(Changed { map_version, ranges: vec![entry.id], held_for: Default::default() });
            }
        }
        Ok(moved)
    }

    /// Opens a range without an intent and serves it. If the server that the map names is not here,
    /// another one takes it, and the map follows.
    pub(crate) async fn open_where_it_belongs(&self, entry: &RangeEntry) -> Result<(), ChangeError> {
        let (server, moves) = match self.server(entry.place.server) {
            Ok(server) => (server, false),
            Err(_) => (self.substitute(entry.id)?, true),
        };
        let generation = if moves { entry.generation.next() } else { entry.generation };
        let range = server.open_range(entry, generation, None).await?;
        if let Err(error) = self.is_still(entry).await {
            end_all(&[range]).await;
            return Err(error);
        }
        if let Some(record) = range.retired().filter(|_| !mutants::active(Mutant::RetiredServed)) {
            self.settle_stray(&range, record).await?;
        }
        if moves {
            // Before it is served: of two who take it over at the same time the map knows one.
            let to = Home { server: server.id(), ..entry.place };
            let change = Change::Move { range: entry.id, generation: entry.generation, to };
            if let Err(error) = self.publish(|map| map.begin(&change)?.move_done(entry.id)).await {
                end_all(&[range]).await;
                return Err(error);
            }
        }
        server.replace_in_set(&[], &[range]);
        Ok(())
    }

    /// Refuses to go on if the stored map says anything else of a range by now. To be asked when its
    /// databases are open and not served yet: whoever changes them from then on meets us there, and
    /// who did so before is in the map. Without it two who believe that they lead the servers, one of
    /// them with a map that is a moment old, could serve one range in two places.
    async fn is_still(&self, entry: &RangeEntry) -> Result<(), ChangeError> {
        let map = self.maps().refresh().await?;
        if map.get(entry.id) == Some(entry) {
            return Ok(());
        }
        let waits_for = "its place in the map was changed while it was opened".to_owned();
        Err(ChangeError::NotYet { range: entry.id, waits_for })
    }

    /// Brings broken-off changes of some ranges to their end.
    async fn settle_where(&self, which: impl Fn(&RangeEntry) -> bool) -> Result<(), ChangeError> {
        loop {
            let map = self.maps().current();
            let begun = |entry: &&RangeEntry| {
                entry.intent.as_ref().is_some_and(|intent| !matches!(intent, Intent::MergeWith { .. }))
                    && which(entry)
            };
            let Some(entry) = map.entries().iter().find(begun) else { return Ok(()) };
            let right = map
                .entries()
                .iter()
                .find(|other| matches!(other.intent, Some(Intent::MergeWith { left }) if left == entry.id));
            tracing::warn!(range = %entry.id, "a change was broken off; bringing it to its end");
            self.settle(entry, right).await?;
        }
    }

    async fn settle(&self, entry: &RangeEntry, right: Option<&RangeEntry>) -> Result<(), ChangeError> {
        let server = match self.server(entry.place.server) {
            Ok(server) => server,
            Err(_) => self.substitute(entry.id)?,
        };
        let Some(intent @ (Intent::Split { .. } | Intent::Merge { .. })) = &entry.intent else {
            // Whoever opens it next owns it, and the map names the source.
            self.publish(|map| undone(map, entry.id)).await?;
            server.after(Step::UndoPublished, entry.id).await;
            return Ok(());
        };
        let mut old = Vec::new();
        let settled = self.settle_on(&server, intent, entry, right, &mut old).await;
        if settled.is_err() {
            // The next try opens them again.
            end_all(&old).await;
        }
        settled
    }

    /// Settles a split or merge on a server; `old` gets the ranges that were opened for it.
    async fn settle_on(
        &self,
        server: &PartitionServer,
        intent: &Intent,
        entry: &RangeEntry,
        right: Option<&RangeEntry>,
        old: &mut Vec<Arc<Range>>,
    ) -> Result<(), ChangeError> {
        for entry in [Some(entry), right].into_iter().flatten() {
            old.push(server.open_range(entry, entry.generation, None).await?);
        }
        let record = RecordName { range: entry.id, generation: entry.generation.next() };
        match self.settle_ranges(server, old, record).await? {
            Settled::Undone => {
                self.publish(|map| undone(map, entry.id)).await?;
                server.after(Step::UndoPublished, entry.id).await;
                // They are opened again where the map wants them, in their new generation.
                close_all(old).await;
            }
            Settled::Done { attempt, inheritance } => {
                let homes = self.finish(server, intent, entry, right, attempt, &inheritance).await?;
                end_all(old).await;
                match intent {
                    Intent::Merge { .. } => self.publish(|map| map.merge_done(entry.id, homes[0])).await?,
                    _ => self.publish(|map| map.split_done(entry.id, homes[0], homes[1])).await?,
                };
                server.after(Step::Published, entry.id).await;
            }
        }
        Ok(())
    }

    /// Opens the heirs and serves them.
    async fn finish(
        &self,
        server: &PartitionServer,
        intent: &Intent,
        entry: &RangeEntry,
        right: Option<&RangeEntry>,
        attempt: u64,
        inheritance: &Inheritance,
    ) -> Result<Vec<Home>, ChangeError> {
        let mut opened = Vec::new();
        for (id, keys) in heirs(intent, &entry.keys, right.map(|right| &right.keys)) {
            let identity = Identity { id, keys, database: heir(id, attempt) };
            let range = server.open_heir(identity, inheritance).await?;
            range.save_inheritance(inheritance).await.map_err(|error| broken_off(entry.id, &error))?;
            opened.push(range);
        }
        if let Err(error) = self.is_still(entry).await {
            end_all(&opened).await;
            return Err(error);
        }
        let homes =
            opened.iter().map(|range| Home { server: server.id(), database: range.database() }).collect();
        server.replace_in_set(&[], &opened);
        server.after(Step::Inherited, entry.id).await;
        Ok(homes)
    }

    /// Finds out, or decides, whether the change of these ranges counts.
    async fn settle_ranges(
        &self,
        server: &PartitionServer,
        old: &[Arc<Range>],
        record: RecordName,
    ) -> Result<Settled, ChangeError> {
        if mutants::active(Mutant::RetiredServed) || old.iter().all(|range| range.retired().is_none()) {
            return Ok(Settled::Undone);
        }
        match record.decide(self.maps().objects(), &Decision::Undone).await? {
            Decided::ByUs | Decided::Before(Decision::Undone) => {}
            Decided::Before(Decision::Done { attempt, inheritance }) => {
                return Ok(Settled::Done { attempt, inheritance });
            }
        }
        server.after(Step::UndoDecided, record.range).await;
        for range in old {
            range.unretire().await.map_err(|error| broken_off(range.id(), &error))?;
        }
        server.after(Step::Restored, record.range).await;
        Ok(Settled::Undone)
    }

    /// A retired range without an intent in the map: the map was set back, or a step failed that
    /// may not. It is served only if its change is undone.
    async fn settle_stray(&self, range: &Arc<Range>, record: RecordName) -> Result<(), ChangeError> {
        match record.decide(self.maps().objects(), &Decision::Undone).await? {
            Decided::ByUs | Decided::Before(Decision::Undone) => {
                range.unretire().await.map_err(|error| broken_off(range.id(), &error))
            }
            Decided::Before(Decision::Done { .. }) => Err(OpenError::Damaged(Damaged(format!(
                "the map names {}, which was replaced by others ({record} says so): the map is older \
                 than the ranges; restore both from one backup",
                range.id()
            )))
            .into()),
        }
    }

    /// A server for a range whose own is not here: by the range's number, so that many spread.
    fn substitute(&self, range: RangeId) -> Result<PartitionServer, ChangeError> {
        let servers = self.servers();
        let index = usize::try_from(range.0).unwrap_or(0).checked_rem(servers.len());
        index.map(|index| servers[index].clone()).ok_or(ChangeError::NoServer(ServerId(0)))
    }
}

/// The new ranges of a change, and their keys.
fn heirs(intent: &Intent, keys: &KeyRange, right_keys: Option<&KeyRange>) -> Vec<(RangeId, KeyRange)> {
    let low = keys.low().to_vec();
    match intent {
        Intent::Split { at, left, right } => vec![
            (*left, KeyRange::new(low, Some(at.clone()))),
            (*right, KeyRange::new(at.clone(), keys.high().map(<[u8]>::to_vec))),
        ],
        Intent::Merge { into, .. } => {
            let high = right_keys.unwrap_or(keys).high().map(<[u8]>::to_vec);
            vec![(*into, KeyRange::new(low, high))]
        }
        Intent::MergeWith { .. } | Intent::Move { .. } => Vec::new(),
    }
}

async fn close_all(ranges: &[Arc<Range>]) {
    for range in ranges {
        range.close().await;
    }
}

/// Gives up databases that were opened and shall not be served.
pub(super) async fn end_all(ranges: &[Arc<Range>]) {
    for range in ranges {
        range.let_go();
        range.end().await;
    }
}

fn broken_off(range: RangeId, why: &dyn std::fmt::Display) -> ChangeError {
    ChangeError::BrokenOff { range, why: why.to_string() }
}
