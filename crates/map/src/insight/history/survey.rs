//! Decides where the axis is cut, and when it changes.
//!
//! The survey reads the tallies and remembers how many requests each partition had. From time to time, with
//! longer and longer waits, it looks for buckets with much more than a fair part of the load. It cuts them so
//! that each piece has about a fair part. A partition with more load than that gets a bucket to itself.
//!
//! Boundaries stay once they are made. If there are too many, those that divide the least load are dropped.
//! The remembered requests are halved at each survey.

use std::collections::{BTreeMap, BTreeSet};

use super::axis::Axis;
use super::boundaries::Boundaries;
use super::limits::{BUCKETS_MAX, FAIR_PARTS, SAMPLES_MAX, SEEN_MAX, SURVEY_EVERY_MAX, TICKS_BEFORE_SURVEY};
use crate::codec::Reader;
use crate::key::{KIND_ENTITY, KIND_OBJECT};
use crate::load::{Place, Tally, partition_of};

/// The axis, and what is remembered to choose the next one.
#[derive(Debug, Clone)]
pub struct Survey {
    axis: Axis,
    /// The low keys of all ranges when the axis was last renewed.
    ranges: Vec<Vec<u8>>,
    /// Requests by partition.
    samples: BTreeMap<Vec<u8>, u64>,
    /// Hashes of boundaries of an earlier process whose keys were not kept, and the keys among them that were
    /// recognised since.
    lost: BTreeSet<u64>,
    recognised: Vec<Vec<u8>>,
    /// The seconds with load so far, at how many of them the next survey is due, and the wait after that.
    seconds: u64,
    due: u64,
    wait: u64,
}

impl Survey {
    /// Begins with the low keys of `ranges` as boundaries, and with the boundaries of an earlier process. If
    /// only their hashes are known, a key becomes a boundary again when it is seen. `name` hashes a boundary.
    pub fn new(ranges: Vec<Vec<u8>>, earlier: Option<&Boundaries>, name: impl Fn(&[u8]) -> u64) -> Self {
        let mut keys = ranges.clone();
        let mut lost = BTreeSet::new();
        match earlier {
            Some(Boundaries { keys: Some(known), .. }) => keys.extend(known.iter().cloned()),
            Some(Boundaries { names, keys: None }) => lost.extend(names.iter().copied()),
            None => {}
        }
        thin(&mut keys, &ranges, &BTreeMap::new());
        let axis = Axis::new(keys, name);
        for known in &axis.boundaries().names {
            lost.remove(known);
        }
        let (samples, recognised) = (BTreeMap::new(), Vec::new());
        let (seconds, due, wait) = (0, TICKS_BEFORE_SURVEY, TICKS_BEFORE_SURVEY);
        Self { axis, ranges, samples, lost, recognised, seconds, due, wait }
    }

    /// The axis that is used for counting now.
    pub fn axis(&self) -> &Axis {
        &self.axis
    }

