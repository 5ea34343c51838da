//! `cargo xtask bench`: what each sort of request costs here, in a bare HTTP server, and in Azurite.
//!
//! One load generator drives all of them: clients in a closed loop, each on a connection of its own, with signed
//! requests whose answers are checked. The servers take turns within each round, so that other work of the machine
//! slows all of them. The figure to compare is the processor time of the server's process for each operation:
//! it hardly depends on what else the machine does, while times and rates do. All figures are medians of the rounds.
//!
//! The bare server is a hyper server that answers 300 bytes to everything. No table service can be below it.

mod beside;
mod floor;
mod peer;
mod workload;

use std::time::Duration;

use anyhow::{Context, Result};
use rangehold_testkit::client::{Client, Credential};

use crate::bench::{Build, mib};
use crate::drive::{Driven, Loop, median, wait_for_rest};
pub(crate) use floor::serve as floor;
use peer::{Peer, PeerKind};
use workload::{Turn, Workload};

/// Compares the costs of requests with those of a bare HTTP server and of Azurite.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Entities that are loaded before the measurement.
    #[arg(long, default_value_t = 10_000)]
    entities: u64,
    /// How long each workload runs on each server in each round, in seconds.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Rounds, of which the medians are printed.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only these workloads.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Workload>,
    /// Only these servers.
    #[arg(long, value_enum, value_delimiter = ',')]
    servers: Vec<PeerKind>,
    /// Clients at once, instead of the number that each workload has.
    #[arg(long)]
    clients: Option<usize>,
    /// Instead of all this, measures what requests cost each other at our server, and how soon it is ready.
    #[arg(long)]
    beside: bool,
    #[command(flatten)]
    build: Build,
}

/// Starts the servers, loads them, drives them in turn, and prints the medians.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.beside {
        return beside::run(arguments);
    }
    let kinds = chosen(&arguments.servers, &PeerKind::ALL);
    let workloads = chosen(&arguments.only, &Workload::ALL);
    let mut peers = Vec::new();
    for kind in kinds {
        let peer = Peer::start(kind, &arguments.build)?;
        println!("{:<8} empty: {} MiB", kind.label(), mib(peer.resident_bytes()?));
        if kind != PeerKind::Floor {
            workload::load(peer.address, arguments.entities)?;
            println!(
                "{:<8} with {} entities: {} MiB",
                kind.label(),
                arguments.entities,
                mib(peer.resident_bytes()?)
            );
        }
        peers.push((peer, vec![Vec::<Driven>::new(); workloads.len()]));
    }
    let seconds = Duration::from_secs_f64(arguments.seconds);
    for round in 0..arguments.rounds {
        for (index, workload) in workloads.iter().enumerate() {
            let clients = arguments.clients.unwrap_or(workload.clients());
            for at in 0..peers.len() {
                if peers[at].0.kind != PeerKind::Floor || *workload == Workload::Get {
                    wait_for_rest(|| peers.iter().map(|(peer, _)| peer.processor_time()).sum())?;
                    let (peer, runs) = &mut peers[at];
                    let clients = Loop { clients, time: seconds, round, every: None };
                    let driven = drive(peer, *workload, &clients, arguments.entities);
                    let what = || format!("{} at {}", workload.label(), peer.kind.label());
                    runs[index].push(driven.with_context(what)?);
                }
            }
        }
    }
    print(&peers, &workloads, arguments.clients);
    for (peer, _) in &peers {
        println!("{:<8} afterwards: {} MiB", peer.kind.label(), mib(peer.resident_bytes()?));
    }
    Ok(())
}

fn drive(peer: &Peer, workload: Workload, clients: &Loop, entities: u64) -> Result<Driven> {
    let (round, is_checked) = (clients.round as u64, peer.is_table_service());
    clients.run(
        || peer.processor_time(),
        || Ok(Client::new(peer.address, Credential::SharedKey)),
        |client, number, rng| workload.operate(client, &Turn { entities, round, number, is_checked }, rng),
    )
}

fn chosen<T: Copy>(given: &[T], all: &[T]) -> Vec<T> {
    if given.is_empty() { all.to_vec() } else { given.to_vec() }
}

fn print(peers: &[(Peer, Vec<Vec<Driven>>)], workloads: &[Workload], clients: Option<usize>) {
    let bare = peers.iter().find(|(peer, _)| peer.kind == PeerKind::Floor);
    let bare = bare.and_then(|(_, runs)| runs.iter().find_map(|runs| median(runs, Driven::micros_each)));
    println!(
        "{:<16} {:>7} {:<8} {:>12} {:>8} {:>10} {:>10} {:>10}",
        "workload", "clients", "server", "CPU us/op", "x bare", "ops/s", "p50 ms", "p99 ms"
    );
    for (index, workload) in workloads.iter().enumerate() {
        for (peer, runs) in peers {
            let runs = &runs[index];
            let Some(micros) = median(runs, Driven::micros_each) else { continue };
            let ratio = bare.map_or("-".to_owned(), |bare| format!("{:.1}", micros / bare));
            let of = |figure: fn(&Driven) -> f64| median(runs, figure).unwrap_or_default();
            println!(
                "{:<16} {:>7} {:<8} {micros:>12.1} {ratio:>8} {:>10.0} {:>10.2} {:>10.2}",
                workload.label(),
                clients.unwrap_or(workload.clients()),
                peer.kind.label(),
                of(Driven::each_second),
                of(|run| run.percentile_ms(50)),
                of(|run| run.percentile_ms(99)),
            );
        }
    }
}
