//! Decides which segments are kept.
//!
//! A segment holds the columns of one tier over some time. The shelf knows only its times and its size. It
//! names the segments that have to be deleted: first those that are older than their tier's term, and then,
//! while all together are over the budget, the oldest of the finest tier.

use std::collections::BTreeMap;

use super::limits::SEGMENTS_MAX;
use super::tier::Tier;

/// Names a segment; later ones have greater numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u64);

/// The tier, the times and the size of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its tier.
    pub tier: Tier,
    /// When its first column begins, in seconds since 1970.
    pub from: i64,
    /// When its last column ends, in seconds since 1970.
    pub to: i64,
    /// Its size.
    pub bytes: u64,
}

/// The segments that are kept, with a budget in bytes.
#[derive(Debug, Clone)]
pub struct Shelf {
    budget_bytes: u64,
    bytes: u64,
    segments: BTreeMap<SegmentId, Segment>,
}

impl Shelf {
    /// An empty shelf.
    pub fn new(budget_bytes: u64) -> Self {
        Self { budget_bytes, bytes: 0, segments: BTreeMap::new() }
    }

    /// Adds a segment, or updates one that has grown.
    pub fn put(&mut self, id: SegmentId, segment: Segment) {
        let before = self.segments.insert(id, segment).map_or(0, |before| before.bytes);
        self.bytes = self.bytes - before + segment.bytes;
    }

    /// A segment; `None` if it is no longer kept.
    pub fn get(&self, id: SegmentId) -> Option<&Segment> {
        self.segments.get(&id)
    }

    /// The id for a new segment.
    pub fn next_id(&self) -> SegmentId {
        self.segments.last_key_value().map_or(SegmentId(1), |(last, _)| SegmentId(last.0 + 1))
    }

    /// Removes segments until there is room for `more` bytes, and returns them for deletion. `None` if `more`
    /// is over the whole budget. `now` is in seconds since 1970.
    pub fn make_room(&mut self, more: u64, now: i64) -> Option<Vec<SegmentId>> {
        let too_old = |segment: &Segment| segment.to <= now.saturating_sub(segment.tier.term());
        let mut gone: Vec<SegmentId> =
            self.segments.iter().filter(|(_, segment)| too_old(segment)).map(|(id, _)| *id).collect();
        gone.iter().for_each(|id| self.remove(*id));
        if more > self.budget_bytes {
            return None;
        }
        while self.bytes > self.budget_bytes - more || self.segments.len() >= SEGMENTS_MAX {
            let first = self.segments.iter().min_by_key(|(id, segment)| (segment.tier, segment.from, **id));
            let Some((id, _)) = first else { break };
            let id = *id;
            self.remove(id);
            gone.push(id);
        }
        Some(gone)
    }

    /// Removes a segment.
    pub fn remove(&mut self, id: SegmentId) {
        self.bytes -= self.segments.remove(&id).map_or(0, |segment| segment.bytes);
    }

    /// The segments of a tier that have columns between two times, the oldest first.
    pub fn between(&self, tier: Tier, from: i64, to: i64) -> Vec<SegmentId> {
        let some = |segment: &Segment| segment.tier == tier && segment.from < to && segment.to > from;
        let mut found: Vec<_> = self.segments.iter().filter(|(_, segment)| some(segment)).collect();
        found.sort_by_key(|(id, segment)| (segment.from, **id));
        found.into_iter().map(|(id, _)| *id).collect()
    }

    /// When the first kept column of a tier begins and when the last one ends.
    pub fn span(&self, tier: Tier) -> Option<(i64, i64)> {
        let of_tier = || self.segments.values().filter(|segment| segment.tier == tier);
        let from = of_tier().map(|segment| segment.from).min()?;
        Some((from, of_tier().map(|segment| segment.to).max()?))
    }

    /// The size of all segments, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The most bytes that all segments may have.
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }
}
