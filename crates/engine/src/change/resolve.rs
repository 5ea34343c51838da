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
//! | retired for another change | | nothing: the map has gone on since it was looked at |
//!
//! The last line is for who comes late. He set out to settle a change that others have settled since,
//! and opens a range that may be retired again, for the next one: its row names the record that decides,
//! and that is not the one he came for.
//!
//! A move that was broken off needs no record: the database is one, and whoever opens it owns it.
//! Every step may be done again, by anybody, after another crash.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use rangehold_map::{Generation, Home, Intent, KeyRange, RangeEntry, RangeId, RangeMap, ServerId};

use super::record::{self, Decided, Decision};
use super::{ChangeError, Changed};
use crate::error::{Damaged, OpenError};
use crate::executor::{Executor, undone};
use crate::lease;
use crate::limits::OPENINGS_AT_ONCE_MAX;
use crate::map_store::heir;
use crate::mutants::{self, Mutant};
use crate::partition_server::PartitionServer;
use crate::range::{Identity, Inheritance, Range};
use crate::record_name::RecordName;
use crate::steps::Step;

/// What became of a change that was broken off.
enum Settled {
    /// The ranges go on.
    Undone,
    /// This attempt counts.
    Done { attempt: u64, inheritance: Inheritance },
}

impl Executor {
    /// Opens every range that the map names, at the server that it names; at another one if that
    /// one is not here. Changes that were broken off are brought to their end first; ranges of those
    /// that this executor is carrying out are left alone. What can be opened is served, even if
    /// something else cannot.
    pub async fn open_all(&self) -> Result<(), ChangeError> {
        let settled = self.settle_where(|_| true).await;
        let map = self.maps().current();
        let is_wanted = |entry: &&RangeEntry| {
            let is_unserved = entry.online && entry.intent.is_none() && !self.is_served(entry);
            is_unserved && !self.has_in_hand(entry.id)
        };
        self.take(map.entries().iter().filter(is_wanted).cloned().collect()).await?;
        let inherited = self.inherit_dropped().await;
        settled.and(inherited)
    }

    /// [`Self::open_all`] by the newest map, for servers that have served for a while: nothing is done unless all
    /// of them hold their leases, and none was started again somewhere, whose next life has the ranges now.
    pub async fn mend(&self) -> Result<(), ChangeError> {
        for server in self.servers() {
            if !server.is_in_its_last_life().await? {
                return Err(ChangeError::NoServer(server.id()));
            }
        }
        self.maps().refresh().await?;
        self.open_all().await
    }

    /// What [`Self::open_all`] would see to now: ranges whose change was broken off, and ranges that are online
    /// and that their server does not serve. In the order of their keys.
    pub fn unserved(&self) -> Vec<RangeId> {
        let map = self.maps().current();
        let wanting = |entry: &&RangeEntry| {
            let is_wanting = entry.intent.is_some() || entry.online && !self.is_served(entry);
            is_wanting && !self.has_in_hand(entry.id)
        };
        map.entries().iter().filter(wanting).map(|entry| entry.id).collect()
    }

    fn is_served(&self, entry: &RangeEntry) -> bool {
        self.server(entry.place.server).is_ok_and(|server| server.serves(entry))
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
        let settled = self.settle_where(|entry| entry.place.server == dead).await;
        let map = self.maps().current();
        let is_orphan =
            |entry: &&RangeEntry| entry.place.server == dead && entry.online && entry.intent.is_none();
        let taken = self.take(map.entries().iter().filter(is_orphan).cloned().collect()).await?;
        settled?;
        let map_version = self.maps().current().version();
        let moved = |range| Changed { map_version, ranges: vec![range], held_for: Default::default() };
        Ok(taken.into_iter().map(moved).collect())
    }

