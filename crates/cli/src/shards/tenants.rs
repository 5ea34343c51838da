//! `rangehold shards adopt`, `provision` and `sizes`: shards for the first tenants and for new ones.

use anyhow::{Context, Result, bail};
use clap::Args;
use rangehold_shardmap::tenants::{Every, PlacementPolicy, ShardSize};
use rangehold_shardmap::{List, Location, Range, ShardMapManager};
use serde_json::{Value, json};

use super::Common;
use super::answer::{Answer, mapping_json, mappings};
use super::any_map::{AnyMap, key_of, named, of_either};
use super::map::{Kind, about_order};
use crate::text_table::text_table;

/// `rangehold shards adopt`
#[derive(Debug, Args)]
pub(crate) struct Adopt {
    /// The location of your database: sqlite:PATH or postgres://SERVER:PORT/DATABASE.
    location: String,
    /// The kind of the map, if the command makes it.
    #[arg(long, default_value = "list")]
    kind: Kind,
    /// The type of the map's keys, if the command makes it. The order of guid keys is SQL Server's, and the order of uuid keys
    /// is that of RFC 9562.
    #[arg(long, value_name = "TYPE", default_value = "int64")]
    key_type: String,
    /// For a list map: a table that has rows of all tenants.
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// The column of that table with the tenant's key.
    #[arg(long, value_name = "COLUMN", requires = "table")]
    column: Option<String>,
}

/// `rangehold shards provision`
#[derive(Debug, Args)]
pub(crate) struct Provision {
    /// In a list map: the key of the new tenant.
    #[arg(allow_hyphen_values = true)]
    key: Option<String>,
    /// Choose the shard with the fewest tenants, or the fewest bytes.
    #[arg(long, value_name = "WHAT", default_value = "tenants")]
    fewest: String,
    /// In a range map: the length of each range: day, week, month, year, or a number of keys.
    #[arg(long, value_name = "LENGTH", conflicts_with = "key")]
    every: Option<String>,
    /// In a range map: how many ranges must exist after the one with the current key.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    ahead: usize,
    /// In a range map: the current key [default: the current time, in a map of times]
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    now: Option<String>,
}

/// Makes the database the first shard of a map. Makes the shard map if it does not exist.
pub(super) async fn adopt(manager: &ShardMapManager, common: &Common, adopt: &Adopt) -> Result<Answer> {
    let name = common.map.as_deref().context("give the name of the shard map by --map NAME")?;
    if manager.shard_map(name).await?.is_none() {
        manager.create_shard_map(name, adopt.kind.of_map(), adopt.key_type.parse()?).await?;
    }
    let location = Location::parse(&adopt.location)?;
    let map = named(manager, name).await?;
    let order = about_order(of_either!(&map, map => map.info().key_type));
    let (shard, count) = match (map, &adopt.table, &adopt.column) {
        (AnyMap::List(map), Some(table), Some(column)) => map.adopt(&location, table, column).await?,
        (AnyMap::List(_), ..) => {
            bail!("give a table with all tenants, and its key column, by --table and --column")
        }
        (AnyMap::Range(map), ..) => map.adopt(&location).await?,
    };
    let what = if count == 1 { "mapping" } else { "mappings" };
    let at = shard.location();
    let text = format!("{at} is a shard of {name}, with {count} new {what}; no row was touched\n{order}");
    Ok(Answer::new(json!({ "map": name, "shard": shard.location().to_string(), "mappings": count }), text))
}

/// Gives a new tenant, or the next ranges, a shard.
pub(super) async fn provision(map: &AnyMap, common: &Common, provision: &Provision) -> Result<Answer> {
    let policy: PlacementPolicy = provision.fewest.parse()?;
    match (map, &provision.key, &provision.every) {
        (AnyMap::List(map), Some(key), None) => {
            let provisioned = map.provision(&key_of(map, key)?, policy).await?;
            let mapping = &provisioned.mapping;
            let verb = if provisioned.is_new { "is now" } else { "was already" };
            let text = format!("{} {verb} on {}\n", mapping.value(), mapping.shard().location());
            let mut json = mapping_json::<List>(mapping);
            json["new"] = provisioned.is_new.into();
            Ok(Answer::new(json, text))
        }
        (AnyMap::Range(map), None, Some(every)) => {
            let every: Every = every.parse()?;
            let now = match &provision.now {
                Some(now) => key_of(map, now)?,
                None => map.now().await?.context("give the current key by --now KEY")?,
            };
            // All ranges are added in one operation, so there is nothing to count meanwhile.
            let progress = common.waiting("placing ranges");
            let made = map.provision_ranges(every, provision.ahead, &now, policy).await?;
            progress.end();
            if made.is_empty() {
                let text = format!("there are already {} ranges ahead\n", provision.ahead);
                return Ok(Answer::new(Value::Array(Vec::new()), text));
            }
            Ok(mappings::<Range>(&made))
        }
        (AnyMap::List(_), ..) => bail!("give the key of the new tenant"),
        (AnyMap::Range(_), ..) => bail!("give the length of the new ranges, such as --every month"),
    }
}

/// Shows how many mappings and bytes each shard has.
pub(super) async fn sizes(map: &AnyMap) -> Result<Answer> {
    let sizes: Vec<ShardSize> = of_either!(map, map => map.sizes().await?);
    let row = |size: &ShardSize| {
        let bytes = size.bytes.map_or_else(|| "cannot be reached".to_owned(), |bytes| bytes.to_string());
        [size.shard.location().to_string(), size.mappings.to_string(), bytes]
    };
    let rows: Vec<[String; 3]> = sizes.iter().map(row).collect();
    let one = |size: &ShardSize| json!({ "shard": size.shard.location().to_string(), "mappings": size.mappings, "bytes": size.bytes });
    Ok(Answer::new(sizes.iter().map(one).collect(), text_table(["shard", "mappings", "bytes"], &rows)))
}
