//! `cargo xtask handoff`: what splits, merges and moves cost the clients that are served meanwhile.
//!
//! One server process with four partition servers and its manager off. 64 connections work without a
//! rest, each with one request under way: half of them insert, update, delete, send batches and
//! read what they wrote; the others read rows that stay, and list by pages. Meanwhile ranges are split,
//! merged and moved by the admin API.
//!
//! What must hold: no request is answered other than it should be, every acknowledged write is found
//! again with its value and nothing else is, and a listing shows everything that was there before it
//! and stayed. [`pauses`] says how the pauses are measured; they are printed as multiples of one [durable file](crate::disk),
//! next to their aims. A missed aim does not fail the run, since machines differ in speed.
//! Every change that was asked for must have been made.
//!
//! - [`slot`]: the pieces of the table, and the rows that stay;
//! - [`connections`]: the connections that read; those that write are in [`rangehold_testkit::load`];
//! - [`changes`]: splits, merges and moves;
//! - [`mod@pauses`]: the figures.

pub(crate) mod changes;
mod connections;
pub(crate) mod pauses;
mod report;
pub(crate) mod slot;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use self::changes::{Changer, Made};
use self::connections::{Scene, Seen};
use self::pauses::{Connection, Distribution};
use self::slot::SLOTS;
use crate::bench::Build;
use crate::disk;
use rangehold_testkit::client::{self, Step, send_all};
use rangehold_testkit::load::{Finding, Kind, Ledger, Load, Shape, Writer};
use rangehold_testkit::server::Server;

/// Connections of a slot: those that write, and those that read single rows. One more connection lists.
const WRITERS: usize = 4;
const READERS: usize = 3;
/// Rows that a writer keeps at most.
const ROWS_MAX: usize = 80;
/// Of a hundred operations of a writer, how many read.
const READS: u32 = 20;
/// Load before the first change and after the last.
const LEAD: Duration = Duration::from_secs(2);
/// Rounds of a full run.
const FULL_ROUNDS: u32 = 1_000;
/// Files made to measure the disk before there is load.
const QUIET_CREATES: usize = 50;

/// Splits, merges and moves ranges under load; looks for lost requests and rows, and measures pauses.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Rounds; each is a split, a merge and a move.
    #[arg(long, default_value_t = FULL_ROUNDS)]
    rounds: u32,
    /// Changes under way at once, in different ranges. Each is longer then.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=SLOTS as i64))]
    at_once: u32,
    /// Seed of all choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    build: Build,
}

/// All results of a run.
#[derive(Default)]
struct Outcome {
    connections: Vec<Connection>,
    made: Vec<Made>,
    again: Vec<String>,
    /// Requests that were not answered as they should.
    errors: Vec<String>,
    /// Missing or wrong entities.
    wrong: Vec<String>,
    listings: u64,
    /// Requests of writers that were answered 503 or 500, or not at all.
    writer_errors: u64,
    /// Some of them, with their answers.
    refusals: Vec<String>,
    created: Distribution,
    created_quiet: Distribution,
    took: Duration,
}

impl Outcome {
    /// Adds what the writers and the clients that made the changes have collected.
    fn gather(&mut self, mut load: Load, changers: Vec<Changer>) {
        let counts = load.counts();
        self.writer_errors = counts.busy + counts.failed + counts.broken;
        for changer in changers {
            self.made.extend(changer.made);
            self.again.extend(changer.again);
        }
        for (index, writer) in load.writers.iter_mut().enumerate() {
            let times = writer.timed.take().unwrap_or_default();
            self.connections.push(Connection { slot: index / WRITERS, times });
            self.refusals.append(&mut writer.refusals);
        }
    }
}

/// Makes the changes under load, prints the figures; an error names what was not as it must be.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let setup = arguments.build.unmanaged("handoff")?;
    let server = Server::start(&setup)?;
    let probes = setup.beside("probes");
    let created_quiet = disk::creates(&probes.join("quiet"), &AtomicBool::new(false), QUIET_CREATES)?;
    let created_quiet = Distribution::of(created_quiet);
    let ledgers: Vec<Arc<Ledger>> = (0..SLOTS).map(|_| Arc::default()).collect();
    let mut load =
        Load::of((0..SLOTS * WRITERS).map(|index| writer(index, arguments.seed, &ledgers)).collect());
    load.prepare(server.address)?;
    fill(server.address)?;
    let mut changers = (0..u64::from(arguments.at_once))
        .map(|index| {
            let admin = server.admin_client()?;
            Ok(Changer::new(admin, arguments.seed.wrapping_mul(100).wrapping_add(index)))
        })
        .collect::<Result<Vec<_>>>()?;
    changers[0].prepare().context("cutting the table into ranges")?;
    let scene = Scene { address: server.address, stop: &AtomicBool::new(false), ledgers: &ledgers };
    let mut outcome = change_under_load(&scene, &mut load, &mut changers, arguments.rounds, &probes)?;
    outcome.created_quiet = created_quiet;
    outcome.wrong.extend(compare(&mut load, server.address)?.iter().map(ToString::to_string));
    outcome.wrong.extend(server.admin_client()?.check()?);
    outcome.gather(load, changers);
    server.stop()?;
    report::conclude(&outcome, arguments.rounds)
}

