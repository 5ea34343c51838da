//! `rangehold shards mapping`, `locate` and `list`: the mappings of keys to shards.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rangehold_shardmap::{
    KindOfMap, ListShardMap, Location, LockToken, LookIn, Mapping, MappingChange, RangeShardMap, ShardKey,
    ShardMap,
};

use super::answer::{Answer, mappings, sentence};
use super::any_map::{AnyMap, key_of, of_either};

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
    /// Delete a mapping that is offline. No row is deleted.
    Delete(Named),
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
    },
    /// Take a mapping offline. Open transactions on its keys are ended.
    Offline(Named),
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
    /// End a lock, by its token or by --force.
    Unlock {
        #[command(flatten)]
        named: Named,
        /// End the lock of another owner too.
        #[arg(long)]
        force: bool,
    },
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

/// Shows all mappings of a map.
pub(super) async fn list(map: &AnyMap) -> Result<Answer> {
    of_either!(map, map => Ok(of_kind(map, &map.mappings().await?)))
}

fn of_kind<M: KindOfMap>(_: &ShardMap<ShardKey, M>, all: &[Mapping<ShardKey>]) -> Answer {
    mappings::<M>(all)
}

/// Runs a command about the mappings of a map.
pub(super) async fn run(map: &AnyMap, command: &MappingCommand) -> Result<Answer> {
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
        MappingCommand::Delete(named) => {
            let (map, found) = named.find(map).await?;
            map.delete(&found).await?;
            Ok(sentence(&map, "deleted ", &[found]))
        }
        MappingCommand::Update { named, shard } => {
            let (map, found) = named.find(map).await?;
            let shard = map.shard(&Location::parse(shard)?).await?;
            let to = MappingChange { online: None, shard: Some(&shard) };
            Ok(sentence(&map, "updated ", &[map.update(&found, to).await?]))
        }
        MappingCommand::Offline(named) => {
            let (map, found) = named.find(map).await?;
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
            let Answer { json, text, .. } = sentence(&map, "locked ", &[locked]);
            Ok(Answer::new(json, format!("{text}the token is {}\n", token.0)))
        }
        MappingCommand::Unlock { named, force } => {
            let (map, found) = named.find(map).await?;
            let token = if *force { LockToken::FORCE } else { named.lock_token()? };
            Ok(sentence(&map, "unlocked ", &[map.unlock(&found, token).await?]))
        }
        MappingCommand::Add { .. } | MappingCommand::Split { .. } | MappingCommand::Merge(_) => {
            unreachable!("the caller handles what depends on the kind of map")
        }
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
        match &self.token {
            None => Ok(LockToken::NONE),
            Some(token) => Ok(LockToken(
                token.parse().context("--token is malformed: give the token that 'lock' printed")?,
            )),
        }
    }
}
