//! What was counted in a range since somebody last asked, and where in the range.
//!
//! The history of load is made of this ([`crate::history`]). Nothing is looked up for it in a request:
//! partitions are those that [`super::top_keys`] counts anyway, and what touches several of them, or
//! none, is noted in a few places that are taken in turn.

use std::ops::{AddAssign, Sub};

/// Places for requests that are no partition's own.
const SPANS_MAX: usize = 8;

/// Requests and what they did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requests that were answered and wrote nothing.
    pub reads: u64,
    /// Requests that were answered and wrote.
    pub writes: u64,
    /// Entities that these looked at or wrote.
    pub entities: u64,
    /// Bytes that they read or wrote.
    pub bytes: u64,
    /// Requests that were refused to protect the range.
    pub throttled: u64,
    /// Requests that failed, whoever is to blame but the client.
    pub errors: u64,
}

/// What was counted in a range.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// All of it.
    pub total: Counts,
    /// Where it was, as far as that is known: together at most the total.
    pub places: Vec<(Place, Counts)>,
}

/// Where in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the partition whose keys begin so.
    Partition(Vec<u8>),
    /// From a key to another, or to the end of the range.
    Span(Vec<u8>, Option<Vec<u8>>),
}

impl Counts {
    /// The numbers in the order of their names above, in which they are also stored.
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

    /// The share of the `index`-th of `parts` equal parts. The shares of all parts add up to the whole.
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

/// Counts of requests that are no partition's own: each goes to the next place, whatever was there,
/// and names it. So many of them are a sample of [`SPANS_MAX`], in which all are counted.
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
