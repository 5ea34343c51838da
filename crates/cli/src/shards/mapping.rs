//! `rangehold shards mapping`, `locate` and `list`: the mappings of keys to shards.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rangehold_shardmap::{
    Drain, KindOfMap, ListShardMap, Location, LockToken, LookIn, Mapping, MappingChange, RangeShardMap,
    ShardKey, ShardMap,
};
use serde_json::json;

use super::Common;
use super::answer::{Answer, mappings, sentence};
use super::any_map::{AnyMap, key_of, of_either};
use super::import::{import_points, import_ranges};
use super::map::about_order;

/// `rangehold shards mapping ...`. A mapping is named by one of its keys; `start` is the least key.
#[derive(Debug, Subcommand)]
pub(crate) enum MappingCommand {
    /// Map a key to a shard; in a range map, all keys from KEY up to HIGH, without HIGH.
    Add {
        /// The key; in a range map, the least key.
        #[arg(allow_hyphen_values = true)]
        key: String,
        /// In a range map: the first key that no longer belongs to the mapping [default: no end]
        #[arg(allow_hyphen_values = true)]
        high: Option<String>,
        /// The shard's location.
        #[arg(long, value_name = "LOCATION")]
        shard: String,
        /// Add the mapping offline: its keys are not served yet.
        #[arg(long)]
        offline: bool,
    },
    /// Add the mappings of a file, online, in as few operations as possible. Each line has a key and a shard's location; in a
    /// range map two keys and the location, where `end` means no end. What is added stays if a later part fails.
    Import {
        /// The file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Delete a mapping that is offline. No row is deleted.
    Delete {
        #[command(flatten)]
        named: Named,
        #[command(flatten)]
        drain: Draining,
    },
    /// Split a range in two, before the key of --at.
    Split {
        #[command(flatten)]
        named: Named,
        /// The first key of the right half.
        #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
        at: String,
    },
    /// Merge a range with the next one. Both must be on the same shard.
    Merge(Named),
    /// Map the keys of a mapping to another shard. The mapping must be offline. You move the rows yourself.
    Update {
        #[command(flatten)]
        named: Named,
        /// The shard's location.
        #[arg(long, value_name = "LOCATION")]
        shard: String,
        #[command(flatten)]
        drain: Draining,
    },
    /// Take a mapping offline. Open transactions on its keys are ended.
    Offline {
        #[command(flatten)]
        named: Named,
        #[command(flatten)]
        drain: Draining,
    },
    /// Set a mapping online: its keys are served again.
    Online(Named),
    /// Lock a mapping against changes by others. Prints the token with which you can change it.
    Lock {
        #[command(flatten)]
        named: Named,
        /// Your name, which is shown to others.
        #[arg(long, value_name = "TEXT")]
        owner: String,
        /// The number of seconds after which the lock ends by itself.
        #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
        lease_s: u64,
    },
    /// Make a lock end later: this long from now.
    Renew {
        #[command(flatten)]
        named: Named,
        /// The number of seconds after which the lock ends by itself.
        #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
        lease_s: u64,
    },
    /// End all locks of a map that have this token, or all locks by --force.
    UnlockAll {
        /// The token that `lock` printed.
        #[arg(long, value_name = "TOKEN", required_unless_present = "force")]
        token: Option<String>,
        /// End the locks of all owners.
        #[arg(long)]
        force: bool,
    },
    /// End a lock, by its token or by --force.
    Unlock {
        #[command(flatten)]
        named: Named,
        /// End the lock of another owner too.
        #[arg(long)]
        force: bool,
    },
}

/// What becomes of open transactions on keys that go offline or away.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Draining {
    /// End them after this many seconds [default: 5]. Their statements are cancelled at once.
    #[arg(long, value_name = "SECONDS")]
    grace_s: Option<u64>,
    /// Do not end them. If they take longer than this many seconds, give the change up.
    #[arg(long, value_name = "SECONDS")]
    give_up_s: Option<u64>,
    /// Let them go on. If keys leave a shard, they are still waited for.
    #[arg(long)]
    no_drain: bool,
}

