//! Daily work with shards: making an existing database a shard, placing new tenants and ranges, rolling out
//! schemas, and looking at sizes.
//!
//! Decisions are pure functions ([`choose`], [`due`]). The methods of maps and of the manager read from the databases
//! what a decision needs, and carry the decision out. `rangehold shards` is the command line for them.

pub use super::calendar::{Every, due};
pub use super::placement::{PlacementPolicy, choose};
pub use super::provision::Provisioned;
pub use super::rollout::{Rollout, RolloutState};
pub use super::sizes::ShardSize;
