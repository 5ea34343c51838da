//! What was counted in a range since the last call, and where in the range.
//!
//! The history of load is made of these tallies. They cost almost nothing per request: the partitions are
//! those that [`super::top_keys`] counts anyway, and requests that touch several partitions, or none, are
//! counted in a few places in turn.

use std::ops::{AddAssign, Sub};

/// The number of places for requests that touch several partitions or none.
const SPANS_MAX: usize = 8;

/// Counts of requests and of what they did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Answered requests that wrote nothing.
    pub reads: u64,
    /// Answered requests that wrote.
    pub writes: u64,
    /// Entities that the answered requests read or wrote.
    pub entities: u64,
    /// Bytes that the answered requests read or wrote.
    pub bytes: u64,
    /// Requests that were refused to protect the range.
    pub throttled: u64,
    /// Requests that failed by no fault of the client.
    pub errors: u64,
}

/// What was counted in a range.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// All counts together.
    pub total: Counts,
    /// The counts by place, as far as the place is known. Together they are at most the total.
    pub places: Vec<(Place, Counts)>,
}

/// A place in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The partition whose keys begin with these bytes.
    Partition(Vec<u8>),
    /// From one key to another, or to the end of the range.
    Span(Vec<u8>, Option<Vec<u8>>),
}

impl Counts {
    /// The numbers in the order of the fields, in which they are also stored.
    pub const fn numbers(&self) -> [u64; 6] {
        [self.reads, self.writes, self.entities, self.bytes, self.throttled, self.errors]
    }

    /// The counts with these [`Counts::numbers`].
    pub const fn of_numbers([reads, writes, entities, bytes, throttled, errors]: [u64; 6]) -> Self {
        Self { reads, writes, entities, bytes, throttled, errors }
    }

    /// Whether nothing was counted.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// All requests: answered, refused and failed.
    pub const fn requests(&self) -> u64 {
        self.reads.saturating_add(self.writes).saturating_add(self.throttled).saturating_add(self.errors)
    }

    /// The part with this index of `parts` equal parts. All parts add up to the whole.
    pub fn part(&self, index: u64, parts: u64) -> Self {
        let below =
            |number: u64, index: u64| (u128::from(number) * u128::from(index) / u128::from(parts)) as u64;
        Self::of_numbers(self.numbers().map(|number| below(number, index + 1) - below(number, index)))
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        let (mut sum, others) = (self.numbers(), other.numbers());
        for (number, more) in sum.iter_mut().zip(others) {
            *number = number.saturating_add(more);
        }
        *self = Self::of_numbers(sum);
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let (mut rest, others) = (self.numbers(), other.numbers());
        for (number, less) in rest.iter_mut().zip(others) {
            *number = number.saturating_sub(less);
        }
        Self::of_numbers(rest)
    }
}

/// Counts of requests that touch several partitions or none. Each request is added to the next place in turn,
/// and the place takes the keys of that request. So the places are a sample of the requests, and all requests
/// are counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans {
    spans: Vec<Span>,
    next: usize,
}

#[derive(Debug, Clone, Default)]
struct Span {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    counts: Counts,
}

impl Spans {
    pub(super) fn add(&mut self, low: &[u8], high: Option<&[u8]>, counts: Counts) {
        if self.spans.len() < SPANS_MAX {
            self.spans.push(Span::default());
            self.next = self.spans.len() - 1;
        }
        let span = &mut self.spans[self.next];
        span.low.clear();
        span.low.extend_from_slice(low);
        span.high = high.map(<[u8]>::to_vec);
        span.counts += counts;
        self.next = (self.next + 1) % SPANS_MAX;
    }

    /// Moves what was counted into `places`.
    pub(super) fn take(&mut self, places: &mut Vec<(Place, Counts)>) {
        self.next = 0;
        places.extend(self.spans.drain(..).map(|span| (Place::Span(span.low, span.high), span.counts)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        let whole = Counts { reads: 10, writes: 3, entities: u64::MAX, bytes: 0, throttled: 1, errors: 7 };
        for parts in [1, 2, 3, 7, 2_048] {
            let mut sum = Counts::default();
            for index in 0..parts {
                sum += whole.part(index, parts);
            }
            assert_eq!(sum, whole, "{parts}");
        }
    }

    #[test]
    fn spans_count_everything_in_few_places() {
        let mut spans = Spans::default();
        for number in 0..100u8 {
            spans.add(&[number], None, Counts { reads: 1, ..Counts::default() });
        }
        let mut places = Vec::new();
        spans.take(&mut places);
        assert_eq!(places.len(), SPANS_MAX);
        assert_eq!(places.iter().map(|(_, counts)| counts.reads).sum::<u64>(), 100);
        spans.take(&mut places);
        assert_eq!(places.len(), SPANS_MAX, "taken once");
    }
}
