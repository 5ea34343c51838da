//! Columns of cells, and how seconds are added up to tens of seconds and minutes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::boundaries::Boundaries;
use super::tier::Tier;
use crate::load::Counts;

/// Counts by bucket. Buckets without an entry counted nothing.
pub type Cells = BTreeMap<u32, Counts>;

/// What was counted in one second, ten seconds or minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// When it begins, in seconds since 1970: a multiple of its tier's step.
    pub at: i64,
    /// The axis to which the buckets belong.
    pub axis: Arc<Boundaries>,
    /// What was counted.
    pub cells: Cells,
}

impl Column {
    /// The sum of all cells.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.cells.values().for_each(|counts| total += *counts);
        total
    }
}

/// Adds up seconds to tens of seconds, and these to minutes.
#[derive(Debug, Clone, Default)]
pub struct RollUp {
    ten: Open,
    minute: Open,
}

/// The columns of a time that is not over yet: one for each axis that was used in it.
#[derive(Debug, Clone, Default)]
struct Open(Vec<Column>);

impl RollUp {
    /// Adds a second. Returns the columns that are complete now, the finer tier first. If the axis has
    /// changed, several columns have the same time, and their sum is what was counted.
    pub fn add(&mut self, second: &Column) -> Vec<(Tier, Column)> {
        let complete = self.until(second.at);
        self.ten.add(second, Tier::Ten);
        complete
    }

    /// Adds ten seconds of a minute that was not complete when an earlier process ended. Returns the minutes
    /// that are complete now.
    pub fn resume(&mut self, ten: &Column) -> Vec<(Tier, Column)> {
        let complete = self.minute.end_before(Tier::Minute.begin(ten.at));
        self.minute.add(ten, Tier::Minute);
        complete.into_iter().map(|minute| (Tier::Minute, minute)).collect()
    }

    /// Returns the columns that have ended at `now`, in seconds since 1970.
    pub fn until(&mut self, now: i64) -> Vec<(Tier, Column)> {
        let mut complete = Vec::new();
        for ten in self.ten.end_before(Tier::Ten.begin(now)) {
            // The minute may have ended before these ten seconds.
            let minutes = self.minute.end_before(Tier::Minute.begin(ten.at));
            complete.extend(minutes.into_iter().map(|minute| (Tier::Minute, minute)));
            self.minute.add(&ten, Tier::Minute);
            complete.push((Tier::Ten, ten));
        }
        let minutes = self.minute.end_before(Tier::Minute.begin(now));
        complete.extend(minutes.into_iter().map(|minute| (Tier::Minute, minute)));
        complete
    }

    /// Takes the ten seconds that are not over yet, for a process that stops. The minute is not needed: the
    /// next process adds it up from tens of seconds.
    pub fn finish(&mut self) -> Vec<Column> {
        std::mem::take(&mut self.ten.0)
    }

    /// The columns of a tier that are not complete yet, with everything that was counted so far.
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
    /// Takes out the columns that began before `begin`.
    fn end_before(&mut self, begin: i64) -> Vec<Column> {
        self.0.extract_if(.., |open| open.at < begin).collect()
    }

    /// Adds a finer column. A late one, as after a step of the clock, is added to the time that is open.
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
