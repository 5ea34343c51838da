//! `rangehold shards schema`: notes on which tables are sharded, and by which column.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Subcommand;
use rangehold_shardmap::{SchemaInfo, ShardMapManager};
use serde_json::{Value, json};

use super::answer::Answer;

/// `rangehold shards schema ...`
#[derive(Debug, Subcommand)]
pub(crate) enum SchemaCommand {
    /// Show a note as JSON.
    Show {
        /// The note's name, usually that of a shard map.
        name: String,
    },
    /// Add or replace a note.
    Set {
        /// The note's name, usually that of a shard map.
        name: String,
        /// File with the note, as `show` prints it.
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
    /// Remove a note.
    Remove {
        /// The note's name.
        name: String,
    },
    /// List the names of all notes.
    List,
}

/// Runs a command about notes.
pub(super) async fn run(manager: &ShardMapManager, command: &SchemaCommand) -> Result<Answer> {
    let notes = manager.schema_infos();
    match command {
        SchemaCommand::Show { name } => {
            let json = serde_json::to_value(notes.get(name).await?)?;
            let text = format!("{json:#}\n");
            Ok(Answer::new(json, text))
        }
        SchemaCommand::Set { name, file } => {
            let text =
                std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            let info: SchemaInfo = serde_json::from_str(&text)
                .with_context(|| format!("{} is not a note as 'schema show' prints it", file.display()))?;
            match notes.try_get(name).await? {
                None => notes.add(name, &info).await?,
                Some(_) => notes.replace(name, &info).await?,
            }
            Ok(Answer::new(json!({ "set": name }), format!("set the note {name}\n")))
        }
        SchemaCommand::Remove { name } => {
            let removed = notes.remove(name).await?;
            let text = if removed { "removed the note" } else { "there was no note" };
            Ok(Answer::new(json!({ "name": name, "removed": removed }), format!("{text} {name}\n")))
        }
        SchemaCommand::List => {
            let names: Vec<Value> = notes.all().await?.into_iter().map(|(name, _)| name.into()).collect();
            let text = names.iter().filter_map(Value::as_str).map(|name| format!("{name}\n")).collect();
            Ok(Answer::new(Value::Array(names), text))
        }
    }
}
