//! What requests cost each other at our server, and how soon it is ready: `bench --beside`.
//!
//! * Reads of single entities alone, and beside one client that filters all of the table without a rest.
//! * Inserts at half of the rate that the server can do, for so long that it flushes and compacts meanwhile. Each insert has a time at
//!   which it is due, and its time counts from then: if the server stops for a moment, all inserts that are due meanwhile are late.
//!   What one durable file costs meanwhile is printed too, since an insert cannot be more even than the disk.
//! * The time until the server is ready, with these entities, after a stop and after `kill -9`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rangehold_testkit::client::{Client, Credential};
use rangehold_testkit::server::Server;

use super::Arguments;
use super::workload::{self, Turn, Workload};
use crate::bench::{kill_and_start, mib, stop_and_start};
use crate::disk;
use crate::drive::{Driven, Loop, percentile_ms, wait_for_rest};

/// The inserts at half of the rate run so many times as long as the others.
const PACED_TIMES: u32 = 10;

/// Which run of inserts it is; each has keys of its own.
const AT_FULL_RATE: usize = 0;
const AT_HALF_RATE: usize = 1;

/// Measures our server, and prints what it showed.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let setup = arguments.build.setup("bench", &[])?;
    let mut server = Server::start(&setup)?;
    println!("empty: ready after {:.0?}, {} MiB", server.start_time, mib(server.resident_bytes()?));
    workload::load(server.address, arguments.entities)?;
    println!("with {} entities: {} MiB", arguments.entities, mib(server.resident_bytes()?));
    let bench = Bench { arguments, time: Duration::from_secs_f64(arguments.seconds) };
    bench.reads_beside_a_filter(&server)?;
    bench.inserts_at_half_rate(&server, &setup.beside("probes"))?;
    server = stop_and_start(server, &setup)?;
    println!("ready after a stop {:.0?}, {} MiB", server.start_time, mib(server.resident_bytes()?));
    server = kill_and_start(server, &setup)?;
    println!("ready after kill -9 {:.0?}, {} MiB", server.start_time, mib(server.resident_bytes()?));
    Ok(())
}

struct Bench<'a> {
    arguments: &'a Arguments,
    time: Duration,
}

impl Bench<'_> {
    fn reads_beside_a_filter(&self, server: &Server) -> Result<()> {
        let reads = |round| self.drive(server, Workload::Get, &self.clients(Workload::Get, round));
        wait_for_rest(|| server.processor_time())?;
        let alone = reads(0)?;
        let ended = AtomicBool::new(false);
        let (beside, filters) = thread::scope(|scope| {
            let filtering = scope.spawn(|| self.filter_until(&ended, server));
            let beside = reads(1);
            ended.store(true, Ordering::Relaxed);
            anyhow::Ok((beside?, filtering.join().expect("clients do not panic")?))
        })?;
        println!("reads alone: {}", told(&alone));
        let times = beside.percentile_ms(99) / alone.percentile_ms(99);
        println!("beside {filters} filters, one after the other: {}; p99 {times:.1} x", told(&beside));
        Ok(())
    }

    /// Filters all of the table until that is to end, and returns how often.
    fn filter_until(&self, ended: &AtomicBool, server: &Server) -> Result<u64> {
        let (mut client, mut rng) = (connect(server), StdRng::seed_from_u64(0));
        let mut filters = 0;
        while !ended.load(Ordering::Relaxed) {
            Workload::Filter.operate(&mut client, &self.turn(0, filters), &mut rng)?;
            filters += 1;
        }
        Ok(filters)
    }

    fn inserts_at_half_rate(&self, server: &Server, probes: &Path) -> Result<()> {
        let clients = self.clients(Workload::Insert, AT_FULL_RATE);
        let (number, round) = (clients.clients, AT_HALF_RATE);
        wait_for_rest(|| server.processor_time())?;
        let full = self.drive(server, Workload::Insert, &clients)?;
        let every = Duration::from_secs_f64(2.0 * number as f64 / full.each_second());
        let paced = Loop { clients: number, time: self.time * PACED_TIMES, round, every: Some(every) };
        let ended = AtomicBool::new(false);
        let (half, mut files) = thread::scope(|scope| {
            let creating = scope.spawn(|| disk::creates(probes, &ended, usize::MAX));
            let half = self.drive(server, Workload::Insert, &paced);
            ended.store(true, Ordering::Relaxed);
            anyhow::Ok((half?, creating.join().expect("the probe does not panic")?))
        })?;
        println!("inserts at the full rate: {}", told(&full));
        let times = half.percentile_ms(99) / half.percentile_ms(50);
        println!("at half of it: {}; p99 {times:.1} x p50", told(&half));
        files.sort_unstable();
        let (p50, p99) = (percentile_ms(&files, 50), percentile_ms(&files, 99));
        println!("a durable file meanwhile: p50 {p50:.2} ms, p99 {p99:.2} ms; p99 {:.1} x p50", p99 / p50);
        Ok(())
    }

    fn clients(&self, workload: Workload, round: usize) -> Loop {
        let clients = self.arguments.clients.unwrap_or(workload.clients());
        Loop { clients, time: self.time, round, every: None }
    }

    fn drive(&self, server: &Server, workload: Workload, clients: &Loop) -> Result<Driven> {
        let operate = |client: &mut Client, number, rng: &mut StdRng| {
            workload.operate(client, &self.turn(clients.round as u64, number), rng)
        };
        clients.run(|| server.processor_time(), || Ok(connect(server)), operate)
    }

    fn turn(&self, round: u64, number: u64) -> Turn {
        Turn { entities: self.arguments.entities, round, number, is_checked: true }
    }
}

fn connect(server: &Server) -> Client {
    Client::new(server.address, Credential::SharedKey)
}

fn told(driven: &Driven) -> String {
    let (p50, p99) = (driven.percentile_ms(50), driven.percentile_ms(99));
    format!("{:.0} a second, p50 {p50:.2} ms, p99 {p99:.2} ms", driven.each_second())
}
