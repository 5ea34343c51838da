//! The roles of the tests' PostgreSQL servers, with the grants that `docs/shards/roles.md` prescribes. The statements
//! come from its files. Only the setup of a server and of its databases is done by a superuser, who owns the databases;
//! tests connect in these roles.

/// Owns the application's tables.
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

/// Where the second and the third part of a file of grants begin.
const MARKS: [&str; 2] = ["-- in each database\n", "-- after the tables\n"];

/// The parts of a file of grants: for a server, for a database, and for its tables once they are made.
fn parts(grants: &'static str) -> [&'static str; 3] {
    let (server, rest) = grants.split_once(MARKS[0]).expect("the file has a part for each database");
    let (database, tables) = rest.split_once(MARKS[1]).expect("the file has a part for tables");
    [server, database, tables]
}

/// What a new server needs: the roles, and the grants that belong to no database.
pub(crate) fn of_server() -> &'static str {
    parts(SHARD)[0]
}

/// What the database of a shard needs.
pub(crate) fn of_shard(database: &str) -> String {
    parts(SHARD)[1].replace("DATABASE_NAME", database)
}

/// What the database of a global map needs before the manager makes its tables.
pub(crate) fn of_global_database(database: &str) -> String {
    parts(GLOBAL)[1].replace("DATABASE_NAME", database)
}

/// What that database needs after its tables are made. The manager may run these grants.
pub fn of_global_map() -> &'static str {
    parts(GLOBAL)[2]
}
