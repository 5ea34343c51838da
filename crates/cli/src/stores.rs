//! `backup`, `restore` and `copy`: one store into another place.
//!
//! All three are the engine's copy by checkpoint. They differ in what people mean by them, and so
//! in the word that is printed.

use anyhow::{Context, Result};
use clap::Args;
use rangehold_engine::copy::copy;
use rangehold_engine::store::StoreLocation;

/// From where to where.
#[derive(Debug, Args)]
pub(crate) struct FromTo {
    /// The store to read: a data directory, or file://...; it may be in use.
    #[arg(long, value_name = "STORE")]
    from: String,
    /// The store to make: a directory that is not there, or is empty.
    #[arg(long, value_name = "STORE")]
    to: String,
}

/// Copies, and prints what was done.
pub(crate) fn run(stores: &FromTo, done: &str) -> Result<()> {
    let from = StoreLocation::parse(&stores.from)?;
    let to = StoreLocation::parse(&stores.to)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    let report = runtime.block_on(copy(&from, &to))?;
    println!("{done} {} rows, {} bytes, from {} to {}", report.rows, report.bytes, stores.from, stores.to);
    Ok(())
}
