//! What a plan says about itself: why it does what it does, and what it waits for.
//!
//! Each line is data, and a sentence for people. A map may have a million ranges and a plan
//! thousands of changes, so only the first [`LINES_PER_KIND`] lines of each kind are kept, those that
//! matter most first; the rest are counted.

mod reasons;
mod words;

use std::collections::BTreeMap;

use strum::EnumDiscriminants;

use crate::range::{RangeId, ServerId};

pub use reasons::{BusyWait, MergeWait, NoSplit, SplitWait};

/// Lines of one kind that a report has at most.
pub const LINES_PER_KIND: usize = 50;

/// One line of a report.
#[derive(Debug, Clone, PartialEq, EnumDiscriminants)]
#[strum_discriminants(name(Kind), derive(PartialOrd, Ord))]
#[strum_discriminants(doc = "The kinds of lines, without what they say.")]
pub enum Reported {
    /// A range gets another owner, because its own no longer serves.
    Rehomed {
        /// The range.
        range: RangeId,
        /// Its owner so far.
        from: ServerId,
        /// Whether that is dead; else it is leaving.
        dead: bool,
        /// Its owner to be.
        to: ServerId,
    },
    /// A range is set offline, since too many servers ended while they held it.
    Quarantined {
        /// The range.
        range: RangeId,
        /// How many servers ended.
        crashes: u32,
    },
    /// So many ranges are suspected at once that none of them is to blame: they are served again.
    TooManySuspects {
        /// How many.
        ranges: usize,
    },
    /// A range is split.
    Split {
        /// The range.
        range: RangeId,
        /// Its load, per second.
        rate: f64,
        /// The share of it at the cut and above.
        above: f64,
    },
    /// A range moves because its server is busier than others.
    Moved {
        /// The range.
        range: RangeId,
        /// Its load, per second.
        rate: f64,
        /// Its server.
        from: ServerId,
        /// The share of its capacity that that server used before.
        from_utilisation: f64,
        /// Its server to be.
        to: ServerId,
        /// The share of its capacity that that server used before.
        to_utilisation: f64,
    },
    /// Two cold neighbours become one.
    Merged {
        /// The one with the lower keys.
        left: RangeId,
        /// The other.
        right: RangeId,
        /// The sum of their greatest loads in ten minutes, per second.
        peak: f64,
        /// Where the right one is and where it has to be first, if those differ.
        moves_first: Option<(ServerId, ServerId)>,
    },

    /// A split that a verdict asks for has to wait.
    SplitWaits {
        /// The range.
        range: RangeId,
        /// What for.
        until: SplitWait,
    },
    /// A hot range is not split, since that would not help.
    NotSplit {
        /// The range.
        range: RangeId,
        /// Its load, per second.
        rate: f64,
        /// Why not.
        why: NoSplit,
    },
    /// A merge has to wait.
    MergeWaits {
        /// The one with the lower keys.
        left: RangeId,
        /// The other.
        right: RangeId,
        /// What for.
        until: MergeWait,
    },
    /// Cold ranges stay apart, since a few ranges for each server are kept.
    FewRanges {
        /// How many there are, once all merges of this plan and those under way are done.
        ranges: usize,
        /// How many merges that are.
        merging: usize,
        /// How many are kept.
        kept: usize,
    },
    /// A server stays busier than it should be.
    StaysBusy {
        /// The server.
        server: ServerId,
        /// Its utilisation as a multiple of the mean.
        over_mean: f64,
        /// Why.
        why: BusyWait,
    },
    /// Servers are unevenly busy, and so little that it does not matter.
    Calm {
        /// The share of its capacity that the busiest server uses.
        utilisation: f64,
        /// The share from which something would be moved.
        from: f64,
    },
    /// How even the load can be at best: one range alone is more than a server's fair share.
    Floor {
        /// That range.
        range: RangeId,
        /// Its load, per second.
        rate: f64,
        /// The load of a server on average, per second.
        mean: f64,
        /// Below this the busiest server cannot come, as a multiple of the mean.
        floor: f64,
        /// Why it is not split, if that is known.
        why: Option<NoSplit>,
    },
    /// A change was begun and its server no longer serves: someone has to finish or undo it.
    Unfinished {
        /// The range.
        range: RangeId,
        /// What is being done to it.
        doing: &'static str,
        /// Its server.
        server: ServerId,
    },
    /// An offline range has no server that serves. It gets one when it is set online.
    OfflineWithoutServer {
        /// The range.
        range: RangeId,
        /// Its server so far.
        server: ServerId,
    },
    /// A range has to leave its server, and something is in the way.
    RehomeWaits {
        /// The range.
        range: RangeId,
        /// Its server.
        server: ServerId,
    },
    /// No server serves.
    NoServer {
        /// Ranges that are without one.
        ranges: usize,
    },
    /// Ranges of which nothing was heard in their present generation. Nothing is decided about them.
    Unseen {
        /// How many.
        ranges: usize,
    },
    /// More lines of one kind than are kept.
    Omitted {
        /// Their kind.
        kind: Kind,
        /// How many.
        lines: usize,
    },
}

impl Reported {
    /// The kind of this line; of [`Reported::Omitted`] the kind of the lines that it stands for.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Omitted { kind, .. } => *kind,
            line => line.into(),
        }
    }
}

/// A report in the making.
#[derive(Debug, Default)]
pub(super) struct Report {
    lines: Vec<Reported>,
    counts: BTreeMap<Kind, usize>,
}

impl Report {
    /// Adds a line, or only counts it.
    pub(super) fn say(&mut self, line: Reported) {
        if self.count(line.kind(), 1) {
            self.lines.push(line);
        }
    }

    /// Counts lines that nobody needs to make, since they would not be kept.
    pub(super) fn count_only(&mut self, kind: Kind, lines: usize) {
        self.count(kind, lines);
    }

    /// Whether one more line of this kind would be kept.
    fn count(&mut self, kind: Kind, lines: usize) -> bool {
        let count = self.counts.entry(kind).or_default();
        *count += lines;
        *count <= LINES_PER_KIND
    }

    /// The lines by kind, each kind in the order in which they came.
    pub(super) fn finish(self) -> Vec<Reported> {
        let mut lines = self.lines;
        lines.sort_by_key(Reported::kind);
        let kept = |kind: Kind| lines.iter().filter(|line| line.kind() == kind).count();
        let omitted: Vec<_> = (self.counts.iter())
            .map(|(kind, count)| (*kind, count - kept(*kind)))
            .filter(|(_, omitted)| *omitted > 0)
            .map(|(kind, lines)| Reported::Omitted { kind, lines })
            .collect();
        lines.extend(omitted);
        lines.sort_by_key(Reported::kind);
        lines
    }
}
