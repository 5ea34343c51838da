//! `rangehold backup`, `restore` and `copy`: copy a store to another place.
//!
//! All three do the same: the engine's copy by checkpoint. They differ only in the word that is printed.

use anyhow::{Context, Result};
use clap::Args;
use rangehold_engine::Clock;
use rangehold_engine::copy::{CopyReport, copy};
use rangehold_engine::store::{StoreLocation, StoreOptions};
use serde_json::{Value, json};

use crate::chance;
use crate::output::Format;

/// The store to copy, and the new one.
#[derive(Debug, Args)]
pub(crate) struct FromTo {
    /// The store to read: a data directory, or file://... It may be in use.
    #[arg(long, value_name = "STORE")]
    from: String,
    /// The store to make: a directory that does not exist, or is empty.
    #[arg(long, value_name = "STORE")]
    to: String,
    /// The form of the output: text for people, json for programs.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

/// How many rows are copied between two lines about progress.
const ROWS_BETWEEN_LINES: u64 = 100_000;

/// Copies a store, and prints how much was copied. `done` is the word for it.
pub(crate) fn run(stores: &FromTo, done: &str) -> Result<()> {
    let from = StoreLocation::parse(&stores.from)?;
    let to = StoreLocation::parse(&stores.to)?;
    let seed = chance::seed()?;
    let mut reported = 0;
    let mut progress = |report: &CopyReport| {
        if report.rows >= reported + ROWS_BETWEEN_LINES {
            reported = report.rows;
            eprintln!("{} rows, {} bytes so far", report.rows, report.bytes);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    let clock = Clock::system();
    let copying = copy(&from, &to, StoreOptions::default(), &clock, seed, &mut progress);
    let report = runtime.block_on(copying)?;
    match stores.output {
        Format::Json => println!("{:#}", json(&report, &from, &to)),
        Format::Text => println!("{done} {} from {from} to {to}", amount(&report)),
    }
    Ok(())
}

fn amount(report: &CopyReport) -> String {
    let chunks = match report.chunks {
        0 => String::new(),
        chunks => format!(" and {chunks} files of large objects ({} bytes)", report.chunk_bytes),
    };
    format!("{} rows ({} bytes){chunks}", report.rows, report.bytes)
}

fn json(report: &CopyReport, from: &StoreLocation, to: &StoreLocation) -> Value {
    json!({
        "from": from.to_string(),
        "to": to.to_string(),
        "rows": report.rows,
        "bytes": report.bytes,
        "object_files": report.chunks,
        "object_bytes": report.chunk_bytes,
    })
}
