//! The observations that a script has made up, for its plans.

use std::collections::BTreeMap;
use std::time::Duration;

use super::command::{CauseName, CommandRefused, Observed};
use super::names::Names;
use crate::load::{Cause, Doubt, Manner, Travel};
use crate::plan::{Observations, RangeObservation, ServerObservation, Standing};
use crate::range::{RangeId, ServerId};
use crate::range_map::{RangeEntry, RangeMap};

/// The capacity of a server in requests/s, if the script does not give one.
const CAPACITY: f64 = 5_000.0;
/// The time over which a script's appends and prepends move.
const TRAVELLED: Duration = Duration::from_secs(60);

/// Ranges without an observation have no load. Servers without one serve.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The time since the script began.
    pub(super) now: Duration,
    ranges: BTreeMap<RangeId, Observed>,
    servers: BTreeMap<ServerId, (f64, Standing)>,
    /// When ranges were last split, merged or moved, and when they were last moved.
    changed: BTreeMap<RangeId, Duration>,
    moved: BTreeMap<RangeId, Duration>,
}

impl Seen {
    /// Sets what is known of a server.
    pub(super) fn server(&mut self, server: ServerId, capacity: Option<f64>, standing: Standing) {
        let before = self.servers.get(&server).map_or(CAPACITY, |(capacity, _)| *capacity);
        self.servers.insert(server, (capacity.unwrap_or(before), standing));
    }

    /// Sets what is observed of a range.
    pub(super) fn observe(&mut self, range: RangeId, observed: Observed) {
        self.ranges.insert(range, observed);
    }

    /// Records which ranges have changed between two versions of the map.
    pub(super) fn note(&mut self, before: &RangeMap, after: &RangeMap) {
        for entry in after.entries() {
            let was = before.get(entry.id);
            let has_moved = was.is_some_and(|was| was.place.server != entry.place.server);
            if has_moved {
                self.moved.insert(entry.id, self.now);
            }
            if has_moved || was.is_none() {
                self.changed.insert(entry.id, self.now);
            }
        }
    }

    /// The observations now. Fails if a cause names an unknown table.
    pub(super) fn observations(&self, map: &RangeMap, names: &Names) -> Result<Observations, CommandRefused> {
        let ranges: Result<Vec<_>, _> = map.entries().iter().map(|entry| self.range(entry, names)).collect();
        let mut servers = self.servers.clone();
        for entry in map.entries() {
            servers.entry(entry.place.server).or_insert((CAPACITY, Standing::Serving));
        }
        let servers = servers.into_iter();
        let servers = servers.map(|(id, (capacity, standing))| ServerObservation { id, standing, capacity });
        Ok(Observations { ranges: ranges?, servers: servers.collect() })
    }

    fn range(&self, entry: &RangeEntry, names: &Names) -> Result<RangeObservation, CommandRefused> {
        let since =
            |times: &BTreeMap<_, _>| times.get(&entry.id).map_or(Duration::MAX, |&then| self.now - then);
        let quiet = Observed::default();
        let seen = self.ranges.get(&entry.id).unwrap_or(&quiet);
        Ok(RangeObservation {
            id: entry.id,
            generation: entry.generation,
            rate: seen.rate,
            peak: Some(seen.peak.unwrap_or(seen.rate)),
            bytes: seen.bytes,
            cause: seen.cause.as_ref().map(|cause| self::cause(cause, names)).transpose()?.map(Box::new),
            unchanged_for: since(&self.changed),
            unmoved_for: since(&self.moved),
            // In a script, changes under way are intents in the map.
            busy: false,
            crashes: seen.crashes,
        })
    }
}

/// A cause, with usual values for the figures that a script does not give.
fn cause(name: &CauseName, names: &Names) -> Result<Cause, CommandRefused> {
    let travel = |share| Travel { manner: Manner::Ahead, share, over: TRAVELLED, front: Vec::new() };
    Ok(match name {
        CauseName::Split(at) => Cause::Split { at: names.key(at)?, above: 0.5, frontier: false },
        CauseName::HotKey(share, key) => Cause::HotKey { key: names.key(key)?, share: *share, row: None },
        CauseName::Append(share) => Cause::Append(travel(*share)),
        CauseName::Prepend(share) => Cause::Prepend(travel(*share)),
        CauseName::Scan(share) => Cause::Scan { share: *share },
        CauseName::Unclear => Cause::Unclear(Doubt::Few),
    })
}
