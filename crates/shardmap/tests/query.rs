//! Queries over many shards, on both stores. The numbers are those of `docs/shards/parity.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

#[macro_use]
#[path = "support/mod.rs"]
mod support;

#[path = "query/failures.rs"]
mod failures;
#[path = "query/moves.rs"]
mod moves;
#[path = "query/reading.rs"]
mod reading;
#[path = "query/world.rs"]
mod world;
