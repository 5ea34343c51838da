//! The executor carries out the changes that the manager wants, over all partition servers that it knows.
//!
//! For each change the executor finds the servers, writes the intent into the map, and lets [`crate::change`] do the
//! rest. It also opens ranges that no server serves, and brings changes that were broken off to their end
//! ([`opening`]). It decides nothing itself: its caller says which change is wanted, and the store says whether a
//! change counts. If its process dies, the next process reads the intent in the map and goes on from there.

mod in_hand;
mod opening;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use rangehold_map::key::{KIND_CATALOGUE, table_prefix};
use rangehold_map::{
    Change, ChangeRefused, Generation, Home, KeyRange, RangeEntry, RangeId, RangeMap, ServerId,
};

use crate::change::{self, ChangeError, Changed, Replacement};
use crate::error::ReadError;
use crate::limits::READY_WITHIN;
use crate::map_store::Maps;
use crate::partition_server::PartitionServer;
use crate::router::{DroppedInCatalogue, Router};
use crate::steps::Step;
use in_hand::{Hold, InHand};

/// Carries changes out; see the module. Clones are the same executor.
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

    /// Replaces the servers that it works with.
    pub fn set_servers(&self, servers: impl IntoIterator<Item = PartitionServer>) {
        self.0.servers.store(Arc::new(servers.into_iter().map(|server| (server.id(), server)).collect()));
    }

    /// The servers that it works with.
    pub fn servers(&self) -> Vec<PartitionServer> {
        self.0.servers.load().values().cloned().collect()
    }

    /// The stored map.
    pub fn maps(&self) -> &Maps {
        &self.0.maps
    }

    /// Carries `change` out completely, or not at all. The future must not be dropped before it ends: run it in a
    /// task of its own.
    pub fn carry_out<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<Changed, ChangeError>> {
        Box::pin(async move {
            let _hold = self.take_in_hand(change);
            if !matches!(change, Change::Offline { .. } | Change::Online { .. }) {
                // The map says why it refuses; a server would only say that it does not hold the range. And a merge that
                // is refused must be refused before its right range moves.
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
        })
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

    /// Whether a change of the range is being carried out here, by servers that this executor still has.
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
        change::get_ready(&server, (range, generation), READY_WITHIN).await?;
        self.replace(change, range, &server).await
    }

    async fn merge(
        &self,
        left: (RangeId, Generation),
        right: (RangeId, Generation),
    ) -> Result<Changed, ChangeError> {
        let server = self.server(self.owner(left.0)?)?;
        let (right, moving_held_for) = self.bring_together(right, &server).await?;
        change::get_ready(&server, left, READY_WITHIN).await?;
        change::get_ready(&server, right, READY_WITHIN).await?;
        let change = Change::Merge {
            left: left.0,
            left_generation: left.1,
            right: right.0,
            right_generation: right.1,
        };
        let changed = self.replace(&change, left.0, &server).await?;
        Ok(Changed { held_for: changed.held_for.max(moving_held_for), ..changed })
    }

    /// Begins a split or a merge on `range`, and makes it.
    async fn replace(
        &self,
        change: &Change,
        range: RangeId,
        server: &PartitionServer,
    ) -> Result<Changed, ChangeError> {
        let (map, entry) = self.begin(change, range).await?;
        let replacement = Replacement::of(&entry, &map).ok_or(ChangeError::Overtaken { range })?;
        change::make(&self.0.maps, server, replacement).await
    }

    /// Moves the right range of a merge to the server of the left one, if it is not there. Returns the range with its
    /// generation there, and how long the move held its writes.
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
        change::get_ready(&source, (range, generation), READY_WITHIN).await?;
        let (_, entry) = self.begin(change, range).await?;
        change::hand_over(&self.0.maps, &source, &target, &entry).await
    }

    async fn offline(&self, change: &Change, range: RangeId) -> Result<Changed, ChangeError> {
        let server = self.server(self.owner(range)?);
        let (map, _) = change::begin(&self.0.maps, change, range).await?;
        if let Ok(server) = server {
            server.after(Step::Published, range).await;
            server.close_range(range).await;
        }
        Ok(Changed { map_version: map.version(), ranges: vec![range], held_for: Duration::ZERO })
    }

    /// The map says that the range is online before the range is opened. A request that drops a table later comes
    /// to its owner; a table that was dropped earlier is found in the catalogue, and the range notes it before it serves.
    async fn online(&self, change: &Change, range: RangeId) -> Result<Changed, ChangeError> {
        let (_, entry) = change::begin(&self.0.maps, change, range).await?;
        // While a part of the catalogue is offline, no table of that part is dropped; and it cannot be read before it
        // is served.
        let dropped = match entry.keys.intersect(&KeyRange::prefix(&[KIND_CATALOGUE])).is_empty() {
            true => self.dropped_in_catalogue().await?,
            false => DroppedInCatalogue::default(),
        };
        self.take(vec![entry], dropped.tables()).await?;
        self.inherit_dropped().await?;
        Ok(Changed {
            map_version: self.0.maps.current().version(),
            ranges: vec![range],
            held_for: Duration::ZERO,
        })
    }

    /// Tells the ranges which tables the catalogue lists as dropped. A crash, or a caller that gave up, may have left
    /// a row in the catalogue without the notes in the ranges. While a range with a part of the catalogue is offline,
    /// this tells nothing: requests for tables in that part are refused meanwhile, and the catalogue is read when the
    /// range is online again.
    pub(crate) async fn inherit_dropped(&self) -> Result<(), ChangeError> {
        let dropped = self.dropped_in_catalogue().await?;
        for server in self.servers() {
            let now = server.host().clock().now();
            for (account, table) in dropped.tables() {
                let keys = KeyRange::prefix(&table_prefix(account, *table));
                server.inherit_dropped(account, *table, &keys, now);
            }
        }
        Ok(())
    }

    /// The dropped tables that the catalogue lists; none while a part of it is offline.
    pub(crate) async fn dropped_in_catalogue(&self) -> Result<DroppedInCatalogue, ChangeError> {
        match DroppedInCatalogue::read(&self.0.router).await {
            Ok(dropped) => Ok(dropped),
            Err(ReadError::Offline(range)) => {
                tracing::warn!(%range, "tables may not be found: a range with a part of the catalogue is offline");
                Ok(DroppedInCatalogue::default())
            }
            Err(error) => Err(ChangeError::Catalogue(error)),
        }
    }

    pub(crate) fn server(&self, id: ServerId) -> Result<PartitionServer, ChangeError> {
        self.0.servers.load().get(&id).cloned().ok_or(ChangeError::NoServer(id))
    }

    /// The router of this process.
    pub fn router(&self) -> &Router {
        &self.0.router
    }

    fn owner(&self, range: RangeId) -> Result<ServerId, ChangeError> {
        let map = self.0.maps.current();
        let entry = map.get(range).ok_or(ChangeRefused::UnknownRange { range })?;
        Ok(entry.place.server)
    }

    /// Writes the intent into the map. Returns the map, and the entry with the intent.
    async fn begin(
        &self,
        change: &Change,
        range: RangeId,
    ) -> Result<(Arc<RangeMap>, RangeEntry), ChangeError> {
        let (map, entry) = change::begin(&self.0.maps, change, range).await?;
        if let Ok(server) = self.server(entry.place.server) {
            server.after(Step::Begun, range).await;
        }
        Ok((map, entry))
    }
}
