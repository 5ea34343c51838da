//! `cargo xtask objects`: what requests about objects cost beside those about tables, on one server in one run.
//!
//! Clients work in a closed loop, each on a connection of its own, and check the answers. The figure to compare is the
//! processor time of the server for each operation: it hardly depends on what else the machine does. The operations on
//! objects and on tables take turns within each round, and all figures are medians of the rounds.
//!
//! With several numbers of names the server starts afresh for each. So it is seen what a listing costs as a bucket grows.
//! At the end one large object goes up and comes down, beside a bare copy of the same bytes with the same checksums.

mod operation;
mod stream;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
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
        let server = Server::start(&arguments.build.setup("objects", &[])?)?;
        operation::load(&server, names)?;
        let mut runs = Operation::ALL.map(|_| Vec::<Driven>::new());
        for round in 0..arguments.rounds {
            for (operation, runs) in Operation::ALL.into_iter().zip(&mut runs) {
                let time = Duration::from_secs_f64(arguments.seconds);
                let clients = Loop { clients: operation.clients(), time, round };
                let driven = clients.run(
                    || server.processor_time(),
                    || Clients::connect(&server),
                    |clients, number, rng| operation.carry_out(clients, &Turn { names, round, number }, rng),
                );
                runs.push(driven.with_context(|| operation.label())?);
            }
        }
        print(names, &runs);
        if arguments.stream_mib > 0 {
            stream::compare(&server, arguments.stream_mib << 20, arguments.rounds)?;
        }
        println!("memory at its highest: {} MiB", mib(server.peak_bytes()?));
        server.stop()?;
    }
    Ok(())
}

fn print(names: u64, runs: &[Vec<Driven>]) {
    println!("{names} names and entities");
    println!("{:<26} {:>10} {:>10} {:>9} {:>9}", "operation", "CPU us/op", "ratio", "p50 ms", "p99 ms");
    let micros = |operation: Operation| {
        let index = Operation::ALL.iter().position(|known| *known == operation)?;
        Some(median(&runs[index], Driven::micros_each))
    };
    for (operation, runs) in Operation::ALL.into_iter().zip(runs) {
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

fn median(runs: &[Driven], figure: impl Fn(&Driven) -> f64) -> f64 {
    drive::median(runs, figure).unwrap_or_default()
}
