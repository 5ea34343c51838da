//! The partitions with the most load, and in each partition the row with most of its load.

use std::hash::{DefaultHasher, Hasher};

use super::tally::{Counts, Place};

/// The most partitions that are counted at the same time.
const TOP_MAX: usize = 32;
/// The decayed cost below which a partition is forgotten.
const COUNT_MIN: f64 = 0.5;
/// The share of a partition's load from which one row is named.
const ROW_SHARE_MIN: f64 = 0.5;
/// The share of the range's load from which a partition is shown.
const SHARE_MIN: f64 = 0.01;

/// A partition with much of a range's load.
#[derive(Debug, Clone, PartialEq)]
pub struct TopKey {
    /// The bytes that its keys begin with.
    pub partition: Vec<u8>,
    /// Its share of the load of the last seconds (half-life 10 s). The true share may be up to 1/32 greater.
    pub share: f64,
    /// The row with most of that load, if there is one.
    pub row: Option<HotRow>,
}

/// A row with most of the load of its partition.
#[derive(Debug, Clone, PartialEq)]
pub struct HotRow {
    /// The stored key.
    pub key: Vec<u8>,
    /// Its share of the load of the range.
    pub share: f64,
}

/// SpaceSaving (Metwally, Agrawal and El Abbadi, 2005) over decayed counts. A partition that is not counted
/// yet replaces the one with the least count, and takes over that count as its possible error. So every
/// partition with more than 1/32 of the load is here, and at least `count - error` was seen of it.
///
/// Within each partition, the vote of Boyer and Moore (1981) keeps the one row that can have a majority.
#[derive(Debug, Clone, Default)]
pub(super) struct TopKeys {
    /// The hash of each entry. They are kept apart, so that a search reads four cache lines.
    hashes: Vec<u64>,
    entries: Vec<Entry>,
    total: f64,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    partition: Vec<u8>,
    count: f64,
    error: f64,
    row: Vec<u8>,
    votes: f64,
    /// What was counted in this place since the last tally. If partitions replaced each other here, it is the
    /// sum of theirs.
    counts: Counts,
    /// The cost of the row, and of the partition, since the row was elected.
    row_count: f64,
    since_elected: f64,
}

impl TopKeys {
    /// Counts a request that touched one partition, and one row of it if `row` is given. `counts` is for the
    /// history.
    pub(super) fn add(&mut self, partition: &[u8], row: Option<&[u8]>, cost: u32, counts: Counts) {
        let cost = f64::from(cost);
        self.total += cost;
        let hash = hash(partition);
        let found = self.hashes.iter().position(|&known| known == hash);
        let place = match found.filter(|&place| self.entries[place].partition == partition) {
            Some(place) => place,
            None => self.make_room(hash, partition),
        };
        let entry = &mut self.entries[place];
        entry.count += cost;
        entry.counts += counts;
        entry.vote(row, cost);
    }

    /// Moves what was counted since the last call into `places`. The counts of partitions that were forgotten
    /// since are missing.
    pub(super) fn take_counts(&mut self, places: &mut Vec<(Place, Counts)>) {
        for entry in self.entries.iter_mut().filter(|entry| !entry.counts.is_nothing()) {
            places.push((Place::Partition(entry.partition.clone()), std::mem::take(&mut entry.counts)));
        }
    }

    /// Counts a request that touched several partitions.
    pub(super) fn add_to_none(&mut self, cost: u32) {
        self.total += f64::from(cost);
    }

    fn make_room(&mut self, hash: u64, partition: &[u8]) -> usize {
        if self.entries.len() < TOP_MAX {
            self.hashes.push(hash);
            self.entries.push(Entry { partition: partition.to_vec(), ..Entry::default() });
            return self.entries.len() - 1;
        }
        let mut least = 0;
        for (place, entry) in self.entries.iter().enumerate() {
            if entry.count < self.entries[least].count {
                least = place;
            }
        }
        self.hashes[least] = hash;
        self.entries[least].replace(partition);
        least
    }

    /// Multiplies all counts by `kept`.
    pub(super) fn decay(&mut self, kept: f64) {
        self.total *= kept;
        for entry in &mut self.entries {
            entry.decay(kept);
        }
        if self.entries.iter().any(|entry| entry.count < COUNT_MIN) {
            self.entries.retain(|entry| entry.count >= COUNT_MIN);
            self.hashes = self.entries.iter().map(|entry| hash(&entry.partition)).collect();
        }
    }

    /// The partition with the most load.
    pub(super) fn first(&self) -> Option<TopKey> {
        let first = self.entries.iter().max_by(|a, b| a.sure().total_cmp(&b.sure()))?;
        Some(first.top_key(self.total))
    }

    /// All partitions whose share is large enough to be shown, the greatest first.
    pub(super) fn list(&self) -> Vec<TopKey> {
        let shown = self.entries.iter().filter(|entry| entry.sure() >= SHARE_MIN * self.total);
        let mut list: Vec<TopKey> = shown.map(|entry| entry.top_key(self.total)).collect();
        list.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.partition.cmp(&b.partition)));
        list
    }
}

impl Entry {
    /// The cost that was certainly seen.
    fn sure(&self) -> f64 {
        self.count - self.error
    }

    fn replace(&mut self, partition: &[u8]) {
        self.partition.clear();
        self.partition.extend_from_slice(partition);
        self.row.clear();
        self.error = self.count;
        (self.votes, self.row_count, self.since_elected) = (0.0, 0.0, 0.0);
    }

    /// Another row than the elected one takes votes away, and is elected when no votes are left.
    fn vote(&mut self, row: Option<&[u8]>, cost: f64) {
        self.since_elected += cost;
        let Some(row) = row else { return };
        if self.row == row {
            self.votes += cost;
            self.row_count += cost;
        } else if cost < self.votes {
            self.votes -= cost;
        } else {
            self.row.clear();
            self.row.extend_from_slice(row);
            self.votes = cost - self.votes;
            (self.row_count, self.since_elected) = (cost, cost);
        }
    }

    fn decay(&mut self, kept: f64) {
        for count in
            [&mut self.count, &mut self.error, &mut self.votes, &mut self.row_count, &mut self.since_elected]
        {
            *count *= kept;
        }
    }

    fn top_key(&self, total: f64) -> TopKey {
        let share = self.sure() / total;
        let of_partition = self.row_count / self.since_elected.max(f64::MIN_POSITIVE);
        // If no row has a majority, each is elected for a moment, and has all of the load in that moment.
        let is_lasting = self.since_elected >= self.sure() / 2.0;
        let row = (of_partition >= ROW_SHARE_MIN && is_lasting && !self.row.is_empty())
            .then(|| HotRow { key: self.row.clone(), share: share * of_partition });
        TopKey { partition: self.partition.clone(), share, row }
    }
}

/// Equal for equal bytes within this process. Different bytes may have the same hash.
fn hash(partition: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(partition);
    hasher.finish()
}