impl Draining {
    fn of<M>(&self, map: &ShardMap<ShardKey, M>) -> ShardMap<ShardKey, M> {
        let seconds = Duration::from_secs;
        match (self.grace_s, self.give_up_s, self.no_drain) {
            (Some(grace), ..) => map.draining(Drain::End(seconds(grace))),
            (_, Some(wait), _) => map.draining(Drain::GiveUp(seconds(wait))),
            (.., true) => map.draining(Drain::Leave),
            _ => map.clone(),
        }
    }
}

/// A mapping, and the token of its lock.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// A key of the mapping.
    #[arg(allow_hyphen_values = true)]
    key: String,
    /// The token that `lock` printed.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

/// Shows the mapping of a key.
pub(super) async fn locate(map: &AnyMap, key: &str) -> Result<Answer> {
    of_either!(map, map => {
        let found = map.get(&key_of(map, key)?).await?;
        Ok(sentence(map, "", &[found]))
    })
}

/// `rangehold shards list`
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only the mappings to the shard at this location.
    #[arg(long, value_name = "LOCATION")]
    shard: Option<String>,
    /// Only the mappings of keys from this one on.
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    from: Option<String>,
    /// Only the mappings of keys below this one.
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    to: Option<String>,
}

/// Shows the mappings of a map: all of them, or those on a shard, or of some keys.
pub(super) async fn list(map: &AnyMap, list: &List) -> Result<Answer> {
    of_either!(map, map => {
        let shard = match &list.shard {
            Some(shard) => Some(map.shard(&Location::parse(shard)?).await?),
            None => None,
        };
        let low = list.from.as_deref().map_or(Ok(ShardKey::min(map.info().key_type)), |key| key_of(map, key))?;
        let high = list.to.as_deref().map(|key| key_of(map, key)).transpose()?;
        let Answer { json, text, .. } =
            of_kind(map, &map.mappings_between(&low, high.as_ref(), shard.as_ref()).await?);
        Ok(Answer::new(json, text + about_order(map.info().key_type)))
    })
}

fn of_kind<M: KindOfMap>(_: &ShardMap<ShardKey, M>, all: &[Mapping<ShardKey>]) -> Answer {
    mappings::<M>(all)
}

/// Runs a command about the mappings of a map.
pub(super) async fn run(map: &AnyMap, common: &Common, command: &MappingCommand) -> Result<Answer> {
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
            Ok(sentence(&map, "split into ", &pieces))
        }
        (AnyMap::Range(map), MappingCommand::Merge(named)) => {
            let (map, left) = named.find(map).await?;
            let high = left.high().context("there is no range after this one to merge with")?;
            let merged = map.merge(&left, &map.get(high).await?).await?;
            Ok(sentence(&map, "merged into ", &[merged]))
        }
        (AnyMap::List(map), MappingCommand::Import { file }) => import_points(map, common, file).await,
        (AnyMap::Range(map), MappingCommand::Import { file }) => import_ranges(map, common, file).await,
        (AnyMap::List(_), MappingCommand::Split { .. } | MappingCommand::Merge(_)) => {
            bail!("this is a list map: only the ranges of a range map can be split and merged")
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
) -> Result<Answer> {
    if let Some(high) = high {
        bail!("this is a list map, in which a mapping has one key: leave out {high}");
    }
    let (key, shard) = (key_of(map, key)?, map.shard(&Location::parse(shard)?).await?);
    let added = if offline { map.add_offline(&key, &shard).await? } else { map.add(&key, &shard).await? };
    Ok(sentence(map, "added ", &[added]))
}

