//! `check`, `pending` and `recover`.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use rangehold_shardmap::recovery::{MapDifferences, MappedBy, MappingDifference, Resolution};
use rangehold_shardmap::{Location, PendingOperation, ShardKey, ShardMapManager};
use serde_json::json;

use super::Common;
use super::show::Shown;
use crate::text_table::text_table;

/// `rangehold shards recover`
#[derive(Debug, Args)]
pub(crate) struct Recover {
    /// Instead of ending operations: make the global map and this shard say the same.
    #[arg(long, value_name = "PLACE", requires = "keep")]
    shard: Option<String>,
    /// Whose word counts.
    #[arg(long, requires = "shard")]
    keep: Option<Keep>,
    /// The shard is lost: take it and its mappings out of the global map.
    #[arg(long, value_name = "PLACE", conflicts_with = "shard")]
    detach: Option<String>,
    /// A database that is a shard already: add it to the global map, by what it says itself.
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["shard", "detach"])]
    attach: Option<String>,
}

/// Whose word counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Keep {
    /// The global map's.
    Global,
    /// The shard's.
    Shard,
}

pub(super) async fn check(manager: &ShardMapManager) -> Result<Shown> {
    let (mut rows, mut compared) = (Vec::new(), 0);
    for place in manager.shard_locations().await? {
        compared += 1;
        match manager.recovery().detect(&place, None).await {
            Ok(found) => {
                for differences in found.iter().filter(|found| !found.is_empty()) {
                    rows.extend(difference_rows(differences)?);
                }
            }
            Err(error) => rows.push([place.to_string(), String::new(), String::new(), error.to_string()]),
        }
    }
    let pending = manager.pending_operations().await?.len();
    let json = rows
        .iter()
        .map(|[shard, map, keys, what]| json!({ "shard": shard, "map": map, "keys": keys, "what": what }));
    let json = json!({ "shards": compared, "pending": pending, "findings": json.collect::<Vec<_>>() });
    if rows.is_empty() {
        let text =
            format!("{compared} shards say what the global map says; {pending} operations are under way\n");
        return Ok(Shown::new(json, text));
    }
    let why = format!(
        "{} differences; 'rangehold shards recover --shard PLACE --keep ...' resolves them",
        rows.len()
    );
    Ok(Shown::new(json, text_table(["shard", "map", "keys", ""], &rows)).or_failed(Some(why)))
}

fn difference_rows(found: &MapDifferences) -> Result<Vec<[String; 4]>> {
    let row = |difference: MappingDifference| {
        let high = difference.high.as_ref().map_or("end".to_owned(), ShardKey::to_string);
        let what = match difference.mapped_by {
            MappedBy::GlobalOnly => "only the global map has it",
            MappedBy::ShardOnly => "only the shard has it",
            MappedBy::Both => "both have it, by different mappings",
        };
        let keys = format!("{} to {high}", difference.low);
        [found.location().to_string(), found.map().name, keys, what.to_owned()]
    };
    Ok(found.differences()?.into_iter().map(row).collect())
}

pub(super) async fn pending(manager: &ShardMapManager) -> Result<Shown> {
    let operations = manager.pending_operations().await?;
    let row = |operation: &PendingOperation| {
        let state = if operation.abandoned { "abandoned" } else { "under way" };
        let way = if operation.undoing { "back" } else { "forward" };
        let kind = format!("{:?}", operation.kind);
        [
            operation.id.to_string(),
            kind,
            operation.map.clone(),
            operation.owner.clone(),
            state.to_owned(),
            way.to_owned(),
        ]
    };
    let rows: Vec<[String; 6]> = operations.iter().map(row).collect();
    let json = rows.iter().map(|[id, kind, map, owner, state, way]| {
        json!({ "operation": id, "kind": kind, "map": map, "owner": owner, "state": state, "way": way })
    });
    let json = json.collect();
    if rows.is_empty() {
        return Ok(Shown::new(json, "no operation is under way\n".to_owned()));
    }
    Ok(Shown::new(json, text_table(["operation", "kind", "map", "owner", "state", "way"], &rows)))
}

pub(super) async fn recover(manager: &ShardMapManager, common: &Common, recover: &Recover) -> Result<Shown> {
    let map = common.map.as_deref();
    if let (Some(place), Some(keep)) = (&recover.shard, recover.keep) {
        return resolve(manager, map, &Location::parse(place)?, keep).await;
    }
    if let Some(place) = &recover.detach {
        manager.recovery().detach(&Location::parse(place)?, map).await?;
        return Ok(Shown::new(json!({ "detached": place }), format!("{place} is no shard any more\n")));
    }
    if let Some(place) = &recover.attach {
        let attached = manager.recovery().attach(&Location::parse(place)?, map).await?;
        let text = format!("{place} is a shard of {} maps; 'check' compares its mappings\n", attached.len());
        return Ok(Shown::new(json!({ "attached": place, "maps": attached.len() }), text));
    }
    let (ended, failed) = manager.recover_pending().await?;
    if let Some(error) = failed.first() {
        bail!("{ended} operations were ended, {} could not be: {error}", failed.len());
    }
    Ok(Shown::new(json!({ "ended": ended }), format!("{ended} abandoned operations were ended\n")))
}

async fn resolve(
    manager: &ShardMapManager,
    map: Option<&str>,
    place: &Location,
    keep: Keep,
) -> Result<Shown> {
    let how = if keep == Keep::Global { Resolution::KeepGlobal } else { Resolution::KeepShard };
    let mut resolved = 0;
    for found in manager.recovery().detect(place, map).await? {
        resolved += found.differences()?.len();
        manager.recovery().resolve(found, how).await?;
    }
    let text = format!("{resolved} differences with {place} are resolved\n");
    Ok(Shown::new(json!({ "shard": place.to_string(), "resolved": resolved }), text))
}
