//! From keys to servers: how a request finds the owner of its keys, by a map that may be out of date.
//!
//! The map is a hint. A server that does not hold a key says so before it does anything. The router then
//! asks the same server again at once: a split leaves both halves on the same server, which knows better than the
//! map. After that it asks by a newer map, which it reads from the store if it was not told of one, and so on
//! for a limited time. So an old map costs a retry inside the service, and never a wrong answer.

mod closed;
mod dropped;
mod notes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use rangehold_map::load::Access;
use rangehold_map::{KeyRange, RangeMap, ServerId, Timestamp};
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout_at};

use crate::error::{ReadError, Reason, WriteError, with_causes};
use crate::limits::{MAP_READ_AGAIN_AFTER, ROUTE_WAIT, ROUTED_WITHIN};
use crate::map_store::Maps;
use crate::partition_server::PartitionServer;
use crate::range::{Judge, RowChanges, ScanEnd, Visit, Visitor, WriteRequest};
use crate::run_to_end::RunToEnd;
pub(crate) use dropped::DroppedInCatalogue;

/// See the module. Clones are the same router.
#[derive(Clone)]
pub struct Router(Arc<Inner>);

struct Inner {
    /// The newest map that this front end knows. It may lag behind the stored map.
    maps: Maps,
    /// When it last read the stored map because an owner was not where it should be. Locked while it reads.
    read_at: Mutex<Option<Instant>>,
    servers: ArcSwap<BTreeMap<ServerId, PartitionServer>>,
    dropped: Notify,
}

/// The search for the owner of a key.
struct Search {
    until: Instant,
    tries: u32,
    /// The version of the map that was used for the last question.
    version: u64,
    /// Whether the stored map was read because the known map says that a range is offline.
    made_sure: bool,
}

impl Router {
    /// A router that finds owners by the newest map in `maps`.
    pub fn new(maps: Maps, servers: impl IntoIterator<Item = PartitionServer>) -> Self {
        let servers = servers.into_iter().map(|server| (server.id(), server)).collect();
        Self(Arc::new(Inner {
            maps,
            read_at: Mutex::default(),
            servers: ArcSwap::from_pointee(servers),
            dropped: Notify::new(),
        }))
    }

    /// Replaces the servers that it can ask.
    pub fn set_servers(&self, servers: impl IntoIterator<Item = PartitionServer>) {
        self.0.servers.store(Arc::new(servers.into_iter().map(|server| (server.id(), server)).collect()));
    }

    /// The map by which it routes now.
    pub fn map(&self) -> Arc<RangeMap> {
        self.0.maps.current()
    }