async fn add_range(
    map: &RangeShardMap<ShardKey>,
    key: &str,
    high: Option<&str>,
    shard: &str,
    offline: bool,
) -> Result<Answer> {
    let (low, shard) = (key_of(map, key)?, map.shard(&Location::parse(shard)?).await?);
    let high = high.map(|high| key_of(map, high)).transpose()?;
    let added = match offline {
        true => map.add_offline(&low, high.as_ref(), &shard).await?,
        false => map.add(&low, high.as_ref(), &shard).await?,
    };
    Ok(sentence(map, "added ", &[added]))
}

/// The changes that maps of both kinds have.
async fn change<M: KindOfMap>(map: &ShardMap<ShardKey, M>, command: &MappingCommand) -> Result<Answer> {
    match command {
        MappingCommand::Delete { named, drain } => {
            let (map, found) = named.find(&drain.of(map)).await?;
            map.delete(&found).await?;
            Ok(sentence(&map, "deleted ", &[found]))
        }
        MappingCommand::Update { named, shard, drain } => {
            let (map, found) = named.find(&drain.of(map)).await?;
            let shard = map.shard(&Location::parse(shard)?).await?;
            let to = MappingChange { online: None, shard: Some(&shard) };
            Ok(sentence(&map, "updated ", &[map.update(&found, to).await?]))
        }
        MappingCommand::Offline { named, drain } => {
            let (map, found) = named.find(&drain.of(map)).await?;
            Ok(sentence(&map, "", &[map.offline(&found).await?]))
        }
        MappingCommand::Online(named) => {
            let (map, found) = named.find(map).await?;
            Ok(sentence(&map, "", &[map.online(&found).await?]))
        }
        MappingCommand::Lock { named, owner, lease_s } => {
            let (map, found) = named.find(map).await?;
            let token = map.new_token();
            let locked = map.lock(&found, token, owner, Duration::from_secs(*lease_s)).await?;
            let Answer { mut json, text, .. } = sentence(&map, "locked ", &[locked]);
            json["lock"]["token"] = token.0.to_string().into();
            Ok(Answer::new(json, format!("{text}the token is {}\n", token.0)))
        }
        MappingCommand::Renew { named, lease_s } => {
            let (map, found) = named.find(map).await?;
            let renewed = map.renew_lock(&found, named.lock_token()?, Duration::from_secs(*lease_s)).await?;
            Ok(sentence(&map, "renewed the lock of ", &[renewed]))
        }
        MappingCommand::UnlockAll { token, force } => {
            let token = if *force { LockToken::FORCE } else { token_of(token.as_deref())? };
            let count = map.unlock_all(token).await?;
            Ok(Answer::new(json!({ "unlocked": count }), format!("{count} mappings were unlocked\n")))
        }
        MappingCommand::Unlock { named, force } => {
            let (map, found) = named.find(map).await?;
            let token = if *force { LockToken::FORCE } else { named.lock_token()? };
            Ok(sentence(&map, "unlocked ", &[map.unlock(&found, token).await?]))
        }
        MappingCommand::Add { .. }
        | MappingCommand::Import { .. }
        | MappingCommand::Split { .. }
        | MappingCommand::Merge(_) => unreachable!("the caller handles what depends on the kind of map"),
    }
}

impl Named {
    /// The mapping in the global map, and the map as an owner of the given token may change it.
    async fn find<M: KindOfMap>(
        &self,
        map: &ShardMap<ShardKey, M>,
    ) -> Result<(ShardMap<ShardKey, M>, Mapping<ShardKey>)> {
        let found = map.lookup(&key_of(map, &self.key)?, LookIn::Store).await?;
        Ok((map.showing(self.lock_token()?), found))
    }

    fn lock_token(&self) -> Result<LockToken> {
        token_of(self.token.as_deref())
    }
}

fn token_of(token: Option<&str>) -> Result<LockToken> {
    let Some(token) = token else { return Ok(LockToken::NONE) };
    let token = token.parse().context("--token is malformed: give the token that 'lock' printed")?;
    Ok(LockToken(token))
}
