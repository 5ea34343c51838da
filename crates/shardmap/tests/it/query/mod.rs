//! Queries over many shards, on both stores. The numbers are those of `docs/shards/parity.md`.

mod at_once;
mod failures;
mod moves;
mod reading;
mod world;
