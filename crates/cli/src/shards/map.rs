//! `rangehold shards map`: makes, deletes and lists shard maps.

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use rangehold_shardmap::{MapInfo, MapKind, ShardKeyType, ShardMapManager};
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
        /// The type of its keys: int32, int64, uuid, guid, binary, date-time, time-span, date-time-offset or text. The order
        /// of uuid keys is that of RFC 9562, and the order of guid keys is SQL Server's.
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
            let text =
                format!("made the {} map {name} of {} keys\n", made.kind.name(), in_words(made.key_type));
            let json = json!({ "map": name, "kind": made.kind.name(), "key_type": made.key_type.name() });
            Ok(Answer::new(json, text))
        }
        MapCommand::Delete { name } => {
            manager.delete_map(name).await?;
            Ok(Answer::new(json!({ "deleted": name }), format!("deleted the map {name}\n")))
        }
        MapCommand::List => {
            let maps = manager.shard_maps().await?;
            let row = |map: &MapInfo| [map.name.clone(), map.kind.name().to_owned(), in_words(map.key_type)];
            let rows: Vec<[String; 3]> = maps.iter().map(row).collect();
            let one = |map: &MapInfo| json!({ "map": map.name, "kind": map.kind.name(), "key_type": map.key_type.name() });
            let json = maps.iter().map(one);
            Ok(Answer::new(json.collect(), text_table(["map", "kind", "keys"], &rows)))
        }
    }
}

/// A line about the order of the keys of a map, if that may surprise; empty otherwise.
pub(super) fn about_order(key_type: ShardKeyType) -> &'static str {
    match key_type {
        ShardKeyType::Guid => {
            "the order of guid keys is SQL Server's; a map of uuid keys has the order of RFC 9562\n"
        }
        _ => "",
    }
}

/// The key type, with its order where that may surprise.
fn in_words(key_type: ShardKeyType) -> String {
    match key_type {
        ShardKeyType::Guid => "guid (in SQL Server's order)".to_owned(),
        other => other.name().to_owned(),
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
