//! How columns of another axis are shown on the present one.
//!
//! ```text
//!   past     a     b     c     d  e     f          e, f: their keys are not known any more
//!   present  a  p  b           d     q  r
//!
//!   [a,b) goes to p's two neighbours evenly; [b,d) is summed up; what is beyond d is spread over d, q, r
//! ```
//!
//! A past boundary is *exact* if it is one of the present axis; *within* a bucket if its key is known but
//! is no boundary now; else *unknown*, and lies somewhere between the known ones beside it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::axis::{Axis, spread};
use super::boundaries::Boundaries;
use super::column::Cells;

/// The way from the buckets of one axis to those of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// Of each bucket: those that it may lie in. Never empty.
    targets: Vec<Range<usize>>,
    /// Whether each bucket goes into one.
    exact: bool,
}

/// Where a past boundary lies: from the begin of one present bucket to the begin of another.
type Between = Range<usize>;

impl Projection {
    /// From `past` onto `present`.
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

    /// The cells on the other axis: the same sum.
    pub fn project(&self, cells: &Cells) -> Cells {
        let mut projected = Cells::new();
        for (bucket, counts) in cells {
            // A bucket that the axis does not have comes from a file that was tampered with.
            let last = self.targets.last().cloned().unwrap_or(0..1);
            let target = self.targets.get(*bucket as usize).cloned().unwrap_or(last);
            spread(&mut projected, target, *counts);
        }
        projected
    }
}

/// Of each past boundary, where it lies.
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
        // Out of order is no place: of two keys with the same hash, one.
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
