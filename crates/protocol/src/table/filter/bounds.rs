//! Which keys a filter can match: an interval of (PartitionKey, RowKey) pairs.
//!
//! A query reads only this interval of its table. It is found without looking at any row, from the
//! comparisons of the two keys with constants, and never loses a match.
//!
//! For each part of the tree there is kept
//!
//! - a *box*: an interval of PartitionKeys and one of RowKeys, which suits `PartitionKey eq 'a'
//!   and (RowKey eq '1' or RowKey eq '5')`, and
//! - a *stretch* of pairs in their order, which suits `(PartitionKey eq 'a' and RowKey eq '9') or
//!   (PartitionKey eq 'b' and RowKey eq '1')`.
//!
//! `and` intersects both, `or` takes the hull of both, and a box makes its own stretch shorter.
//! `not` is pushed down to the comparisons, since every entity has its two keys: `not (A or B)` is
//! `not A and not B`, `not (RowKey lt 'x')` is `RowKey ge 'x'`. Other properties bound nothing.
//!
//! Intervals are cut *between* keys, so that `le 'x'` and `lt 'x'` are the same kind of interval, cut
//! after `x` or before it.

use std::cmp::Ordering;

use super::edge::{KeyBounds, KeyEdge};
use super::syntax::{Comparison, Expr, Field, Operator};
use crate::table::ordinal;
use crate::table::value::Value;

/// The smallest interval that this module can find around the keys of all rows that match.
pub(super) fn of(expr: &Expr) -> KeyBounds {
    Region::of(expr, true).stretch
}

/// A place between two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut<'a> {
    Start,
    Before(&'a str),
    After(&'a str),
    End,
}

impl Cut<'_> {
    fn rank(&self) -> u8 {
        match self {
            Self::Start => 0,
            Self::Before(_) | Self::After(_) => 1,
            Self::End => 2,
        }
    }
}

impl Ord for Cut<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Before(a) | Self::After(a), Self::Before(b) | Self::After(b)) => ordinal::compare(a, b)
                .then(matches!(self, Self::After(_)).cmp(&matches!(other, Self::After(_)))),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Cut<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The texts between two cuts.
#[derive(Debug, Clone, Copy)]
struct Span<'a> {
    low: Cut<'a>,
    high: Cut<'a>,
}

impl<'a> Span<'a> {
    const ALL: Self = Self { low: Cut::Start, high: Cut::End };

    /// The texts that stand so to `text`. `ne` excludes one text, which no interval can.
    fn of(operator: Operator, text: &'a str) -> Self {
        let (before, after) = (Cut::Before(text), Cut::After(text));
        match operator {
            Operator::Equal => Self { low: before, high: after },
            Operator::NotEqual => Self::ALL,
            Operator::Greater => Self { low: after, high: Cut::End },
            Operator::GreaterOrEqual => Self { low: before, high: Cut::End },
            Operator::Less => Self { low: Cut::Start, high: before },
            Operator::LessOrEqual => Self { low: Cut::Start, high: after },
        }
    }

    fn is_empty(self) -> bool {
        self.high <= self.low
    }

    fn intersect(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

/// The keys that a part of the tree can match: those in the box and in the stretch.
#[derive(Debug, Clone)]
struct Region<'a> {
    partitions: Span<'a>,
    rows: Span<'a>,
    stretch: KeyBounds,
}

impl<'a> Region<'a> {
    fn all() -> Self {
        Self { partitions: Span::ALL, rows: Span::ALL, stretch: KeyBounds::all() }
    }

    fn none() -> Self {
        Self { stretch: KeyBounds::none(), ..Self::all() }
    }

    /// The keys of rows of which `expr` can be `wanted`.
    fn of(expr: &'a Expr, wanted: bool) -> Self {
        match expr {
            Expr::Always(answer) if *answer == wanted => Self::all(),
            Expr::Always(_) => Self::none(),
            Expr::Flag(_) => Self::all(),
            Expr::Compare(comparison) => Self::of_comparison(comparison, wanted),
            Expr::Not(inner) => Self::of(inner, !wanted),
            // An `or` that shall be false is an `and` of parts that shall be false.
            Expr::And(list) if wanted => Self::of_all(list, wanted),
            Expr::Or(list) if !wanted => Self::of_all(list, wanted),
            Expr::And(list) | Expr::Or(list) => {
                list.iter().map(|one| Self::of(one, wanted)).fold(Self::none(), Self::or)
            }
        }
    }

    fn of_all(list: &'a [Expr], wanted: bool) -> Self {
        list.iter().map(|one| Self::of(one, wanted)).fold(Self::all(), Self::and)
    }

    fn of_comparison(comparison: &'a Comparison, wanted: bool) -> Self {
        let operator = if wanted { comparison.operator } else { comparison.operator.negated() };
        let region = match (&comparison.field, &comparison.literal.0) {
            (Field::PartitionKey, Value::String(text)) => {
                Self { partitions: Span::of(operator, text), ..Self::all() }
            }
            (Field::RowKey, Value::String(text)) => Self { rows: Span::of(operator, text), ..Self::all() },
            _ => Self::all(),
        };
        region.shortened()
    }

    fn and(self, other: Self) -> Self {
        Self {
            partitions: self.partitions.intersect(other.partitions),
            rows: self.rows.intersect(other.rows),
            stretch: self.stretch.intersect(other.stretch),
        }
        .shortened()
    }

    fn or(self, other: Self) -> Self {
        match (self.stretch.is_empty(), other.stretch.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Self {
                partitions: self.partitions.hull(other.partitions),
                rows: self.rows.hull(other.rows),
                stretch: self.stretch.hull(other.stretch),
            },
        }
    }

    /// With the stretch cut to the pairs from the first one of the box to its last one.
    fn shortened(self) -> Self {
        if self.partitions.is_empty() || self.rows.is_empty() {
            return Self::none();
        }
        let low = match self.partitions.low {
            Cut::Before(first) => edge_in(first, self.rows.low),
            Cut::After(text) => KeyEdge::after_partition(text),
            Cut::Start | Cut::End => KeyEdge::start(),
        };
        let high = match self.partitions.high {
            Cut::After(last) => edge_in(last, self.rows.high),
            Cut::Before(text) => KeyEdge::before_partition(text),
            Cut::Start | Cut::End => KeyEdge::end(),
        };
        Self { stretch: self.stretch.clone().intersect(KeyBounds { low, high }), ..self }
    }
}

/// The place within a partition at which its rows are cut.
fn edge_in(partition_key: &str, row: Cut<'_>) -> KeyEdge {
    match row {
        Cut::Start => KeyEdge::before_partition(partition_key),
        Cut::Before(row_key) => KeyEdge::before_row(partition_key, row_key),
        Cut::After(row_key) => KeyEdge::after_row(partition_key, row_key),
        Cut::End => KeyEdge::after_partition(partition_key),
    }
}
