//! The engine from outside: a node on a store, its crashes, and what the next node finds.

#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod support;

mod based_copy;
mod blobs;
mod changes;
mod closed_buckets;
mod copied_tables;
mod copy;
mod damaged_range;
mod determinism;
mod dropped_tables;
mod format_1;
mod model;
mod node;
mod objects;
mod on_disk;
mod restored_range;
mod space;
mod store_directory;
mod store_garbage;
mod two_processes;
