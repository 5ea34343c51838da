//! Data-dependent routing: a connection to the shard that has a key, and a fence that keeps its transactions on this
//! key.

mod backoff;
mod connection;
pub mod error;
mod flight;
mod link;
mod pool;
mod session;
mod sqlite;
mod transaction;

pub use connection::ShardConnection;
pub use error::{Retry, RoutingError};
pub use link::{Find, Lookup, Route};
pub use pool::Routing;
pub use sqlite::SqliteShardConnection;
pub use transaction::{CopyIn, CopyOut, ShardTransaction, Typed};

/// How a transaction sees what other transactions do meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Each statement sees what was committed before it began.
    ReadCommitted,
    /// All statements see what was committed before the first began.
    RepeatableRead,
    /// As if transactions ran one after the other.
    Serializable,
}

impl Isolation {
    fn sql(self) -> &'static str {
        match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}
