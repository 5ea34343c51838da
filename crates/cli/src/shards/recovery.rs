//! `rangehold shards check`, `pending` and `recover`: find and repair what differs between maps.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use rangehold_shardmap::recovery::{Identity, MapDifferences, MappedBy, MappingDifference, Resolution};
use rangehold_shardmap::{Location, MapKind, PendingOperation, ShardMapManager};
use serde_json::json;

use super::answer::Answer;
use super::{Common, rebuild};
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
    /// Close a shard, and remove it and its mappings from the global map.
    #[arg(long, value_name = "LOCATION", conflicts_with = "shard")]
    detach: Option<String>,
    /// The shard that is detached is gone for good, so that it cannot be closed.
    #[arg(long, requires = "detach")]
    lost: bool,
    /// Add a database that already is a shard to the global map, with the mappings that it has.
    #[arg(long, value_name = "LOCATION", conflicts_with_all = ["shard", "detach"])]
    attach: Option<String>,
    /// Close the maps that another global map made in this database. With --map, only the map with that name.
    #[arg(long, value_name = "LOCATION", conflicts_with_all = ["shard", "detach", "attach"])]
    retire: Option<String>,
    /// Make the global map have what these shards have, for a global map that was lost or is old. Attaches those that it does
    /// not have.
    #[arg(long, value_name = "LOCATION", num_args = 1.., conflicts_with_all = ["shard", "detach", "attach", "retire"])]
    rebuild_global: Vec<String>,
    /// Make the local maps of these shards have what the global map has, for shards that were restored.
    #[arg(long, value_name = "LOCATION", num_args = 1..,
        conflicts_with_all = ["shard", "detach", "attach", "retire", "rebuild_global"])]
    rebuild_shards: Vec<String>,
    /// Give the local map of this shard the keys of --from-file, online, and no others, for a shard whose local map is lost. The
    /// global map is neither read nor changed.
    #[arg(long, value_name = "LOCATION", requires = "from_file",
        conflicts_with_all = ["shard", "detach", "attach", "retire", "rebuild_global", "rebuild_shards"])]
    rebuild_shard: Option<String>,
    /// The file with the keys for --rebuild-shard. Each line has a key, or in a range map two keys, where `end` means no end.
    #[arg(long, value_name = "FILE", requires = "rebuild_shard")]
    from_file: Option<PathBuf>,
    /// Attach the database although the shard was lost, was at another place, or had keys that are on other shards by now. It
    /// comes without those.
    #[arg(long, requires = "attach", value_name = "keep")]
    clone: Option<Kept>,
}

/// What a copy of a shard, or a shard that was lost, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kept {
    /// The shard itself.
    Keep,
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
pub(super) async fn check(manager: &ShardMapManager, common: &Common) -> Result<Answer> {
    let (mut rows, mut unreachable) = (Vec::new(), 0);
    let locations = manager.shard_locations().await?;
    let compared = locations.len();
    let progress = common.progress("comparing", "shards", compared);
    for location in locations {
        match manager.recovery().detect(&location, None).await {
            Ok(found) => {
                for differences in found.iter().filter(|found| !found.is_empty()) {
                    rows.extend(difference_rows(differences)?);
                }
            }
            Err(error) => {
                unreachable += 1;
                rows.push([location.to_string(), String::new(), String::new(), error.to_string()]);
            }
        }
        progress.add(1);
    }
    progress.end();
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
    let mut why = Vec::new();
    if rows.len() > unreachable {
        let count = rows.len() - unreachable;
        why.push(format!(
            "{count} differences; 'rangehold shards recover --shard LOCATION --keep ...' resolves those of mappings"
        ));
    }
    if unreachable > 0 {
        why.push(format!("{unreachable} shards could not be compared"));
    }
    let why = why.join("; ");
    Ok(Answer::new(json, text_table(["shard", "map", "keys", ""], &rows)).or_failed(Some(why)))
}

fn difference_rows(found: &MapDifferences) -> Result<Vec<[String; 4]>> {
    let identity = match found.identity() {
        Identity::Same => None,
        other => Some([found.location().to_string(), found.map().name, String::new(), other.to_string()]),
    };
    let row = |difference: MappingDifference| {
        let what = match difference.mapped_by {
            MappedBy::GlobalOnly => "only the global map has it",
            MappedBy::ShardOnly => "only the shard has it",
            MappedBy::Both => "both have it, with different mappings",
        };
        let keys = match (found.map().kind, &difference.high) {
            (MapKind::List, _) => difference.low.to_string(),
            (MapKind::Range, Some(high)) => format!("{} to {high}", difference.low),
            (MapKind::Range, None) => format!("{} to end", difference.low),
        };
        [found.location().to_string(), found.map().name, keys, what.to_owned()]
    };
    Ok(identity.into_iter().chain(found.differences()?.into_iter().map(row)).collect())
}

