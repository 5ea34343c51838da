//! The programs of `docs/shards/quick-start.md`, as a reader pastes them.

use crate::support::roles::MANAGER;
use crate::support::stores::World;
use rangehold_shardmap::Location;

#[allow(dead_code, reason = "its `main` is for readers")]
#[path = "../../examples/quick_start_postgres.rs"]
mod postgres_program;
#[allow(dead_code, reason = "its `main` is for readers")]
#[path = "../../examples/quick_start_sqlite.rs"]
mod sqlite_program;

#[test]
fn the_page_has_both_programs() {
    let page = include_str!("../../../../docs/shards/quick-start.md");
    let blocks: Vec<&str> =
        page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let programs = [
        include_str!("../../examples/quick_start_sqlite.rs"),
        include_str!("../../examples/quick_start_postgres.rs"),
    ];
    assert_eq!(blocks, programs);
}

/// Cargo refuses two versions of a crate that links SQLite.
#[test]
fn the_page_adds_the_version_of_rusqlite_that_links() {
    let page = include_str!("../../../../docs/shards/quick-start.md");
    let (_, rest) = page.split_once("cargo add rusqlite@").unwrap();
    let added = rest.split(' ').next().unwrap();
    let locked =
        include_str!("../../../../Cargo.lock").split_once("name = \"rusqlite\"\nversion = \"").unwrap().1;
    assert!(
        locked.starts_with(&format!("{added}.")),
        "the page adds {added}, and Cargo.lock has {locked:.9}"
    );
}

#[tokio::test]
async fn the_program_for_sqlite_spreads_tenants() {
    let world = World::sqlite();
    let [global, one, two] = ["maps", "one", "two"].map(|name| world.place(name).to_string());
    spread(&sqlite_program::run(&global, [&one, &two]).await.unwrap());
}

#[tokio::test]
async fn the_program_for_postgresql_spreads_tenants() {
    rangehold_testkit::needs!(PostgreSql);
    let world = World::postgres();
    let places: [Location; 3] = ["maps", "one", "two"].map(|name| world.database(name));
    let [global, one, two] = places.map(|place| place.to_string());
    let global = global.replace("postgres://", &format!("postgres://{MANAGER}@"));
    spread(&postgres_program::run(&global, [&one, &two]).await.unwrap());
}

/// Three tenants are on two shards.
fn spread(lines: &[String]) {
    let places: Vec<&str> = lines.iter().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert!(places.len() == 3 && places[0] != places[1], "{lines:?}");
}
