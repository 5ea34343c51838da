//! Shard maps for SQL databases.
