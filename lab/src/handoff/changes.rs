//! Makes the changes: round after round, each slot's range is split, merged and moved.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::pauses::Window;
use super::slot::{PARTITIONS, SLOTS, boundary};
use crate::bench::SERVERS;
use rangehold_testkit::client::{Admin, Change, Refusal};
use rangehold_testkit::load::TABLE;

/// Every so many-th round moves the right half away before the merge, which has to bring it back.
const APART_EVERY: u32 = 4;
/// How often one change is asked for again, when the answer is that nothing was done.
const AGAIN_MAX: u32 = 20;
/// The wait before it is asked for again.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The kinds of changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Split,
    Merge,
    Move,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Split, Self::Merge, Self::Move];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Merge => "merge",
            Self::Move => "move",
        }
    }
}

/// A change that was made.
pub(crate) struct Made {
    pub(crate) kind: Kind,
    pub(crate) window: Window,
    /// How long writes were held, as the server says.
    pub(crate) held_for: Duration,
}

/// A client that has changes made.
pub(crate) struct Changer {
    admin: Admin,
    rng: StdRng,
    pub(crate) made: Vec<Made>,
    /// Answers that nothing was done, with their reasons.
    pub(crate) again: Vec<String>,
}

impl Changer {
    pub(crate) fn new(admin: Admin, seed: u64) -> Self {
        Self { admin, rng: StdRng::seed_from_u64(seed), made: Vec::new(), again: Vec::new() }
    }

    /// Cuts the table into slots and spreads them over the servers.
    pub(crate) fn prepare(&mut self) -> Result<()> {
        for slot in 0..SLOTS {
            let at = if slot == 0 { format!("{TABLE}/*") } else { boundary(slot, 0) };
            let halves = self.change(slot, Kind::Split, &Change::Split { at })?;
            let server = slot % SERVERS + 1;
            if server != 1 {
                // The rest of the table, to be cut on, goes along.
                let range = halves.last().context("a split without ranges")?.clone();
                self.move_to(slot, range, server)?;
            }
        }
        self.made.clear();
        self.again.clear();
        Ok(())
    }

    /// One round in a slot: a split, a merge and a move.
    pub(crate) fn round(&mut self, slot: usize, round: u32) -> Result<()> {
        let at = boundary(slot, self.rng.random_range(1..PARTITIONS));
        let halves = self.change(slot, Kind::Split, &Change::Split { at })?;
        let [left, right] =
            <[String; 2]>::try_from(halves).map_err(|halves| anyhow::anyhow!("a split into {halves:?}"))?;
        let apart = round % APART_EVERY == APART_EVERY - 1;
        if apart {
            self.move_away(slot, &right)?;
        }
        let merged = self.change(slot, Kind::Merge, &Change::Merge { left, right })?;
        if !apart {
            self.move_away(slot, merged.first().context("a merge without a range")?)?;
        }
        Ok(())
    }

    /// Moves a range to one of the other servers.
    fn move_away(&mut self, slot: usize, range: &str) -> Result<()> {
        let map = self.admin.map()?;
        let entry = map.iter().find(|entry| entry.range == range).context("the range is not in the map")?;
        let server: usize = entry.server.trim_start_matches('s').parse().context("a server is named s1")?;
        let other = (server - 1 + self.rng.random_range(1..SERVERS)) % SERVERS + 1;
        self.move_to(slot, range.to_owned(), other)
    }

    fn move_to(&mut self, slot: usize, range: String, server: usize) -> Result<()> {
        let change = Change::Move { range, to: format!("s{server}") };
        self.change(slot, Kind::Move, &change).map(drop)
    }

    /// Has one change made, and notes when; returns the ranges that it made.
    fn change(&mut self, slot: usize, kind: Kind, change: &Change) -> Result<Vec<String>> {
        for _ in 0..AGAIN_MAX {
            let from = Instant::now();
            match self.admin.change(change) {
                Ok(done) => {
                    let window = Window { slot, from, to: Instant::now() };
                    self.made.push(Made { kind, window, held_for: done.held_for });
                    return Ok(done.ranges);
                }
                Err(Refusal::Again(why)) => {
                    self.again.push(format!("{change:?}: {why}"));
                    thread::sleep(AGAIN_AFTER);
                }
                Err(Refusal::Failed(error)) => return Err(error.context(format!("{change:?}"))),
            }
        }
        bail!(
            "{change:?} was asked for {AGAIN_MAX} times, the last answer was: {}",
            self.again.last().map_or("", |s| s)
        )
    }
}
