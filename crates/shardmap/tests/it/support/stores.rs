//! Both stores for one test body: SQLite files in a directory of the test's own, or databases of its own in
//! a PostgreSQL server that the tests of one program share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use rangehold_shardmap::{CreateMode, Location, ManagerOptions, Shard, ShardMapManager};

use super::access;
use super::postgres::PostgresServer;
use super::roles::{self, MANAGER, OWNER};

/// The server that the tests of this program share. It ends with the program.
static SERVER: OnceLock<PostgresServer> = OnceLock::new();
/// Makes names of databases that no other test has.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A database that cannot be reached.
pub struct Hidden {
    server: Option<&'static PostgresServer>,
    from: String,
    to: String,
}

impl Hidden {
    pub fn show(self) {
        match self.server {
            Some(server) => server.rename_database(&self.from, &self.to),
            None => std::fs::rename(&self.from, &self.to).unwrap(),
        }
    }
}

/// Where a test's databases are.
pub struct World {
    directory: tempfile::TempDir,
    server: Option<&'static PostgresServer>,
    number: u32,
    /// PostgreSQL databases that were made: emptied rather than made again, which is a tenth of the work.
    made: Arc<Mutex<BTreeSet<String>>>,
}

impl World {
    pub fn sqlite() -> Self {
        Self::new(None)
    }

    pub fn postgres() -> Self {
        Self::new(Some(SERVER.get_or_init(PostgresServer::start)))
    }

    fn new(server: Option<&'static PostgresServer>) -> Self {
        let directory = tempfile::Builder::new().prefix("rangehold-maps-").tempdir().unwrap();
        Self { directory, server, number: NEXT.fetch_add(1, Ordering::Relaxed), made: Arc::default() }
    }

