//! The set of ranges that a server holds: how ranges are added, removed and replaced.

use std::sync::Arc;

use rangehold_map::{Generation, RangeEntry, RangeId, RangeMap};
use tokio::time::{Instant, sleep};

use super::PartitionServer;
use crate::database::DatabaseError;
use crate::limits::{LEASE_RENEWED_EVERY, LEASE_TERM};
use crate::range::{Identity, Inheritance, Range};

impl PartitionServer {
    /// Makes the first range of a store, or takes over what a broken-off creation left of it. It is kept, but not
    /// served.
    pub(crate) async fn make_first(&self, entry: &RangeEntry) -> Result<Arc<Range>, DatabaseError> {
        let identity = Identity::of(entry);
        let range = if Range::exists(&identity, &self.0.context.databases).await? {
            let range = Range::open(identity, entry.generation, &self.0.context, None).await?;
            if !range.is_empty().await? {
                return Err(DatabaseError::NoMap(range.path()));
            }
            range
        } else {
            Range::create(identity, &self.0.context).await?
        };
        range.begin_empty();
        self.keep(&range);
        Ok(range)
    }

    /// Opens a range; see [`Range::open`]. It is kept, but not served.
    pub(crate) async fn open_range(
        &self,
        entry: &RangeEntry,
        generation: Generation,
        expected_epoch: Option<u64>,
    ) -> Result<Arc<Range>, DatabaseError> {
        let range = Range::open(Identity::of(entry), generation, &self.0.context, expected_epoch).await?;
        self.keep(&range);
        Ok(range)
    }

    /// Opens a range that a change made. It is kept, but not served.
    pub(crate) async fn open_heir(
        &self,
        identity: Identity,
        inheritance: &Inheritance,
    ) -> Result<Arc<Range>, DatabaseError> {
        let range = Range::open_heir(identity, &self.0.context, inheritance).await?;
        self.keep(&range);
        Ok(range)
    }

    fn keep(&self, range: &Arc<Range>) {
        self.0.host.ranges().add(range);
        self.0.host.spawn(format!("the supervisor of range {}", range.id()), Arc::clone(range).supervise());
    }

    /// Serves `new` instead of `old`, in one step. If another range here holds some of the keys of `new`, it
    /// is left from a change that was broken off, and has lost its database: it is removed as well. There is one
    /// exception: if the database of a range in `new` was opened again meanwhile, and is served here by that later
    /// opening, the later opening stays.
    pub(crate) fn replace_in_set(&self, old: &[Arc<Range>], new: &[Arc<Range>]) {
        let _replacing = self.0.replacing.lock();
        self.forget_damaged(new);
        let held = self.ranges();
        let is_overtaken = |new: &&Arc<Range>| held.iter().any(|held| held.was_opened_after(new));
        let (overtaken, new): (Vec<_>, Vec<_>) = new.iter().partition(is_overtaken);
        let is_old = |range: &Arc<Range>| old.iter().any(|old| Arc::ptr_eq(old, range));
        let is_left =
            |range: &Arc<Range>| new.iter().any(|new| !new.keys().intersect(range.keys()).is_empty());
        let (mut ranges, mut left) = (Vec::new(), Vec::new());
        for range in held.iter().filter(|range| !is_old(range)) {
            if is_left(range) { left.push(Arc::clone(range)) } else { ranges.push(Arc::clone(range)) }
        }
        left.extend(overtaken.into_iter().cloned());
        ranges.extend(new.into_iter().cloned());
        ranges.sort_by(|a, b| a.keys().low().cmp(b.keys().low()));
        let is_apart = |pair: &[Arc<Range>]| pair[0].keys().intersect(pair[1].keys()).is_empty();
        assert!(ranges.windows(2).all(is_apart), "each key is served by one range of a server");
        self.0.ranges.store(Arc::new(ranges));
        left.iter().for_each(|range| range.let_go());
        if !left.is_empty() {
            self.abandon(left);
        }
    }

    /// Waits until its lease holds, at most for the term of a lease; false if it does not hold by then. Call this
    /// between opening databases and serving them. A process that takes the ranges of a server ends the server's lease
    /// first, and waits until it has run out. So if the lease holds, the ranges were not taken before they were
    /// opened.
    pub(crate) async fn may_serve(&self) -> bool {
        let until = Instant::now() + LEASE_TERM;
        while !self.0.context.lease.holds() {
            if self.has_ended() || Instant::now() >= until {
                return false;
            }
            sleep(LEASE_RENEWED_EVERY).await;
        }
        true
    }

    /// Stops serving those of the ranges that the map does not give to this server: another process was
    /// faster to write into the map what became of them.
    pub(crate) fn withdraw(&self, ranges: &[RangeId], map: &RangeMap) {
        let is_mine = |id| map.get(id).is_some_and(|entry| entry.place.server == self.id());
        let is_lost = |range: &&Arc<Range>| ranges.contains(&range.id()) && !is_mine(range.id());
        let lost: Vec<_> = self.ranges().iter().filter(is_lost).cloned().collect();
        self.replace_in_set(&lost, &[]);
        lost.iter().for_each(|range| range.let_go());
        self.abandon(lost);
    }

    /// Closes the databases of ranges that were handed over, in the background.
    pub(crate) fn abandon(&self, ranges: Vec<Arc<Range>>) {
        ranges.iter().for_each(|range| self.0.host.ranges().keep_tally(range));
        self.0.host.spawn("closing what was handed over".to_owned(), async move {
            for range in ranges {
                range.end().await;
            }
        });
    }

    /// Stops serving a range, and saves and closes it.
    pub(crate) async fn close_range(&self, range: RangeId) {
        let found = self.ranges().iter().find(|held| held.id() == range).cloned();
        if let Some(range) = found {
            self.replace_in_set(&[Arc::clone(&range)], &[]);
            range.close().await;
            self.0.host.ranges().keep_tally(&range);
        }
    }

    /// Gives a range that stays here a later generation.
    pub(crate) fn renumber(&self, range: RangeId, generation: Generation) {
        if let Some(held) = self.ranges().iter().find(|held| held.id() == range) {
            held.renumber(generation);
        }
    }

    /// Stops serving a range of this generation if its freeze is sealed. The change that froze it waits for an answer that may
    /// never come, and the range would take no writes until then. Everything that the range acknowledged is durable.
    pub(crate) fn drop_sealed(&self, range: RangeId, generation: Generation) {
        let is_sealed =
            |held: &&Arc<Range>| held.id() == range && held.generation() == generation && held.is_sealed();
        let Some(sealed) = self.ranges().iter().find(is_sealed).cloned() else { return };
        self.replace_in_set(&[Arc::clone(&sealed)], &[]);
        sealed.turn_away();
        self.abandon(vec![sealed]);
    }
}
