//! What a range takes over from the ranges whose keys it got: from the parents of a split or a merge, or from the ranges
//! of a backup.
//!
//! Rows are taken over with their keys. What the old ranges know besides lies in rows below all keys ([`super::meta`]),
//! which no split, merge or restore takes over as they are: the new range writes rows of its own.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use rangehold_map::{BucketId, TableId, Timestamp};
use slatedb::WriteBatch;

use super::meta::{self, Meta};
use crate::database::DroppedTables;
use crate::error::ReadError;

/// What a range takes over from the ranges whose keys it got.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Inheritance {
    /// The range gives no timestamp up to and including this one.
    pub(crate) high_water: Timestamp,
    /// Tables whose rows it must not show, each with its account and the time when it was dropped.
    pub(crate) dropped: Vec<(String, TableId, Timestamp)>,
    /// Buckets to which it must not let writes.
    pub(crate) closed: BTreeSet<BucketId>,
    /// Buckets and the changes of their folders that a write must have seen.
    pub(crate) fences: BTreeMap<BucketId, u64>,
}

impl Inheritance {
    /// What the rows say that a range keeps about itself. Whether it is retired is not taken over.
    pub(crate) fn read(rows: &[(Bytes, Bytes)]) -> Result<Self, ReadError> {
        let (mut meta, dropped) = (Meta::default(), DroppedTables::default());
        for (key, value) in rows {
            meta.take(key, value, &dropped)?;
        }
        let dropped = dropped.list().into_iter().map(|table| (table.account, table.table, table.at));
        Ok(Self {
            // No timestamp at or above the reservation was ever given.
            high_water: meta.reserved.saturating_add(-1),
            dropped: dropped.collect(),
            closed: meta.closed,
            fences: meta.fences,
        })
    }

    /// Adds the rows that say all of this, except the fences, to a batch.
    pub(crate) fn write_into(&self, batch: &mut WriteBatch) {
        // A reservation lies above every timestamp that was given.
        let reserved = self.high_water.next();
        batch.put(meta::reservation_key(meta::INHERITED), meta::encode_time(reserved));
        for (account, table, at) in &self.dropped {
            batch.put(meta::dropped_key(account, *table), meta::encode_time(*at));
        }
        for bucket in &self.closed {
            batch.put(meta::closed_key(*bucket), []);
        }
    }

    /// Adds the rows of the fences to a batch. For a database that nobody serves: a fence is never lowered.
    pub(crate) fn write_fences_into(&self, batch: &mut WriteBatch) {
        for (bucket, fence) in &self.fences {
            batch.put(meta::fence_key(*bucket), fence.to_be_bytes());
        }
    }

    /// What a range takes over from two: the later of the two high-water marks, the dropped tables and
    /// the closed buckets of both, and the higher fence of each bucket.
    pub(crate) fn union(self, other: Self) -> Self {
        let mut dropped = self.dropped;
        for table in other.dropped {
            if !dropped.iter().any(|(account, id, _)| (account, id) == (&table.0, &table.1)) {
                dropped.push(table);
            }
        }
        let closed = self.closed.union(&other.closed).copied().collect();
        let mut fences = self.fences;
        for (bucket, fence) in other.fences {
            let own = fences.entry(bucket).or_default();
            *own = fence.max(*own);
        }
        Self { high_water: self.high_water.max(other.high_water), dropped, closed, fences }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: Vec<u8>, value: Vec<u8>) -> (Bytes, Bytes) {
        (key.into(), value.into())
    }

    #[test]
    fn the_greatest_reservation_counts_and_notes_are_taken_over() {
        let time = |ticks| meta::encode_time(Timestamp::from_ticks(ticks));
        let rows = [
            row(meta::reservation_key(3), time(900)),
            row(meta::reservation_key(meta::INHERITED), time(400)),
            row(meta::dropped_key("account", TableId(7)), time(5)),
            row(meta::closed_key(BucketId(2)), Vec::new()),
            row(meta::fence_key(BucketId(3)), 9_u64.to_be_bytes().to_vec()),
        ];
        let read = Inheritance::read(&rows).unwrap();
        let expected = Inheritance {
            high_water: Timestamp::from_ticks(899),
            dropped: vec![("account".to_owned(), TableId(7), Timestamp::from_ticks(5))],
            closed: BTreeSet::from([BucketId(2)]),
            fences: BTreeMap::from([(BucketId(3), 9)]),
        };
        assert_eq!(read, expected);
        assert!(
            Inheritance::read(&[row(vec![1, 0xEE], Vec::new())]).is_err(),
            "an unknown row is not left out"
        );
    }
}
