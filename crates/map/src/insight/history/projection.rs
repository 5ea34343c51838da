//! Shows columns that were counted on another axis on the present one.
//!
//! ```text
//!   past     a     b     c     d  e     f          e, f: their keys are not known any more
//!   present  a  p  b           d     q  r
//!
//!   [a,b) is divided evenly between the buckets of a and p; b and c are added up in the bucket of b;
//!   what lies above d is spread over the buckets of d, q and r
//! ```
//!
//! A past boundary that is also a present one has an exact place. If its key is known but is not a boundary
//! now, it lies within one bucket. If its key is not known, it lies somewhere between the known boundaries
//! beside it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::axis::{Axis, spread};
use super::boundaries::Boundaries;
use super::column::Cells;

/// Maps the buckets of one axis to those of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// For each bucket, the buckets of the other axis in which it may lie. Never empty.
    targets: Vec<Range<usize>>,
    /// Whether each bucket lies in a single one.
    exact: bool,
}

/// Where a past boundary may lie: between the beginnings of two present buckets.
type Between = Range<usize>;

impl Projection {
    /// The projection from `past` onto `present`.
    pub fn new(past: &Boundaries, present: &Axis) -> Self {
        if past.names == present.boundaries().names {
            let targets = (0..past.len()).map(|bucket| bucket..bucket + 1).collect();
            return Self { targets, exact: true };
        }
        let between = between(past, present);
        let end = present.buckets();
        let targets: Vec<Range<usize>> = (0..past.len())
            .map(|bucket| {
                let low = between[bucket].start.min(end - 1);
                let high = between.get(bucket + 1).map_or(end, |next| next.end);
                low..high.max(low + 1)
            })
            .collect();
        let exact = targets.iter().all(|target| target.len() == 1);
        Self { targets, exact }
    }

    /// Whether every bucket lies within one of the other axis, so that nothing is spread.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// The cells on the other axis. Their sum stays the same.
    pub fn project(&self, cells: &Cells) -> Cells {
        let mut projected = Cells::new();
        for (bucket, counts) in cells {
            // Only a file that was changed by hand has a bucket that its axis does not have.
            let last = self.targets.last().cloned().unwrap_or(0..1);
            let target = self.targets.get(*bucket as usize).cloned().unwrap_or(last);
            spread(&mut projected, target, *counts);
        }
        projected
    }
}

/// Where each past boundary may lie.
fn between(past: &Boundaries, present: &Axis) -> Vec<Between> {
    let places: BTreeMap<u64, usize> =
        present.boundaries().names.iter().enumerate().map(|(place, name)| (*name, place)).collect();
    let mut known: Vec<Option<Between>> = Vec::with_capacity(past.len());
    let mut least = 0;
    for (index, name) in past.names.iter().enumerate() {
        let key = past.keys.as_ref().and_then(|keys| keys.get(index));
        let place = match (places.get(name), key) {
            (Some(place), _) => Some(*place..*place),
            (None, Some(key)) => Some(present.bucket_of(key)..present.bucket_of(key) + 1),
            (None, None) => None,
        };
        // A place out of order is wrong: two keys have the same hash.
        let place = place.filter(|place| place.start >= least);
        least = place.as_ref().map_or(least, |place| place.start);
        known.push(place);
    }
    let (mut low, mut high) = (0, present.buckets());
    let lows: Vec<usize> = known
        .iter()
        .map(|place| {
            low = place.as_ref().map_or(low, |place| place.start);
            low
        })
        .collect();
    let mut between: Vec<Between> = known
        .iter()
        .zip(lows)
        .rev()
        .map(|(place, low)| {
            high = place.as_ref().map_or(high, |place| place.end);
            low..high
        })
        .collect();
    between.reverse();
    between
}
