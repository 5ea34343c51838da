//! The real manager in a simulated process: its numbers, and the changes that it makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rangehold_map::script::{Asked, Command};
use rangehold_server::accounts::WELL_KNOWN_ACCOUNT;
use rangehold_server::manager::{EventKind, Events as Happenings, LoadPolicy, ManagerOptions, Policy};

use super::Planner;
use crate::events::Events;

/// How long one request for new events waits.
const FOLLOWED_FOR: Duration = Duration::from_secs(60);

/// Changes that were planned and are done.
#[derive(Debug, Default)]
pub struct Planned {
    splits: AtomicU64,
    merges: AtomicU64,
    moves: AtomicU64,
}

impl Planned {
    /// Splits, merges and moves.
    pub fn counts(&self) -> [u64; 3] {
        [&self.splits, &self.merges, &self.moves].map(|count| count.load(Ordering::Relaxed))
    }

    /// Counts what a manager has done, as long as its process lives, and writes it into the log.
    pub(super) async fn follow(self: Arc<Self>, number: usize, happenings: Happenings, events: Events) {
        let mut after = 0;
        loop {
            for event in happenings.wait_after(after, FOLLOWED_FOR).await {
                after = event.number;
                let happened = &event.happened;
                events.add(
                    format_args!("plan{number}"),
                    format_args!("{} {}", happened.kind.name(), happened.text),
                );
                if happened.kind == EventKind::Done {
                    self.count(&happened.text);
                }
            }
        }
    }

    fn count(&self, command: &str) {
        let count = match command.parse() {
            Ok(Command::Change { asked: Asked::Split { .. }, .. }) => &self.splits,
            Ok(Command::Change { asked: Asked::Merge { .. }, .. }) => &self.merges,
            Ok(Command::Change { asked: Asked::Move { .. }, .. }) => &self.moves,
            _ => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Planner {
    /// The numbers by which it judges the load of ranges.
    pub(super) fn load(self) -> LoadPolicy {
        match self {
            Self::Moves(_) => LoadPolicy::fast(),
            Self::Splits(cap) => hasty_load(cap),
        }
    }

    /// A manager that decides quickly, since a run lasts a minute, and with servers so weak that the few requests of a run
    /// are a load for them.
    pub(super) fn options(self) -> ManagerOptions {
        let hasty = Policy {
            tick: Duration::from_secs(2),
            merge_after: Duration::from_secs(8),
            cool_down: Duration::from_secs(5),
            ranges_per_server_low: 1,
            calm_utilisation: 0.0,
            ..Policy::fast()
        };
        let load = self.load();
        match self {
            Self::Moves(server_capacity) => {
                let options = ManagerOptions::new(hasty, &load, WELL_KNOWN_ACCOUNT);
                ManagerOptions { server_capacity, ..options }
            }
            Self::Splits(_) => {
                let policy = Policy {
                    split_rate: load.cap * load.hot_share,
                    ranges_per_server_high: 2,
                    ranges_per_server_low: 0,
                    // Two halves together are nearly as hot as the whole was, and must soon be merged.
                    merge_share: 2.0,
                    merge_grain: 1_000.0,
                    settle: Duration::from_secs(1),
                    ..hasty
                };
                ManagerOptions::new(policy, &load, WELL_KNOWN_ACCOUNT)
            }
        }
    }
}

/// Judges a few requests per second within ten seconds. Elsewhere such small numbers would be chance.
fn hasty_load(cap: f64) -> LoadPolicy {
    LoadPolicy {
        cap,
        warm_for: Duration::from_secs(1),
        hot_for: Duration::from_secs(6),
        look: Duration::from_secs(1),
        look_max: Duration::from_secs(2),
        hot_key_share: 0.9,
        blocking_share: 0.9,
        balance_max: 0.6,
        balance_max_at_worst: 0.9,
        drift_max: 0.5,
        useful_for: Duration::from_secs(1),
        imbalance_max: 0.99,
        crossing_max: 0.9,
        beyond_share: 0.9,
        sigmas: 1.0,
        peak_for: Duration::from_secs(5),
        split_kept: Duration::from_secs(10),
        verdict_kept: Duration::from_secs(5),
        retry_first: Duration::from_secs(2),
        ..LoadPolicy::fast()
    }
}
