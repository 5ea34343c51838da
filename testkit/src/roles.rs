//! The roles of the tests' PostgreSQL servers, with the grants that `docs/shards/roles.md` prescribes. Only the setup of
//! a server and of its databases is done by a superuser; tests connect as these.

/// Owns the databases and the application's tables.
pub const OWNER: &str = "map_owner";
/// Changes shard maps.
pub const MANAGER: &str = "map_manager";
/// The application: reads and writes rows.
pub const APPLICATION: &str = "map_app";
/// Looks keys up, and reads rows.
pub const READER: &str = "map_reader";

pub(crate) const ALL: [&str; 4] = [OWNER, MANAGER, APPLICATION, READER];

const GLOBAL: &str = include_str!("../../docs/shards/grants/global.sql");
const SHARD: &str = include_str!("../../docs/shards/grants/shard.sql");

/// What a new server needs: the roles, and the grants that belong to no database.
pub(crate) fn of_server() -> String {
    let roles = ALL.map(|role| format!("CREATE ROLE {role} LOGIN;"));
    roles.concat() + &before_tables(SHARD, false)
}

/// What a new database needs: it may be a global map, or a shard, or both.
pub(crate) fn of_database(name: &str) -> String {
    let mut sql = before_tables(SHARD, true).replace("DATABASE_NAME", name);
    for (maker, grant) in [
        (OWNER, format!("SELECT, INSERT, UPDATE, DELETE ON TABLES TO {APPLICATION}")),
        (OWNER, format!("USAGE ON SEQUENCES TO {APPLICATION}")),
        (OWNER, format!("SELECT ON TABLES TO {READER}")),
        // A script for all shards makes tables as the manager.
        (MANAGER, format!("ALL ON TABLES TO {OWNER}")),
        (MANAGER, format!("SELECT, INSERT, UPDATE, DELETE ON TABLES TO {APPLICATION}")),
        (MANAGER, format!("SELECT ON TABLES TO {READER}")),
    ] {
        sql += &format!("ALTER DEFAULT PRIVILEGES FOR ROLE {maker} IN SCHEMA public GRANT {grant};");
    }
    sql
}

/// What the database of a global map needs once the manager has made its tables. The manager may run it.
pub fn of_global_map() -> &'static str {
    GLOBAL.split_once(AFTER).expect("the file has two parts").1
}

/// Where the second part of a file of grants begins.
const AFTER: &str = "-- after the tables";

/// The statements of the first part that name a database, or those that do not.
fn before_tables(grants: &str, names_database: bool) -> String {
    let first = grants.split_once(AFTER).expect("the file has two parts").0;
    let lines = first.lines().filter(|line| !line.starts_with("--"));
    lines
        .filter(|line| line.contains("DATABASE_NAME") == names_database)
        .map(|line| format!("{line}\n"))
        .collect()
}
