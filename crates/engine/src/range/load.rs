//! The load of a range: requests are counted as they are answered, and turned into rates each second.
//!
//! [`RangeLoad`], which is pure, does the counting. This module puts a lock around it, which is held for a short time.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rangehold_map::load::{Access, Load, LoadPolicy, RangeLoad, Sample, Tally, Verdict};
use rangehold_map::{Generation, KeyRange, RangeId};

use super::request::RowChanges;
use super::{Opening, Range};

/// The load of one range, under its lock.
pub(super) struct Meter(Mutex<RangeLoad>);

/// What a scan has visited so far.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    entities: u32,
    bytes: u64,
    last: Vec<u8>,
}

/// The size and the load of a range that a server holds.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeSeen {
    /// The range.
    pub range: RangeId,
    /// The generation in which it is held.
    pub generation: Generation,
    /// About how many bytes its database has. Files that it shares with another database are counted in both.
    pub bytes: u64,
    /// How many of these bytes are in files of other databases, such as a parent's. Those files stay whole until
    /// this range has rewritten what it needs of them.
    pub borrowed_bytes: u64,
    /// Its load.
    pub load: Load,
}

/// What is cheap to read about a range: there may be a thousand ranges, and all are looked at each second.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeGlance {
    /// The range.
    pub range: RangeId,
    /// The generation in which it is held.
    pub generation: Generation,
    /// The last verdict about its load.
    pub verdict: Option<Verdict>,
}

impl Meter {
    /// A meter that has counted nothing yet. The seed decides which requests are looked at closely.
    pub(super) fn new(policy: &LoadPolicy, seed: u64) -> Self {
        Self(Mutex::new(RangeLoad::new(policy.clone(), seed)))
    }

    /// One row was read.
    pub(super) fn read(&self, key: &[u8], bytes: usize) {
        let bytes = bytes as u64;
        self.lock().record(&Sample { access: Access::PointRead, key, high: None, entities: 1, bytes });
    }

    /// Rows of one partition were read in order to judge a write, which was then refused.
    pub(super) fn judged(&self, keys: &[Vec<u8>]) {
        if let Some(key) = keys.first() {
            let entities = count(keys.len());
            self.lock().record(&Sample { access: Access::PointRead, key, high: None, entities, bytes: 0 });
        }
    }

    /// Rows of one partition were written.
    pub(super) fn wrote(&self, changes: &RowChanges) {
        if let Some((key, _)) = changes.first() {
            let size = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
            let bytes = changes.iter().map(|(key, value)| (key.len() + size(value)) as u64).sum();
            let entities = count(changes.len());
            self.lock().record(&Sample { access: Access::Write, key, high: None, entities, bytes });
        }
    }

    /// An interval was read: to its end, or until the visitor stopped the scan.
    pub(super) fn scanned(&self, keys: &KeyRange, scanned: &Scanned, stopped: bool) {
        let high = if stopped { Some(scanned.last.as_slice()) } else { keys.high() };
        self.lock().record(&Sample {
            access: Access::Scan,
            key: keys.low(),
            high,
            entities: scanned.entities,
            bytes: scanned.bytes,
        });
    }

    fn lock(&self) -> MutexGuard<'_, RangeLoad> {
        // If a task panics while it holds the lock, at worst a count is lost.
        self.0.lock()
    }
}

impl Scanned {
    /// One more row was visited.
    pub(super) fn row(&mut self, key: &[u8], value: &[u8]) {
        self.entities = self.entities.saturating_add(1);
        self.bytes += (key.len() + value.len()) as u64;
    }

    /// The row after which it was stopped.
    pub(super) fn stopped_at(&mut self, key: &[u8]) {
        self.last = key.to_vec();
    }
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

impl Range {
    /// A request for `key` was refused to protect the range or its server.
    pub(crate) fn throttled(&self, key: &[u8], access: Access) {
        self.meter.lock().throttled(key, access, 1);
    }

    /// A request for `key` failed here.
    pub(crate) fn failed(&self, key: &[u8]) {
        self.meter.lock().failed(key);
    }

    /// Ends a second of its load. `now` is the time since the process began to count.
    pub(crate) fn end_second(&self, now: Duration) {
        self.meter.lock().tick(now);
    }

    /// What was counted since this was last called; `None` if nothing was counted.
    pub(crate) fn take_tally(&self) -> Option<Tally> {
        self.meter.lock().take_tally()
    }

    /// Its generation and its last verdict, which are cheap to read.
    pub(crate) fn glance(&self) -> RangeGlance {
        let verdict = self.meter.lock().verdict().cloned();
        RangeGlance { range: self.id(), generation: self.generation(), verdict }
    }

    /// Its size and its load.
    pub(crate) fn seen(&self) -> RangeSeen {
        let opening = self.open_now();
        RangeSeen {
            range: self.id(),
            generation: self.generation(),
            bytes: opening.as_ref().map_or(0, |opening| opening.stored_bytes()),
            borrowed_bytes: opening.as_ref().map_or(0, |opening| opening.borrowed().bytes),
            load: self.meter.lock().observe(),
        }
    }
}

impl Opening {
    /// The bytes of all files that its database reads, and the bytes that are not in files yet.
    fn stored_bytes(&self) -> u64 {
        let files: u64 =
            self.status.borrow().current_manifest.all_sst_views().map(|file| file.estimate_size()).sum();
        files + self.unflushed_bytes()
    }
}
