//! `rangehold shards mapping import`: adds the mappings of a file.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rangehold_shardmap::limits::MAPPINGS_PER_OPERATION_MAX;
use rangehold_shardmap::{KindOfMap, ListShardMap, Location, RangeShardMap, Shard, ShardKey, ShardMap};
use serde_json::json;

use super::Common;
use super::answer::Answer;
use super::any_map::key_of;
use crate::progress::Progress;

/// Adds the mappings of a file to a list map.
pub(super) async fn import_points(
    map: &ListShardMap<ShardKey>,
    common: &Common,
    file: &Path,
) -> Result<Answer> {
    let shards = shards_by_location(map).await?;
    let read = |words: &[&str]| match words {
        [key, shard] => Ok((key_of(map, key)?, shard_named(&shards, shard)?)),
        _ => bail!("a line of a list map has a key and a shard's location"),
    };
    let lines = lines_of(file, read)?;
    let mut added = Added::none(common, lines.len());
    for part in lines.chunks(MAPPINGS_PER_OPERATION_MAX) {
        let part = part.iter().map(|(key, shard)| (key, shard)).collect();
        let new = map.add_many(part).await.with_context(|| added.so_far())?;
        added.more(new.len());
    }
    Ok(added.all())
}

/// Adds the mappings of a file to a range map.
pub(super) async fn import_ranges(
    map: &RangeShardMap<ShardKey>,
    common: &Common,
    file: &Path,
) -> Result<Answer> {
    let shards = shards_by_location(map).await?;
    let read = |words: &[&str]| match words {
        [low, high, shard] => {
            let high = if *high == "end" { None } else { Some(key_of(map, high)?) };
            Ok((key_of(map, low)?, high, shard_named(&shards, shard)?))
        }
        _ => bail!("a line of a range map has two keys and a shard's location"),
    };
    let lines = lines_of(file, read)?;
    let mut added = Added::none(common, lines.len());
    for part in lines.chunks(MAPPINGS_PER_OPERATION_MAX) {
        let part = part.iter().map(|(low, high, shard)| (low, high.as_ref(), shard)).collect();
        let new = map.add_many(part).await.with_context(|| added.so_far())?;
        added.more(new.len());
    }
    Ok(added.all())
}

/// How many mappings are added, and the line that shows it.
struct Added {
    count: usize,
    progress: Progress,
}

impl Added {
    fn none(common: &Common, total: usize) -> Self {
        Self { count: 0, progress: common.progress("importing", "mappings", total) }
    }

    fn more(&mut self, count: usize) {
        self.count += count;
        self.progress.add(count as u64);
        self.progress.say(&self.so_far());
    }

    fn so_far(&self) -> String {
        format!("{} mappings are added", self.count)
    }

    fn all(self) -> Answer {
        self.progress.end();
        let count = self.count;
        Answer::new(json!({ "added": count }), format!("{count} mappings were added\n"))
    }
}

async fn shards_by_location<M: KindOfMap>(map: &ShardMap<ShardKey, M>) -> Result<HashMap<Location, Shard>> {
    Ok(map.shards().await?.into_iter().map(|shard| (shard.location().clone(), shard)).collect())
}

fn shard_named(shards: &HashMap<Location, Shard>, name: &str) -> Result<Shard> {
    let shard = shards.get(&Location::parse(name)?).cloned();
    shard.with_context(|| format!("the map has no shard at {name}"))
}

/// The lines of a file, each read as words. An error names its line.
pub(super) fn lines_of<T>(file: &Path, read: impl Fn(&[&str]) -> Result<T>) -> Result<Vec<T>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let one = |(index, line): (usize, &str)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        read(&words).with_context(|| format!("line {} of {}: {line:?}", index + 1, file.display()))
    };
    lines.map(one).collect()
}
