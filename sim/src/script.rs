//! Scripts on a simulated cluster: the commands that [`rangehold_map::script`] runs on a map alone. Here the executor
//! of any process that is up carries them out.
//!
//! ```text
//!   golden script -- parse --> Command --+--> MapScript: the map as it should be
//!                                        |
//!                                        +--> Change --> executor of a process: the map as it is
//! ```
//!
//! The interpreter runs the same commands next to the cluster, and says what the result of each must be. A change that
//! was broken off is finished or undone by the manager's part, like any other; one that was undone is asked for again.
//! Then it makes ranges with other ids than those in the script, since no id is given twice. So ranges are compared by
//! their keys.

use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use rangehold_map::key::KIND_CATALOGUE;
use rangehold_map::script::{Asked, Command, MapScript, Names, Step, Target};
use rangehold_map::{Change, Home, Key, KeyRange, RangeEntry, RangeMap, ServerId, TableId};
use rangehold_protocol::table::catalogue::TableRecord;
use rangehold_server::accounts::WELL_KNOWN_ACCOUNT;
use tokio::time::sleep;

use crate::client::Client;
use crate::workload::{IN_THE_END, make_table};
use crate::world::World;

/// How long it waits before it looks again whether a change is done.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// Runs commands on a cluster and, at the same time, on a map alone. See the module.
pub struct Script {
    world: World,
    client: Client,
    names: Names,
    alone: MapScript,
}

/// The part of a range that must be the same on a cluster and on a map alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its keys, as people write them.
    pub keys: String,
    /// The server of the range.
    pub server: ServerId,
    /// Whether it is served.
    pub online: bool,
}

impl Script {
    /// A script that begins on a cluster with one range.
    pub fn new(world: &World) -> Self {
        Self {
            world: world.clone(),
            client: Client::new(world, "script", None).only_once(),
            names: Names::new(WELL_KNOWN_ACCOUNT),
            alone: MapScript::new(),
        }
    }

    /// Runs a command: makes its table, or carries its change out until that is done. Commands that only show
    /// something are skipped. Fails if the interpreter refuses the command, if a cluster does not take it, or if it is
    /// not done in time.
    pub async fn run(&mut self, command: &Command) -> Result<()> {
        let before = self.alone.clone();
        let refused = match self.alone.run(command) {
            Ok(_) => None,
            Err(refused) => Some(refused.sentence(self.alone.names())),
        };
        if let Some(refused) = refused {
            bail!("{command}: {refused}");
        }
        match command {
            Command::Table { account: None, name } => self.make_table(name).await,
            Command::Change { step: Step::Whole, asked } => {
                self.change(&before, asked).await.with_context(|| command.to_string())
            }
            Command::Map | Command::Check | Command::Find(_) => Ok(()),
            _ => bail!("{command}: not a command for a cluster"),
        }
    }

    /// The cluster's map as a process that is up knows it; `None` if no process is up.
    pub async fn map(&self) -> Option<std::sync::Arc<RangeMap>> {
        let process = (0..self.world.processes()).find_map(|number| self.world.process(number))?;
        let maps = process.executor().maps();
        // If the map cannot be read, the process keeps its old one.
        let _ = maps.refresh().await;
        Some(maps.current())
    }

    /// The map alone, as it should be.
    pub fn alone(&self) -> &MapScript {
        &self.alone
    }

    /// What a map of the cluster shows.
    pub fn seen(&self, map: &RangeMap) -> Vec<Seen> {
        seen(map, &self.names)
    }

    /// What it should show.
    pub fn wanted(&self) -> Vec<Seen> {
        seen(self.alone.map(), self.alone.names())
    }

    async fn make_table(&mut self, name: &str) -> Result<()> {
        make_table(&mut self.client, name).await;
        let until = self.world.now() + IN_THE_END;
        while self.world.now() < until {
            if let Some(id) = self.id_of(name).await {
                self.names.add_table(None, name, id);
                return Ok(());
            }
            sleep(LOOKS_EVERY).await;
        }
        bail!("the id of the table {name} cannot be read")
    }

    async fn id_of(&self, name: &str) -> Option<TableId> {
        let process = (0..self.world.processes()).find_map(|number| self.world.process(number))?;
        let visit = |found: &mut Option<TableId>, key: &[u8], value: &Bytes| {
            if let (Ok(Key::Table { .. }), Ok(table)) = (Key::decode(key), TableRecord::decode(value))
                && table.name == name
            {
                *found = Some(table.id);
            }
            ControlFlow::Continue(())
        };
        let catalogue = KeyRange::prefix(&[KIND_CATALOGUE]);
        process.executor().router().scan(&catalogue, || None, visit).await.ok()?
    }

    /// Asks for a change, and then for what is still missing, until the cluster is as it should be.
    async fn change(&self, before: &MapScript, asked: &Asked) -> Result<()> {
        let until = self.world.now() + IN_THE_END;
        let mut first = true;
        while self.world.now() < until {
            if let Some(map) = self.map().await {
                let begun = map.entries().iter().any(|entry| entry.intent.is_some());
                if !begun && !first && self.seen(&map) == self.wanted() {
                    return Ok(());
                }
                let change =
                    if first { self.meant(before, asked, &map) } else { self.lacking(before, asked, &map) };
                if let Some(change) = change.filter(|_| !begun) {
                    self.world.ask_for(change).await;
                    first = false;
                }
            }
            sleep(LOOKS_EVERY).await;
        }
        bail!("it is not done within {IN_THE_END:?}")
    }

    /// What is still to be done. The ranges of a process that was away for long were given to others, and must go
    /// back.
    fn lacking(&self, before: &MapScript, asked: &Asked, map: &RangeMap) -> Option<Change> {
        let (seen, wanted) = (self.seen(map), self.wanted());
        if !seen.iter().map(|range| &range.keys).eq(wanted.iter().map(|range| &range.keys)) {
            return self.meant(before, asked, map);
        }
        let at = seen.iter().zip(&wanted).position(|(seen, wanted)| seen != wanted)?;
        let (entry, wanted) = (&map.entries()[at], &wanted[at]);
        let (range, generation) = (entry.id, entry.generation);
        Some(match (entry.online, wanted.online) {
            (true, false) => Change::Offline { range, generation },
            (false, true) => Change::Online { range, generation },
            _ => Change::Move { range, generation, to: Home { server: wanted.server, ..entry.place } },
        })
    }

    /// The change that is asked for. It is made for the ranges that now hold the keys of the ranges in the script.
    /// `None` while the map has no such ranges.
    fn meant(&self, before: &MapScript, asked: &Asked, map: &RangeMap) -> Option<Change> {
        let here = |target: &Target| -> Option<Target> {
            let named: &RangeEntry = target.find(before.map(), before.names()).ok()?;
            Some(Target::Holding(before.names().name(named.keys.low())))
        };
        let asked = match asked {
            Asked::Split { range, at } => Asked::Split { range: here(range)?, at: at.clone() },
            Asked::Merge { left, right } => Asked::Merge { left: here(left)?, right: here(right)? },
            Asked::Move { range, to } => Asked::Move { range: here(range)?, to: *to },
            Asked::Offline(range) => Asked::Offline(here(range)?),
            Asked::Online(range) => Asked::Online(here(range)?),
        };
        asked.change(map, &self.names).ok()
    }
}

fn seen(map: &RangeMap, names: &Names) -> Vec<Seen> {
    let range = |entry: &RangeEntry| Seen {
        keys: names.range(&entry.keys),
        server: entry.place.server,
        online: entry.online,
    };
    map.entries().iter().map(range).collect()
}
