//! `cargo xtask client`: what the client and its commands do on a real service.
//!
//! - [`moving`]: a table is exported and imported by commands that are killed, beside a loop in Python;
//! - [`sequence`]: numbers for 64 callers and for 64 processes, beside the loop that programs write, here and on Azurite; and
//!   for processes that are killed, as the server is;
//! - [`stress`]: what `rangehold stress` says of four designs of one table.

mod command;
mod moving;
mod sequence;
mod stress;

use anyhow::Result;

pub(crate) use self::sequence::Worker;
use crate::bench::Build;

/// Exports and imports a table by commands that are killed; takes numbers from sequences; stresses four designs.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only the part whose name contains this: `moving`, `sequence` or `stress`.
    #[arg(long)]
    only: Option<String>,
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
    #[command(flatten)]
    build: Build,
}

/// Runs the parts one after the other; an error names what was not as it must be.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    type Part = fn(&Arguments) -> Result<()>;
    let parts: [(&str, Part); 3] =
        [("moving", moving::run), ("sequence", sequence::run), ("stress", stress::run)];
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    for (name, part) in parts.into_iter().filter(|(name, _)| wanted(name)) {
        println!("{name}:");
        part(arguments)?;
    }
    Ok(())
}
