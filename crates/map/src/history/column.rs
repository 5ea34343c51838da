//! Columns of cells, and how they are added up to coarser ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::axis::Boundaries;
use super::tier::Tier;
use crate::load::Counts;

/// Counts by bucket; those that are not here are nothing.
pub type Cells = BTreeMap<u32, Counts>;

/// What was counted in one time bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// When it began, in seconds since 1970; a multiple of its tier's step.
    pub at: i64,
    /// The axis to which the buckets belong.
    pub axis: Arc<Boundaries>,
    /// What was counted.
    pub cells: Cells,
}

impl Column {
    /// All cells together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.cells.values().for_each(|counts| total += *counts);
        total
    }
}

/// Adds seconds up to tens, and tens to minutes.
#[derive(Debug, Clone, Default)]
pub struct RollUp {
    ten: Option<Column>,
    minute: Option<Column>,
}

impl RollUp {
    /// Adds what was counted in a second. Returns the columns that are complete now. One on
    /// another axis than those before begins new columns, even of the same time: columns of one time
    /// and tier add up.
    pub fn add(&mut self, second: &Column) -> Vec<(Tier, Column)> {
        let mut complete = Vec::new();
        if let Some(ten) = add(&mut self.ten, second, Tier::Ten) {
            self.add_ten(ten, &mut complete);
        }
        complete
    }

    /// Adds a column of ten seconds whose minute was not complete when a process ended.
    pub fn resume(&mut self, ten: &Column) -> Option<Column> {
        add(&mut self.minute, ten, Tier::Minute)
    }

    /// Time has come to `now`, in seconds since 1970: what ended before is complete.
    pub fn until(&mut self, now: i64) -> Vec<(Tier, Column)> {
        let mut complete = Vec::new();
        if let Some(ten) = self.ten.take_if(|ten| ten.at < Tier::Ten.begin(now)) {
            self.add_ten(ten, &mut complete);
        }
        if let Some(minute) = self.minute.take_if(|minute| minute.at < Tier::Minute.begin(now)) {
            complete.push((Tier::Minute, minute));
        }
        complete
    }

    /// The ten seconds that are not over yet, for somebody who stops. The minute is not needed: the next
    /// one who starts adds it up from tens.
    pub fn finish(&mut self) -> Option<Column> {
        self.ten.take()
    }

    /// The column of a tier that is not complete yet, with all that was counted so far.
    pub fn open(&self, tier: Tier) -> Vec<Column> {
        let minute = self.minute.iter().cloned();
        let ten = self.ten.iter().cloned();
        match tier {
            Tier::Second => Vec::new(),
            Tier::Ten => ten.collect(),
            Tier::Minute => {
                minute.chain(ten.map(|ten| Column { at: Tier::Minute.begin(ten.at), ..ten })).collect()
            }
        }
    }

    fn add_ten(&mut self, ten: Column, complete: &mut Vec<(Tier, Column)>) {
        if let Some(minute) = add(&mut self.minute, &ten, Tier::Minute) {
            complete.push((Tier::Minute, minute));
        }
        complete.push((Tier::Ten, ten));
    }
}

/// Adds `finer` to the open column of a tier; returns that one if it is another.
fn add(open: &mut Option<Column>, finer: &Column, tier: Tier) -> Option<Column> {
    let at = tier.begin(finer.at);
    let same = |open: &Column| {
        open.at == at && (Arc::ptr_eq(&open.axis, &finer.axis) || open.axis.names == finer.axis.names)
    };
    let complete = open.take_if(|open| !same(open));
    let open = open.get_or_insert_with(|| Column { at, axis: Arc::clone(&finer.axis), cells: Cells::new() });
    for (bucket, counts) in &finer.cells {
        *open.cells.entry(*bucket).or_default() += *counts;
    }
    complete
}
