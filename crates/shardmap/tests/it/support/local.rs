//! A local map written by hand, for tests of the fence that need no manager.

use rangehold_shardmap::postgres::{FENCE_SQL, LOCAL_SQL};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use super::postgres::PostgresServer;
use super::roles::{APPLICATION, MANAGER};

/// A connection as the application, whose other half runs by itself.
pub async fn connect(server: &PostgresServer, database: &str) -> Client {
    connect_to(&server.address(database, APPLICATION)).await
}

/// A connection as the manager.
pub async fn manage(server: &PostgresServer, database: &str) -> Client {
    connect_to(&server.address(database, MANAGER)).await
}

/// The same, to any address.
pub async fn connect_to(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

/// Enters a key (in hexadecimal digits) and gives the SQLSTATE of a refusal.
pub async fn enter(client: &Client, map: Uuid, key: &str) -> Result<(), String> {
    let sql = format!("SELECT __shard_management.enter('{map}'::uuid, '\\x{key}'::bytea)");
    let entered = client.batch_execute(&sql).await;
    entered.map_err(|error| error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned()))
}

/// One database with the schema of a shard and one map in it.
pub struct LocalMap {
    pub id: Uuid,
    /// A connection as the manager.
    pub client: Client,
}

impl LocalMap {
    /// A new database with a range map that has no mappings yet.
    pub async fn create(server: &PostgresServer, database: &str) -> LocalMap {
        LocalMap::create_of_type(server, database, "binary").await
    }

    /// The same with keys of a type.
    pub async fn create_of_type(server: &PostgresServer, database: &str, key_type: &str) -> LocalMap {
        server.create_database(database);
        let client = manage(server, database).await;
        client.batch_execute(LOCAL_SQL).await.expect("the schema of local maps");
        // Twice, because each program that adds a shard installs it again.
        client.batch_execute(FENCE_SQL).await.expect("the fence");
        client.batch_execute(FENCE_SQL).await.expect("the fence");
        let id = Uuid::from_u128(1);
        let map = format!(
            "INSERT INTO __shard_management.local_maps VALUES ('{id}', 'Tenants', 'range', '{key_type}', 1)"
        );
        client.batch_execute(&map).await.expect("a map");
        LocalMap { id, client }
    }

    /// Adds the mapping `[low, high)` or replaces the one that begins there; bounds in hexadecimal digits.
    pub async fn set(&self, low: &str, high: Option<&str>, online: bool, fence: i64) {
        let high = high.map_or("NULL".to_owned(), |high| format!("'\\x{high}'"));
        let (map, id) = (self.id, Uuid::from_u128(fence as u128));
        let sql = format!(
            "BEGIN; DELETE FROM __shard_management.local_mappings WHERE low = '\\x{low}';
             INSERT INTO __shard_management.local_mappings (mapping_id, map_id, shard_id, low, high, online, fence, epoch)
                 VALUES ('{id}', '{map}', '{map}', '\\x{low}', {high}, {online}, {fence}, 1); COMMIT",
        );
        self.client.batch_execute(&sql).await.expect("a mapping");
    }

    /// How many rows the table has.
    pub async fn count(&self) -> i64 {
        self.client.query_one("SELECT count(*) FROM rows", &[]).await.expect("a number").get(0)
    }

    /// The sessions that hold one of the fences.
    pub async fn holders(&self, fences: &[i64]) -> Vec<i32> {
        let sql = "SELECT pid FROM __shard_management.fence_holders($1)";
        let rows = self.client.query(sql, &[&fences]).await.expect("the holders");
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Returns when a session waits for a lock of a fence.
    pub async fn until_somebody_waits(&self) {
        let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        while self.client.query_one(sql, &[]).await.expect("the locks").get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
    }
}
