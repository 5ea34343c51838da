//! The keys that a filter can match, as an interval of (PartitionKey, RowKey) pairs.
//!
//! A query reads only this interval of its table. The interval follows from the comparisons of the two keys
//! with constants, without looking at any row, and has the keys of all rows that match.
//!
//! For each part of the tree this module keeps two things:
//!
//! - a *box*: an interval of PartitionKeys and an interval of RowKeys. It describes `PartitionKey eq 'a'
//!   and (RowKey eq '1' or RowKey eq '5')` well.
//! - a *stretch*: an interval of pairs in their order. It describes `(PartitionKey eq 'a' and RowKey eq '9')
//!   or (PartitionKey eq 'b' and RowKey eq '1')` well.
//!
//! `and` intersects both, `or` takes the smallest of both that contains the two sides, and a box shortens
//! its stretch. `not` moves down to the comparisons: `not (A or B)` is `not A and not B`, and
//! `not (RowKey lt 'x')` is `RowKey ge 'x'`, because every entity has both keys. Comparisons of other
//! properties do not limit the interval.
//!
//! Intervals begin and end *between* keys, so `le 'x'` and `lt 'x'` are the same kind of interval: one ends
//! after `x`, the other before it.

use std::cmp::Ordering;

use super::syntax::{Comparison, Expr, Field, Operator};
use crate::table::key_bounds::{KeyBounds, KeyEdge};
use crate::table::ordinal;
use crate::table::value::Value;

/// The smallest interval that this module finds for the keys of all rows that match.
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

    /// The texts that compare in this way with `text`. For `ne` these are all texts, because an interval
    /// cannot leave one out.
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

    /// The keys of rows for which `expr` can have the value `wanted`.
    fn of(expr: &'a Expr, wanted: bool) -> Self {
        match expr {
            Expr::Always(answer) if *answer == wanted => Self::all(),
            Expr::Always(_) => Self::none(),
            Expr::Flag(_) => Self::all(),
            Expr::Compare(comparison) => Self::of_comparison(comparison, wanted),
            Expr::Not(inner) => Self::of(inner, !wanted),
            // An `or` is false if all its parts are false, so it counts like an `and` of them.
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

    /// The same region, with its stretch limited to the pairs between the first and the last of the box.
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

/// The edge within a partition for a cut of its rows.
fn edge_in(partition_key: &str, row: Cut<'_>) -> KeyEdge {
    match row {
        Cut::Start => KeyEdge::before_partition(partition_key),
        Cut::Before(row_key) => KeyEdge::before_row(partition_key, row_key),
        Cut::After(row_key) => KeyEdge::after_row(partition_key, row_key),
        Cut::End => KeyEdge::after_partition(partition_key),
    }
}