/// Lets all connections work at once, until the changes are made.
fn change_under_load(
    scene: &Scene<'_>,
    load: &mut Load,
    changers: &mut [Changer],
    rounds: u32,
    probes: &Path,
) -> Result<Outcome> {
    let begin = Instant::now();
    let outcome = load.run_while(scene.address, || change_and_read(scene, changers, rounds, probes))?;
    Ok(Outcome { took: begin.elapsed(), ..outcome })
}

/// Has the changes made while connections read and list, and while the disk is measured.
fn change_and_read(
    scene: &Scene<'_>,
    changers: &mut [Changer],
    rounds: u32,
    probes: &Path,
) -> Result<Outcome> {
    thread::scope(|scope| {
        let reading: Vec<_> = (0..SLOTS)
            .flat_map(|slot| (0..=READERS).map(move |index| (slot, index)))
            .map(|(slot, index)| {
                let reading = scope.spawn(move || match index {
                    READERS => connections::list(scene, slot),
                    _ => connections::read(scene, slot, (slot * READERS + index) as u64),
                });
                (slot, reading)
            })
            .collect();
        let created = scope.spawn(|| disk::creates(&probes.join("loaded"), scene.stop, usize::MAX));
        thread::sleep(LEAD);
        let changed = change_all(changers, rounds);
        thread::sleep(LEAD);
        scene.stop.store(true, Ordering::Relaxed);
        let mut outcome = Outcome::default();
        outcome.errors.extend(changed.err().map(|error| format!("{error:#}")));
        for (slot, connection) in reading {
            let seen: Seen = connection.join().expect("readers do not panic");
            outcome.errors.extend(seen.errors);
            outcome.wrong.extend(seen.wrong);
            outcome.listings += seen.listings;
            outcome.connections.push(Connection { slot, times: seen.times });
        }
        outcome.created = Distribution::of(created.join().expect("the measurement does not panic")?);
        Ok(outcome)
    })
}

fn writer(index: usize, seed: u64, ledgers: &[Arc<Ledger>]) -> Writer {
    let slot = index / WRITERS;
    let shape = Shape { partitions: slot::partitions(slot), rows_max: ROWS_MAX, tables: false, reads: READS };
    let mut writer = Writer::new(index, seed, shape, false);
    writer.ledger = Some(Arc::clone(&ledgers[slot]));
    writer.timed = Some(Vec::new());
    writer
}

/// Inserts the rows that stay.
fn fill(address: SocketAddr) -> Result<()> {
    let partitions = (0..SLOTS).flat_map(|slot| (0..slot::PARTITIONS).map(move |number| (slot, number)));
    let batches = partitions.map(|(slot, number)| {
        let rows = slot::steady_of(slot, number);
        let inserts = rows
            .iter()
            .map(|(key, row)| client::change(Step::Insert, &key.table, (&key.partition, &key.row), row, "*"));
        client::batch(&inserts.collect::<Vec<_>>())
    });
    send_all(1, address, batches, 202)
}

/// Has all rounds made, by all changers at once; each has slots of its own.
fn change_all(changers: &mut [Changer], rounds: u32) -> Result<()> {
    let at_once = changers.len();
    thread::scope(|scope| {
        let working: Vec<_> = changers
            .iter_mut()
            .enumerate()
            .map(|(index, changer)| {
                let slots: Vec<usize> = (index..SLOTS).step_by(at_once).collect();
                scope.spawn(move || {
                    let own = (0..rounds).filter(|round| *round as usize % at_once == index);
                    own.enumerate().try_for_each(|(turn, _)| {
                        changer.round(slots[turn % slots.len()], turn as u32 / slots.len() as u32)
                    })
                })
            })
            .collect();
        working.into_iter().try_for_each(|work| work.join().expect("changers do not panic"))
    })
}

/// Compares everything that the service holds with what was acknowledged.
fn compare(load: &mut Load, address: SocketAddr) -> Result<Vec<Finding>> {
    let mut observed = load.observe(address)?;
    let mut steady: std::collections::BTreeSet<String> =
        (0..SLOTS).flat_map(slot::steady).map(|(key, _)| key.to_string()).collect();
    // The connections that read and list compare their values.
    observed.strangers.retain(|stranger| !steady.remove(stranger));
    let mut findings = load.settle(&observed);
    findings.extend(steady.into_iter().map(|key| Finding::new(Kind::Lost, key)));
    Ok(findings)
}