    /// Recognises those of `keys` that were boundaries of an earlier process.
    pub fn offer<'a>(&mut self, keys: impl IntoIterator<Item = &'a [u8]>, name: impl Fn(&[u8]) -> u64) {
        if self.lost.is_empty() {
            return;
        }
        for key in keys {
            if self.lost.remove(&name(key)) {
                self.recognised.push(key.to_vec());
            }
        }
    }

    /// Reads the tallies of one second. If they have many places, a part of them is read each second, in turn.
    pub fn see<'a>(&mut self, tallies: impl IntoIterator<Item = &'a Tally>, name: impl Fn(&[u8]) -> u64) {
        let tallies: Vec<&Tally> = tallies.into_iter().collect();
        let places: usize = tallies.iter().map(|tally| tally.places.len()).sum();
        let stride = places.div_ceil(SEEN_MAX).max(1);
        let first = (self.seconds % stride as u64) as usize;
        for (place, counts) in tallies.iter().flat_map(|tally| &tally.places).skip(first).step_by(stride) {
            let partition = match place {
                Place::Partition(partition) => partition,
                Place::Span(low, _) => partition_of(low),
            };
            match self.samples.get_mut(partition) {
                Some(requests) => *requests = requests.saturating_add(counts.requests()),
                None => {
                    self.offer(table_of(partition).into_iter().chain([partition]), &name);
                    self.samples.insert(partition.to_vec(), counts.requests());
                }
            }
        }
        while self.samples.len() > SAMPLES_MAX {
            self.halve_samples();
        }
        self.seconds += u64::from(!tallies.is_empty());
    }

    /// The next axis, if it changes: because the map has other ranges, or because the load asks for cuts.
    /// `ranges` are the low keys of all ranges.
    pub fn renew(&mut self, ranges: &[Vec<u8>], name: impl Fn(&[u8]) -> u64) -> Option<Axis> {
        let is_due = self.seconds >= self.due;
        if ranges == self.ranges && !is_due && self.recognised.is_empty() {
            return None;
        }
        self.ranges = ranges.to_vec();
        let mut keys = self.axis.keys().to_vec();
        keys.extend_from_slice(ranges);
        keys.append(&mut self.recognised);
        if is_due {
            keys.extend(self.samples.keys().filter_map(|key| table_of(key)).map(<[u8]>::to_vec));
            keys.sort_unstable();
            keys.dedup();
            keys.extend(cuts(&keys, &self.samples));
        }
        thin(&mut keys, ranges, &self.samples);
        if is_due {
            self.wait = (self.wait * 2).min(SURVEY_EVERY_MAX);
            self.due = self.seconds + self.wait;
            self.samples.values_mut().for_each(|requests| *requests /= 2);
            self.samples.retain(|_, requests| *requests > 0);
        }
        let axis = Axis::new(keys, name);
        if axis == self.axis {
            return None;
        }
        self.axis = axis.clone();
        Some(axis)
    }

    /// Halves the number of samples. Of two neighbours the heavier one stays, with the requests of both.
    fn halve_samples(&mut self) {
        let all: Vec<(Vec<u8>, u64)> = std::mem::take(&mut self.samples).into_iter().collect();
        for pair in all.chunks(2) {
            let sum = pair.iter().fold(0u64, |sum, (_, requests)| sum.saturating_add(*requests));
            let heavier = pair.iter().max_by_key(|(_, requests)| *requests);
            self.samples.extend(heavier.map(|(key, _)| (key.clone(), sum)));
        }
    }
}

/// The bytes with which all keys of the partition's table or bucket begin; `None` if it is in neither.
fn table_of(partition: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(partition);
    match reader.u8().ok()? {
        KIND_ENTITY => {
            reader.raw_text().ok()?;
        }
        KIND_OBJECT => {}
        _ => return None,
    }
    reader.u64().ok()?;
    Some(&partition[..reader.position()])
}

/// The partitions at which buckets with much more than a fair part of the load are cut. `keys` are the
/// present boundaries, in order.
fn cuts(keys: &[Vec<u8>], samples: &BTreeMap<Vec<u8>, u64>) -> Vec<Vec<u8>> {
    let bucket_of = |partition: &Vec<u8>| keys.partition_point(|key| key <= partition);
    let load = load(keys, samples);
    let fair = (load.iter().sum::<u64>() / FAIR_PARTS).max(1);
    let mut cuts = Vec::new();
    let (mut bucket, mut piece) = (0, 0u64);
    for (partition, requests) in samples.iter().filter(|(key, _)| load[bucket_of(key)] > 2 * fair) {
        // The first partition of a bucket has the bucket's own boundary just before it.
        if bucket_of(partition) != bucket {
            (bucket, piece) = (bucket_of(partition), 0);
        } else if piece > 0 && piece.saturating_add(*requests) > fair {
            cuts.push(partition.clone());
            piece = 0;
        }
        piece = piece.saturating_add(*requests);
    }
    cuts
}

/// The requests below the first of `keys`, between it and the next one, and so on.
fn load(keys: &[Vec<u8>], samples: &BTreeMap<Vec<u8>, u64>) -> Vec<u64> {
    let mut load = vec![0u64; keys.len() + 1];
    for (partition, requests) in samples {
        let bucket = &mut load[keys.partition_point(|key| key <= partition)];
        *bucket = bucket.saturating_add(*requests);
    }
    load
}

/// Drops boundaries until there are not more than allowed. Low keys of ranges are dropped last, and
/// boundaries that divide little load first.
fn thin(keys: &mut Vec<Vec<u8>>, ranges: &[Vec<u8>], samples: &BTreeMap<Vec<u8>, u64>) {
    keys.sort_unstable();
    keys.dedup();
    // One place is left for the least key of all.
    let Some(over) = (keys.len() + 1).checked_sub(BUCKETS_MAX).filter(|over| *over > 0) else { return };
    let load = load(keys, samples);
    let ranges: BTreeSet<&Vec<u8>> = ranges.iter().collect();
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|at| (ranges.contains(&keys[*at]), load[*at].saturating_add(load[at + 1])));
    let gone: BTreeSet<usize> = order.into_iter().take(over).collect();
    let mut at = 0;
    keys.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}
