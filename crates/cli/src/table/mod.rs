//! `rangehold table`: makes, deletes and lists tables, and moves their entities between services and files.
//!
//! `create`, `delete`, `exists` and `list` have the names and flags of `az storage table`. `export`, `import` and `copy`
//! have no model there.

mod copy;
mod export;
mod format;
mod import;
mod journal;
pub(crate) mod limits;
mod moving;
pub(crate) mod pieces;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use futures::TryStreamExt;
use serde_json::{Value, json};

use crate::account::{AccountFlags, Output};

/// `rangehold table`
#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// Make a table.
    Create {
        #[command(flatten)]
        named: Named,
        /// Fail if the table exists.
        #[arg(long)]
        fail_on_exist: bool,
    },
    /// Delete a table with all its entities.
    Delete {
        #[command(flatten)]
        named: Named,
        /// Fail if the table does not exist.
        #[arg(long)]
        fail_not_exist: bool,
    },
    /// Show whether a table exists.
    Exists(Named),
    /// List the tables of an account.
    List(AccountFlags),
    /// Write a table's entities into files: Parquet, CSV or JSON Lines.
    Export(export::Export),
    /// Read entities from files into a table.
    Import(import::Import),
    /// Copy a table's entities into another table.
    Copy(copy::Copy),
}

/// A table of an account.
#[derive(Debug, Args)]
pub(crate) struct Named {
    #[command(flatten)]
    account: AccountFlags,
    /// The table.
    #[arg(long, short = 'n', value_name = "TABLE")]
    name: String,
}

/// Runs a command.
pub(crate) fn run(command: &TableCommand) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        match command {
            TableCommand::Create { named, fail_on_exist } => create(named, *fail_on_exist).await,
            TableCommand::Delete { named, fail_not_exist } => delete(named, *fail_not_exist).await,
            TableCommand::Exists(named) => exists(named).await,
            TableCommand::List(account) => list(account).await,
            TableCommand::Export(export) => export::run(export).await,
            TableCommand::Import(import) => import::run(import).await,
            TableCommand::Copy(copy) => copy::run(copy).await,
        }
    })
}

fn print(output: Output, text: &str, answer: &Value) {
    match output {
        Output::Table => println!("{text}"),
        Output::Json => println!("{answer:#}"),
    }
}

async fn create(Named { account, name }: &Named, fail_on_exist: bool) -> Result<()> {
    let is_new = match account.table(name)?.create().await {
        Ok(()) => true,
        Err(error) if error.has_status(409) && !fail_on_exist => false,
        Err(error) => return Err(error.into()),
    };
    let text = if is_new { format!("{name} is made") } else { format!("{name} exists already") };
    print(account.output, &text, &json!({ "created": is_new }));
    Ok(())
}

async fn delete(Named { account, name }: &Named, fail_not_exist: bool) -> Result<()> {
    let was_there = match account.table(name)?.delete().await {
        Ok(()) => true,
        Err(error) if error.has_status(404) && !fail_not_exist => false,
        Err(error) => return Err(error.into()),
    };
    let text = if was_there { format!("{name} is deleted") } else { format!("{name} did not exist") };
    print(account.output, &text, &json!({ "deleted": was_there }));
    Ok(())
}

async fn exists(Named { account, name }: &Named) -> Result<()> {
    // The name is checked, and tables of one account differ not only in the case of letters.
    account.table(name)?;
    let names: Vec<String> = account.service()?.tables().try_collect().await?;
    let is_there = names.iter().any(|found| found.eq_ignore_ascii_case(name));
    let text = if is_there { format!("{name} exists") } else { format!("{name} does not exist") };
    print(account.output, &text, &json!({ "exists": is_there }));
    Ok(())
}

async fn list(account: &AccountFlags) -> Result<()> {
    let names: Vec<String> = account.service()?.tables().try_collect().await?;
    if account.output == Output::Table {
        names.iter().for_each(|name| println!("{name}"));
        return Ok(());
    }
    let all: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    println!("{:#}", Value::from(all));
    Ok(())
}
