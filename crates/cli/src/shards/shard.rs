//! `rangehold shards shard`: adds, removes, changes and lists the shards of a map.

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use rangehold_shardmap::{KindOfMap, Location, Shard, ShardKey, ShardMap, ShardUpdate};

use super::answer::{Answer, shard_json};
use super::any_map::{AnyMap, of_either};
use crate::text_table::text_table;

/// `rangehold shards shard ...`. A location is sqlite:PATH or postgres://SERVER:PORT/DATABASE.
#[derive(Debug, Subcommand)]
pub(crate) enum ShardCommand {
    /// Add a database to the map as a shard.
    Add {
        /// The database's location.
        location: String,
        /// What a copy of a shard is, such as a restored backup. Without this, a copy is refused.
        #[arg(long)]
        clone: Option<Copied>,
    },
    /// Remove a shard that has no mappings.
    Remove {
        /// The database's location.
        location: String,
    },
    /// Set a shard online or offline, or give the new location of its database.
    Update {
        /// The database's location.
        location: String,
        /// Whether new tenants may be placed on the shard.
        #[arg(long)]
        online: Option<bool>,
        /// The new location of the same database, or of a copy. The shard is closed at the old location.
        #[arg(long, value_name = "LOCATION")]
        to: Option<String>,
        /// The old location is gone for good, so that the shard cannot be closed there.
        #[arg(long, requires = "to", conflicts_with = "online")]
        lost: bool,
    },
    /// List the shards of the map.
    List,
}

/// What a copy of a shard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Copied {
    /// Another shard, without mappings. What the copy says about its keys is forgotten.
    New,
    /// The shard itself, which is at this place from now on.
    Keep,
}

/// Runs a command about the shards of a map.
pub(super) async fn run(map: &AnyMap, command: &ShardCommand) -> Result<Answer> {
    of_either!(map, map => run_on(map, command).await)
}

async fn run_on<M: KindOfMap>(map: &ShardMap<ShardKey, M>, command: &ShardCommand) -> Result<Answer> {
    let done = |verb: &str, shard: &Shard| {
        Answer::new(shard_json(shard), format!("{verb} the shard at {}\n", shard.location()))
    };
    match command {
        ShardCommand::Add { location, clone } => {
            let location = Location::parse(location)?;
            match clone {
                None => Ok(done("added", &map.create_shard(&location).await?)),
                Some(Copied::New) => Ok(done("added", &map.create_shard_from_copy(&location).await?)),
                Some(Copied::Keep) => Ok(done("moved", &map.keep_copy(&location).await?)),
            }
        }
        ShardCommand::Remove { location } => {
            let shard = map.shard(&Location::parse(location)?).await?;
            map.delete_shard(&shard).await?;
            Ok(done("removed", &shard))
        }
        ShardCommand::Update { location, to: Some(to), lost: true, .. } => {
            let shard = map.shard(&Location::parse(location)?).await?;
            Ok(done("updated", &map.move_lost_shard(&shard, &Location::parse(to)?).await?))
        }
        ShardCommand::Update { location, online, to, .. } => {
            let shard = map.shard(&Location::parse(location)?).await?;
            let to = to.as_deref().map(Location::parse).transpose()?;
            let update = ShardUpdate { online: *online, location: to };
            Ok(done("updated", &map.update_shard(&shard, &update).await?))
        }
        ShardCommand::List => {
            let shards = map.shards().await?;
            let row = |shard: &Shard| {
                let status = if shard.is_online() { "online" } else { "offline" };
                [shard.location().to_string(), status.to_owned()]
            };
            let rows: Vec<[String; 2]> = shards.iter().map(row).collect();
            Ok(Answer::new(shards.iter().map(shard_json).collect(), text_table(["shard", "status"], &rows)))
        }
    }
}
