//! `adopt`, `provision`, `exec` and `sizes`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use rangehold_shardmap::living::{Every, PlacementPolicy, Rollout, RolloutState, ShardSize};
use rangehold_shardmap::{Code, CreateMode, Location, ShardMapManager};
use serde_json::{Value, json};

use super::Common;
use super::maps::{AnyMap, Kind, key_of, named, of_either};
use super::show::{Shown, mapping_json, mappings};
use crate::text_table::text_table;

/// `rangehold shards adopt`
#[derive(Debug, Args)]
pub(crate) struct Adopt {
    /// The database that you have.
    place: String,
    /// The map's kind, if it is made.
    #[arg(long, default_value = "list")]
    kind: Kind,
    /// The type of its keys, if it is made.
    #[arg(long, value_name = "TYPE", default_value = "int64")]
    key_type: String,
    /// For a list map: the table that has every tenant.
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// Its column with the tenant's key.
    #[arg(long, value_name = "COLUMN", requires = "table")]
    column: Option<String>,
}

/// `rangehold shards provision`
#[derive(Debug, Args)]
pub(crate) struct Provision {
    /// The new tenant's key, in a list map.
    #[arg(allow_hyphen_values = true)]
    key: Option<String>,
    /// The shard with the fewest of these: tenants or bytes.
    #[arg(long, value_name = "WHAT", default_value = "tenants")]
    fewest: String,
    /// In a range map: how long each range is: day, week, month, year, or a number of keys.
    #[arg(long, value_name = "LENGTH", conflicts_with = "key")]
    every: Option<String>,
    /// How many ranges shall be there before they begin.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    ahead: usize,
    /// The key that is in use now; for times, this moment.
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    now: Option<String>,
}

/// `rangehold shards exec`
#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// The script: one transaction in each shard, so without BEGIN and COMMIT.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Its name for good; the file's name, if nothing is said.
    #[arg(long)]
    name: Option<String>,
    /// Only show how far it is.
    #[arg(long)]
    plan: bool,
}

/// Makes the global map and the shard map where they are not there, and the database their first shard.
pub(super) async fn adopt(common: &Common, adopt: &Adopt) -> Result<Shown> {
    let (location, options) = common.reach()?;
    let manager = match ShardMapManager::create(location, CreateMode::KeepExisting, options).await {
        Err(error) if error.code() == Code::StoreAlreadyExists => common.open().await?,
        made => made?,
    };
    let name = common.map.as_deref().context("how shall the shard map be called? give --map NAME")?;
    if manager.shard_map(name).await?.is_none() {
        manager.create_shard_map(name, adopt.kind.of_map(), adopt.key_type.parse()?).await?;
    }
    let place = Location::parse(&adopt.place)?;
    let (shard, count) = match (named(&manager, name).await?, &adopt.table, &adopt.column) {
        (AnyMap::List(map), Some(table), Some(column)) => map.adopt(&place, table, column).await?,
        (AnyMap::List(_), ..) => bail!("which tenants are there? give --table and --column"),
        (AnyMap::Range(map), ..) => map.adopt(&place).await?,
    };
    let what = if count == 1 { "mapping" } else { "mappings" };
    let text =
        format!("{} is a shard of {name}, with {count} new {what}; no row was touched\n", shard.location());
    Ok(Shown::new(json!({ "map": name, "shard": shard.location().to_string(), "mappings": count }), text))
}

pub(super) async fn provision(map: &AnyMap, provision: &Provision) -> Result<Shown> {
    let policy: PlacementPolicy = provision.fewest.parse()?;
    match (map, &provision.key, &provision.every) {
        (AnyMap::List(map), Some(key), None) => {
            let provisioned = map.provision(&key_of(map, key)?, policy).await?;
            let mapping = &provisioned.mapping;
            let verb = if provisioned.is_new { "is now" } else { "was already" };
            let text = format!("{} {verb} on {}\n", mapping.value(), mapping.shard().location());
            let mut json = mapping_json::<rangehold_shardmap::List>(mapping);
            json["new"] = provisioned.is_new.into();
            Ok(Shown::new(json, text))
        }
        (AnyMap::Range(map), None, Some(every)) => {
            let every: Every = every.parse()?;
            let now = match &provision.now {
                Some(now) => key_of(map, now)?,
                None => map.now().await?.context("which key is in use now? give --now KEY")?,
            };
            let made = map.provision_ranges(every, provision.ahead, &now, policy).await?;
            if made.is_empty() {
                let text = format!("{} ranges are ahead already\n", provision.ahead);
                return Ok(Shown::new(Value::Array(Vec::new()), text));
            }
            Ok(mappings::<rangehold_shardmap::Range>(&made))
        }
        (AnyMap::List(_), ..) => bail!("which tenant? give its key"),
        (AnyMap::Range(_), ..) => bail!("which ranges? give --every month, for instance"),
    }
}

pub(super) async fn exec(manager: &ShardMapManager, exec: &Exec) -> Result<Shown> {
    let script = std::fs::read_to_string(&exec.file)
        .with_context(|| format!("cannot read the script {}", exec.file.display()))?;
    let of_file =
        || exec.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let rollout = Rollout { name: exec.name.clone().unwrap_or_else(of_file), script };
    let shards = manager.shard_locations().await?;
    let states = match exec.plan {
        true => manager.rollout_states(&rollout, &shards).await,
        false => manager.roll_out(&rollout, &shards).await?,
    };
    let failed = states.iter().filter(|(_, state)| matches!(state, RolloutState::Failed { .. })).count();
    let rows: Vec<[String; 3]> = states.iter().map(state_row).collect();
    let json = rows
        .iter()
        .map(|[shard, state, why]| json!({ "shard": shard, "state": state, "why": why }))
        .collect();
    let why = format!("{failed} shards failed; when the cause is mended, run the same command again");
    Ok(Shown::new(json, text_table(["shard", "state", ""], &rows)).or_failed((failed > 0).then_some(why)))
}

fn state_row((place, state): &(Location, RolloutState)) -> [String; 3] {
    let (word, why) = match state {
        RolloutState::Waiting => ("waiting", String::new()),
        RolloutState::Done { .. } => ("done", String::new()),
        RolloutState::OtherScript => ("other", "has another script of this name".to_owned()),
        RolloutState::Failed { message } => ("failed", message.clone()),
    };
    [place.to_string(), word.to_owned(), why]
}

pub(super) async fn sizes(map: &AnyMap) -> Result<Shown> {
    let sizes: Vec<ShardSize> = of_either!(map, map => map.sizes().await?);
    let row = |size: &ShardSize| {
        [size.shard.location().to_string(), size.mappings.to_string(), size.bytes.to_string()]
    };
    let rows: Vec<[String; 3]> = sizes.iter().map(row).collect();
    let one = |size: &ShardSize| json!({ "shard": size.shard.location().to_string(), "mappings": size.mappings, "bytes": size.bytes });
    Ok(Shown::new(sizes.iter().map(one).collect(), text_table(["shard", "mappings", "bytes"], &rows)))
}
