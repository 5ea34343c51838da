//! Shard maps for SQL databases.

pub mod routing;
