//! Commands on maps, their shards and their mappings.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use rangehold_shardmap::{
    KindOfMap, ListShardMap, Location, LockToken, LookIn, MapKind, Mapping, MappingChange, RangeShardMap,
    Shard, ShardKey, ShardMap, ShardMapManager, ShardUpdate,
};
use serde_json::{Value, json};

use super::Common;
use super::show::{Shown, keys, mapping_json, mappings, shard_json};
use crate::text_table::text_table;

/// `rangehold shards map ...`
#[derive(Debug, Subcommand)]
pub(crate) enum MapCommand {
    /// Make a shard map.
    Create {
        /// Its name.
        name: String,
        /// Single keys, or intervals of keys.
        #[arg(long, default_value = "list")]
        kind: Kind,
        /// int32, int64, guid, binary, date-time, time-span, date-time-offset or text.
        #[arg(long, value_name = "TYPE", default_value = "int64")]
        key_type: String,
    },
    /// Delete a shard map that has no shards.
    Delete {
        /// Its name.
        name: String,
    },
    /// List the shard maps.
    List,
}

/// The kinds of maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Single keys.
    List,
    /// Intervals of keys.
    Range,
}

/// `rangehold shards shard ...`. Places are sqlite:PATH or postgres://SERVER:PORT/DATABASE.
#[derive(Debug, Subcommand)]
pub(crate) enum ShardCommand {
    /// Make a database a shard of the map.
    Add {
        /// Where it is.
        place: String,
    },
    /// Remove a shard that has no mappings.
    Remove {
        /// Where it is.
        place: String,
    },
    /// Change a shard's status, or say where the same database is now.
    Update {
        /// Where it is.
        place: String,
        /// Whether new tenants are placed there.
        #[arg(long)]
        online: Option<bool>,
        /// Its new place.
        #[arg(long, value_name = "PLACE")]
        to: Option<String>,
    },
    /// List the shards of the map.
    List,
}

/// `rangehold shards mapping ...`. A mapping is named by a key that it holds; `start` is the least key.
#[derive(Debug, Subcommand)]
pub(crate) enum MappingCommand {
    /// Map a key, or the keys from KEY on and below HIGH.
    Add {
        /// The key, or the least one.
        #[arg(allow_hyphen_values = true)]
        key: String,
        /// In a range map: the least key above. Left out, there is no end.
        #[arg(allow_hyphen_values = true)]
        high: Option<String>,
        /// The shard's place.
        #[arg(long, value_name = "PLACE")]
        shard: String,
        /// Not served yet.
        #[arg(long)]
        offline: bool,
    },
    /// Delete a mapping that is offline. The rows stay.
    Delete(Named),
    /// Cut an interval in two, before AT.
    Split {
        #[command(flatten)]
        named: Named,
        /// Where to cut.
        #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
        at: String,
    },
    /// Make an interval and the one after it one; both on one shard.
    Merge(Named),
    /// Say that a mapping is on another shard. It must be offline, and its rows are yours to move.
    Update {
        #[command(flatten)]
        named: Named,
        /// The shard's place.
        #[arg(long, value_name = "PLACE")]
        shard: String,
    },
    /// Take a mapping offline; transactions on its keys are ended.
    Offline(Named),
    /// Let a mapping be served again.
    Online(Named),
    /// Lock a mapping against changes by others; prints the token by which you change it.
    Lock {
        #[command(flatten)]
        named: Named,
        /// Who you are, for people.
        #[arg(long, value_name = "TEXT")]
        owner: String,
        /// When the lock ends by itself.
        #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
        lease_s: u64,
    },
    /// End a lock, by its token or by --force.
    Unlock {
        #[command(flatten)]
        named: Named,
        /// Whoever holds it.
        #[arg(long)]
        force: bool,
    },
}

/// A mapping, and the token of its lock.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// A key of it.
    #[arg(allow_hyphen_values = true)]
    key: String,
    /// The token that `lock` has printed.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

/// A map of either kind.
pub(super) enum AnyMap {
    List(ListShardMap<ShardKey>),
    Range(RangeShardMap<ShardKey>),
}

/// The same for both kinds.
macro_rules! of_either {
    ($any:expr, $map:ident => $body:expr) => {
        match $any {
            AnyMap::List($map) => $body,
            AnyMap::Range($map) => $body,
        }
    };
}
pub(super) use of_either;

/// The map that is meant.
pub(super) async fn any(manager: &ShardMapManager, common: &Common) -> Result<AnyMap> {
    let maps = manager.shard_maps().await?;
    let name = match (&common.map, maps.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => &only.name,
        (None, []) => bail!("there is no shard map: make one with 'rangehold shards map create'"),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|map| map.name.as_str()).collect();
            bail!("which shard map? give --map with one of {}", names.join(", "))
        }
    };
    named(manager, name).await
}

