//! Living with shards: the first database becomes a shard, new tenants and ranges find their place, schemas
//! are rolled out, and somebody looks how large it all is.
//!
//! What is decided here is decided without IO ([`choose`], [`due`]); the rest asks databases for what the
//! decision needs, and does it through the maps. `rangehold shards` binds it to a command line.

mod adopt;
mod calendar;
mod policy;
mod provision;
mod rollout;
mod sizes;

pub use calendar::{Every, due};
pub use policy::{PlacementPolicy, choose};
pub use provision::Provisioned;
pub use rollout::{Rollout, RolloutState};
pub use sizes::ShardSize;
