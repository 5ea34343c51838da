//! The manager on both stores: one body for each behaviour, run on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

#[path = "support/mod.rs"]
#[macro_use]
mod support;

#[path = "manager/examples.rs"]
mod examples;
