//! Shard maps: which of your databases holds which keys.
//!
//! A *shard* is a database. A *shard map* says which keys lie in which shard: single keys ([`ListShardMap`]) or
//! intervals ([`RangeShardMap`]). It is kept in three places. A *global map* in one database has every key. A *local
//! map* in each shard decides what the shard serves. A cache is in your program. [`ShardMapManager`] is the entrance.
//!
//! ```no_run
//! use rangehold_shardmap::{CreateMode, Location, ManagerOptions, ShardMapManager};
//!
//! # async fn example() -> Result<(), rangehold_shardmap::Error> {
//! let global = Location::sqlite("maps.db")?;
//! let manager = ShardMapManager::create(global, CreateMode::KeepExisting, ManagerOptions::default()).await?;
//! let tenants = manager.create_list_map::<i64>("tenants").await?;
//! let first = tenants.create_shard(&Location::sqlite("shard-1.db")?).await?;
//! tenants.add(&17, &first).await?;
//! assert_eq!(tenants.get(&17).await?.shard(), &first);
//! # Ok(())
//! # }
//! ```
//!
//! A change writes to the global map and to one or two shards, without a common transaction. [`operation`] explains
//! why it is still done as a whole or not at all, even if a process crashes.

mod cache;
mod chance;
mod error;
pub mod limits;
mod location;
mod manager;
mod metrics;
pub mod operation;
pub mod routing;
mod rows;
mod store;

pub use error::{Category, Code, Error, Failure};
pub use location::Location;
pub use manager::*;
pub use metrics::{Counter, Metrics};
pub use operation::{PendingOperation, RetryPolicy};
pub use rangehold_map::shard::{
    DateTime, DateTimeOffset, Lock, LockToken, MapKind, MappingId, OrderedUuid, ShardId, ShardKey,
    ShardKeyType, ShardKeyValue, TimeSpan,
};
pub use store::{Drain, StoreError, postgres};
