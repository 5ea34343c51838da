//! The rules of a map, and which of them a given version breaks.
//!
//! [`RangeMap::check`] has the rules without which a map cannot be used: a stored map that breaks one of them
//! is not loaded. [`RangeMap::check_homes`] adds rules whose breach is reported. Changes keep all of them, so
//! a check is for maps that come from outside, and for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{DatabaseName, Intent, RangeEntry, RangeMap};
use crate::key::is_partition_boundary;
use crate::range::{KeyRange, RangeId};

/// A broken rule of the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The map has no range at all.
    NoRange,
    /// No range holds the keys just below this one.
    Gap {
        /// The range after the gap.
        before: RangeId,
    },
    /// Keys belong to two ranges.
    Overlap {
        /// The range with the lower bound.
        left: RangeId,
        /// The range that begins inside it.
        right: RangeId,
    },
    /// The last range has an end, so no range holds the keys above it.
    OpenEnd {
        /// The last range.
        after: RangeId,
    },
    /// A range without keys.
    Empty {
        /// That range.
        range: RangeId,
    },
    /// An id was given twice: to two ranges, or to a range and one that a change is to make.
    IdTwice {
        /// That id.
        range: RangeId,
    },
    /// An id that is not below the next id, so it will be given again.
    IdToCome {
        /// That id.
        range: RangeId,
        /// The next id to be given.
        next_range: RangeId,
    },
    /// A side of a merge whose other side is not its neighbour, or does not have the merge as its intent.
    MergeAlone {
        /// The side that has the intent.
        range: RangeId,
        /// The range with which it is to be merged.
        with: RangeId,
    },
    /// A range is to be split at a key that would leave one half without keys.
    SplitOutside {
        /// That range.
        range: RangeId,
    },
    /// An offline range has a change begun.
    OfflineChange {
        /// That range.
        range: RangeId,
    },
    /// A range begins, or is to be split, inside a partition.
    CutPartition {
        /// The range that does.
        range: RangeId,
    },
    /// Two ranges have one database.
    SharedDatabase {
        /// The one with the lower keys.
        left: RangeId,
        /// The other.
        right: RangeId,
        /// The database.
        database: DatabaseName,
    },
    /// A range is to move to a server with another database than its own.
    MoveToOtherDatabase {
        /// That range.
        range: RangeId,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRange => write!(f, "the map has no range"),
            Self::Gap { before } => write!(f, "keys before {before} belong to no range"),
            Self::Overlap { left, right } => write!(f, "{left} and {right} hold the same keys"),
            Self::OpenEnd { after } => write!(f, "keys after {after} belong to no range"),
            Self::Empty { range } => write!(f, "{range} can hold no key"),
            Self::IdTwice { range } => write!(f, "{range} is named twice"),
            Self::IdToCome { range, next_range } => {
                write!(f, "{range} is named, but the next range is to be {next_range}")
            }
            Self::MergeAlone { range, with } => {
                write!(
                    f,
                    "{range} is to be merged with {with}, which is not its neighbour or is not to be merged with it"
                )
            }
            Self::SplitOutside { range } => {
                write!(f, "{range} is to be split at a key that does not cut it in two")
            }
            Self::OfflineChange { range } => write!(f, "{range} is offline and yet being changed"),
            Self::CutPartition { range } => {
                write!(f, "{range} begins, or is to be split, inside a partition")
            }
            Self::SharedDatabase { left, right, database } => {
                write!(f, "{left} and {right} are both in database {database}")
            }
            Self::MoveToOtherDatabase { range } => {
                write!(f, "{range} is to move to another database than its own")
            }
        }
    }
}

