//! `cargo xtask client`: what the client and its commands do on a real service.
//!
//! - [`moving`]: a table is exported and imported by commands that are killed, beside a loop in Python;
//! - [`sequence`]: numbers for 64 callers and for 64 processes, beside the loop that programs write, here and on Azurite; and
//!   for processes that are killed, as the server is;
//! - [`stress`]: what `rangehold stress` says of four designs of one table;
//! - [`objects`]: many small files are copied up and down by commands that are killed, beside a loop in Python.

mod command;
mod moving;
mod objects;
mod sequence;
mod stress;

use anyhow::Result;

pub(crate) use self::sequence::Worker;
use crate::bench::Build;

/// Exports and imports a table by commands that are killed; takes numbers from sequences; stresses four designs; copies files up
/// and down by commands that are killed.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only the parts whose names contain this: `moving`, `sequence`, `stress` or `objects`; may be given several times.
    #[arg(long)]
    only: Vec<String>,
    /// Entities of the table that is moved.
    #[arg(long, default_value_t = 1_000_000)]
    entities: u64,
    /// Entities that the loop in Python writes.
    #[arg(long, default_value_t = 20_000)]
    python: u64,
    /// Seconds of each measurement of sequences.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// How often the server is killed while processes take numbers; each time some of the processes are killed too.
    #[arg(long, default_value_t = 10)]
    kills: u32,
    /// Minutes of each stress test; 15 is long enough for a design to spread over all servers.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Entities a second of the stress tests.
    #[arg(long, default_value_t = 4_000.0)]
    rate: f64,
    /// Files of 1 KiB that are copied up and down.
    #[arg(long, default_value_t = 100_000)]
    files: u64,
    /// Files that the loop in Python copies; without them nothing that depends on speed is judged of the copies.
    #[arg(long, default_value_t = 2_000)]
    python_files: u64,
    #[command(flatten)]
    build: Build,
}

/// Runs the parts one after the other; an error names what was not as it must be.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    type Part = fn(&Arguments) -> Result<()>;
    let parts: [(&str, Part); 4] = [
        ("moving", moving::run),
        ("sequence", sequence::run),
        ("stress", stress::run),
        ("objects", objects::run),
    ];
    let only = &arguments.only;
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| name.contains(only.as_str()));
    for (name, part) in parts.into_iter().filter(|(name, _)| wanted(name)) {
        println!("{name}:");
        part(arguments)?;
    }
    Ok(())
}
