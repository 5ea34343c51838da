//! `rangehold shards recover --rebuild-shard`: gives the local map of a shard the keys of a file.

use std::path::Path;

use anyhow::{Context, Result, bail};
use rangehold_shardmap::{KindOfMap, Location, MapKind, ShardKey, ShardMap, ShardMapManager};
use serde_json::json;

use super::Common;
use super::answer::Answer;
use super::any_map::{AnyMap, any, key_of, of_either};
use super::import::lines_of;

/// The least key of an interval, and the first key above it; `None` if there is no end, or if it is a single key.
type Interval = (ShardKey, Option<ShardKey>);

/// Makes the shard hold the keys of the file and no others, online. The global map is not looked at.
pub(super) async fn from_file(
    manager: &ShardMapManager,
    common: &Common,
    location: &str,
    file: &Path,
) -> Result<Answer> {
    let place = Location::parse(location)?;
    let map = any(manager, common).await?;
    let (name, keep) = of_either!(&map, map => (map.info().name, intervals(map, file)?));
    let found = manager.recovery().detect(&place, Some(&name)).await?.pop();
    let found = found.with_context(|| format!("{location} is not a shard of {name}"))?;
    manager.recovery().rebuild_shard(found, &keep).await?;
    let count = keep.len();
    let text = format!(
        "{location} holds the keys of {count} lines now, and no others; 'check' compares them with the global map\n"
    );
    Ok(Answer::new(json!({ "shard": location, "map": name, "intervals": count }), text))
}

/// The keys in a file: in a list map one on each line, in a range map two, where `end` means no end.
fn intervals<M: KindOfMap>(map: &ShardMap<ShardKey, M>, file: &Path) -> Result<Vec<Interval>> {
    lines_of(file, |words| match (M::KIND, words) {
        (MapKind::List, [key]) => Ok((key_of(map, key)?, None)),
        (MapKind::Range, [low, "end"]) => Ok((key_of(map, low)?, None)),
        (MapKind::Range, [low, high]) => Ok((key_of(map, low)?, Some(key_of(map, high)?))),
        (MapKind::List, _) => bail!("a line has one key, for this is a list map"),
        (MapKind::Range, _) => bail!("a line has two keys, for this is a range map"),
    })
}
