//! A table is exported and imported again by commands that are killed on the way.
//!
//! 1. A file of JSON Lines with all entities is imported.
//! 2. The table is exported to Parquet. The command is killed twice, and run again until it ends.
//! 3. The export is imported into another table. This command is killed twice too.
//! 4. A program in Python writes entities into a third table, one after the other.
//!
//! All three commands must name the same count and hash. The times of the export and the import are those of all their runs
//! together, the killed ones included, and the import's has the comparison in it. So the ratio to the loop in Python is of
//! what a person waits for.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rangehold_testkit::python::environment;
use rangehold_testkit::server::Server;
use serde_json::json;

use super::Arguments;
use super::command::Rangehold;
use crate::bench::Missed;

/// The SDK of the comparison, pinned.
const SDK: &str = "azure-data-tables==12.7.0";
/// The loop.
const LOOP: &str = include_str!("loop.py");
/// How many times faster than the loop the import has to be.
const RATIO_MIN: f64 = 20.0;
/// How often each command is killed.
const KILLS: usize = 2;

/// Runs the steps, prints a table, and fails if a hash differs or the ratio is missed.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let setup = arguments.build.setup("client-moving", &[])?;
    let server = Server::start(&setup)?;
    let rangehold = Rangehold::new(&setup.program, &server);
    let (file, folder) = (setup.beside("entities.jsonl"), setup.beside("exported"));
    write_entities(&file, arguments.entities)?;
    let mut missed = Missed::default();

    let file = file.to_str().context("the path is text")?;
    let folder = folder.to_str().context("the path is text")?;
    let loaded = rangehold.run(&["table", "import", "-n", "orders", "--from", file], None, 0)?;
    let export = ["table", "export", "-n", "orders", "--to", folder];
    let exported = rangehold.run(&export, Some(Path::new(folder)), KILLS)?;
    let import = ["table", "import", "-n", "again", "--from", folder];
    let imported = rangehold.run(&import, Some(Path::new(folder)), KILLS)?;
    let python = python(&rangehold.connection, arguments.python)?;

    println!("{:<34} {:>9} {:>6} {:>9} {:>11}  hash", "", "entities", "killed", "seconds", "entities/s");
    for (what, moved) in [
        ("JSON Lines into a table", &loaded),
        ("the table to Parquet", &exported),
        ("Parquet into another table", &imported),
    ] {
        let rate = moved.rate();
        println!(
            "{what:<34} {:>9} {:>6} {:>9.1} {rate:>11.0}  {}",
            moved.count,
            moved.kills,
            moved.took.as_secs_f64(),
            moved.hash
        );
        missed.note(moved.count != arguments.entities, || format!("{what}: {} entities", moved.count));
        missed.note(moved.hash != loaded.hash, || format!("{what}: another hash"));
    }
    missed.note(exported.kills + imported.kills < 2 * KILLS, || {
        "a command ended before it was killed".to_owned()
    });
    let rate = arguments.python as f64 / python.as_secs_f64();
    println!(
        "{:<34} {:>9} {:>6} {:>9.1} {rate:>11.0}",
        "Python, one upsert_entity at a time",
        arguments.python,
        0,
        python.as_secs_f64()
    );
    let ratio = imported.rate() / rate;
    println!("the import is {ratio:.1} times as fast as the loop (aim: {RATIO_MIN})");
    missed.note(ratio < RATIO_MIN, || format!("only {ratio:.1} times as fast as the loop"));
    missed.conclude("moving")
}

/// A file with the entities: orders of a thousand shops, 0 to 4 properties each of several types.
fn write_entities(path: &Path, entities: u64) -> Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    for number in 0..entities {
        // In the order of keys, as an export would have it.
        let (shop, order) = (number * 1000 / entities, number);
        let mut entity = json!({
            "PartitionKey": format!("shop-{shop:04}"), "RowKey": format!("{order:09}"),
            "Customer": format!("customer {}", number * 7919 % 100_003), "Cents": number * 31 % 1_000_000,
            "Open": number % 10 == 0,
        });
        if number % 4 == 0 {
            entity["Placed@odata.type"] = "Edm.DateTime".into();
            entity["Placed"] = format!("2025-11-{:02}T{:02}:00:00Z", number % 28 + 1, number % 24).into();
        }
        writeln!(out, "{entity}")?;
    }
    Ok(out.into_inner()?.sync_all()?)
}

fn python(connection: &str, entities: u64) -> Result<Duration> {
    let python = environment("azure-data-tables", SDK)?;
    let output = Command::new(python)
        .args(["-c", LOOP, &entities.to_string()])
        .env("AZURE_STORAGE_CONNECTION_STRING", connection)
        .output()?;
    ensure!(output.status.success(), "the loop failed: {}", String::from_utf8_lossy(&output.stderr));
    let seconds = String::from_utf8(output.stdout)?;
    Ok(Duration::from_secs_f64(seconds.trim().parse().context("the loop prints its seconds")?))
}
