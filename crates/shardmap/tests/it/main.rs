//! Shard maps on real databases: SQLite files, and servers of PostgreSQL where the machine has it.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "a test fails by panic")]

#[macro_use]
mod support;
#[allow(dead_code, reason = "the trial is also a program of its own")]
mod trial;

mod credentials;
mod example;
mod fence;
mod guard;
mod manager;
mod parity;
mod postgres_server;
mod query;
mod quick_start;
mod routing;
mod routing_maps;
mod tenants;
mod torture;
