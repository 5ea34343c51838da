//! Places three tenants on two SQLite files.

use rangehold_shardmap::tenants::PlacementPolicy;
use rangehold_shardmap::{CreateMode, Location, ManagerOptions, ShardMapManager};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in run("sqlite:maps.db", ["sqlite:one.db", "sqlite:two.db"]).await? {
        println!("{line}");
    }
    Ok(())
}

pub(crate) async fn run(global: &str, shards: [&str; 2]) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    // Once: the global map, a shard map in it, and two databases as its shards.
    let (global, mode) = (Location::parse(global)?, CreateMode::KeepExisting);
    let manager = ShardMapManager::create(global, mode, ManagerOptions::default()).await?;
    let tenants = manager.create_list_map::<i64>("tenants").await?;
    for shard in shards {
        tenants.create_shard(&Location::parse(shard)?).await?;
    }
    let mut lines = Vec::new();
    for tenant in [1, 2, 3] {
        // For each new tenant: a shard.
        tenants.provision(&tenant, PlacementPolicy::FewestTenants).await?;
        // Always: a connection that leads to the tenant's shard.
        let mut connection = tenants.open_sqlite_connection_for_key(&tenant).await?;
        connection.transaction(false, move |tx| insert(tx, tenant)).await?;
        lines.push(format!("tenant {tenant} ordered in {}", connection.location()));
    }
    Ok(lines)
}

fn insert(tx: &rusqlite::Transaction<'_>, tenant: i64) -> rusqlite::Result<usize> {
    tx.execute_batch("create table if not exists orders (tenant integer, item text)")?;
    tx.execute("insert into orders values (?1, 'tea')", [tenant])
}
