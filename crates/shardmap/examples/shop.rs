//! A shop with many tenants, over several databases: tenants get a place, order in it, and are counted over
//! all places.
//!
//! ```console
//! $ cargo run -p rangehold-shardmap --example shop -- sqlite:maps.db sqlite:one.db sqlite:two.db
//! $ cargo run -p rangehold-shardmap --example shop -- postgres://me@localhost/maps \
//!       postgres://localhost/one postgres://localhost/two
//! ```
//!
//! The first address is the global map's, the others are the shards'. PostgreSQL databases must be there; for SQLite
//! files it is enough that they can be made. It may be run again: everything in it is done once.

use std::error::Error;

use rangehold_shardmap::postgres::PostgresAccess;
use rangehold_shardmap::query::{Readers, owned_view};
use rangehold_shardmap::routing::Routing;
use rangehold_shardmap::tenants::{PlacementPolicy, Rollout, RolloutState};
use rangehold_shardmap::{Code, CreateMode, ListShardMap, Location, ManagerOptions, ShardMapManager};

/// One statement that both stores understand; the shard's own note says whose rows are at home.
const TABLES: &str =
    "create table orders (tenant bigint not null, item text not null, cents bigint not null)";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    for line in run(std::env::args().skip(1)).await? {
        println!("{line}");
    }
    Ok(())
}

/// Does all of it; gives what is to be told.
pub(crate) async fn run(mut addresses: impl Iterator<Item = String>) -> Result<Vec<String>, Box<dyn Error>> {
    let global = addresses.next().ok_or("call it as: shop GLOBAL-MAP SHARD SHARD ...")?;
    let shards = addresses.map(|address| Location::parse(&address)).collect::<Result<Vec<_>, _>>()?;
    let (location, access) = reach(&global)?;
    let mut told = Vec::new();

    let map = open(location, access.clone()).await?;
    for shard in &shards {
        if map.try_shard(shard).await?.is_none() {
            map.create_shard(shard).await?;
        }
    }
    make_tables(&map, &shards).await?;

    let routing = access.clone().map(Routing::new);
    for (tenant, item, cents) in [(1, "tea", 450), (2, "coffee", 390), (3, "milk", 120), (1, "sugar", 199)] {
        let place = map.provision(&tenant, PlacementPolicy::FewestTenants).await?.mapping;
        order(&map, routing.as_ref(), tenant, item, cents).await?;
        told.push(format!("tenant {tenant} ordered {item} in {}", name(place.shard().location())));
    }

    let all = "select tenant, sum(cents) as cents from orders_here group by tenant";
    let sums =
        if access.is_some() { all.replace("sum(cents)", "sum(cents)::bigint") } else { all.to_owned() };
    let mut rows = map.query(&sums).run(&Readers::new(access)).await?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next().await? {
        let (tenant, cents): (i64, i64) = (row.get("tenant")?, row.get("cents")?);
        lines.push(format!("tenant {tenant}: {cents} cents, in {}", name(row.shard())));
    }
    lines.sort();
    told.extend(lines);
    Ok(told)
}

/// The map of tenants, made when it is not there.
async fn open(
    location: Location,
    postgres: Option<PostgresAccess>,
) -> Result<ListShardMap<i64>, rangehold_shardmap::Error> {
    let options = ManagerOptions { postgres, owner: "shop".to_owned(), ..ManagerOptions::default() };
    let made = ShardMapManager::create(location.clone(), CreateMode::KeepExisting, options.clone()).await;
    let manager = match made {
        Err(error) if error.code() == Code::StoreAlreadyExists => {
            ShardMapManager::open(location, options).await?
        }
        made => made?,
    };
    match manager.try_list_map("tenants").await? {
        Some(map) => Ok(map),
        None => manager.create_list_map("tenants").await,
    }
}

/// The tables of the shop and the view of the rows at home, in every shard.
async fn make_tables(map: &ListShardMap<i64>, shards: &[Location]) -> Result<(), Box<dyn Error>> {
    for shard in shards {
        let view = owned_view(&map.info(), shard, "orders", "tenant")?;
        let rollout = Rollout { name: "tables".to_owned(), script: format!("{TABLES}; {view}") };
        let states = map.manager().roll_out(&rollout, std::slice::from_ref(shard)).await?;
        if let [(place, RolloutState::Failed { message })] = states.as_slice() {
            return Err(format!("{place}: {message}").into());
        }
    }
    Ok(())
}

/// An order, in the shard that holds its tenant: it is refused there if the tenant has moved, and then sent to
/// the tenant's new shard.
async fn order(
    map: &ListShardMap<i64>,
    routing: Option<&Routing>,
    tenant: i64,
    item: &'static str,
    cents: i64,
) -> Result<(), Box<dyn Error>> {
    match routing {
        Some(routing) => {
            let mut shard = map.open_connection_for_key(&tenant, routing).await?;
            shard.execute("insert into orders values ($1, $2, $3)", &[&tenant, &item, &cents]).await?;
        }
        None => {
            let mut shard = map.open_sqlite_connection_for_key(&tenant).await?;
            let insert = move |tx: &rusqlite::Transaction<'_>| {
                tx.execute("insert into orders values (?1, ?2, ?3)", (tenant, item, cents))
            };
            shard.transaction(false, insert).await?;
        }
    }
    Ok(())
}

/// The global map's place, and how PostgreSQL servers are reached.
fn reach(global: &str) -> Result<(Location, Option<PostgresAccess>), rangehold_shardmap::Error> {
    if global.starts_with("sqlite:") {
        return Ok((Location::parse(global)?, None));
    }
    let (location, access) = PostgresAccess::from_url(global)?;
    Ok((location, Some(access)))
}

/// The last word of a place, for people.
fn name(place: &Location) -> String {
    place.to_string().rsplit('/').next().unwrap_or_default().to_owned()
}
