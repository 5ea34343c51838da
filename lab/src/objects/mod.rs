//! `cargo xtask objects`: what requests about objects cost beside those about tables, in one run.
//!
//! Clients work in a closed loop, each on a connection of its own, and check the answers. The figure to compare is the
//! processor time of the server for each operation: it hardly depends on what else the machine does. The operations on
//! objects and on tables take turns within each round, and all figures are medians of the rounds. Objects and tables have
//! a server of their own, with the same settings: on one server each turn would begin with the rows in memory that the
//! turn before it read.
//!
//! With several numbers of names the servers start afresh for each. So it is seen what a listing costs as a bucket grows.
//! When the servers of one number of names have ended, it measures how long reads take of as much memory as the server
//! of objects held after the rounds.
//! At the end one large object goes up and comes down, beside a bare copy of the same bytes with the same checksums, and
//! many large objects go up at once.
//!
//! Another server of the same API can be measured beside ours: start it, and give its address as `--peer`. Its processor time is
//! not known, so the times of its answers are printed. It takes its turns in the same rounds. A peer whose listings have no
//! pages answers with all names; its figure is then one of more names.

mod memory;
mod operation;
mod stream;
mod uploads;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rangehold_testkit::server::Server;

use crate::bench::{Build, mib};
use crate::drive::{self, Driven, Loop};
use crate::rates::{self, Rates};
use operation::{Clients, Operation, Turn};

/// Compares the costs of requests about objects with those of requests about tables.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Names in the bucket and entities in the table before the measurement; several numbers show what growth costs.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000])]
    names: Vec<u64>,
    /// How long each operation runs in each round, in seconds.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Rounds, of which the medians are printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Bytes of the large object, in MiB; 0 leaves it out.
    #[arg(long, default_value_t = 64)]
    stream_mib: usize,
    /// Tries the request rates of buckets instead.
    #[arg(long)]
    rates: Option<Rates>,
    /// Draws what `--rates` saw into this directory.
    #[arg(long, requires = "rates")]
    pictures: Option<PathBuf>,
    /// Large objects that go up at once, each with as many bytes as --upload-mib says; 0 leaves them out.
    #[arg(long, default_value_t = 64)]
    uploads: usize,
    /// Bytes of each of these objects, in MiB.
    #[arg(long, default_value_t = 64)]
    upload_mib: usize,
    /// The address of another server of the same API, for example 127.0.0.1:9000.
    #[arg(long)]
    peer: Option<SocketAddr>,
    #[command(flatten)]
    build: Build,
}

/// Starts a server for each number of names, loads it, drives it, and prints the medians.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(tried) = arguments.rates {
        return rates::run(tried, arguments.pictures.as_deref(), &arguments.build);
    }
    ensure!(
        arguments.names.iter().all(|names| *names >= 1_000),
        "--names: a listing needs at least 1000 names"
    );
    for &names in &arguments.names {
        let servers = Servers::start(arguments)?;
        operation::load_tables(servers.tables.address, names)?;
        operation::load_objects(servers.objects.objects, names)?;
        if let Some(peer) = arguments.peer {
            operation::load_objects(peer, names).context("the peer")?;
        }
        let mut runs = Operation::ALL.map(|_| Runs::default());
        for round in 0..arguments.rounds {
            for (operation, runs) in Operation::ALL.into_iter().zip(&mut runs) {
                runs.add(operation, arguments, &servers, (names, round))
                    .with_context(|| operation.label())?;
            }
        }
        print(names, &runs);
        let held = servers.objects.resident_bytes()?;
        if arguments.peer.is_some() {
            print_peer(&runs);
        }
        if arguments.stream_mib > 0 {
            stream::compare(&servers.objects, arguments.stream_mib << 20, arguments.rounds)?;
        }
        if arguments.uploads > 0 {
            uploads::measure(&servers.objects, arguments.uploads, arguments.upload_mib << 20)?;
        }
        let (tables, objects) = (servers.tables.peak_bytes()?, servers.objects.peak_bytes()?);
        println!("memory at its highest: {} MiB with tables, {} MiB with objects", mib(tables), mib(objects));
        servers.tables.stop()?;
        servers.objects.stop()?;
        memory::measure(held);
    }
    Ok(())
}

