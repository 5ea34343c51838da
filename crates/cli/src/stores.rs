//! `rangehold backup`, `restore` and `copy`: copy a store to another place, or one range of it.
//!
//! `backup`, `restore` and `copy` do the same: the engine's copy by checkpoint. They differ in the word that is
//! printed, and `backup --base` takes from an earlier backup what has not changed. `restore --range` is another thing: it
//! replaces the rows of one range of a directory that nobody serves.
//!
//! On a terminal one line shows how far the command is. Elsewhere, such as in a log, a line is printed now and then.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use rangehold_engine::Clock;
use rangehold_engine::copy::{CopyOptions, CopyReport, ObjectRows, OneRange, RangeRestored, copy};
use rangehold_engine::store::{StoreLocation, StoreOptions};
use rangehold_map::RangeId;
use rangehold_protocol::object::restored;
use serde_json::{Value, json};

use crate::chance;
use crate::output::Format;
use crate::progress::Progress;

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

/// The store to back up, the backup, and an earlier one.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    #[command(flatten)]
    stores: FromTo,
    /// A backup of the same store that was made earlier. What has not changed since is taken over from it: on the same volume
    /// it takes no more room, and nothing is lost when the earlier backup is deleted.
    #[arg(long, value_name = "STORE")]
    base: Option<String>,
}

/// The backup, and what is made of it.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    #[command(flatten)]
    stores: FromTo,
    /// Restore the rows of this range alone, such as r7. Then --to is a data directory that nobody serves. Its other ranges
    /// stay as they are.
    #[arg(long, value_name = "RANGE")]
    range: Option<RangeId>,
}

/// How many rows are copied between two lines about progress.
const ROWS_BETWEEN_LINES: u64 = 100_000;

/// Makes a backup, and prints how much is in it.
pub(crate) fn backup(backup: &Backup) -> Result<()> {
    let base = backup.base.as_deref().map(StoreLocation::parse).transpose()?;
    run(&backup.stores, base, "backed up")
}

/// Copies a store, and prints how much was copied. `done` is the word for it.
pub(crate) fn run(stores: &FromTo, base: Option<StoreLocation>, done: &str) -> Result<()> {
    let (from, to) = parse(stores)?;
    let (store, clock, seed) = (StoreOptions::default(), Clock::system(), chance::seed()?);
    let options = CopyOptions { base, store, clock, seed };
    let mut shown = Shown::begin(stores.output);
    let mut progress = |report: &CopyReport| shown.show(report);
    let report = runtime()?.block_on(copy(&from, &to, &options, &mut progress));
    shown.end();
    let report = report?;
    match stores.output {
        Format::Json => println!("{:#}", json_with_base(&report, &from, &to, options.base.as_ref())),
        Format::Text => {
            println!("{done} {} from {from} to {to}", amount(&report));
            if let Some(base) = &options.base {
                println!("{}", taken(&report, base));
            }
        }
    }
    if let (Some(base), Some(why)) = (&options.base, &report.not_taken_because) {
        eprintln!(
            "rangehold: {} ranges or files of large objects could not be taken over from {base}, and were copied from {from}: {why}",
            report.not_taken
        );
    }
    Ok(())
}

/// What a backup has from its base.
fn taken(report: &CopyReport, base: &StoreLocation) -> String {
    let chunks = match report.chunks {
        0 => String::new(),
        chunks => format!(" and {} of {chunks} files of large objects", report.chunks_taken),
    };
    format!(
        "{} of {} ranges{chunks} are as in {base}; {} bytes are shared with it",
        report.ranges_taken, report.ranges_total, report.shared_bytes
    )
}

