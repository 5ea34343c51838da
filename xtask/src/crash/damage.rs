//! A synced file goes bad: one bit flips, or its end is missing.
//!
//! The service may refuse to start, or refuse requests, if it says which file is damaged. It may also answer
//! everything correctly, if the damaged part is not needed any more. (The directory is one that `kill -9` left, and
//! its log is still needed.) It must never answer as if nothing were wrong while something is missing or different.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use rangehold_testkit::client::Credential;
use rangehold_testkit::load::{Load, Observed, WRITERS, observe};
use rangehold_testkit::server::{self, Server, Setup};
use rangehold_testkit::workspace::{self, Profile};

/// Damaged copies that are tried.
const TRIALS: u32 = 40;
/// Operations of each writer before the server is stopped.
const OPERATIONS: u64 = 60;

/// Damages copies of one directory and starts the server on each.
pub(super) fn run(seed: u64) -> Result<()> {
    let setup = Setup::fresh(Profile::Dev, "crash-damage", &[])?;
    let good = &setup.data;
    let expected = fill(&setup, seed)?;
    let files: Vec<_> =
        workspace::files(good)?.into_iter().filter(|(_, bytes)| *bytes > 0).map(|(path, _)| path).collect();
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut refused, mut failed, mut unharmed, mut broken) = (0, 0, 0, Vec::new());
    for trial in 0..TRIALS {
        let copy = setup.beside(&format!("trial-{trial}"));
        workspace::copy_tree(good, &copy)?;
        server::keep_lock_file(good, &copy)?;
        // Every file is damaged once before any is damaged a second time.
        let file = &files[(trial as usize + rng.random_range(0..2)) % files.len()];
        let what = damage(&copy.join(file), &mut rng)?;
        let log = copy.with_extension("log");
        let name = file.file_name().expect("files have names").to_string_lossy().into_owned();
        match outcome(&Setup::new(&setup.program, &copy, &log), &expected) {
            Outcome::Refused if server::text(&log).contains(&name) => refused += 1,
            Outcome::Failed(text) if text.contains(&name) || server::text(&log).contains(&name) => {
                failed += 1
            }
            Outcome::Unharmed => unharmed += 1,
            Outcome::Refused => broken.push(format!("{} {what}: refused without its name", file.display())),
            Outcome::Failed(text) => broken.push(format!("{} {what}: {text}", file.display())),
            Outcome::Different => {
                broken.push(format!("{} {what}: served, and something is missing", file.display()));
                continue; // kept for a closer look
            }
        }
        fs::remove_dir_all(&copy)?;
    }
    println!("damage: {TRIALS} damaged copies of {} files", files.len());
    println!(
        "  {refused} not opened, {failed} opened and the read refused, {unharmed} unharmed; each names the file"
    );
    broken.iter().for_each(|what| println!("  FOUND {what}"));
    if broken.is_empty() { Ok(()) } else { bail!("damage: {} files were not handled by name", broken.len()) }
}

enum Outcome {
    /// The server did not start.
    Refused,
    /// The server started, and a read failed with this text.
    Failed(String),
    /// All data is there.
    Unharmed,
    /// Reads succeed, but show something different from what was written.
    Different,
}

fn outcome(setup: &Setup, expected: &Observed) -> Outcome {
    let Ok(server) = Server::start(setup) else {
        return Outcome::Refused;
    };
    match observe(server.address, Credential::SharedKey, WRITERS) {
        Err(error) => Outcome::Failed(format!("{error:#}")),
        Ok(found) if found == *expected => Outcome::Unharmed,
        Ok(_) => Outcome::Different,
    }
}

fn fill(setup: &Setup, seed: u64) -> Result<Observed> {
    let server = Server::start(setup)?;
    let mut load = Load::new(seed, false);
    load.prepare(server.address)?;
    load.run(server.address, OPERATIONS);
    let observed = load.observe(server.address)?;
    if let Some(finding) = load.settle(&observed).first() {
        bail!("before anything was damaged: {finding}");
    }
    server.kill()?;
    Ok(observed)
}

/// Flips one bit, or cuts off the end; returns what was done.
fn damage(path: &Path, rng: &mut StdRng) -> Result<String> {
    let mut bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if rng.random_bool(0.25) {
        let length = rng.random_range(0..bytes.len());
        fs::write(path, &bytes[..length])?;
        return Ok(format!("cut from {} to {length} bytes", bytes.len()));
    }
    let at = rng.random_range(0..bytes.len());
    let bit = rng.random_range(0..8);
    bytes[at] ^= 1 << bit;
    fs::write(path, &bytes)?;
    Ok(format!("with bit {bit} of byte {at} of {} flipped", bytes.len()))
}