    /// The value of `key`, if it has a row that is durable.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        let mut search = self.search();
        loop {
            let answer = match self.owner(key, &mut search).await? {
                Some(server) => server.get(key).await,
                None => Err(ReadError::NotOwned),
            };
            match answer {
                Err(ReadError::NotOwned) => self.again(&mut search).await?,
                answer => return answer,
            }
        }
    }

    /// Visits the durable rows of `keys` in order, each range as of one moment, as `visit` wants: it returns a [`Visit`]
    /// or a `ControlFlow`. `begin` makes the value that `visit` adds to, and that is returned.
    ///
    /// If a range changes hands while it is read, the caller must not answer with what was seen. The whole
    /// read then begins again, so `begin` may be called more than once.
    pub async fn scan<T: Send, V: Into<Visit>>(
        &self,
        keys: &KeyRange,
        begin: impl Fn() -> T,
        visit: impl FnMut(&mut T, &[u8], &Bytes) -> V + Send,
    ) -> Result<T, ReadError> {
        self.scan_and_count(keys, begin, visit).await.map(|(made, _)| made)
    }

    /// As [`Self::scan`]. Returns also of how many moments the rows are: how many times a range was read. The map does not tell
    /// that, because an owner may have split a range that the map still has as one.
    pub async fn scan_and_count<T: Send, V: Into<Visit>>(
        &self,
        keys: &KeyRange,
        begin: impl Fn() -> T,
        mut visit: impl FnMut(&mut T, &[u8], &Bytes) -> V + Send,
    ) -> Result<(T, usize), ReadError> {
        if !keys.is_empty() && self.map().lookup(keys.low()).is_none() {
            return Err(ReadError::NotOwned);
        }
        let mut search = self.search();
        loop {
            let mut made = begin();
            let mut visitor = |key: &[u8], value: &Bytes| visit(&mut made, key, value).into();
            match self.scan_once(keys, &mut search, &mut visitor).await {
                Err(ReadError::NotOwned) => self.again(&mut search).await?,
                Err(error) => return Err(error),
                Ok(moments) => return Ok((made, moments)),
            }
        }
    }

    /// One try of [`Self::scan_and_count`]. Returns [`ReadError::NotOwned`] if rows were seen that must not be used.
    async fn scan_once(
        &self,
        keys: &KeyRange,
        search: &mut Search,
        visitor: &mut Visitor<'_>,
    ) -> Result<usize, ReadError> {
        let (mut rest, mut moments) = (keys.clone(), 0);
        while !rest.is_empty() {
            let part = self.part(&rest, search).await?;
            let mut seen = false;
            let answer = match self.server_of(part.server) {
                Some(server) => {
                    let mut visit = |key: &[u8], value: &Bytes| {
                        seen = true;
                        visitor(key, value)
                    };
                    server.scan_and_count(&part.keys, &mut visit).await
                }
                None => Err(ReadError::NotOwned),
            };
            match answer.map(|(end, ranges)| {
                moments += ranges;
                end
            }) {
                Err(ReadError::NotOwned) if !seen => self.again(search).await?,
                Err(error) => return Err(error),
                Ok(ScanEnd::Stopped) => break,
                Ok(ScanEnd::SoughtPast(key)) => rest = rest.intersect(&KeyRange::new(key, None)),
                Ok(ScanEnd::Exhausted) => {
                    let Some(next) = part.keys.high() else { break };
                    rest = rest.intersect(&KeyRange::new(next.to_vec(), None));
                }
            }
        }
        Ok(moments)
    }

    /// [`PartitionServer::write`] at the server that owns the partition.
    pub async fn write<E: Send>(
        &self,
        request: &WriteRequest<'_>,
        mut judge: impl FnMut(&[Option<Bytes>], Timestamp) -> Result<RowChanges, E> + Send,
    ) -> Result<Timestamp, WriteError<E>> {
        let mut refusal = None;
        let mut judge =
            |rows: &[Option<Bytes>], at: Timestamp| judge(rows, at).map_err(|why| refusal = Some(why));
        let written = self.write_judged(request, &mut judge).await;
        written.map_err(|error| error.map_refusal(|()| refusal.expect("the judge kept the reason")))
    }

    /// A write whose judge keeps its own reasons.
    async fn write_judged(
        &self,
        request: &WriteRequest<'_>,
        judge: &mut Judge<'_>,
    ) -> Result<Timestamp, WriteError<()>> {
        let mut search = self.search();
        loop {
            let answer = match self.owner(request.partition.as_bytes(), &mut search).await? {
                Some(server) => server.write(request, judge).await,
                None => Err(WriteError::NotOwned),
            };
            match answer {
                Err(WriteError::NotOwned) if Instant::now() < request.deadline => {
                    self.again(&mut search).await?;
                }
                answer => return answer,
            }
        }
    }

    /// Tells the owner of `key`, if there is one, that a request for the key was refused to protect the range or
    /// the server. Such requests are not load, but they show where load would be.
    pub fn throttled(&self, key: &[u8], access: Access) {
        if let Ok(Some(server)) = self.owner_by_map(key) {
            server.throttled(key, access);
        }
    }

    /// Notified when a table was dropped.
    pub(crate) fn dropped(&self) -> &Notify {
        &self.0.dropped
    }

    /// The server that owns `key`; `None` if that server is not known here.
    async fn owner(&self, key: &[u8], search: &mut Search) -> Result<Option<PartitionServer>, ReadError> {
        match self.owner_by_map(key) {
            Err(ReadError::Offline(_)) if self.makes_sure(search).await => self.owner_by_map(key),
            found => found,
        }
    }

    fn owner_by_map(&self, key: &[u8]) -> Result<Option<PartitionServer>, ReadError> {
        let map = self.map();
        let entry = map.lookup(key).ok_or(ReadError::NotOwned)?;
        if entry.online { Ok(self.server_of(entry.place.server)) } else { Err(ReadError::Offline(entry.id)) }
    }

    /// The first range that holds some of `keys`: its server, and those keys.
    async fn part(&self, keys: &KeyRange, search: &mut Search) -> Result<Part, ReadError> {
        match self.part_by_map(keys) {
            Err(ReadError::Offline(_)) if self.makes_sure(search).await => self.part_by_map(keys),
            found => found,
        }
    }

    fn part_by_map(&self, keys: &KeyRange) -> Result<Part, ReadError> {
        let map = self.map();
        let entry = map.overlapping(keys).next().ok_or(ReadError::NotOwned)?;
        if entry.online {
            Ok(Part { server: entry.place.server, keys: entry.keys.intersect(keys) })
        } else {
            Err(ReadError::Offline(entry.id))
        }
    }

    fn server_of(&self, id: ServerId) -> Option<PartitionServer> {
        self.0.servers.load().get(&id).cloned()
    }

    /// Waits until asking again may help. The first time it does not wait; later it waits for a newer map, for a
    /// limited time.
    async fn again(&self, search: &mut Search) -> Result<(), ReadError> {
        search.tries += 1;
        if search.tries == 1 {
            return Ok(());
        }
        if Instant::now() >= search.until {
            return Err(ReadError::Unavailable(Reason::Found("its owner was not found in time")));
        }
        let until = search.until.min(Instant::now() + wait(search.tries));
        self.read_map(search.version, until).await;
        // If no newer map comes, the owner is asked again all the same: it may still be opening the range.
        let version = search.version;
        let mut map = self.0.maps.subscribe();
        let _ = timeout_at(until, map.wait_for(|map| map.version() > version)).await;
        search.version = self.map().version();
        Ok(())
    }

    /// Reads the stored map before the router says that a range is offline, since that map may say otherwise. Does so
    /// once in a search; false if it was done before.
    async fn makes_sure(&self, search: &mut Search) -> bool {
        if search.made_sure {
            return false;
        }
        search.made_sure = true;
        self.read_map(search.version, Instant::now() + MAP_READ_AGAIN_AFTER).await;
        true
    }

    /// Reads the stored map, so that a front end that is not told of new maps learns of them all the same. It does
    /// not read if a map newer than `version` is known, or if another request is reading it or has just done so.
    /// If reading takes longer than `until`, it goes on in the background, and later requests find its result.
    async fn read_map(&self, version: u64, until: Instant) {
        let router = self.clone();
        let reading = RunToEnd::new(Box::pin(async move {
            let Ok(mut read_at) = router.0.read_at.try_lock() else { return };
            let of_late = read_at.is_some_and(|at| at.elapsed() < MAP_READ_AGAIN_AFTER);
            if of_late || router.map().version() > version {
                return;
            }
            *read_at = Some(Instant::now());
            if let Err(error) = router.0.maps.refresh().await {
                let error = with_causes(&error);
                tracing::debug!(error, "the map cannot be read: owners are looked for by the old one");
            }
        }));
        let _ = timeout_at(until, reading).await;
    }

    fn search(&self) -> Search {
        Search {
            until: Instant::now() + ROUTED_WITHIN,
            tries: 0,
            version: self.map().version(),
            made_sure: false,
        }
    }
}

/// How long to wait before the next try. There may be no newer map to wait for, because the owner is still
/// busy: so the wait is limited.
fn wait(tries: u32) -> Duration {
    ROUTE_WAIT * tries.min(10)
}

/// Keys that one range holds.
struct Part {
    /// The server that owns the range.
    server: ServerId,
    keys: KeyRange,
}
