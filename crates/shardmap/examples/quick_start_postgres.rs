//! Places three tenants on two PostgreSQL databases.

use rangehold_shardmap::postgres::PostgresAccess;
use rangehold_shardmap::routing::Routing;
use rangehold_shardmap::tenants::PlacementPolicy;
use rangehold_shardmap::{CreateMode, Location, ManagerOptions, ShardMapManager};
use tokio_postgres::types::Type;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shards = ["postgres://localhost:5433/shop_one", "postgres://localhost:5433/shop_two"];
    for line in run("postgres://postgres@localhost:5433/shop_maps", shards).await? {
        println!("{line}");
    }
    Ok(())
}

pub(crate) async fn run(global: &str, shards: [&str; 2]) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    // Once: the global map, a shard map in it, and two databases as its shards.
    let (global, access) = PostgresAccess::from_url(global)?;
    let options = ManagerOptions { postgres: Some(access.clone()), ..ManagerOptions::default() };
    let manager = ShardMapManager::create(global, CreateMode::KeepExisting, options).await?;
    let tenants = manager.create_list_map::<i64>("tenants").await?;
    for shard in shards {
        tenants.create_shard(&Location::parse(shard)?).await?;
    }
    let routing = Routing::new(access);
    let mut lines = Vec::new();
    for tenant in [1_i64, 2, 3] {
        // For each new tenant: a shard.
        tenants.provision(&tenant, PlacementPolicy::FewestTenants).await?;
        // Always: a connection that leads to the tenant's shard. Each statement is fenced there.
        let mut connection = tenants.open_connection_for_key(&tenant, &routing).await?;
        let table = "create table if not exists orders (tenant bigint, item text)";
        connection.execute_typed(table, &[]).await?;
        let insert = "insert into orders values ($1, 'tea')";
        connection.execute_typed(insert, &[(&tenant, Type::INT8)]).await?;
        lines.push(format!("tenant {tenant} ordered in {}", connection.location()));
    }
    Ok(lines)
}
