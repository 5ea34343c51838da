//! Living with shards: the first database becomes a shard, new tenants and ranges find their place, schemas
//! are rolled out, and somebody looks how large it all is.
//!
//! What is decided here is decided without IO ([`choose`], [`due`]); the rest asks databases for what the
//! decision needs, and does it through the maps. `rangehold shards` binds it to a command line.

pub use super::calendar::{Every, due};
pub use super::placement::{PlacementPolicy, choose};
pub use super::provision::Provisioned;
pub use super::rollout::{Rollout, RolloutState};
pub use super::sizes::ShardSize;
