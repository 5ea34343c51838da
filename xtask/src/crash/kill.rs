//! `kill -9` at random moments.
//!
//! One round: start the server (sometimes killed in the middle of that first), compare, load it for a
//! random while, kill it. What the kernel had been given survives, so this test is about order: an
//! answer must not leave before its write did, and recovery must not lose or repeat anything. What
//! only a power loss shows is [`crate::power`]'s.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::conclude;
use crate::client::Credential;
use crate::load::{Finding, Load, observe};
use crate::server::{Server, Setup};
use crate::workspace::{self, Profile};

/// Shortest and longest time under load before the server is killed, in milliseconds.
const LOAD_MILLIS: std::ops::Range<u64> = 100..1_500;
/// Longest life of a server that is killed while it starts, in milliseconds.
const START_MILLIS_MAX: u64 = 150;

/// Runs `rounds` rounds from one seed.
pub(super) fn run(rounds: u32, seed: u64) -> Result<()> {
    let program = workspace::program(Profile::Dev)?;
    let directory = workspace::scratch("crash-kill")?;
    let setup = Setup::new(&program, &directory.join("data"), &directory.join("server.log"));
    let mut rng = StdRng::seed_from_u64(seed);
    let mut load = Load::new(seed, false);
    let mut findings: Vec<Finding> = Vec::new();
    let mut slowest = Duration::ZERO;
    for round in 0..=rounds {
        if round > 0 && rng.random_bool(0.4) {
            let life = Duration::from_millis(rng.random_range(0..START_MILLIS_MAX));
            Server::start_and_kill(&setup, life)?;
        }
        let server = Server::start(&setup).with_context(|| format!("starting for round {round}"))?;
        slowest = slowest.max(server.start_time);
        if round == 0 {
            load.prepare(server.address, Credential::SharedKey)?;
        }
        findings.extend(load.settle(&observe(server.address, Credential::SharedKey)?));
        // The last start only compares: all that happened before must still be as it was found.
        if round == rounds {
            break;
        }
        let life = Duration::from_millis(rng.random_range(LOAD_MILLIS));
        load_and_kill(&mut load, server, life)?;
    }
    println!("{rounds} kills; the slowest of {} starts took {} ms", rounds + 1, slowest.as_millis());
    conclude("crash", &load.counts(), &findings)
}

fn load_and_kill(load: &mut Load, server: Server, life: Duration) -> Result<()> {
    let stop = AtomicBool::new(false);
    let address = server.address;
    thread::scope(|scope| {
        let writers = scope.spawn(|| load.run(address, Credential::SharedKey, &stop, u64::MAX));
        thread::sleep(life);
        let killed = server.kill();
        stop.store(true, Ordering::Relaxed);
        writers.join().expect("writers do not panic");
        killed
    })
}
