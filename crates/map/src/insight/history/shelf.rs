//! Which segments are kept.
//!
//! A segment holds the columns of one tier over some time; what is in it is its owner's business. The
//! shelf knows how many bytes each has, and names those that have to go: first what is older than its
//! tier's term, and then, while all together are over the budget, the oldest of the finest tier.

use std::collections::BTreeMap;

use super::limits::SEGMENTS_MAX;
use super::tier::Tier;

/// Names a segment; later ones have greater numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u64);

/// What is known of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its tier.
    pub tier: Tier,
    /// When its first column began, in seconds since 1970.
    pub from: i64,
    /// When its last column ended.
    pub to: i64,
    /// What it takes.
    pub bytes: u64,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Shelf {
    budget_bytes: u64,
    bytes: u64,
    segments: BTreeMap<SegmentId, Segment>,
}

impl Shelf {
    /// An empty one.
    pub fn new(budget_bytes: u64) -> Self {
        Self { budget_bytes, bytes: 0, segments: BTreeMap::new() }
    }

    /// Adds a segment, or tells that one has become larger.
    pub fn put(&mut self, id: SegmentId, segment: Segment) {
        let before = self.segments.insert(id, segment).map_or(0, |before| before.bytes);
        self.bytes = self.bytes - before + segment.bytes;
    }

    /// A segment; `None` if it had to go.
    pub fn get(&self, id: SegmentId) -> Option<&Segment> {
        self.segments.get(&id)
    }

    /// The id for a new segment.
    pub fn next_id(&self) -> SegmentId {
        self.segments.last_key_value().map_or(SegmentId(1), |(last, _)| SegmentId(last.0 + 1))
    }

    /// Names the segments that have to go so that `more` bytes find room; they are not on the shelf any
    /// more. `None` if so much never finds room.
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

    /// Takes a segment off.
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

    /// When the first and when the last column of a tier that is kept began and ended.
    pub fn span(&self, tier: Tier) -> Option<(i64, i64)> {
        let of_tier = || self.segments.values().filter(|segment| segment.tier == tier);
        let from = of_tier().map(|segment| segment.from).min()?;
        Some((from, of_tier().map(|segment| segment.to).max()?))
    }

    /// What all take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What they may take at most.
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }
}
