//! Carries changes of ranges out: the manager's hands.
//!
//! The executor writes the intent into the map, leads the servers through the steps, and writes into
//! the map what came of it. It decides nothing: which change is wanted is its caller's business,
//! and whether one counts is the store's. Should it die anywhere, whoever opens the ranges next
//! reads the intent and brings the change to its end ([`crate::change::resolve`]).

mod in_hand;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rangehold_map::{
    Change, ChangeRefused, Generation, Home, Intent, KeyRange, RangeEntry, RangeId, RangeMap, ServerId,
};

use crate::change::{ChangeError, Changed, HandOver, MergeOrder, SplitOrder};
use crate::error::{OpenError, ReadError};
use crate::limits::{PUBLISH_AGAIN_AFTER, READY_WITHIN};
use crate::map_store::Maps;
use crate::mutants::{self, Mutant};
use crate::partition_server::PartitionServer;
use crate::router::{DroppedInCatalogue, Router};
use crate::steps::Step;
use in_hand::{Hold, InHand};

/// See the module. Clones are the same executor.
#[derive(Clone)]
pub struct Executor(Arc<Inner>);

struct Inner {
    maps: Maps,
    router: Router,
    servers: ArcSwap<BTreeMap<ServerId, PartitionServer>>,
    in_hand: InHand,
}

impl Executor {
    /// An executor over these servers.
    pub fn new(maps: Maps, router: Router, servers: impl IntoIterator<Item = PartitionServer>) -> Self {
        let servers = servers.into_iter().map(|server| (server.id(), server)).collect();
        let servers = ArcSwap::from_pointee(servers);
        Self(Arc::new(Inner { maps, router, servers, in_hand: InHand::default() }))
    }

    /// Other servers from now on.
    pub fn set_servers(&self, servers: impl IntoIterator<Item = PartitionServer>) {
        self.0.servers.store(Arc::new(servers.into_iter().map(|server| (server.id(), server)).collect()));
    }

    /// The servers it leads.
    pub fn servers(&self) -> Vec<PartitionServer> {
        self.0.servers.load().values().cloned().collect()
    }

    /// The stored map.
    pub fn maps(&self) -> &Maps {
        &self.0.maps
    }

    /// Carries `change` out, to its end or not at all. Not to be dropped half way: run it in a task
    /// of its own.
    pub async fn carry_out(&self, change: &Change) -> Result<Changed, ChangeError> {
        let _hold = self.take_in_hand(change);
        if !matches!(change, Change::Offline { .. } | Change::Online { .. }) {
            // Refused in the map's words before an owner is asked, who does not know why he has no such range; and
            // a merge before its right range moves.
            self.0.maps.current().begin(change)?;
        }
        match change {
            Change::Split { range, generation, .. } => self.split(change, *range, *generation).await,
            Change::Merge { left, left_generation, right, right_generation } => {
                self.merge((*left, *left_generation), (*right, *right_generation)).await
            }
            Change::Move { range, generation, to } => {
                self.move_range(change, *range, *generation, to.server).await
            }
            Change::Offline { range, .. } => self.offline(change, *range).await,
            Change::Online { range, .. } => self.online(change, *range).await,
        }
    }

