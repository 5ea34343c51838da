//! `rangehold entity`: reads and changes entities, with the names and flags of `az storage entity`.

mod change;
mod delete_batch;
mod show;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use rangehold_client::{Condition, ETag, Keys, Table};

use crate::account::AccountFlags;

/// `rangehold entity`
#[derive(Debug, Subcommand)]
pub(crate) enum EntityCommand {
    /// Make an entity.
    Insert(change::Insert),
    /// Set some properties of an entity, and keep its others.
    Merge(change::Update),
    /// Give an entity these properties and no others.
    Replace(change::Update),
    /// Delete an entity.
    Delete(change::Delete),
    /// Delete the entities that meet a condition, or whose keys a file has. A command that was killed goes on when it is run again.
    DeleteBatch(delete_batch::DeleteBatch),
    /// Show an entity.
    Show(show::Show),
    /// Show the entities that meet a condition.
    Query(show::Queried),
}

/// A table of an account.
#[derive(Debug, Args)]
struct In {
    #[command(flatten)]
    account: AccountFlags,
    /// The table.
    #[arg(long, short = 't', value_name = "TABLE")]
    table_name: String,
}

impl In {
    fn table(&self) -> Result<Table> {
        self.account.table(&self.table_name)
    }
}

/// The keys of an entity.
#[derive(Debug, Args)]
struct KeyFlags {
    /// The PartitionKey.
    #[arg(long, value_name = "KEY")]
    partition_key: String,
    /// The RowKey.
    #[arg(long, value_name = "KEY")]
    row_key: String,
}

impl KeyFlags {
    fn keys(&self) -> Keys {
        Keys::new(&self.partition_key, &self.row_key)
    }
}

/// `*`, or a version as `show` prints it.
fn condition(text: &str) -> Condition {
    if text == "*" { Condition::Any } else { Condition::Version(ETag::from_text(text)) }
}

/// Runs a command.
pub(crate) fn run(command: &EntityCommand) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        match command {
            EntityCommand::Insert(insert) => insert.run().await,
            EntityCommand::Merge(update) => update.merge().await,
            EntityCommand::Replace(update) => update.replace().await,
            EntityCommand::Delete(delete) => delete.run().await,
            EntityCommand::DeleteBatch(delete) => delete.run().await,
            EntityCommand::Show(show) => show.run().await,
            EntityCommand::Query(query) => query.run().await,
        }
    })
}
