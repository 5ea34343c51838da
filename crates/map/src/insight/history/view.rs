//! A picture of the history: rows are keys, columns are times.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::axis::Axis;
use super::boundaries::Boundaries;
use super::column::{Cells, Column};
use super::projection::Projection;
use crate::load::Counts;
use crate::range::KeyRange;

/// The columns between two times, added up to steps of equal length on one axis.
#[derive(Debug, Clone)]
pub struct View {
    axis: Axis,
    buckets: Range<usize>,
    times: Range<i64>,
    step: i64,
    columns: BTreeMap<i64, Cells>,
    /// The beginnings of steps with counts that were spread over several buckets.
    spread: BTreeSet<i64>,
    /// The projection that was used last. Columns come in order, and most have the same axis as the one before.
    projection: Option<(Arc<Boundaries>, Projection)>,
}

/// The rows and columns of a [`View`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Intervals of keys, in order and without a gap.
    pub rows: Vec<Row>,
    /// The times at which something was counted.
    pub columns: Vec<ShownColumn>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its keys.
    pub keys: KeyRange,
    /// How many buckets of the axis are in it.
    pub buckets: usize,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownColumn {
    /// When it begins, in seconds since 1970.
    pub at: i64,
    /// Whether load was spread evenly over several buckets, because it was counted on another axis and its
    /// exact bucket is not known.
    pub spread: bool,
    /// The counts by row. Rows without an entry counted nothing.
    pub cells: Vec<(usize, Counts)>,
}

impl View {
    /// A view of the buckets that hold some of `keys`, and of the columns that begin within `times`. These
    /// are added up in steps of `step` seconds (at least 1) from the beginning of `times` on.
    pub fn new(axis: Axis, keys: &KeyRange, times: Range<i64>, step: i64) -> Self {
        let buckets = axis.buckets_of(keys.low(), keys.high());
        let (columns, spread) = (BTreeMap::new(), BTreeSet::new());
        Self { axis, buckets, times, step: step.max(1), columns, spread, projection: None }
    }

    /// Adds a column, unless it lies outside the view's times.
    pub fn add(&mut self, column: &Column) {
        if !self.times.contains(&column.at) {
            return;
        }
        let at = self.times.start + (column.at - self.times.start) / self.step * self.step;
        let known = self.projection.take().filter(|(axis, _)| Arc::ptr_eq(axis, &column.axis));
        let (axis, projection) =
            known.unwrap_or_else(|| (Arc::clone(&column.axis), Projection::new(&column.axis, &self.axis)));
        self.add_by(&projection, at, column);
        self.projection = Some((axis, projection));
    }

    fn add_by(&mut self, projection: &Projection, at: i64, column: &Column) {
        let mut seen = projection.project(&column.cells);
        seen.retain(|bucket, _| self.buckets.contains(&(*bucket as usize)));
        if seen.is_empty() {
            return;
        }
        let cells = self.columns.entry(at).or_default();
        for (bucket, counts) in seen {
            *cells.entry(bucket).or_default() += counts;
        }
        if !projection.is_exact() {
            self.spread.insert(at);
        }
    }

    /// The picture, in at most `rows_max` rows (at least 1). Neighbours with little load share a row.
    pub fn show(&self, rows_max: usize) -> Shown {
        let groups = self.groups(rows_max.max(1));
        let row_of = |bucket: u32| groups.partition_point(|group| group.end <= bucket as usize);
        let mut columns = Vec::with_capacity(self.columns.len());
        for (at, cells) in &self.columns {
            let mut rows: BTreeMap<usize, Counts> = BTreeMap::new();
            for (bucket, counts) in cells {
                *rows.entry(row_of(*bucket)).or_default() += *counts;
            }
            let cells = rows.into_iter().collect();
            columns.push(ShownColumn { at: *at, spread: self.spread.contains(at), cells });
        }
        let keys = |group: &Range<usize>| {
            let high = self.axis.bucket(group.end - 1).high().map(<[u8]>::to_vec);
            KeyRange::new(self.axis.keys()[group.start].clone(), high)
        };
        let row = |group: &Range<usize>| Row { keys: keys(group), buckets: group.len() };
        Shown { rows: groups.iter().map(row).collect(), columns }
    }

    /// The buckets of each row. The two neighbours with the least load are joined until there are few enough
    /// rows.
    fn groups(&self, rows_max: usize) -> Vec<Range<usize>> {
        let mut load: BTreeMap<usize, u64> = BTreeMap::new();
        for (bucket, counts) in self.columns.values().flatten() {
            let sum = load.entry(*bucket as usize).or_default();
            *sum = sum.saturating_add(counts.requests());
        }
        let mut groups: Vec<(Range<usize>, u64)> = self
            .buckets
            .clone()
            .map(|bucket| (bucket..bucket + 1, load.get(&bucket).copied().unwrap_or(0)))
            .collect();
        while groups.len() > rows_max {
            let both = |at: &usize| groups[*at].1.saturating_add(groups[at + 1].1);
            let Some(least) = (0..groups.len() - 1).min_by_key(both) else { break };
            let (right, more) = groups.remove(least + 1);
            groups[least].0.end = right.end;
            groups[least].1 = groups[least].1.saturating_add(more);
        }
        groups.into_iter().map(|(group, _)| group).collect()
    }
}
