//! Columns of cells, and how they are added up to coarser ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::boundaries::Boundaries;
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
    ten: Open,
    minute: Open,
}

/// Columns of one time that is not over yet: one for each axis by which something was counted in it.
#[derive(Debug, Clone, Default)]
struct Open(Vec<Column>);

impl RollUp {
    /// Adds what was counted in a second. Returns the columns that are complete now: those of a tier's
    /// earlier time, of the finer tier first. Where the axis changed there are several of one time, which add up.
    pub fn add(&mut self, second: &Column) -> Vec<(Tier, Column)> {
        let complete = self.until(second.at);
        self.ten.add(second, Tier::Ten);
        complete
    }

    /// Adds ten seconds of a minute that was not complete when a process ended. Returns the minutes
    /// that are.
    pub fn resume(&mut self, ten: &Column) -> Vec<(Tier, Column)> {
        let complete = self.minute.end_before(Tier::Minute.begin(ten.at));
        self.minute.add(ten, Tier::Minute);
        complete.into_iter().map(|minute| (Tier::Minute, minute)).collect()
    }

    /// Time has come to `now`, in seconds since 1970: what ended before is complete.
    pub fn until(&mut self, now: i64) -> Vec<(Tier, Column)> {
        let mut complete = Vec::new();
        for ten in self.ten.end_before(Tier::Ten.begin(now)) {
            // The minute may have ended with it, or with an earlier one.
            let minutes = self.minute.end_before(Tier::Minute.begin(ten.at));
            complete.extend(minutes.into_iter().map(|minute| (Tier::Minute, minute)));
            self.minute.add(&ten, Tier::Minute);
            complete.push((Tier::Ten, ten));
        }
        let minutes = self.minute.end_before(Tier::Minute.begin(now));
        complete.extend(minutes.into_iter().map(|minute| (Tier::Minute, minute)));
        complete
    }

    /// The ten seconds that are not over yet, for somebody who stops. The minute is not needed: the next
    /// one who starts adds it up from tens.
    pub fn finish(&mut self) -> Vec<Column> {
        std::mem::take(&mut self.ten.0)
    }

    /// The columns of a tier that are not complete yet, with all that was counted so far.
    pub fn open(&self, tier: Tier) -> Vec<Column> {
        match tier {
            Tier::Second => Vec::new(),
            Tier::Ten => self.ten.0.clone(),
            Tier::Minute => {
                let tens = self.ten.0.iter().cloned();
                let of_minute = |ten: Column| Column { at: Tier::Minute.begin(ten.at), ..ten };
                self.minute.0.iter().cloned().chain(tens.map(of_minute)).collect()
            }
        }
    }
}

impl Open {
    /// Takes out what began before `begin`.
    fn end_before(&mut self, begin: i64) -> Vec<Column> {
        self.0.extract_if(.., |open| open.at < begin).collect()
    }

    /// Adds a finer column. One that is late, as after a step of the clock, counts as of the time that
    /// is open.
    fn add(&mut self, finer: &Column, tier: Tier) {
        let at = self.0.first().map_or(tier.begin(finer.at), |open| open.at);
        let same =
            |open: &&mut Column| Arc::ptr_eq(&open.axis, &finer.axis) || open.axis.names == finer.axis.names;
        let cells = match self.0.iter_mut().find(same) {
            Some(open) => &mut open.cells,
            None => {
                self.0.push(Column { at, axis: Arc::clone(&finer.axis), cells: Cells::new() });
                let last = self.0.len() - 1;
                &mut self.0[last].cells
            }
        };
        for (bucket, counts) in &finer.cells {
            *cells.entry(*bucket).or_default() += *counts;
        }
    }
}
