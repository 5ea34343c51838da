//! `rangehold shards map`: makes, deletes and lists shard maps.

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use rangehold_shardmap::{MapInfo, MapKind, ShardMapManager};
use serde_json::json;

use super::answer::Answer;
use crate::text_table::text_table;

/// `rangehold shards map ...`
#[derive(Debug, Subcommand)]
pub(crate) enum MapCommand {
    /// Make a shard map.
    Create {
        /// The map's name.
        name: String,
        /// Whether it maps single keys or ranges of keys.
        #[arg(long, default_value = "list")]
        kind: Kind,
        /// The type of its keys: int32, int64, guid, binary, date-time, time-span, date-time-offset or text.
        #[arg(long, value_name = "TYPE", default_value = "int64")]
        key_type: String,
    },
    /// Delete a shard map that has no shards.
    Delete {
        /// The map's name.
        name: String,
    },
    /// List the shard maps.
    List,
}

/// The kind of a shard map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Maps single keys.
    List,
    /// Maps ranges of keys.
    Range,
}

/// Runs a command about shard maps.
pub(super) async fn run(manager: &ShardMapManager, command: &MapCommand) -> Result<Answer> {
    match command {
        MapCommand::Create { name, kind, key_type } => {
            let made = manager.create_shard_map(name, kind.of_map(), key_type.parse()?).await?;
            let text = format!("made the {} map {name} of {} keys\n", made.kind.name(), made.key_type);
            let json = json!({ "map": name, "kind": made.kind.name(), "key_type": made.key_type.name() });
            Ok(Answer::new(json, text))
        }
        MapCommand::Delete { name } => {
            manager.delete_map(name).await?;
            Ok(Answer::new(json!({ "deleted": name }), format!("deleted the map {name}\n")))
        }
        MapCommand::List => {
            let maps = manager.shard_maps().await?;
            let row = |map: &MapInfo| {
                [map.name.clone(), map.kind.name().to_owned(), map.key_type.name().to_owned()]
            };
            let rows: Vec<[String; 3]> = maps.iter().map(row).collect();
            let json = rows
                .iter()
                .map(|[name, kind, key_type]| json!({ "map": name, "kind": kind, "key_type": key_type }));
            Ok(Answer::new(json.collect(), text_table(["map", "kind", "keys"], &rows)))
        }
    }
}

impl Kind {
    /// The library's name for the kind.
    pub(super) fn of_map(self) -> MapKind {
        match self {
            Self::List => MapKind::List,
            Self::Range => MapKind::Range,
        }
    }
}
