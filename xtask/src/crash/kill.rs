//! `kill -9` at random moments.
//!
//! One round: start the server (sometimes kill it in the middle of that first), compare, load it for a random time,
//! kill it. All the time its ranges are split, merged and moved by the admin API, one change after the other, so most
//! kills come in the middle of a change. What the kernel was given survives, so this test is about order: an answer
//! must not leave before its write did, and recovery must not lose or repeat anything. [`crate::power`] tests what
//! only a power failure shows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::changes::{What, prepare, unmanaged};
use super::{compare, conclude};
use rangehold_testkit::client::Admin;
use rangehold_testkit::load::{Finding, Load};
use rangehold_testkit::server::Server;

/// Shortest and longest time under load before the server is killed, in milliseconds.
pub(super) const LOAD_MILLIS: std::ops::Range<u64> = 100..1_500;
/// Longest life of a server that is killed while it starts, in milliseconds.
pub(super) const START_MILLIS_MAX: u64 = 150;

/// Runs `rounds` rounds from one seed.
pub(super) fn run(rounds: u32, seed: u64) -> Result<()> {
    let setup = unmanaged("crash-kill")?;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut load = Load::new(seed, false);
    let mut findings: Vec<Finding> = Vec::new();
    let mut slowest = Duration::ZERO;
    let (mut changes, mut mid_change) = (0, 0);
    for round in 0..=rounds {
        if round > 0 && rng.random_bool(0.4) {
            let life = Duration::from_millis(rng.random_range(0..START_MILLIS_MAX));
            Server::start_and_kill(&setup, life)?;
        }
        let server = Server::start(&setup).with_context(|| format!("starting for round {round}"))?;
        slowest = slowest.max(server.start_time);
        if round == 0 {
            load.prepare(server.address)?;
        }
        findings.extend(compare(&mut load, &server)?);
        // The last start only compares: all that happened before must still be as it was found.
        if round == rounds {
            break;
        }
        let life = Duration::from_millis(rng.random_range(LOAD_MILLIS));
        let changed = load_and_kill(&mut load, server, life, &mut rng)?;
        changes += changed.made;
        mid_change += u32::from(changed.broken_off);
    }
    println!(
        "{rounds} kills, {mid_change} of them while a range changed hands, after {changes} changes; \
         the slowest of {} starts took {} ms",
        rounds + 1,
        slowest.as_millis()
    );
    conclude("crash", &load.counts(), &findings)
}

/// What was done to ranges in one round.
pub(super) struct Changed {
    pub(super) made: u32,
    /// Whether the last change got no answer.
    broken_off: bool,
}

fn load_and_kill(load: &mut Load, server: Server, life: Duration, rng: &mut StdRng) -> Result<Changed> {
    let (address, admin) = (server.address, server.admin_client()?);
    let kill = || {
        thread::sleep(life);
        server.kill()
    };
    load.run_while(address, || changing_until(&admin, rng, kill))
}

/// Has ranges changed all the time, until `kill` has killed the server.
pub(super) fn changing_until(
    admin: &Admin,
    rng: &mut StdRng,
    kill: impl FnOnce() -> Result<()>,
) -> Result<Changed> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let changes = scope.spawn(|| change_until_killed(admin, &stop, rng));
        let killed = kill();
        stop.store(true, Ordering::Relaxed);
        let changed = changes.join().expect("the thread that has changes made does not panic");
        killed.map(|()| changed)
    })
}

/// Has one change made after another, until the server does not answer.
fn change_until_killed(admin: &Admin, stop: &AtomicBool, rng: &mut StdRng) -> Changed {
    let mut changed = Changed { made: 0, broken_off: false };
    while !stop.load(Ordering::Relaxed) {
        let what = What::ALL[rng.random_range(0..What::ALL.len())];
        let Ok(change) = prepare(admin, what, rng) else { break };
        if admin.change_patiently(&change).is_err() {
            changed.broken_off = true;
            break;
        }
        changed.made += 1;
    }
    changed
}