    /// The server, if the store is PostgreSQL.
    pub fn server(&self) -> Option<&'static PostgresServer> {
        self.server
    }

    pub fn is_postgres(&self) -> bool {
        self.server.is_some()
    }

    /// A database of this test; a PostgreSQL database must have been made by [`World::database`].
    pub fn place(&self, name: &str) -> Location {
        match self.server {
            Some(server) => {
                let name = format!("{name}_{}", self.number);
                Location::postgres("127.0.0.1", server.port(), &name).unwrap()
            }
            None => Location::sqlite(self.directory.path().join(name).to_str().unwrap()).unwrap(),
        }
    }

    /// A new database of this test: of a shard, or of a global map if its name is `global`.
    pub fn database(&self, name: &str) -> Location {
        let place = self.place(name);
        match (&place, self.server) {
            (Location::Postgres { database, .. }, Some(server)) => {
                if self.made.lock().unwrap().insert(database.to_string()) {
                    match name {
                        "global" => server.create_global_database(database),
                        _ => server.create_database(database),
                    }
                } else {
                    server.sql(
                        database,
                        "set client_min_messages = error;
                        drop schema if exists __shard_management cascade; drop table if exists orders",
                    );
                }
            }
            (Location::Sqlite { path }, _) => {
                rusqlite::Connection::open(path.as_ref()).unwrap().execute_batch("vacuum").unwrap();
            }
            _ => unreachable!("a place of the other store"),
        }
        place
    }

    /// A copy of a database, as from a backup.
    pub fn copy(&self, of: &Location, name: &str) -> Location {
        let place = self.place(name);
        match (of, &place, self.server) {
            (
                Location::Postgres { database, .. },
                Location::Postgres { database: copy, .. },
                Some(server),
            ) => {
                // A test that runs more than once has the copy of its last run.
                server.sql("postgres", &format!("drop database if exists \"{copy}\" with (force)"));
                server.copy_database(database, copy);
            }
            (Location::Sqlite { .. }, Location::Sqlite { path }, _) => {
                self.sql(of, &format!("vacuum into '{path}'"));
            }
            _ => unreachable!("places of one store"),
        }
        place
    }

    /// Makes a database unreachable until it is shown again.
    pub fn hide(&self, place: &Location) -> Hidden {
        match (place, self.server) {
            (Location::Postgres { database, .. }, Some(server)) => {
                let hidden = format!("{database}_hidden");
                server.rename_database(database, &hidden);
                Hidden { server: Some(server), from: hidden, to: database.to_string() }
            }
            (Location::Sqlite { path }, _) => {
                // What is in the write-ahead log goes into the file, which then moves alone.
                self.sql(place, "pragma wal_checkpoint(truncate)");
                let hidden = format!("{path}-hidden");
                std::fs::rename(path.as_ref(), &hidden).unwrap();
                for extra in ["-wal", "-shm"] {
                    let _ = std::fs::remove_file(format!("{path}{extra}"));
                }
                Hidden { server: None, from: hidden, to: path.to_string() }
            }
            _ => unreachable!("a place of the other store"),
        }
    }

    /// Another name of a database.
    pub fn other_name(&self, of: &Location) -> Location {
        match of {
            Location::Postgres { port, database, .. } => {
                Location::postgres("localhost", *port, database).unwrap()
            }
            Location::Sqlite { path } => {
                let (folder, name) = path.rsplit_once('/').unwrap();
                std::fs::create_dir_all(format!("{folder}/way")).unwrap();
                Location::sqlite(&format!("{folder}/way/../{name}")).unwrap()
            }
        }
    }

    /// Databases `a`, `b`, `c`, each with a table of its user's.
    pub fn shards<const N: usize>(&self) -> [Location; N] {
        std::array::from_fn(|index| {
            let place = self.database(["shard_a", "shard_b", "shard_c", "shard_d"][index]);
            let sql = format!(
                "create table orders (tenant int, note text);
                insert into orders values (1, 'one of {index}'), (50, 'fifty')"
            );
            self.sql(&place, &sql);
            place
        })
    }

    /// A fresh world of the same store, for a test that needs many, one after the other.
    pub fn again(&self) -> Self {
        let number = if self.is_postgres() { self.number } else { NEXT.fetch_add(1, Ordering::Relaxed) };
        Self { number, made: self.made.clone(), ..Self::new(self.server) }
    }

    /// What a user sees of the user's own tables.
    pub fn users_tables(&self, place: &Location) -> String {
        self.sql(place, "select tenant || ' ' || note from orders order by 1")
    }

    pub fn options(&self) -> ManagerOptions {
        self.options_of(MANAGER)
    }

    /// What a process needs that connects as a role.
    pub fn options_of(&self, role: &str) -> ManagerOptions {
        let postgres = self.server.map(|_| access(role));
        ManagerOptions { postgres, ..ManagerOptions::default() }
    }

    /// A manager over a new global map.
    pub async fn manager(&self) -> ShardMapManager {
        self.manager_with(self.options()).await
    }

    pub async fn manager_with(&self, options: ManagerOptions) -> ShardMapManager {
        let place = self.database("global");
        let manager =
            ShardMapManager::create(place.clone(), CreateMode::KeepExisting, options).await.unwrap();
        if let (Location::Postgres { database, .. }, Some(server)) = (&place, self.server) {
            server.sql_as(MANAGER, database, roles::of_global_map());
        }
        manager
    }

    /// Another manager of the same global map, as another process has it.
    pub async fn second(&self) -> ShardMapManager {
        self.second_with(self.options()).await
    }

    pub async fn second_with(&self, options: ManagerOptions) -> ShardMapManager {
        ShardMapManager::open(self.place("global"), options).await.unwrap()
    }

    /// Runs SQL behind everybody's back. `@name` is a table of ours, which belongs to the manager, and other tables belong
    /// to the owner of the database. Gives the first column, a row a line.
    pub fn sql(&self, place: &Location, sql: &str) -> String {
        let is_ours = sql.replace("<@", "").contains('@') || sql.contains("drop schema");
        self.sql_as(if is_ours { MANAGER } else { OWNER }, place, sql)
    }

    /// The same as any role.
    pub fn sql_as(&self, role: &str, place: &Location, sql: &str) -> String {
        let prefix = if self.is_postgres() { "__shard_management." } else { "__shard_management_" };
        // An operator of PostgreSQL has the same sign.
        let sql = sql.replace('@', prefix).replace(&format!("<{prefix}"), "<@");
        match (place, self.server) {
            (Location::Postgres { database, .. }, Some(server)) => server.sql_as(role, database, &sql),
            (Location::Sqlite { path }, _) => sqlite(path, &sql),
            _ => unreachable!("a place of the other store"),
        }
    }

    /// Lets every write of a table fail, by a trigger, until [`World::mend`].
    pub fn break_table(&self, place: &Location, table: &str) {
        if self.is_postgres() {
            let sql = format!(
                "create or replace function @broken() returns trigger language plpgsql as
                    'begin raise exception ''broken by a test''; end';
                create trigger broken before insert or update or delete on @{table}
                    for each statement execute function @broken()"
            );
            self.sql(place, &sql);
        } else {
            for event in ["insert", "update", "delete"] {
                let sql = format!(
                    "create trigger broken_{event} before {event} on @{table}
                    begin select raise(abort, 'broken by a test'); end"
                );
                self.sql(place, &sql);
            }
        }
    }

    pub fn mend(&self, place: &Location, table: &str) {
        if self.is_postgres() {
            self.sql(place, &format!("drop trigger broken on @{table}"));
        } else {
            for event in ["insert", "update", "delete"] {
                self.sql(place, &format!("drop trigger broken_{event}"));
            }
        }
    }
}

fn sqlite(path: &str, sql: &str) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    if !sql.trim_start().starts_with("select") {
        connection.execute_batch(sql).unwrap();
        return String::new();
    }
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
    let text = |value: rusqlite::types::Value| match value {
        rusqlite::types::Value::Text(text) => text,
        rusqlite::types::Value::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    rows.map(|row| text(row.unwrap())).collect::<Vec<_>>().join("\n")
}

/// Where a shard is, in a word: `A` for the first of these.
pub fn letter(shard: &Shard, places: &[Location]) -> char {
    let index = places.iter().position(|place| place == shard.location()).unwrap();
    char::from(b'A' + u8::try_from(index).unwrap())
}

/// One test body for each store.
#[allow(unused_macros)]
macro_rules! on_both_stores {
    ($($(#[$about:meta])* async fn $name:ident($world:ident) $body:block)*) => {$(
        $(#[$about])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            async fn body($world: &$crate::support::stores::World) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                body(&$crate::support::stores::World::sqlite()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                rangehold_testkit::needs!(PostgreSql);
                body(&$crate::support::stores::World::postgres()).await;
            }
        }
    )*};
}