/// The map of a name.
pub(super) async fn named(manager: &ShardMapManager, name: &str) -> Result<AnyMap> {
    let kind = manager.shard_map(name).await?.map(|map| map.kind);
    Ok(match kind {
        Some(MapKind::Range) => AnyMap::Range(manager.range_map(name).await?),
        _ => AnyMap::List(manager.list_map(name).await?),
    })
}

pub(super) async fn map(manager: &ShardMapManager, command: &MapCommand) -> Result<Shown> {
    match command {
        MapCommand::Create { name, kind, key_type } => {
            let made = manager.create_shard_map(name, kind.of_map(), key_type.parse()?).await?;
            let text = format!("made the {} map {name} of {} keys\n", made.kind.name(), made.key_type);
            let json = json!({ "map": name, "kind": made.kind.name(), "key_type": made.key_type.name() });
            Ok(Shown::new(json, text))
        }
        MapCommand::Delete { name } => {
            manager.delete_map(name).await?;
            Ok(Shown::new(json!({ "deleted": name }), format!("deleted the map {name}\n")))
        }
        MapCommand::List => {
            let maps = manager.shard_maps().await?;
            let row = |map: &rangehold_shardmap::MapInfo| {
                [map.name.clone(), map.kind.name().to_owned(), map.key_type.name().to_owned()]
            };
            let rows: Vec<[String; 3]> = maps.iter().map(row).collect();
            let json = rows
                .iter()
                .map(|[name, kind, key_type]| json!({ "map": name, "kind": kind, "key_type": key_type }));
            Ok(Shown::new(json.collect(), text_table(["map", "kind", "keys"], &rows)))
        }
    }
}

impl Kind {
    pub(super) fn of_map(self) -> MapKind {
        match self {
            Self::List => MapKind::List,
            Self::Range => MapKind::Range,
        }
    }
}

pub(super) async fn shard(map: &AnyMap, command: &ShardCommand) -> Result<Shown> {
    of_either!(map, map => shard_of(map, command).await)
}

async fn shard_of<M: KindOfMap>(map: &ShardMap<ShardKey, M>, command: &ShardCommand) -> Result<Shown> {
    let done = |verb: &str, shard: &Shard| {
        Shown::new(shard_json(shard), format!("{verb} the shard at {}\n", shard.location()))
    };
    match command {
        ShardCommand::Add { place } => {
            let shard = map.create_shard(&Location::parse(place)?).await?;
            Ok(done("added", &shard))
        }
        ShardCommand::Remove { place } => {
            let shard = map.shard(&Location::parse(place)?).await?;
            map.delete_shard(&shard).await?;
            Ok(done("removed", &shard))
        }
        ShardCommand::Update { place, online, to } => {
            let shard = map.shard(&Location::parse(place)?).await?;
            let location = to.as_deref().map(Location::parse).transpose()?;
            let update = ShardUpdate { online: *online, location };
            Ok(done("updated", &map.update_shard(&shard, &update).await?))
        }
        ShardCommand::List => {
            let shards = map.shards().await?;
            let row = |shard: &Shard| {
                let status = if shard.is_online() { "online" } else { "offline" };
                [shard.location().to_string(), status.to_owned()]
            };
            let rows: Vec<[String; 2]> = shards.iter().map(row).collect();
            Ok(Shown::new(shards.iter().map(shard_json).collect(), text_table(["shard", "status"], &rows)))
        }
    }
}

pub(super) async fn locate(map: &AnyMap, key: &str) -> Result<Shown> {
    of_either!(map, map => {
        let found = map.get(&key_of(map, key)?).await?;
        Ok(told(map, "", &[found]))
    })
}

pub(super) async fn list(map: &AnyMap) -> Result<Shown> {
    of_either!(map, map => Ok(of_kind(map, &map.mappings().await?)))
}

fn of_kind<M: KindOfMap>(_: &ShardMap<ShardKey, M>, all: &[Mapping<ShardKey>]) -> Shown {
    mappings::<M>(all)
}

pub(super) async fn mapping(map: &AnyMap, command: &MappingCommand) -> Result<Shown> {
    match (map, command) {
        (AnyMap::List(map), MappingCommand::Add { key, high, shard, offline }) => {
            add_point(map, key, high.as_deref(), shard, *offline).await
        }
        (AnyMap::Range(map), MappingCommand::Add { key, high, shard, offline }) => {
            add_range(map, key, high.as_deref(), shard, *offline).await
        }
        (AnyMap::Range(map), MappingCommand::Split { named, at }) => {
            let (map, found) = named.find(map).await?;
            let pieces = map.split(&found, &key_of(&map, at)?).await?;
            Ok(told(&map, "split into ", &pieces))
        }
        (AnyMap::Range(map), MappingCommand::Merge(named)) => {
            let (map, left) = named.find(map).await?;
            let high = left.high().context("there is no range after this one")?;
            let merged = map.merge(&left, &map.get(high).await?).await?;
            Ok(told(&map, "merged into ", &[merged]))
        }
        (AnyMap::List(_), MappingCommand::Split { .. } | MappingCommand::Merge(_)) => {
            bail!("a list map has single keys: only ranges are split and merged")
        }
        (map, command) => of_either!(map, map => change(map, command).await),
    }
}