/// Upgrades the global map and each shard. Fails if a shard could not be upgraded.
pub(super) async fn upgrade(manager: &ShardMapManager, common: &Common) -> Result<Answer> {
    manager.upgrade_global_store().await?;
    let locations = manager.shard_locations().await?;
    let progress = common.progress("upgrading", "shards", locations.len());
    let mut rows: Vec<[String; 3]> = Vec::new();
    let mut failed = 0;
    for location in locations {
        let (state, why) = match manager.upgrade_local_store(&location).await {
            Ok(()) => ("upgraded", String::new()),
            Err(error) => {
                failed += 1;
                ("failed", error.to_string())
            }
        };
        rows.push([location.to_string(), state.to_owned(), why]);
        progress.add(1);
    }
    progress.end();
    let json = rows
        .iter()
        .map(|[shard, state, why]| json!({ "shard": shard, "state": state, "why": why }))
        .collect();
    let why = format!("{failed} shards were not upgraded: remove the cause, and run the same command again");
    Ok(Answer::new(json, text_table(["shard", "state", ""], &rows)).or_failed((failed > 0).then_some(why)))
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
        return resolve(manager, common, &Location::parse(location)?, keep).await;
    }
    if let Some(location) = &recover.detach {
        let place = Location::parse(location)?;
        match recover.lost {
            false => manager.recovery().detach(&place, map).await?,
            true => manager.recovery().detach_lost(&place, map).await?,
        }
        return Ok(Answer::new(
            json!({ "detached": location }),
            format!("{location} is not a shard any more\n"),
        ));
    }
    if let Some(location) = &recover.attach {
        let place = Location::parse(location)?;
        let attached = match recover.clone {
            None => manager.recovery().attach(&place, map).await?,
            Some(Kept::Keep) => manager.recovery().attach_lost(&place, map).await?,
        };
        let text =
            format!("{location} is a shard of {} maps; 'check' compares its mappings\n", attached.len());
        return Ok(Answer::new(json!({ "attached": location, "maps": attached.len() }), text));
    }
    if let Some(location) = &recover.retire {
        let count = manager.recovery().retire(&Location::parse(location)?, map).await?;
        let text = format!("{count} maps of another global map were closed at {location}\n");
        return Ok(Answer::new(json!({ "retired": location, "maps": count }), text));
    }
    if let (Some(location), Some(file)) = (&recover.rebuild_shard, &recover.from_file) {
        return rebuild::from_file(manager, common, location, file).await;
    }
    if !recover.rebuild_global.is_empty() || !recover.rebuild_shards.is_empty() {
        return rebuild(manager, common, recover).await;
    }
    end_abandoned(manager, common).await
}

/// Ends all abandoned operations. Fails if one of them could not be ended, after it has tried all.
async fn end_abandoned(manager: &ShardMapManager, common: &Common) -> Result<Answer> {
    let mut operations = manager.pending_operations().await?;
    operations.retain(|operation| operation.abandoned);
    let progress = common.progress("ending", "operations", operations.len());
    let (mut ended, mut failed) = (0, Vec::new());
    for operation in &operations {
        match manager.end_abandoned(operation).await {
            Ok(()) => ended += 1,
            Err(error) => failed.push(error),
        }
        progress.add(1);
    }
    progress.end();
    for (location, mended) in manager.mend_counts().await? {
        if let Err(error) = mended {
            eprintln!("the count of changes at {location} is as it was: {error}");
        }
    }
    if let Some(error) = failed.first() {
        bail!("{ended} operations were ended, {} could not be: {error}", failed.len());
    }
    Ok(Answer::new(json!({ "ended": ended }), format!("{ended} abandoned operations were ended\n")))
}

/// Makes all of one side as the other side is, place by place. Tells each place as it is done.
async fn rebuild(manager: &ShardMapManager, common: &Common, recover: &Recover) -> Result<Answer> {
    let (mut global, shards) = (recover.rebuild_global.clone(), &recover.rebuild_shards);
    // A shard that the global map has may have given keys to one that it does not have. So it says first what it holds.
    let known = manager.shard_locations().await?;
    global.sort_by_key(|place| !Location::parse(place).is_ok_and(|place| known.contains(&place)));
    let (map, count) = (common.map.as_deref(), global.len() + shards.len());
    let progress = common.progress("rebuilding", "shards", count);
    for (index, place) in global.iter().chain(shards).enumerate() {
        let location = [Location::parse(place)?];
        match global.is_empty() {
            true => manager.recovery().rebuild_shards(&location, map).await?,
            false => manager.recovery().rebuild_global(&location, map).await?,
        }
        progress.add(1);
        progress.say(&format!("{place} is done, {} of {count}", index + 1));
    }
    progress.end();
    Ok(Answer::new(json!({ "rebuilt": count }), format!("the global map and {count} shards agree\n")))
}

async fn resolve(
    manager: &ShardMapManager,
    common: &Common,
    location: &Location,
    keep: Keep,
) -> Result<Answer> {
    let how = if keep == Keep::Global { Resolution::KeepGlobal } else { Resolution::KeepShard };
    let progress = common.waiting("resolving");
    let mut resolved = 0;
    for found in manager.recovery().detect(location, common.map.as_deref()).await? {
        // As `check` counts them: another state of the shard is one, too.
        resolved += found.differences()?.len() + usize::from(found.identity() != &Identity::Same);
        manager.recovery().resolve(found, how).await?;
    }
    progress.end();
    let text = format!("{resolved} differences with {location} are resolved\n");
    Ok(Answer::new(json!({ "shard": location.to_string(), "resolved": resolved }), text))
}
