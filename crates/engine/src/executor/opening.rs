//! Opens ranges that no server serves, and brings changes that were broken off to their end. This happens at the
//! start of a process, when a server is given up, and whenever the manager finds such a range or change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use rangehold_map::key::KIND_CATALOGUE;
use rangehold_map::{Generation, Home, Intent, KeyRange, RangeEntry, RangeId, ServerId, TableId};

use super::Executor;
use crate::change::{self, ChangeError, Changed, Replacement};
use crate::lease;
use crate::limits::OPENINGS_AT_ONCE_MAX;
use crate::partition_server::PartitionServer;
use crate::range::Range;

impl Executor {
    /// Opens every range that the map names, at the server that the map names, or at another one if that server is
    /// not here. Changes that were broken off are brought to their end first. Ranges that this executor is changing
    /// right now are left alone. On an error, the ranges that can be opened are served all the same. If the error is
    /// the damage of a range, requests for that range are told of it.
    pub fn open_all<'a>(&'a self) -> BoxFuture<'a, Result<(), ChangeError>> {
        Box::pin(async move {
            self.end_absent().await?;
            let settled = self.settle_where(|_| true).await;
            let map = self.maps().current();
            let is_wanted = |entry: &&RangeEntry| {
                let is_unserved = entry.online && entry.intent.is_none() && !self.is_served(entry);
                is_unserved && !self.has_in_hand(entry.id)
            };
            let taken =
                self.take(map.entries().iter().filter(is_wanted).cloned().collect(), &[]).await.map(drop);
            let can_read_catalogue = taken.as_ref().err().is_none_or(|error| error.damage().is_some())
                && !self.has_damaged_catalogue();
            let inherited = if can_read_catalogue { self.inherit_dropped().await } else { Ok(()) };
            let failed = [settled, taken, inherited].into_iter().filter_map(Result::err);
            first_but_damage(failed).map_or(Ok(()), Err)
        })
    }

    /// Does the same as [`Self::open_all`] by the newest map, for servers that have served for a while. All of them
    /// must hold their leases, and none may have been started again in another process, which would have the ranges
    /// now. Otherwise this returns an error and does nothing.
    pub fn mend<'a>(&'a self) -> BoxFuture<'a, Result<(), ChangeError>> {
        Box::pin(async move {
            for server in self.servers() {
                if !server.is_in_its_last_life().await? {
                    return Err(ChangeError::NoLease(server.id()));
                }
            }
            self.maps().refresh().await?;
            self.open_all().await
        })
    }

    /// The ranges that [`Self::open_all`] would open or settle now, in the order of their keys: those whose change was
    /// broken off, and those that are online and that their server does not serve.
    pub fn unserved(&self) -> Vec<RangeId> {
        let map = self.maps().current();
        let wanting = |entry: &&RangeEntry| {
            let is_wanting = entry.intent.is_some() || entry.online && !self.is_served(entry);
            is_wanting && !self.has_in_hand(entry.id)
        };
        map.entries().iter().filter(wanting).map(|entry| entry.id).collect()
    }

    /// Ends the leases of servers that are not here and whose ranges other servers will get, and waits until these
    /// leases have run out: a server that is not known here may still answer reads.
    async fn end_absent(&self) -> Result<(), ChangeError> {
        let map = self.maps().current();
        let owners = map.entries().iter().filter(|entry| entry.online || entry.intent.is_some());
        let absent: BTreeSet<ServerId> =
            owners.map(|entry| entry.place.server).filter(|server| self.server(*server).is_err()).collect();
        let servers = self.servers();
        let lock = servers.first().and_then(|server| server.host().store().lock());
        let mut ended = Vec::new();
        for server in absent {
            if let Some(end) = lease::end_absent(self.maps().objects(), server, lock).await? {
                ended.push((server, end));
            }
        }
        let wait = ended.iter().map(|(_, end)| end.wait).max().unwrap_or_default();
        tokio::time::sleep(wait).await;
        for (server, end) in ended {
            if lease::is_back(self.maps().objects(), server, end).await? {
                return Err(ChangeError::NoServer(server));
            }
        }
        Ok(())
    }

    /// Whether a range with a part of the catalogue is damaged.
    pub(crate) fn has_damaged_catalogue(&self) -> bool {
        let catalogue = KeyRange::prefix(&[KIND_CATALOGUE]);
        self.servers().iter().any(|server| server.has_damaged(&catalogue))
    }

    fn is_served(&self, entry: &RangeEntry) -> bool {
        self.server(entry.place.server).is_ok_and(|server| server.serves(entry))
    }

    /// Gives the ranges of a server that does not answer to other servers: ends its lease, waits until the lease has
    /// run out, and opens the ranges at the other servers. Takes nothing from a server that was started again
    /// meanwhile. Returns the ranges that it opened.
    pub fn take_over<'a>(&'a self, dead: ServerId) -> BoxFuture<'a, Result<Vec<Changed>, ChangeError>> {
        Box::pin(async move {
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
            let taken = self.take(map.entries().iter().filter(is_orphan).cloned().collect(), &[]).await?;
            settled?;
            let map_version = self.maps().current().version();
            let moved = |range| Changed { map_version, ranges: vec![range], held_for: Default::default() };
            Ok(taken.into_iter().map(moved).collect())
        })
    }

    /// Opens ranges that no server serves, and serves them: each at its own server or, if that server is not here, at
    /// another one.
    ///
    /// 1. The map assigns them, in their next generation. A process that takes them by an older map is refused.
    /// 2. Their databases are opened. This shuts out every process that had them open. They note which tables were
    ///    `dropped` while they were not served.
    /// 3. They are served, if the map still says so and the servers' leases hold. A process that takes them later ends
    ///    those leases first, and opens the databases after this one.
    ///
    /// Returns the ranges that are served. If one of them cannot be served, returns an error; the others are served
    /// all the same.
    pub(crate) async fn take(
        &self,
        ranges: Vec<RangeEntry>,
        dropped: &[(String, TableId)],
    ) -> Result<Vec<RangeId>, ChangeError> {
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
                let range = self.open_assigned(&entry, &server, dropped).await;
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
        dropped: &[(String, TableId)],
    ) -> Result<Arc<Range>, ChangeError> {
        let range = server.open_range(entry, entry.generation, None).await?;
        let ready = async {
            if let Some(record) = range.retired() {
                change::settle_retired(self.maps(), &range, record).await?;
            }
            let noted = range.note_dropped(dropped).await;
            noted.map_err(|source| ChangeError::BrokenOff { range: entry.id, source: source.into() })
        };
        if let Err(error) = ready.await {
            change::end_all(&[range]).await;
            return Err(error);
        }
        Ok(range)
    }

    async fn serve_assigned(
        &self,
        opened: Vec<(RangeEntry, Result<Arc<Range>, ChangeError>, PartitionServer)>,
    ) -> Result<Vec<RangeId>, ChangeError> {
        let map = self.maps().refresh().await;
        let (mut served, mut failed) = (Vec::new(), Vec::new());
        for (entry, range, server) in opened {
            let range = match range {
                Ok(range) => range,
                Err(error) => {
                    if let Some(damage) = error.damage() {
                        server.note_damaged(&entry, &damage);
                    }
                    failed.push(error);
                    continue;
                }
            };
            let error = match &map {
                Err(_) => None,
                Ok(map) if map.get(entry.id) != Some(&entry) => {
                    Some(ChangeError::Overtaken { range: entry.id })
                }
                Ok(_) if !server.may_serve().await => Some(ChangeError::NoLease(server.id())),
                Ok(_) => {
                    server.replace_in_set(&[], &[range]);
                    served.push(entry.id);
                    continue;
                }
            };
            change::end_all(&[range]).await;
            failed.extend(error);
        }
        map?;
        first_but_damage(failed).map_or(Ok(served), Err)
    }

    /// Brings broken-off changes of some ranges to their end. If it fails for one of them, it goes on with the others,
    /// and returns the first error that is not damage, or else the first.
    async fn settle_where(&self, which: impl Fn(&RangeEntry) -> bool) -> Result<(), ChangeError> {
        let mut failed: BTreeMap<RangeId, ChangeError> = BTreeMap::new();
        loop {
            let map = self.maps().current();
            let begun = |entry: &&RangeEntry| {
                entry.intent.as_ref().is_some_and(|intent| !matches!(intent, Intent::MergeWith { .. }))
                    && which(entry)
                    && !failed.contains_key(&entry.id)
                    && !self.has_in_hand(entry.id)
                    // The change may have ended after the map was read, and then it was no longer in hand.
                    && self.maps().current().get(entry.id) == Some(entry)
            };
            let Some(entry) = map.entries().iter().find(begun) else {
                return first_but_damage(failed.into_values()).map_or(Ok(()), Err);
            };
            tracing::warn!(range = %entry.id, "a change was broken off; bringing it to its end");
            if let Err(error) = self.settle(entry).await {
                failed.insert(entry.id, error);
            }
        }
    }

    async fn settle(&self, entry: &RangeEntry) -> Result<(), ChangeError> {
        let server = match self.server(entry.place.server) {
            Ok(server) => server,
            Err(_) => self.substitute(entry.id)?,
        };
        match Replacement::of(entry, &self.maps().current()) {
            Some(replacement) => {
                let parents = replacement.parents().to_vec();
                let settled = change::resume(self.maps(), &server, &self.servers(), replacement).await;
                if let Some(damage) = settled.as_ref().err().and_then(ChangeError::damage) {
                    parents.iter().for_each(|parent| server.note_damaged(parent, &damage));
                }
                settled
            }
            None => change::undo_broken_off(self.maps(), &server, entry).await,
        }
    }

    /// A server for a range whose own server is not here. It is chosen by the range's number, so that many ranges are
    /// spread over all servers.
    fn substitute(&self, range: RangeId) -> Result<PartitionServer, ChangeError> {
        let servers = self.servers();
        let index = usize::try_from(range.0).unwrap_or(0).checked_rem(servers.len());
        index.map(|index| servers[index].clone()).ok_or(ChangeError::NoServer(ServerId(0)))
    }
}

/// The first error that is not the damage of a range; if there is none, the first error.
fn first_but_damage(errors: impl IntoIterator<Item = ChangeError>) -> Option<ChangeError> {
    errors.into_iter().min_by_key(|error| error.damage().is_some())
}
