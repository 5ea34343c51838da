//! What the simulated service is made of: how it begins, its ranges, its servers.

use rangehold_map::load::{Cause, LoadPolicy};
use rangehold_map::plan::{Policy, Standing};
use rangehold_map::{DatabaseName, Generation, Home, KeyRange, RangeEntry, RangeId, ServerId};

use super::demand::{Demand, Place};
use super::keys;
use super::watched::{Rule, Watched};

/// Windows of a peak: as many as `map` has.
pub(super) const WINDOWS: usize = 6;
/// How the service begins.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) servers: usize,
    /// What each server can bear, per second.
    pub(super) capacity: f64,
    /// What one range can bear, per second.
    pub(super) range_limit: f64,
    /// Bytes of each range.
    pub(super) bytes: u64,
    pub(super) policy: Policy,
    pub(super) load_policy: LoadPolicy,
    pub(super) rule: Rule,
    /// Whether the planner's moves and merges are made. If not, ranges stay where they are.
    pub(super) balances: bool,
    /// Seconds of one step.
    pub(super) step: f64,
    pub(super) seed: u64,
}

impl Setting {
    /// A thousand servers of 10,000/s, in the profile `fast`, whose ranges are too large to merge.
    pub(super) fn fast(seed: u64) -> Self {
        Self {
            servers: 1_000,
            capacity: 10_000.0,
            range_limit: 5_000.0,
            bytes: 3 << 30,
            policy: Policy::fast(),
            load_policy: LoadPolicy::fast(),
            rule: Rule::Arithmetic,
            balances: true,
            step: 1.0,
            seed,
        }
    }

    /// The same under another system's rule. Where nothing is ever split, nothing moves either.
    pub(super) fn under(&self, rule: Rule) -> Self {
        Self { rule, balances: rule != Rule::Never, ..self.clone() }
    }
}

/// The part of a range that changes in every step. It is kept apart from the rest, since all of it is read in every
/// step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    /// Load of its cells before factors, and the group whose factor counts; several if `MANY`.
    pub(super) plain: f64,
    pub(super) group: u32,
    /// Index of its server.
    pub(super) server: u32,
    /// Wanted per second.
    pub(super) wanted: f64,
    /// Answered per second.
    pub(super) answered: f64,
    /// Decayed count and time, as `map` measures a rate.
    pub(super) count: f64,
    pub(super) seconds: f64,
    /// Greatest rate in the window that is being filled.
    pub(super) window_max: f32,
    /// When it can be served again after its server died.
    pub(super) opens: f32,
    /// Whether the judge watches it.
    pub(super) watched: bool,
}

pub(super) const MANY: u32 = u32::MAX;

/// How a range was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Split,
    Merge,
}

/// The part of a range that changes seldom.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) low: Place,
    pub(super) high: Place,
    pub(super) windows: [f32; WINDOWS],
    /// When it was made by a split or merge or moved last; long ago if never.
    pub(super) changed: f64,
    pub(super) moved: f64,
    /// When it was made, and whether by a split or a merge.
    pub(super) made: f64,
    pub(super) made_by: Option<Done>,
    /// How often a merge undid a split, or a split undid a merge, within the hour.
    pub(super) cycles: u32,
    pub(super) watched: Option<Box<Watched>>,
}

pub(super) const LONG_AGO: f64 = -1e9;

/// A server, as it is and as the manager believes it to be.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) alive: bool,
    /// When it died, if it has.
    pub(super) died: f64,
    pub(super) standing: Standing,
    /// Answered per second.
    pub(super) load: f64,
}

impl Flow {
    /// Adds a step to the rate, as the owner of a range does; `kept` is the share of the old rate that stays.
    pub(super) fn measure(&mut self, step: f64, kept: f64) {
        self.count = self.count * kept + self.answered * step;
        self.seconds = self.seconds * kept + step;
        self.window_max = self.window_max.max(self.rate() as f32);
    }

    /// The measured rate.
    pub(super) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.count / self.seconds } else { 0.0 }
    }
}

impl Facts {
    pub(super) fn new(low: Place, high: Place) -> Self {
        Self {
            low,
            high,
            windows: [0.0; WINDOWS],
            changed: LONG_AGO,
            moved: LONG_AGO,
            made: LONG_AGO,
            made_by: None,
            cycles: 0,
            watched: None,
        }
    }

    /// What the rule that watches the range says of it now.
    pub(super) fn cause(&self) -> Option<&Cause> {
        self.watched.as_ref()?.cause.as_ref()
    }
}

/// A range of which nothing was measured yet.
pub(super) fn flow(demand: &Demand, low: Place, high: Place, server: u32) -> Flow {
    Flow {
        plain: demand.plain(low, high),
        group: demand.one_group(low, high).map_or(MANY, |group| group as u32),
        server,
        ..Flow::default()
    }
}

/// A line of the map; the first range also has what lies below the cells.
pub(super) fn entry(id: RangeId, owner: usize, low: Place, high: Option<Place>) -> RangeEntry {
    let low = if low == 0 { KeyRange::whole().low().to_vec() } else { keys::boundary(low) };
    RangeEntry {
        id,
        keys: KeyRange::new(low, high.map(keys::boundary)),
        generation: Generation::FIRST,
        place: home(id, owner),
        online: true,
        intent: None,
    }
}

/// The first database of a range, at a server.
pub(super) fn home(id: RangeId, owner: usize) -> Home {
    let database = DatabaseName { range: id, generation: Generation::FIRST, attempt: 1 };
    Home { server: ServerId(owner as u64 + 1), database }
}