/// A server for each kind of data.
struct Servers {
    tables: Server,
    objects: Server,
}

impl Servers {
    fn start(arguments: &Arguments) -> Result<Self> {
        let start = |place| Server::start(&arguments.build.setup(place, &[])?);
        Ok(Self { tables: start("objects-tables")?, objects: start("objects")? })
    }

    /// The server that an operation is sent to.
    fn of(&self, operation: Operation) -> &Server {
        if operation.is_about_objects() { &self.objects } else { &self.tables }
    }
}

/// What the rounds of one operation showed.
#[derive(Default)]
struct Runs {
    ours: Vec<Driven>,
    /// Empty if there is no peer, or if the operation is about tables.
    peer: Vec<Driven>,
}

impl Runs {
    /// Drives our server, and then the peer.
    fn add(
        &mut self,
        operation: Operation,
        arguments: &Arguments,
        servers: &Servers,
        (names, round): (u64, usize),
    ) -> Result<()> {
        let time = Duration::from_secs_f64(arguments.seconds);
        let clients = Loop { clients: operation.clients(), time, round, every: None };
        let carry_out = |is_peer| {
            move |clients: &mut Clients, number, rng: &mut StdRng| {
                operation.carry_out(clients, &Turn { names, round, number, is_peer }, rng)
            }
        };
        let connect = || Clients::connect(servers.tables.address, servers.objects.objects);
        let spent = || servers.of(operation).processor_time();
        let all = || Ok(servers.tables.processor_time()? + servers.objects.processor_time()?);
        drive::wait_for_rest(all)?;
        self.ours.push(clients.run(spent, connect, carry_out(false))?);
        if let Some(peer) = arguments.peer.filter(|_| operation.is_about_objects()) {
            drive::wait_for_rest(all)?;
            let connect = || Clients::connect(servers.tables.address, peer);
            let driven = clients.run(|| Ok(Duration::ZERO), connect, carry_out(true));
            self.peer.push(driven.context("the peer")?);
        }
        Ok(())
    }
}

fn print(names: u64, runs: &[Runs]) {
    println!("{names} names and entities");
    println!("{:<26} {:>10} {:>10} {:>9} {:>9}", "operation", "CPU us/op", "ratio", "p50 ms", "p99 ms");
    let micros = |operation: Operation| {
        let index = Operation::ALL.iter().position(|known| *known == operation)?;
        Some(median(&runs[index].ours, Driven::micros_each))
    };
    for (operation, runs) in Operation::ALL.into_iter().zip(runs.iter().map(|runs| &runs.ours)) {
        let each = median(runs, Driven::micros_each);
        let ratio = operation.compared_with().and_then(|(table, allowed)| {
            micros(table).map(|table| format!("{:.2} ({allowed})", each / table))
        });
        println!(
            "{:<26} {each:>10.1} {:>10} {:>9.2} {:>9.2}",
            operation.label(),
            ratio.unwrap_or_default(),
            median(runs, |run| run.percentile_ms(50)),
            median(runs, |run| run.percentile_ms(99)),
        );
    }
}

/// The times of the answers, beside those of the peer.
fn print_peer(runs: &[Runs]) {
    println!("{:<26} {:>9} {:>9} {:>7}", "operation", "p50 ms", "peer", "ratio");
    let compared = Operation::ALL.into_iter().zip(runs).filter(|(_, runs)| !runs.peer.is_empty());
    for (operation, runs) in compared {
        let p50 = |runs: &[Driven]| median(runs, |run| run.percentile_ms(50));
        let (ours, peer) = (p50(&runs.ours), p50(&runs.peer));
        println!("{:<26} {ours:>9.2} {peer:>9.2} {:>7.2}", operation.label(), ours / peer);
    }
}

fn median(runs: &[Driven], figure: impl Fn(&Driven) -> f64) -> f64 {
    drive::median(runs, figure).unwrap_or_default()
}