/// Makes a new store of a backup, or restores one range.
pub(crate) fn restore(restore: &Restore) -> Result<()> {
    let stores = &restore.stores;
    let Some(range) = restore.range else { return run(stores, None, "restored") };
    let (from, to) = parse(stores)?;
    let clock = Clock::system();
    let objects = ObjectRows {
        uses: |key, row| restored::uses(key, row).map_err(|error| error.message),
        counted_on: |key, row| restored::counted_on(key, row).map_err(|error| error.message),
        folder_count: |key, row| restored::folder_count(key, row).map_err(|error| error.message),
    };
    let one = OneRange { range, objects, clock: &clock, seed: chance::seed()? };
    let mut shown = Shown::begin(stores.output);
    let mut progress = |report: &CopyReport| shown.show(report);
    let done = runtime()?.block_on(one.restore(&from, &to, StoreOptions::default(), &mut progress));
    shown.end();
    let done = done?;
    match stores.output {
        Format::Json => println!("{:#}", json_of_range(&done, range, &from, &to)),
        Format::Text => {
            println!("restored {} of {range} from {from} into {to}", amount(&done.copied));
            println!("{range} is as of the backup now; the other ranges of {to} are as they were");
            for damaged in &done.damaged {
                println!(
                    "{damaged} is damaged too, and has rows about large objects of {range}: restore it from the backup as well; if \
                     its own file is put back instead, the server deletes the bytes of restored objects"
                );
            }
            if let Some(first) = &done.copied.first_damaged {
                let files = done.copied.chunks_damaged;
                println!(
                    "files of large objects that are damaged here and in the backup, and stay as they are: {files}; the first is {first}"
                );
            }
            if done.copied.rows == 0 {
                println!("the backup has no row with a key of {range}, so {range} is empty");
            }
        }
    }
    Ok(())
}

fn parse(stores: &FromTo) -> Result<(StoreLocation, StoreLocation)> {
    Ok((StoreLocation::parse(&stores.from)?, StoreLocation::parse(&stores.to)?))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")
}

/// How far a command is: one line that changes on a terminal, and else a line for each [`ROWS_BETWEEN_LINES`].
struct Shown {
    line: Option<Progress>,
    reported: u64,
}

impl Shown {
    fn begin(output: Format) -> Self {
        let is_seen = output == Format::Text && std::io::stderr().is_terminal();
        Self {
            line: is_seen.then(|| Progress::telling(false, "taking the moments of all ranges")),
            reported: 0,
        }
    }

    fn show(&mut self, report: &CopyReport) {
        if let Some(line) = &self.line {
            let rest = report.ranges < report.ranges_total && report.files_bytes > 0;
            line.show(so_far(report, line), rest.then_some((report.files_bytes_done, report.files_bytes)));
        } else if report.rows >= self.reported + ROWS_BETWEEN_LINES {
            self.reported = report.rows;
            eprintln!("{} rows, {} bytes so far", report.rows, report.bytes);
        }
    }

    fn end(self) {
        if let Some(line) = self.line {
            line.end();
        }
    }
}

fn so_far(report: &CopyReport, line: &Progress) -> String {
    let bytes = report.bytes + report.chunk_bytes;
    let seconds = line.elapsed().as_secs_f64().max(0.001);
    let chunks = match report.chunks {
        0 => String::new(),
        chunks => format!(", {} files of large objects", HumanCount(chunks)),
    };
    format!(
        "{}/{} ranges, {} rows{chunks}, {}, {}/s",
        report.ranges,
        report.ranges_total,
        HumanCount(report.rows),
        HumanBytes(bytes),
        HumanBytes((bytes as f64 / seconds) as u64)
    )
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

fn json_with_base(
    report: &CopyReport,
    from: &StoreLocation,
    to: &StoreLocation,
    base: Option<&StoreLocation>,
) -> Value {
    let mut json = json(report, from, to);
    if let Some(base) = base {
        json["base"] = json!({
            "store": base.to_string(),
            "ranges": report.ranges_taken,
            "object_files": report.chunks_taken,
            "shared_bytes": report.shared_bytes,
            "not_taken": report.not_taken,
            "not_taken_because": report.not_taken_because,
        });
    }
    json
}

fn json_of_range(done: &RangeRestored, range: RangeId, from: &StoreLocation, to: &StoreLocation) -> Value {
    let mut json = json(&done.copied, from, to);
    json["range"] = range.to_string().into();
    json["map_version"] = done.map_version.into();
    json["database"] = done.database.to_string().into();
    json["replaced_database"] = done.replaced.to_string().into();
    json["damaged_object_files"] = done.copied.chunks_damaged.into();
    json["damaged_ranges"] = done.damaged.iter().map(ToString::to_string).collect();
    json
}
