//! The partition server: holds ranges, and answers for their keys.
//!
//! It keeps no data of its own; everything is in the store. Its set of ranges changes while it
//! serves: the set is replaced as a whole, and a request looks at one version of it. If no range here holds
//! a key, the caller gets [`ReadError::NotOwned`], and looks for a newer map.

mod closed;
mod dropped;
mod held;
mod unopened;

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::future::join_all;
use parking_lot::Mutex;
use rangehold_map::load::Access;
use rangehold_map::{DatabaseName, Generation, KeyRange, RangeEntry, RangeId, ServerId, Timestamp};

use crate::error::{ReadError, WriteError};
use crate::host::Host;
use crate::lease::{Lease, LeaseError};
use crate::range::{
    Judge, Range, RangeContext, RangeGlance, RangeSeen, RangeStatistics, ScanEnd, Visitor, WriteRequest,
};
use crate::steps::{ScanStep, Step};
use crate::store::ObjectError;
use unopened::Unopened;

/// Holds ranges and answers for their keys. Clones are the same server.
#[derive(Clone)]
pub struct PartitionServer(Arc<Inner>);

struct Inner {
    id: ServerId,
    host: Host,
    context: RangeContext,
    /// In the order of their keys.
    ranges: ArcSwap<Vec<Arc<Range>>>,
    /// Held while the set is replaced.
    replacing: Mutex<()>,
    unopened: Mutex<Vec<Unopened>>,
}

/// A command for a range came to a server that does not hold it in the generation that the command names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("server {server} does not hold {range} in generation {generation}")]
pub struct NotHeld {
    /// The server that was asked.
    pub server: ServerId,
    /// The range.
    pub range: RangeId,
    /// The generation for which the command was made.
    pub generation: Generation,
}

