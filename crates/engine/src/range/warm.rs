//! How a range begins with rows in memory.
//!
//! The cache of rows can begin with all that is known at that time:
//!
//! * The first range of a store begins with the knowledge that it has no row. So it has in memory what is written, as
//!   long as there is room.
//! * The heirs of a split or a merge, and a range that was moved within the process, take over what the ranges before them knew.
//!   Otherwise, a range that is split because it is busy would be slow just then.
//!
//! Rows are handed over after the commit point and before the new ranges are served. The old ranges are frozen, all their rows
//! are durable, and the new databases have the same rows. But another process may have opened a new database before, written
//! to it, and lost it again. So each new database is asked whether it has a later row than the old ones. If it has one, its range
//! takes nothing over.
//!
//! A change holds the rows as soon as the last row of the old ranges is durable. A move then opens the database for its target.
//! The source may see that somebody else has opened the database: it forgets its opening, and the rows in it.

use std::sync::Arc;

use super::Range;
use super::state::{Opening, last_sequence};

impl Range {
    /// Tells the cache that no client has ever written a row. The caller has just made the database, or has looked.
    pub(crate) fn begin_empty(&self) {
        if let Ok(opening) = self.open_now() {
            opening.rows.begin_empty(self.keys());
        }
    }
}

/// The rows in memory of ranges that others will take the place of.
#[derive(Default)]
pub(crate) struct WarmRows {
    /// In the order of their keys.
    old: Vec<Arc<Opening>>,
    /// The greatest sequence number of their rows.
    newest: u64,
}

impl WarmRows {
    /// Holds the cached rows of `ranges`, which are in the order of their keys. Their writes are held and durable.
    pub(crate) fn of(ranges: &[Arc<Range>]) -> Self {
        let old: Vec<_> = ranges.iter().filter_map(|range| range.open_now().ok()).collect();
        let newest = old.iter().filter_map(|opening| last_sequence(&opening.db)).max().unwrap_or_default();
        Self { old, newest }
    }

    /// Gives the rows to the ranges that take the place of the old ones. The old ones answer no read any more. The new ones are
    /// open and not served yet, and in the order of their keys.
    pub(crate) fn hand_over(self, new: &[Arc<Range>]) {
        let known = self.old.iter().map(|opening| opening.rows.hand_over(opening.durable_sequence()));
        let Some(mut known) = known.reduce(|mut lower, upper| {
            lower.append(upper);
            lower
        }) else {
            return;
        };
        for range in new {
            let mut own = known.split_off(range.keys().low());
            known = range.keys().high().map(|high| own.split_off(high)).unwrap_or_default();
            if let Ok(opening) = range.open_now()
                && opening.replayed <= self.newest
            {
                opening.rows.take_over(own);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use rangehold_map::{KeyRange, PartitionPrefix};
    use tokio::time::Instant;

    use super::*;
    use crate::range::request::WriteRequest;
    use crate::range::state::State;

    fn key(name: &str) -> Vec<u8> {
        [PartitionPrefix::catalogue("account").as_bytes(), name.as_bytes()].concat()
    }

    async fn write(range: &Range, name: &str, value: &str) {
        let (partition, keys) = (PartitionPrefix::catalogue("account"), [key(name)]);
        let request = WriteRequest::new(&partition, &keys, Instant::now() + Duration::from_secs(60));
        let mut judge = |_: &[Option<Bytes>], _| Ok(vec![(keys[0].clone(), Some(value.as_bytes().to_vec()))]);
        range.write(&request, &mut judge).await.unwrap();
    }

    fn serve(range: Arc<Range>) -> Arc<Range> {
        tokio::spawn(Arc::clone(&range).supervise());
        range
    }

    /// What the cache knows of a row; `None` if it does not know it.
    fn in_memory(range: &Range, name: &str) -> Option<Option<Bytes>> {
        range.open_now().unwrap().rows.get(&key(name))
    }

    #[tokio::test]
    async fn a_range_that_begins_empty_has_in_memory_what_is_written() {
        let range = serve(Range::in_memory().await);
        range.begin_empty();
        write(&range, "a", "value").await;
        assert_eq!(in_memory(&range, "a"), Some(Some(Bytes::from("value"))));
        assert_eq!(in_memory(&range, "b"), Some(None));
        let all = KeyRange::new(key(""), Some(key("~")));
        assert!(range.open_now().unwrap().rows.view(&all).is_some());
    }

    #[tokio::test]
    async fn rows_in_memory_are_handed_over_only_if_nobody_has_written_meanwhile() {
        for writes_meanwhile in [false, true] {
            let old = serve(Range::in_memory().await);
            old.begin_empty();
            write(&old, "a", "old").await;
            old.save().await.unwrap();
            let rows = WarmRows::of(&[Arc::clone(&old)]);
            if writes_meanwhile {
                let other = serve(old.opened_elsewhere().await);
                write(&other, "a", "new").await;
                other.close().await;
            }
            let new = serve(old.opened_elsewhere().await);
            // As its supervisor does when it sees that the database was opened elsewhere.
            old.change_state(State::Fenced);
            rows.hand_over(&[Arc::clone(&new)]);
            let expected = if writes_meanwhile { "new" } else { "old" };
            let known = (!writes_meanwhile).then(|| Some(Bytes::from(expected)));
            assert_eq!(in_memory(&new, "a"), known);
            assert_eq!(new.get(&key("a")).await.unwrap(), Some(Bytes::from(expected)));
        }
    }
}
