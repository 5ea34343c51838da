//! `kill -9` at random moments, while objects are written.
//!
//! A round is that of [`super::kill`], with writers of objects ([`rangehold_testkit::object_load`]) in place of those of
//! tables: uploads in one request and by sessions, overwrites, copies, compositions, moves, deletions, attempts to delete
//! the bucket, lives of buckets that each writer has for itself, and renames of a folder into which others write, while
//! ranges are split, merged and moved, and while the blobs are audited again and again. After each kill one
//! name is created and deleted many times, and its generations must grow. At the end all objects are deleted, and the
//! audit must leave no file of a blob.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_testkit::folder_load::FolderLoad;
use rangehold_testkit::load::{Finding, Kind, Load};
use rangehold_testkit::object_load::{ObjectLoad, churn, left_over};
use rangehold_testkit::server::Server;

use super::changes::unmanaged;
use super::kill::{Changed, LOAD_MILLIS, START_MILLIS_MAX, changing_until};
use super::print_findings;

/// Writers at once.
const WRITERS: usize = 6;
/// How often one name is created and deleted, in all rounds together.
const CHURNED: u32 = 1_000;
/// The time between two audits, and between two walks over the buckets.
const TIDIED_EVERY_MILLIS: &str = "150";

/// Runs `rounds` rounds from one seed.
pub(super) fn run(rounds: u32, seed: u64) -> Result<()> {
    let mut setup = unmanaged("crash-objects")?;
    setup.arguments.extend(["--tidy-objects-every", TIDIED_EVERY_MILLIS].map(str::to_owned));
    let mut rng = StdRng::seed_from_u64(seed);
    let mut load = ObjectLoad::new(WRITERS, seed);
    let mut folders = FolderLoad::default();
    let mut findings: Vec<Finding> = Vec::new();
    let (mut changes, mut churned, mut in_folders) = (0, 0, 0);
    for round in 0..=rounds {
        if round > 0 && rng.random_bool(0.4) {
            Server::start_and_kill(&setup, Duration::from_millis(rng.random_range(0..START_MILLIS_MAX)))?;
        }
        let server = Server::start(&setup).with_context(|| format!("starting for round {round}"))?;
        if round == 0 {
            // The places where ranges are cut are in its table.
            Load::new(seed, false).prepare(server.address)?;
            load.prepare(server.objects)?;
            folders.prepare(server.objects)?;
        }
        findings.extend(load.check(server.objects)?);
        let found = folders.check(server.objects)?;
        in_folders += found.len();
        findings.extend(found);
        let broken = server.admin_client()?.check()?.into_iter().map(|what| Finding::new(Kind::Wrong, what));
        findings.extend(broken);
        let times = CHURNED / (rounds + 1);
        let (greatest, found) = churn(server.objects, times, churned)?;
        churned = greatest;
        findings.extend(found);
        if round == rounds {
            load.remove_all(server.objects)?;
            findings.extend(left_over(&setup.data.join("blobs"))?);
            server.stop()?;
            break;
        }
        let life = Duration::from_millis(rng.random_range(LOAD_MILLIS));
        changes += load_and_kill(&mut load, &mut folders, server, life, &mut rng)?.made;
    }
    let counts = load.counts();
    println!(
        "objects: {rounds} kills, {changes} changes of ranges; acknowledged {} ({} uploads by sessions), unanswered: {} \
         turned out made or were gone on with, {} not; answered 503: {}",
        counts.acknowledged, counts.sessions, counts.unknown_applied, counts.unknown_dropped, counts.busy
    );
    let counts = folders.counts();
    println!(
        "folders: {} objects and {} renames acknowledged, {in_folders} lost, torn or in two places; renames without an answer: \
         {} turned out made, {} not",
        counts.objects, counts.renames, counts.unknown_made, counts.unknown_dropped
    );
    print_findings(&findings);
    if findings.is_empty() { Ok(()) } else { bail!("objects: {} promises were broken", findings.len()) }
}

fn load_and_kill(
    load: &mut ObjectLoad,
    folders: &mut FolderLoad,
    server: Server,
    life: Duration,
    rng: &mut StdRng,
) -> Result<Changed> {
    let (address, admin) = (server.objects, server.admin_client()?);
    load.run_while(address, || {
        folders.run_while(address, || {
            changing_until(&admin, rng, || {
                thread::sleep(life);
                server.kill()
            })
        })
    })
}
