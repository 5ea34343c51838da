//! The shard map that a command works on, whose kind is known only when the program runs.

use anyhow::{Result, bail};
use rangehold_shardmap::{
    KindOfMap, ListShardMap, MapKind, RangeShardMap, ShardKey, ShardKeyType, ShardMap, ShardMapManager,
};

use super::Common;

/// A map of either kind.
pub(super) enum AnyMap {
    List(ListShardMap<ShardKey>),
    Range(RangeShardMap<ShardKey>),
}

/// The same code for a map of either kind.
macro_rules! of_either {
    ($any:expr, $map:ident => $body:expr) => {
        match $any {
            AnyMap::List($map) => $body,
            AnyMap::Range($map) => $body,
        }
    };
}
pub(super) use of_either;

/// The map that the command names, or the only map if it names none.
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

/// The map with this name.
pub(super) async fn named(manager: &ShardMapManager, name: &str) -> Result<AnyMap> {
    let kind = manager.shard_map(name).await?.map(|map| map.kind);
    Ok(match kind {
        Some(MapKind::Range) => AnyMap::Range(manager.range_map(name).await?),
        _ => AnyMap::List(manager.list_map(name).await?),
    })
}

/// Reads a key in the map's key type. `start` is the least key, except in a map of texts, where it is a text.
pub(super) fn key_of<M: KindOfMap>(map: &ShardMap<ShardKey, M>, text: &str) -> Result<ShardKey> {
    let key_type = map.info().key_type;
    if text == "start" && key_type != ShardKeyType::Text {
        return Ok(ShardKey::min(key_type));
    }
    Ok(ShardKey::parse(key_type, text)?)
}