impl PartitionServer {
    /// Starts a server without ranges, in a new incarnation. Waits until an earlier one answers nothing any more.
    pub fn start<'a>(host: &'a Host, id: ServerId) -> BoxFuture<'a, Result<Self, LeaseError>> {
        Box::pin(async move {
            let lease = Lease::take(&host.databases().objects, id, host.store().lock()).await?;
            host.spawn(
                format!("the lease of server {id}"),
                lease.clone().renew(Arc::clone(&host.databases().objects)),
            );
            Ok(Self(Arc::new(Inner {
                id,
                host: host.clone(),
                context: host.range_context(lease),
                ranges: ArcSwap::default(),
                replacing: Mutex::default(),
                unopened: Mutex::default(),
            })))
        })
    }

    /// Which server it is.
    pub fn id(&self) -> ServerId {
        self.0.id
    }

    /// Whether its ranges were given to other servers. Then it answers nothing any more, and has to be started
    /// again.
    pub fn has_ended(&self) -> bool {
        self.0.context.lease.has_ended()
    }

    /// Whether it holds its lease, and was not started again since, here or in another process.
    pub(crate) async fn is_in_its_last_life(&self) -> Result<bool, ObjectError> {
        let lease = &self.0.context.lease;
        Ok(lease.holds() && lease.is_newest(&self.0.host.databases().objects).await?)
    }

    /// A name for this life of the server. No other server and no other life of this one has the same name.
    pub(crate) fn name_of_life(&self) -> String {
        self.0.context.lease.name()
    }

    /// Whether both are the same server in the same life.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The process it runs in.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// The value of `key`, if it has a row that is durable.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError> {
        let range = self.range_of(key).ok_or_else(|| self.not_held(key))?;
        range.get(key).await.inspect_err(|error| note_failure(&range, key, error.is_failure()))
    }

    /// Visits the durable rows of `keys` in order, each range as of one moment, as the visitor wants. On an error the
    /// caller must throw away what the visitor saw, and must not answer with it.
    pub async fn scan(&self, keys: &KeyRange, visitor: &mut Visitor<'_>) -> Result<ScanEnd, ReadError> {
        self.scan_and_count(keys, visitor).await.map(|(end, _)| end)
    }

    /// As [`Self::scan`]. Returns also how many ranges were read.
    pub(crate) async fn scan_and_count(
        &self,
        keys: &KeyRange,
        visitor: &mut Visitor<'_>,
    ) -> Result<(ScanEnd, usize), ReadError> {
        let (mut end, mut ranges) = (ScanEnd::Exhausted, 0);
        for (range, part) in self.cover(keys)? {
            let part = match &end {
                ScanEnd::Exhausted => part,
                ScanEnd::SoughtPast(key) => part.intersect(&KeyRange::new(key.clone(), None)),
                ScanEnd::Stopped => break,
            };
            if part.is_empty() {
                continue;
            }
            let scanned = range.scan(&part, visitor).await;
            ranges += 1;
            end = scanned.inspect_err(|error| note_failure(&range, part.low(), error.is_failure()))?;
            if end != ScanEnd::Stopped {
                self.0.host.options().after_scan_step.after(ScanStep::RangeRead, range.id()).await;
            }
        }
        Ok((end, ranges))
    }

    /// Reads the newest version of the rows that the request names, durable or not. Then `judge` decides, from these
    /// rows and the write's timestamp. Its changes are made durable, all or none of them.
    ///
    /// No other write of the partition comes between reading and changing. Timestamps strictly
    /// grow within a range. A refusal of the judge is returned when the rows that it was judged on
    /// are durable, so that it tells nothing that a crash could take back. If the judge changes keys outside the
    /// partition, that is a bug of the caller, and the call panics.
    ///
    /// After the deadline the answer is [`WriteError::Busy`] if nothing was put into the
    /// log, and else [`WriteError::OutcomeUnknown`]. The judge is called at most once. If the
    /// answer is [`WriteError::NotOwned`], the judge's decision does not count, and nothing was put into
    /// the log: the request may be sent to another server, and is judged again there.
    pub async fn write(
        &self,
        request: &WriteRequest<'_>,
        judge: &mut Judge<'_>,
    ) -> Result<Timestamp, WriteError<()>> {
        let key = request.partition.as_bytes();
        let range = self.range_of(key).ok_or_else(|| self.not_held(key))?;
        let answer = range.write(request, judge).await;
        answer.inspect_err(|error| note_failure(&range, key, error.is_failure()))
    }

    /// Whether it holds the range, and has not lost it to another server that opened it.
    pub fn holds(&self, range: RangeId) -> bool {
        self.ranges().iter().any(|held| held.id() == range && !held.is_lost())
    }

    /// Whether it serves the range as the map's entry says.
    pub(crate) fn serves(&self, entry: &RangeEntry) -> bool {
        self.range_of(entry.keys.low()).is_some_and(|held| {
            held.id() == entry.id && held.generation() == entry.generation && !held.is_lost()
        })
    }

    /// The range, if it is served here out of this database. `None` also if the server's ranges were given to others.
    pub(crate) fn serving(&self, range: RangeId, database: DatabaseName) -> Option<Arc<Range>> {
        let found = self.ranges().iter().find(|held| held.id() == range && !held.is_lost()).cloned();
        found.filter(|held| held.database() == database && !self.has_ended())
    }

    /// The range, if it is held here in this generation.
    pub(crate) fn held(&self, range: RangeId, generation: Generation) -> Result<Arc<Range>, NotHeld> {
        let found = self.ranges().iter().find(|held| held.id() == range && !held.is_lost()).cloned();
        found.filter(|held| held.generation() == generation).ok_or(NotHeld {
            server: self.0.id,
            range,
            generation,
        })
    }

    /// Lets the writes under way finish, saves everything and stops.
    pub(crate) async fn close(&self) {
        let ranges = self.ranges();
        join_all(ranges.iter().map(|range| range.close())).await;
        // With a lock, the next start knows without a note that this process has ended.
        if self.0.host.store().lock().is_none() {
            self.0.context.lease.close(&self.0.host.databases().objects).await;
        }
    }

    /// What its ranges count.
    pub fn statistics(&self) -> Vec<(RangeId, RangeStatistics)> {
        self.ranges().iter().map(|range| (range.id(), range.statistics())).collect()
    }

    /// The size and the load of its ranges, in the order of their keys.
    pub fn observe(&self) -> Vec<RangeSeen> {
        self.ranges().iter().map(|range| range.seen()).collect()
    }

    /// The generation and the last verdict of each of its ranges, in the order of their keys. Cheap enough for every
    /// second.
    pub fn glance(&self) -> Vec<RangeGlance> {
        self.ranges().iter().map(|range| range.glance()).collect()
    }

    /// See [`Router::throttled`](crate::Router::throttled).
    pub(crate) fn throttled(&self, key: &[u8], access: Access) {
        if let Some(range) = self.range_of(key) {
            range.throttled(key, access);
        }
    }

    /// The ranges that cannot be served now, each with the reason.
    pub(crate) fn troubles(&self) -> Vec<(RangeId, String)> {
        let mut troubles = self.unopened();
        troubles.extend(self.ranges().iter().filter_map(|range| Some((range.id(), range.trouble()?))));
        troubles
    }

    /// How many ranges it holds.
    pub(crate) fn ranges_held(&self) -> usize {
        self.ranges().len()
    }

    pub(crate) fn context(&self) -> &RangeContext {
        &self.0.context
    }

    pub(crate) async fn after(&self, step: Step, range: RangeId) {
        self.0.host.after(step, range).await;
    }

    fn ranges(&self) -> Arc<Vec<Arc<Range>>> {
        self.0.ranges.load_full()
    }

    fn range_of(&self, key: &[u8]) -> Option<Arc<Range>> {
        let ranges = self.0.ranges.load();
        let after = ranges.partition_point(|range| range.keys().low() <= key);
        ranges[..after].last().filter(|range| range.keys().contains(key)).cloned()
    }

    /// The ranges that hold `keys`, with the part that each holds. They must follow one another
    /// without a gap: a key that no range here holds is not the same as a key without a row.
    fn cover(&self, keys: &KeyRange) -> Result<Vec<(Arc<Range>, KeyRange)>, ReadError> {
        let mut parts = Vec::new();
        if keys.is_empty() {
            return Ok(parts);
        }
        let mut next: Option<Vec<u8>> = Some(keys.low().to_vec());
        for range in self.ranges().iter() {
            let part = range.keys().intersect(keys);
            if part.is_empty() {
                continue;
            }
            if next.as_deref() != Some(part.low()) {
                return Err(self.not_covered(keys));
            }
            next = part.high().map(<[u8]>::to_vec);
            parts.push((Arc::clone(range), part));
        }
        let is_covered = !parts.is_empty() && next.as_deref() == keys.high();
        if is_covered { Ok(parts) } else { Err(self.not_covered(keys)) }
    }
}

fn note_failure(range: &Range, key: &[u8], is_failure: bool) {
    if is_failure {
        range.failed(key);
    }
}
