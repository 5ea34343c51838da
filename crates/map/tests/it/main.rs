//! Keys, maps, load and plans by their public functions: golden files and scripts, stories and properties.

#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod capacity;
mod changes;
mod history;
mod keys;
mod load;
mod names;
mod plan;
mod ranges;
mod scripts;
mod shard_keys;
mod shard_maps;