async fn add_point(
    map: &ListShardMap<ShardKey>,
    key: &str,
    high: Option<&str>,
    shard: &str,
    offline: bool,
) -> Result<Shown> {
    if let Some(high) = high {
        bail!("a list map has single keys: what is {high} for?");
    }
    let (key, shard) = (key_of(map, key)?, map.shard(&Location::parse(shard)?).await?);
    let added = if offline { map.add_offline(&key, &shard).await? } else { map.add(&key, &shard).await? };
    Ok(told(map, "added ", &[added]))
}

async fn add_range(
    map: &RangeShardMap<ShardKey>,
    key: &str,
    high: Option<&str>,
    shard: &str,
    offline: bool,
) -> Result<Shown> {
    let (low, shard) = (key_of(map, key)?, map.shard(&Location::parse(shard)?).await?);
    let high = high.map(|high| key_of(map, high)).transpose()?;
    let added = match offline {
        true => map.add_offline(&low, high.as_ref(), &shard).await?,
        false => map.add(&low, high.as_ref(), &shard).await?,
    };
    Ok(told(map, "added ", &[added]))
}

/// Changes that maps of both kinds know.
async fn change<M: KindOfMap>(map: &ShardMap<ShardKey, M>, command: &MappingCommand) -> Result<Shown> {
    match command {
        MappingCommand::Delete(named) => {
            let (map, found) = named.find(map).await?;
            map.delete(&found).await?;
            Ok(told(&map, "deleted ", &[found]))
        }
        MappingCommand::Update { named, shard } => {
            let (map, found) = named.find(map).await?;
            let shard = map.shard(&Location::parse(shard)?).await?;
            let to = MappingChange { online: None, shard: Some(&shard) };
            Ok(told(&map, "updated ", &[map.update(&found, to).await?]))
        }
        MappingCommand::Offline(named) => {
            let (map, found) = named.find(map).await?;
            Ok(told(&map, "", &[map.offline(&found).await?]))
        }
        MappingCommand::Online(named) => {
            let (map, found) = named.find(map).await?;
            Ok(told(&map, "", &[map.online(&found).await?]))
        }
        MappingCommand::Lock { named, owner, lease_s } => {
            let (map, found) = named.find(map).await?;
            let token = map.new_token();
            let locked = map.lock(&found, token, owner, Duration::from_secs(*lease_s)).await?;
            let Shown { json, text, .. } = told(&map, "locked ", &[locked]);
            Ok(Shown::new(json, format!("{text}the token is {}\n", token.0)))
        }
        MappingCommand::Unlock { named, force } => {
            let (map, found) = named.find(map).await?;
            let token = if *force { LockToken::FORCE } else { named.lock_token()? };
            Ok(told(&map, "unlocked ", &[map.unlock(&found, token).await?]))
        }
        MappingCommand::Add { .. } | MappingCommand::Split { .. } | MappingCommand::Merge(_) => {
            unreachable!("each kind of map has its own")
        }
    }
}

impl Named {
    /// The mapping in the global map, and the map as whoever shows the token sees it.
    async fn find<M: KindOfMap>(
        &self,
        map: &ShardMap<ShardKey, M>,
    ) -> Result<(ShardMap<ShardKey, M>, Mapping<ShardKey>)> {
        let found = map.lookup(&key_of(map, &self.key)?, LookIn::Store).await?;
        Ok((map.showing(self.lock_token()?), found))
    }

    fn lock_token(&self) -> Result<LockToken> {
        match &self.token {
            None => Ok(LockToken::NONE),
            Some(token) => {
                Ok(LockToken(token.parse().context("the token does not read: 'lock' printed it")?))
            }
        }
    }
}

/// A key as it is written; `start` is the least, but of texts, where it is a text.
pub(super) fn key_of<M: KindOfMap>(map: &ShardMap<ShardKey, M>, text: &str) -> Result<ShardKey> {
    let key_type = map.info().key_type;
    if text == "start" && key_type != rangehold_shardmap::ShardKeyType::Text {
        return Ok(ShardKey::min(key_type));
    }
    Ok(ShardKey::parse(key_type, text)?)
}

/// Mappings in a sentence each.
fn told<M: KindOfMap>(_: &ShardMap<ShardKey, M>, verb: &str, all: &[Mapping<ShardKey>]) -> Shown {
    let line = |mapping: &Mapping<ShardKey>| {
        let status = if mapping.is_online() { "" } else { ", offline" };
        format!("{} on {}{status}", keys::<M>(mapping), mapping.shard().location())
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    let json = match all {
        [one] => mapping_json::<M>(one),
        several => Value::Array(several.iter().map(mapping_json::<M>).collect()),
    };
    Shown::new(json, format!("{verb}{}\n", lines.join(" and ")))
}