impl RangeMap {
    /// Lists every rule that this version breaks; an empty list is a good map.
    pub fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.check_keys(&mut findings);
        self.check_ids(&mut findings);
        self.check_intents(&mut findings);
        findings
    }

    /// Each key belongs to exactly one range.
    fn check_keys(&self, findings: &mut Vec<Finding>) {
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else {
            findings.push(Finding::NoRange);
            return;
        };
        if first.keys.low() > KeyRange::whole().low() {
            findings.push(Finding::Gap { before: first.id });
        }
        for pair in self.entries.windows(2) {
            let (left, right) = (&pair[0], &pair[1]);
            match left.keys.high() {
                Some(high) if high < right.keys.low() => findings.push(Finding::Gap { before: right.id }),
                Some(high) if high == right.keys.low() => {}
                _ => findings.push(Finding::Overlap { left: left.id, right: right.id }),
            }
        }
        let empty = self.entries.iter().filter(|e| e.keys.is_empty());
        findings.extend(empty.map(|e| Finding::Empty { range: e.id }));
        if last.keys.high().is_some() {
            findings.push(Finding::OpenEnd { after: last.id });
        }
    }

    /// Each id names one range, present or future, and will not be given again.
    fn check_ids(&self, findings: &mut Vec<Finding>) {
        let mut given = BTreeSet::new();
        for id in self.entries.iter().flat_map(named_by) {
            if !given.insert(id) {
                findings.push(Finding::IdTwice { range: id });
            }
        }
        let to_come = given.range(self.next_range..);
        findings.extend(to_come.map(|&range| Finding::IdToCome { range, next_range: self.next_range }));
    }

    /// Each intent can be carried out.
    fn check_intents(&self, findings: &mut Vec<Finding>) {
        for (index, entry) in self.entries.iter().enumerate() {
            let range = entry.id;
            match &entry.intent {
                Some(Intent::Split { at, .. }) if !entry.keys.is_cut_by(at) => {
                    findings.push(Finding::SplitOutside { range });
                }
                Some(Intent::Merge { right, .. }) => {
                    let partner = self.entries.get(index + 1).filter(|e| e.id == *right);
                    if partner.is_none_or(|e| e.intent != Some(Intent::MergeWith { left: range })) {
                        findings.push(Finding::MergeAlone { range, with: *right });
                    }
                }
                Some(Intent::MergeWith { left }) => {
                    let before = index.checked_sub(1).map(|index| &self.entries[index]);
                    let partner = before.filter(|e| e.id == *left);
                    if !partner.is_some_and(
                        |e| matches!(e.intent, Some(Intent::Merge { right, .. }) if right == range),
                    ) {
                        findings.push(Finding::MergeAlone { range, with: *left });
                    }
                }
                _ => {}
            }
            if entry.intent.is_some() && !entry.online {
                findings.push(Finding::OfflineChange { range });
            }
        }
    }
}

/// The id of an entry, and the ids of the ranges that its intent will make.
fn named_by(entry: &RangeEntry) -> impl Iterator<Item = RangeId> {
    let (one, other) = match entry.intent {
        Some(Intent::Split { left, right, .. }) => (Some(left), Some(right)),
        Some(Intent::Merge { into, .. }) => (Some(into), None),
        Some(Intent::MergeWith { .. } | Intent::Move { .. }) | None => (None, None),
    };
    [Some(entry.id), one, other].into_iter().flatten()
}

impl RangeMap {
    /// All rules that are broken: those of [`RangeMap::check`], and also that no partition is cut, and that
    /// each range has a database of its own and keeps it when it moves.
    pub fn check_homes(&self) -> Vec<Finding> {
        let mut findings = self.check();
        let mut databases = BTreeMap::new();
        for entry in self.entries.iter() {
            let range = entry.id;
            if let Some(left) = databases.insert(entry.place.database, range) {
                findings.push(Finding::SharedDatabase { left, right: range, database: entry.place.database });
            }
            let split_at = match &entry.intent {
                Some(Intent::Split { at, .. }) => Some(at.as_slice()),
                _ => None,
            };
            if !is_partition_boundary(entry.keys.low()) || !split_at.is_none_or(is_partition_boundary) {
                findings.push(Finding::CutPartition { range });
            }
            if matches!(&entry.intent, Some(Intent::Move { to }) if to.database != entry.place.database) {
                findings.push(Finding::MoveToOtherDatabase { range });
            }
        }
        findings
    }
}
