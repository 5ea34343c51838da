//! The report of a plan: why each change is made, and why others have to wait.
//!
//! Each line is data, and `Display` makes a sentence of it. A plan may have thousands of changes, so only the
//! first [`LINES_PER_KIND`] lines of each kind are kept, the most important ones first. The others are
//! counted.

mod reasons;
mod words;

use std::collections::BTreeMap;

use strum::EnumDiscriminants;

use crate::range::{RangeId, ServerId};

pub use reasons::{BusyWait, MergeWait, NoSplit, SplitWait};

/// The most lines of one kind that a report keeps.
pub const LINES_PER_KIND: usize = 50;

/// One line of a report.
#[derive(Debug, Clone, PartialEq, EnumDiscriminants)]
#[strum_discriminants(name(Kind), derive(PartialOrd, Ord))]
#[strum_discriminants(doc = "The kinds of lines, without what they say.")]
pub enum Reported {
    /// A range gets another owner, because its owner no longer serves.
    Rehomed {
        /// The range.
        range: RangeId,
        /// Its owner so far.
        from: ServerId,
        /// Whether that server is dead; otherwise it is leaving.
        dead: bool,
        /// Its new owner.
        to: ServerId,
    },
    /// A range is set offline, because too many servers crashed while they held it.
    Quarantined {
        /// The range.
        range: RangeId,
        /// How many servers crashed.
        crashes: u32,
    },
    /// So many ranges are suspected at once that something else must be to blame. They are served again.
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
        /// The share of the load at the cut and above.
        above: f64,
    },
    /// A range moves because its server is busier than others.
    Moved {
        /// The range.
        range: RangeId,
        /// Its load, per second.
        rate: f64,
        /// Its old server.
        from: ServerId,
        /// The share of its capacity that the old server used before.
        from_utilisation: f64,
        /// Its new server.
        to: ServerId,
        /// The share of its capacity that the new server used before.
        to_utilisation: f64,
    },
    /// Two cold neighbours are merged.
    Merged {
        /// The one with the lower keys.
        left: RangeId,
        /// The other.
        right: RangeId,
        /// The sum of their greatest loads in ten minutes, per second.
        peak: f64,
        /// The server of the right one and that of the left one, if they differ: the right one moves first.
        moves_first: Option<(ServerId, ServerId)>,
    },

    /// A split that a verdict asks for has to wait.
    SplitWaits {
        /// The range.
        range: RangeId,
        /// Why.
        until: SplitWait,
    },
    /// A hot range is not split, because a split would not help.
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
        /// Why.
        until: MergeWait,
    },
    /// Cold ranges are not merged, because a few ranges per server are kept.
    FewRanges {
        /// How many ranges there are after all merges of this plan and all merges under way.
        ranges: usize,
        /// How many such merges there are.
        merging: usize,
        /// How many ranges are kept.
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
    /// The servers have uneven load, but so little that nothing is moved.
    Calm {
        /// The share of its capacity that the busiest server uses.
        utilisation: f64,
        /// The share from which ranges are moved.
        from: f64,
    },
    /// One range alone has more load than a server's fair share, which limits how even the load can be.
    Floor {
        /// That range.
        range: RangeId,
        /// Its load, per second.
        rate: f64,
        /// The average load of a server, per second.
        mean: f64,
        /// The least load that the busiest server can have, as a multiple of the mean.
        floor: f64,
        /// Why it is not split, if that is known.
        why: Option<NoSplit>,
    },
    /// A change of a range was begun, and its server no longer serves. The change must be finished or undone
    /// before the range gets another owner.
    Unfinished {
        /// The range.
        range: RangeId,
        /// The change, such as "being split".
        doing: &'static str,
        /// Its server.
        server: ServerId,
    },
    /// An offline range, whose server does not serve. It gets another owner when it is set online.
    OfflineWithoutServer {
        /// The range.
        range: RangeId,
        /// Its server so far.
        server: ServerId,
    },
    /// A range has to leave its server, but another change of it is being carried out.
    RehomeWaits {
        /// The range.
        range: RangeId,
        /// Its server.
        server: ServerId,
    },
    /// No server serves.
    NoServer {
        /// How many ranges need one.
        ranges: usize,
    },
    /// Ranges without an observation in their present generation. Nothing is decided about them.
    Unseen {
        /// How many.
        ranges: usize,
    },
    /// Stands for the lines of one kind that are not kept.
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

/// A report while a plan is made.
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

    /// Counts lines that would not be kept, without making them.
    pub(super) fn count_only(&mut self, kind: Kind, lines: usize) {
        self.count(kind, lines);
    }

    /// Whether one more line of this kind would be kept.
    fn count(&mut self, kind: Kind, lines: usize) -> bool {
        let count = self.counts.entry(kind).or_default();
        *count += lines;
        *count <= LINES_PER_KIND
    }

    /// The lines, sorted by kind. Lines of one kind keep their order.
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
