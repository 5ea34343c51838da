//! The program as a server, its commands as clients of that server, and its commands for shard maps.

#![expect(clippy::disallowed_methods, reason = "a real process is driven from outside")]
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod azurite;
mod deletions;
mod history;
mod home;
mod objects;
mod program;
mod ranges;
mod rehearse;
mod script;
mod settings;
mod shard_commands;
mod shard_repairs;
mod shards;
mod snippets;
mod status;
mod stress;
mod tables;
