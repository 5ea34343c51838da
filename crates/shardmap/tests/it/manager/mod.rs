//! The manager on both stores: one body for each behaviour, run on SQLite and on PostgreSQL. The numbers of
//! behaviours are those of `docs/shards/parity.md`.

mod counts;
mod crash;
mod examples;
mod factory;
mod failures;
mod identity;
mod large;
mod load;
mod locks;
mod maps;
mod moving;
mod places;
mod points;
mod ranges;
mod recovery;
mod roles;
mod schema_infos;
mod shards;
mod stopped;
mod two_maps;
mod upgrade;
mod world;