    fn take_in_hand(&self, change: &Change) -> Hold<'_> {
        let (ranges, target) = match change {
            Change::Split { range, .. } | Change::Offline { range, .. } | Change::Online { range, .. } => {
                (vec![*range], None)
            }
            Change::Merge { left, right, .. } => (vec![*left, *right], None),
            Change::Move { range, to, .. } => (vec![*range], Some(to.server)),
        };
        let owners = ranges.iter().filter_map(|range| self.owner(*range).ok());
        let servers = owners.chain(target).filter_map(|id| self.server(id).ok()).collect();
        self.0.in_hand.take(ranges, servers)
    }

    /// Whether a change of the range is being carried out here, by servers that are there.
    pub(crate) fn has_in_hand(&self, range: RangeId) -> bool {
        self.0.in_hand.has(range, &self.servers())
    }

    async fn split(
        &self,
        change: &Change,
        range: RangeId,
        generation: Generation,
    ) -> Result<Changed, ChangeError> {
        let server = self.server(self.owner(range)?)?;
        server.get_ready(range, generation, READY_WITHIN).await?;
        let entry = self.begin(change, range).await?;
        let Some(Intent::Split { at, left, right }) = entry.intent.clone() else {
            return Err(ChangeRefused::NotBegun { range, doing: "being split" }.into());
        };
        let order = SplitOrder { range, generation, at, left, right };
        let replaced = self.or_undo(&entry, &server, server.split(&order).await).await?;
        let homes: Vec<Home> = replaced.databases.iter().map(|db| home(&server, *db)).collect();
        let done = |map: &RangeMap| map.split_done(range, homes[0], homes[1]);
        let map = self.publish_what_became(&entry, done, &server, &[left, right]).await?;
        server.after(Step::Published, range).await;
        Ok(Changed { map_version: map.version(), ranges: vec![left, right], held_for: replaced.held_for })
    }

    async fn merge(
        &self,
        left: (RangeId, Generation),
        right: (RangeId, Generation),
    ) -> Result<Changed, ChangeError> {
        let server = self.server(self.owner(left.0)?)?;
        let (right, moving_held_for) = self.bring_together(right, &server).await?;
        server.get_ready(left.0, left.1, READY_WITHIN).await?;
        server.get_ready(right.0, right.1, READY_WITHIN).await?;
        let change = Change::Merge {
            left: left.0,
            left_generation: left.1,
            right: right.0,
            right_generation: right.1,
        };
        let entry = self.begin(&change, left.0).await?;
        let Some(Intent::Merge { into, .. }) = entry.intent else {
            return Err(ChangeRefused::NotBegun { range: left.0, doing: "being merged" }.into());
        };
        let order = MergeOrder { left, right, into };
        let replaced = self.or_undo(&entry, &server, server.merge(&order).await).await?;
        let merged = home(&server, replaced.databases[0]);
        let done = |map: &RangeMap| map.merge_done(left.0, merged);
        let map = self.publish_what_became(&entry, done, &server, &[into]).await?;
        server.after(Step::Published, left.0).await;
        let held_for = replaced.held_for.max(moving_held_for);
        Ok(Changed { map_version: map.version(), ranges: vec![into], held_for })
    }

    /// Moves the right range of a merge to the left one's server. Returns its generation there, and how
    /// long its writes were held for that.
    async fn bring_together(
        &self,
        right: (RangeId, Generation),
        server: &PartitionServer,
    ) -> Result<((RangeId, Generation), Duration), ChangeError> {
        let map = self.0.maps.current();
        let entry = map.get(right.0).ok_or(ChangeRefused::UnknownRange { range: right.0 })?;
        if entry.place.server == server.id() {
            return Ok((right, Duration::ZERO));
        }
        let to = Home { server: server.id(), ..entry.place };
        let moving = Change::Move { range: right.0, generation: right.1, to };
        let moved = self.move_range(&moving, right.0, right.1, server.id()).await?;
        Ok(((right.0, right.1.next()), moved.held_for))
    }

    async fn move_range(
        &self,
        change: &Change,
        range: RangeId,
        generation: Generation,
        to: ServerId,
    ) -> Result<Changed, ChangeError> {
        let (source, target) = (self.server(self.owner(range)?)?, self.server(to)?);
        source.get_ready(range, generation, READY_WITHIN).await?;
        let entry = self.begin(change, range).await?;
        let hand_over = match source.release(range, generation).await {
            Ok(hand_over) => hand_over,
            Err(error) => return self.or_undo(&entry, &source, Err(error)).await,
        };
        let held_for = self.hand_over(&entry, &source, &target, hand_over).await?;
        Ok(Changed { map_version: self.0.maps.current().version(), ranges: vec![range], held_for })
    }

    async fn hand_over(
        &self,
        entry: &RangeEntry,
        source: &PartitionServer,
        target: &PartitionServer,
        hand_over: HandOver,
    ) -> Result<Duration, ChangeError> {
        let (range, generation) = (entry.id, entry.generation.next());
        let taken = match target.take(entry, generation, &hand_over).await {
            Ok(taken) => taken,
            Err(error) => {
                source.restore(hand_over).await?;
                let why = format!("server {} could not open it: {error}", target.id());
                return self.or_undo(entry, source, Err(ChangeError::Undone { range, why })).await;
            }
        };
        source.let_go(&hand_over).await;
        target.serve(taken).await;
        let done = |map: &RangeMap| map.move_done(range);
        let published = self.publish_what_became(entry, done, target, &[range]).await;
        let held_for = source.pass_on(hand_over);
        published?;
        target.after(Step::Published, range).await;
        Ok(held_for)
    }

    async fn offline(&self, change: &Change, range: RangeId) -> Result<Changed, ChangeError> {
        let server = self.server(self.owner(range)?);
        let map = self.change_map(change).await?;
        if let Ok(server) = server {
            server.after(Step::Published, range).await;
            server.close_range(range).await;
        }
        Ok(Changed { map_version: map.version(), ranges: vec![range], held_for: Duration::ZERO })
    }

    /// The map says that it is online before it is opened: who drops a table from then on comes to
    /// its owner, and who did so before is found in the catalogue.
    async fn online(&self, change: &Change, range: RangeId) -> Result<Changed, ChangeError> {
        let map = self.change_map(change).await?;
        let entry = map.get(range).ok_or(ChangeRefused::UnknownRange { range })?;
        self.take(vec![entry.clone()]).await?;
        self.inherit_dropped().await?;
        Ok(Changed {
            map_version: self.0.maps.current().version(),
            ranges: vec![range],
            held_for: Duration::ZERO,
        })
    }

    /// Tells ranges which tables the catalogue says are dropped: a crash, or a caller that gave up,
    /// may have come between its row and their notes. While a range with a part of the catalogue is
    /// offline nobody is told: its tables are refused with it, and it is asked again when it is online.
    pub(crate) async fn inherit_dropped(&self) -> Result<(), ChangeError> {
        let dropped = match DroppedInCatalogue::read(&self.0.router).await {
            Ok(dropped) => dropped,
            Err(ReadError::Offline(range)) => {
                tracing::warn!(%range, "tables may not be found: a range with a part of the catalogue is offline");
                return Ok(());
            }
            Err(error) => return Err(ChangeError::Store(OpenError::Catalogue(error))),
        };
        for server in self.servers() {
            let now = server.host().clock().now();
            for (account, table) in dropped.tables() {
                let keys = KeyRange::prefix(&rangehold_map::key::table_prefix(account, *table));
                server.inherit_dropped(account, *table, &keys, now);
            }
        }
        Ok(())
    }

    pub(crate) fn server(&self, id: ServerId) -> Result<PartitionServer, ChangeError> {
        self.0.servers.load().get(&id).cloned().ok_or(ChangeError::NoServer(id))
    }

    /// The way to the ranges.
    pub fn router(&self) -> &Router {
        &self.0.router
    }

    fn owner(&self, range: RangeId) -> Result<ServerId, ChangeError> {
        let map = self.0.maps.current();
        let entry = map.get(range).ok_or(ChangeRefused::UnknownRange { range })?;
        Ok(entry.place.server)
    }

    /// Writes the intent into the map; returns the entry with it.
    async fn begin(&self, change: &Change, range: RangeId) -> Result<RangeEntry, ChangeError> {
        let map = self.change_map(change).await?;
        let entry = map.get(range).ok_or(ChangeRefused::UnknownRange { range })?.clone();
        if let Ok(server) = self.server(entry.place.server) {
            server.after(Step::Begun, range).await;
        }
        Ok(entry)
    }

    async fn change_map(&self, change: &Change) -> Result<Arc<RangeMap>, ChangeError> {
        Ok(self.0.maps.change(|map| map.begin(change)).await??)
    }

    /// Passes a success on. After a failure that left the range as it was, takes the intent back.
    async fn or_undo<T>(
        &self,
        begun: &RangeEntry,
        server: &PartitionServer,
        result: Result<T, ChangeError>,
    ) -> Result<T, ChangeError> {
        let error = match result {
            Ok(done) => return Ok(done),
            // It must be brought to its end by whoever opens it; the intent tells him of it.
            Err(error @ ChangeError::BrokenOff { .. }) => return Err(error),
            Err(error) => error,
        };
        let map = self.publish_of(begun, |map| undone(map, begun.id)).await?;
        for entry in map.entries() {
            server.renumber(entry.id, entry.generation);
        }
        server.after(Step::UndoPublished, begun.id).await;
        Err(error)
    }

    /// Writes into the map what became of a change, after which `server` serves `ranges`. If somebody
    /// else has written down something else, it serves them no longer.
    async fn publish_what_became(
        &self,
        begun: &RangeEntry,
        done: impl Fn(&RangeMap) -> Result<RangeMap, ChangeRefused>,
        server: &PartitionServer,
        ranges: &[RangeId],
    ) -> Result<Arc<RangeMap>, ChangeError> {
        let published = self.publish_of(begun, done).await;
        if published.is_err() {
            server.withdraw(ranges, &self.0.maps.current());
        }
        published
    }

    /// As [`Self::publish`], of a range on which this was begun: refused if the map says anything else
    /// of it by now. Somebody may have brought the change to its end, and begun another one.
    pub(crate) async fn publish_of(
        &self,
        begun: &RangeEntry,
        change: impl Fn(&RangeMap) -> Result<RangeMap, ChangeRefused>,
    ) -> Result<Arc<RangeMap>, ChangeError> {
        self.publish(|map| {
            if map.get(begun.id) != Some(begun) {
                return Err(ChangeRefused::NotBegun { range: begun.id, doing: "what it was" });
            }
            change(map)
        })
        .await
    }

    /// Writes into the map what has already happened: there is no way back, so it tries until the
    /// store takes it.
    pub(crate) async fn publish(
        &self,
        change: impl Fn(&RangeMap) -> Result<RangeMap, ChangeRefused>,
    ) -> Result<Arc<RangeMap>, ChangeError> {
        loop {
            match self.0.maps.change(&change).await {
                Ok(published) => return Ok(published?),
                Err(error @ OpenError::UnsoundMap { .. }) => return Err(error.into()),
                Err(error) => tracing::error!(%error, "the map could not be stored; trying again"),
            }
            tokio::time::sleep(PUBLISH_AGAIN_AFTER).await;
        }
    }
}

/// The map without what was begun on a range. The ids that it had named for new ranges are not given
/// again, since their directories may be there.
pub(crate) fn undone(map: &RangeMap, range: RangeId) -> Result<RangeMap, ChangeRefused> {
    let undone = map.undone(range)?;
    if mutants::active(Mutant::PathReused) {
        let next = undone.entries().iter().map(|entry| entry.id.next()).max().unwrap_or(undone.next_range());
        return Ok(RangeMap::new(undone.version(), next, undone.entries().to_vec()));
    }
    Ok(undone)
}

fn home(server: &PartitionServer, database: rangehold_map::DatabaseName) -> Home {
    Home { server: server.id(), database }
}
