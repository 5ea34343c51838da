//! `rangehold shards mapping import`: adds the mappings of a file.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rangehold_shardmap::limits::MAPPINGS_PER_OPERATION_MAX;
use rangehold_shardmap::{KindOfMap, ListShardMap, Location, RangeShardMap, Shard, ShardKey, ShardMap};
use serde_json::json;

use super::answer::Answer;
use super::any_map::key_of;

/// Adds the mappings of a file to a list map.
pub(super) async fn import_points(map: &ListShardMap<ShardKey>, file: &Path) -> Result<Answer> {
    let shards = shards_by_location(map).await?;
    let read = |words: &[&str]| match words {
        [key, shard] => Ok((key_of(map, key)?, shard_named(&shards, shard)?)),
        _ => bail!("a line of a list map has a key and a shard's location"),
    };
    let lines = lines_of(file, read)?;
    let mut added = 0;
    for part in lines.chunks(MAPPINGS_PER_OPERATION_MAX) {
        let part = part.iter().map(|(key, shard)| (key, shard)).collect();
        added += map.add_many(part).await.with_context(|| imported(added))?.len();
        eprintln!("{}", imported(added));
    }
    Ok(Answer::new(json!({ "added": added }), format!("{added} mappings were added\n")))
}

/// Adds the mappings of a file to a range map.
pub(super) async fn import_ranges(map: &RangeShardMap<ShardKey>, file: &Path) -> Result<Answer> {
    let shards = shards_by_location(map).await?;
    let read = |words: &[&str]| match words {
        [low, high, shard] => {
            let high = if *high == "end" { None } else { Some(key_of(map, high)?) };
            Ok((key_of(map, low)?, high, shard_named(&shards, shard)?))
        }
        _ => bail!("a line of a range map has two keys and a shard's location"),
    };
    let lines = lines_of(file, read)?;
    let mut added = 0;
    for part in lines.chunks(MAPPINGS_PER_OPERATION_MAX) {
        let part = part.iter().map(|(low, high, shard)| (low, high.as_ref(), shard)).collect();
        added += map.add_many(part).await.with_context(|| imported(added))?.len();
        eprintln!("{}", imported(added));
    }
    Ok(Answer::new(json!({ "added": added }), format!("{added} mappings were added\n")))
}

fn imported(count: usize) -> String {
    format!("{count} mappings are added")
}

async fn shards_by_location<M: KindOfMap>(map: &ShardMap<ShardKey, M>) -> Result<HashMap<Location, Shard>> {
    Ok(map.shards().await?.into_iter().map(|shard| (shard.location().clone(), shard)).collect())
}

fn shard_named(shards: &HashMap<Location, Shard>, name: &str) -> Result<Shard> {
    let shard = shards.get(&Location::parse(name)?).cloned();
    shard.with_context(|| format!("the map has no shard at {name}"))
}

/// The lines of a file, each read as words. An error names its line.
fn lines_of<T>(file: &Path, read: impl Fn(&[&str]) -> Result<T>) -> Result<Vec<T>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let one = |(index, line): (usize, &str)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        read(&words).with_context(|| format!("line {} of {}: {line:?}", index + 1, file.display()))
    };
    lines.map(one).collect()
}
