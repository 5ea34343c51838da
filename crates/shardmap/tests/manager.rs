//! The manager on both stores: one body for each behaviour, run on SQLite and on PostgreSQL. The numbers of
//! behaviours are those of `docs/shards/parity.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

#[macro_use]
#[path = "support/mod.rs"]
mod support;

#[path = "manager/crash.rs"]
mod crash;
#[path = "manager/examples.rs"]
mod examples;
#[path = "manager/factory.rs"]
mod factory;
#[path = "manager/failures.rs"]
mod failures;
#[path = "manager/load.rs"]
mod load;
#[path = "manager/locks.rs"]
mod locks;
#[path = "manager/maps.rs"]
mod maps;
#[path = "manager/points.rs"]
mod points;
#[path = "manager/ranges.rs"]
mod ranges;
#[path = "manager/recovery.rs"]
mod recovery;
#[path = "manager/schema_infos.rs"]
mod schema_infos;
#[path = "manager/shards.rs"]
mod shards;
#[path = "manager/world.rs"]
mod world;