    /// Opens ranges that nobody serves, and serves them: each at its own server or, if that one is not
    /// here, at another one.
    ///
    /// 1. The map assigns them, in their next generation. Whoever took them by an older map, in
    ///    this moment or in one to come, is refused.
    /// 2. Their databases are opened, which shuts out whoever had them open.
    /// 3. If the map still says so, and the servers' leases hold, they are served. Should somebody
    ///    take them from now on, he ends those leases first, and opens them after us.
    ///
    /// Returns those that are served; an error if one of them could not be.
    pub(crate) async fn take(&self, ranges: Vec<RangeEntry>) -> Result<Vec<RangeId>, ChangeError> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let (mut servers, mut wanted) = (Vec::new(), Vec::new());
        for entry in ranges {
            let server = match self.server(entry.place.server) {
                Ok(server) => server,
                Err(_) => self.substitute(entry.id)?,
            };
            wanted.push((entry.id, entry.generation, Home { server: server.id(), ..entry.place }));
            servers.push(server);
        }
        let map = self.maps().change(|map| map.assigned(&wanted)).await??;
        let entry = |(range, ..): &(RangeId, Generation, Home)| map.get(*range).cloned();
        let assigned: Vec<RangeEntry> = wanted.iter().filter_map(entry).collect();
        let opened: Vec<_> = futures::stream::iter(assigned.into_iter().zip(servers))
            .map(|(entry, server)| async move {
                let range = self.open_assigned(&entry, &server).await;
                (entry, range, server)
            })
            .buffered(OPENINGS_AT_ONCE_MAX)
            .collect()
            .await;
        self.serve_assigned(opened).await
    }

    async fn open_assigned(
        &self,
        entry: &RangeEntry,
        server: &PartitionServer,
    ) -> Result<Arc<Range>, ChangeError> {
        let range = server.open_range(entry, entry.generation, None).await?;
        if let Some(record) = range.retired().filter(|_| !mutants::active(Mutant::RetiredServed))
            && let Err(error) = self.settle_stray(&range, record).await
        {
            end_all(&[range]).await;
            return Err(error);
        }
        Ok(range)
    }

    async fn serve_assigned(
        &self,
        opened: Vec<(RangeEntry, Result<Arc<Range>, ChangeError>, PartitionServer)>,
    ) -> Result<Vec<RangeId>, ChangeError> {
        let map = self.maps().refresh().await;
        let (mut served, mut failed) = (Vec::new(), None);
        for (entry, range, server) in opened {
            let range = match range {
                Ok(range) => range,
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            let is_still = map.as_ref().is_ok_and(|map| map.get(entry.id) == Some(&entry));
            if is_still && server.may_serve().await {
                server.replace_in_set(&[], &[range]);
                served.push(entry.id);
                continue;
            }
            end_all(&[range]).await;
            let waits_for = match (&map, is_still) {
                (Err(error), _) => format!("the map could not be read: {error}"),
                (Ok(_), false) => "its place in the map was changed while it was opened".to_owned(),
                (Ok(_), true) => format!("server {} has no lease", server.id()),
            };
            failed.get_or_insert(ChangeError::NotYet { range: entry.id, waits_for });
        }
        failed.map_or(Ok(served), Err)
    }

    /// Brings broken-off changes of some ranges to their end. If one cannot be, the others are, and then the error
    /// is told.
    async fn settle_where(&self, which: impl Fn(&RangeEntry) -> bool) -> Result<(), ChangeError> {
        let mut failed: BTreeMap<RangeId, ChangeError> = BTreeMap::new();
        loop {
            let map = self.maps().current();
            let begun = |entry: &&RangeEntry| {
                entry.intent.as_ref().is_some_and(|intent| !matches!(intent, Intent::MergeWith { .. }))
                    && which(entry)
                    && !failed.contains_key(&entry.id)
                    && !self.has_in_hand(entry.id)
                    // Who had it in hand may have ended it after the map was looked at.
                    && self.maps().current().get(entry.id) == Some(entry)
            };
            let Some(entry) = map.entries().iter().find(begun) else {
                return failed.into_values().next().map_or(Ok(()), Err);
            };
            let right = map
                .entries()
                .iter()
                .find(|other| matches!(other.intent, Some(Intent::MergeWith { left }) if left == entry.id));
            tracing::warn!(range = %entry.id, "a change was broken off; bringing it to its end");
            if let Err(error) = self.settle(entry, right).await {
                failed.insert(entry.id, error);
            }
        }
    }

    async fn settle(&self, entry: &RangeEntry, right: Option<&RangeEntry>) -> Result<(), ChangeError> {
        let server = match self.server(entry.place.server) {
            Ok(server) => server,
            Err(_) => self.substitute(entry.id)?,
        };
        let Some(intent @ (Intent::Split { .. } | Intent::Merge { .. })) = &entry.intent else {
            // Whoever opens it next owns it, and the map names the source.
            self.publish_of(entry, |map| undone(map, entry.id)).await?;
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
                self.publish_of(entry, |map| undone(map, entry.id)).await?;
                server.after(Step::UndoPublished, entry.id).await;
                // They are opened again where the map wants them, in their new generation.
                close_all(old).await;
            }
            Settled::Done { attempt, inheritance } => {
                self.finish(server, intent, entry, right, attempt, &inheritance).await?;
                end_all(old).await;
            }
        }
        Ok(())
    }

    /// Opens the heirs, writes them into the map, and serves them. In this order: of two who finish
    /// the change the map knows one.
    async fn finish(
        &self,
        server: &PartitionServer,
        intent: &Intent,
        entry: &RangeEntry,
        right: Option<&RangeEntry>,
        attempt: u64,
        inheritance: &Inheritance,
    ) -> Result<(), ChangeError> {
        let mut opened = Vec::new();
        for (id, keys) in heirs(intent, &entry.keys, right.map(|right| &right.keys)) {
            let identity = Identity { id, keys, database: heir(id, attempt) };
            let range = server.open_heir(identity, inheritance).await?;
            range.save_inheritance(inheritance).await.map_err(|error| broken_off(entry.id, &error))?;
            opened.push(range);
        }
        server.after(Step::Inherited, entry.id).await;
        let home = |range: &Arc<Range>| Home { server: server.id(), database: range.database() };
        let homes: Vec<Home> = opened.iter().map(home).collect();
        let done = |map: &RangeMap| match intent {
            Intent::Merge { .. } => map.merge_done(entry.id, homes[0]),
            _ => map.split_done(entry.id, homes[0], homes[1]),
        };
        if let Err(error) = self.publish_of(entry, done).await {
            end_all(&opened).await;
            return Err(error);
        }
        server.after(Step::Published, entry.id).await;
        if !server.may_serve().await {
            end_all(&opened).await;
            let waits_for = format!("server {} has no lease", server.id());
            return Err(ChangeError::NotYet { range: entry.id, waits_for });
        }
        server.replace_in_set(&[], &opened);
        Ok(())
    }

    /// Finds out, or decides, whether the change of these ranges counts.
    async fn settle_ranges(
        &self,
        server: &PartitionServer,
        old: &[Arc<Range>],
        record: RecordName,
    ) -> Result<Settled, ChangeError> {
        for range in old {
            if let Some(other) = range.retired().filter(|other| *other != record) {
                self.settle_stray(range, other).await?;
            }
        }
        if mutants::active(Mutant::RetiredServed) || old.iter().all(|range| range.retired().is_none()) {
            return Ok(Settled::Undone);
        }
        match record::decide(record, self.maps().objects(), &Decision::Undone).await? {
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

    /// A range that is retired for another change than the map told of when it was opened, or though the map
    /// told of none. Either the map has gone on since, and whoever was meant by it sees to the range. Or the
    /// map was set back, or a step failed that may not: then the range is served only if its change is undone.
    async fn settle_stray(&self, range: &Arc<Range>, record: RecordName) -> Result<(), ChangeError> {
        // Opening the database shut all others out: who retires it after this look has opened it after us.
        let map = self.maps().refresh().await?;
        if map.get(range.id()).is_none_or(|entry| entry.generation != range.generation()) {
            let waits_for = "its place in the map was changed while it was opened".to_owned();
            return Err(ChangeError::NotYet { range: range.id(), waits_for });
        }
        match record::decide(record, self.maps().objects(), &Decision::Undone).await? {
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
