//! `rangehold shards check`, `pending` and `recover`: find and repair what differs between maps.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use rangehold_shardmap::recovery::{Identity, MapDifferences, MappedBy, MappingDifference, Resolution};
use rangehold_shardmap::{Location, PendingOperation, ShardKey, ShardMapManager};
use serde_json::json;

use super::Common;
use super::answer::Answer;
use crate::text_table::text_table;

/// `rangehold shards recover`
#[derive(Debug, Args)]
pub(crate) struct Recover {
    /// Do not end operations, but make the global map and this shard agree.
    #[arg(long, value_name = "LOCATION", requires = "keep")]
    shard: Option<String>,
    /// Which of the two is right.
    #[arg(long, requires = "shard")]
    keep: Option<Keep>,
    /// Remove a lost shard and its mappings from the global map.
    #[arg(long, value_name = "LOCATION", conflicts_with = "shard")]
    detach: Option<String>,
    /// Add a database that already is a shard to the global map, with the mappings that it has.
    #[arg(long, value_name = "LOCATION", conflicts_with_all = ["shard", "detach"])]
    attach: Option<String>,
}

/// Which of two maps is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Keep {
    /// The global map is right.
    Global,
    /// The shard is right.
    Shard,
}

/// Compares the global map with every shard. Fails if they differ.
pub(super) async fn check(manager: &ShardMapManager) -> Result<Answer> {
    let (mut rows, mut compared) = (Vec::new(), 0);
    for location in manager.shard_locations().await? {
        compared += 1;
        match manager.recovery().detect(&location, None).await {
            Ok(found) => {
                for differences in found.iter().filter(|found| !found.is_empty()) {
                    rows.extend(difference_rows(differences)?);
                }
            }
            Err(error) => rows.push([location.to_string(), String::new(), String::new(), error.to_string()]),
        }
    }
    let pending = manager.pending_operations().await?.len();
    let json = rows
        .iter()
        .map(|[shard, map, keys, what]| json!({ "shard": shard, "map": map, "keys": keys, "what": what }));
    let json = json!({ "shards": compared, "pending": pending, "findings": json.collect::<Vec<_>>() });
    if rows.is_empty() {
        let text =
            format!("{compared} shards agree with the global map; {pending} operations are under way\n");
        return Ok(Answer::new(json, text));
    }
    let why = format!(
        "{} differences; 'rangehold shards recover --shard LOCATION --keep ...' resolves them",
        rows.len()
    );
    Ok(Answer::new(json, text_table(["shard", "map", "keys", ""], &rows)).or_failed(Some(why)))
}

fn difference_rows(found: &MapDifferences) -> Result<Vec<[String; 4]>> {
    let identity = match found.identity() {
        Identity::Same => None,
        other => Some([found.location().to_string(), found.map().name, String::new(), other.to_string()]),
    };
    let row = |difference: MappingDifference| {
        let high = difference.high.as_ref().map_or("end".to_owned(), ShardKey::to_string);
        let what = match difference.mapped_by {
            MappedBy::GlobalOnly => "only the global map has it",
            MappedBy::ShardOnly => "only the shard has it",
            MappedBy::Both => "both have it, with different mappings",
        };
        let keys = format!("{} to {high}", difference.low);
        [found.location().to_string(), found.map().name, keys, what.to_owned()]
    };
    Ok(identity.into_iter().chain(found.differences()?.into_iter().map(row)).collect())
}

/// Shows the operations that have not ended.
pub(super) async fn pending(manager: &ShardMapManager) -> Result<Answer> {
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
        return Ok(Answer::new(json, "no operation is under way\n".to_owned()));
    }
    Ok(Answer::new(json, text_table(["operation", "kind", "map", "owner", "state", "way"], &rows)))
}

/// Ends abandoned operations, or does one of the repairs.
pub(super) async fn recover(manager: &ShardMapManager, common: &Common, recover: &Recover) -> Result<Answer> {
    let map = common.map.as_deref();
    if let (Some(location), Some(keep)) = (&recover.shard, recover.keep) {
        return resolve(manager, map, &Location::parse(location)?, keep).await;
    }
    if let Some(location) = &recover.detach {
        manager.recovery().detach(&Location::parse(location)?, map).await?;
        return Ok(Answer::new(
            json!({ "detached": location }),
            format!("{location} is not a shard any more\n"),
        ));
    }
    if let Some(location) = &recover.attach {
        let attached = manager.recovery().attach(&Location::parse(location)?, map).await?;
        let text =
            format!("{location} is a shard of {} maps; 'check' compares its mappings\n", attached.len());
        return Ok(Answer::new(json!({ "attached": location, "maps": attached.len() }), text));
    }
    let (ended, failed) = manager.recover_pending().await?;
    if let Some(error) = failed.first() {
        bail!("{ended} operations were ended, {} could not be: {error}", failed.len());
    }
    Ok(Answer::new(json!({ "ended": ended }), format!("{ended} abandoned operations were ended\n")))
}

async fn resolve(
    manager: &ShardMapManager,
    map: Option<&str>,
    location: &Location,
    keep: Keep,
) -> Result<Answer> {
    let how = if keep == Keep::Global { Resolution::KeepGlobal } else { Resolution::KeepShard };
    let mut resolved = 0;
    for found in manager.recovery().detect(location, map).await? {
        resolved += found.differences()?.len();
        manager.recovery().resolve(found, how).await?;
    }
    let text = format!("{resolved} differences with {location} are resolved\n");
    Ok(Answer::new(json!({ "shard": location.to_string(), "resolved": resolved }), text))
}
