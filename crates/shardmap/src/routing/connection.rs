//! A connection to the shard that has a key.
//!
//! A connection belongs to a key and not to a socket. Each transaction enters the key in the shard. If the shard
//! refuses because the key has moved, the connection looks the key up again and goes to the new shard. At that time
//! nothing has been done. The caller notices only the longer time.

use rangehold_map::shard::{MappingId, ShardKey};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::Isolation;
use super::error::RoutingError;
use super::link::{Find, First, Link};
use super::pool::Routing;
use super::transaction::{ShardTransaction, Typed};
use crate::location::Location;

/// A connection to the shard that has a key, wherever that shard is.
///
/// It runs [transactions](ShardConnection::transaction), and single statements, each of which is a transaction of its
/// own. All are fenced. It holds a connection of the pool until it is dropped.
pub struct ShardConnection {
    link: Link,
}

impl std::fmt::Debug for ShardConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardConnection")
            .field("key", &self.link.key)
            .field("route", &self.link.route)
            .finish_non_exhaustive()
    }
}

impl ShardConnection {
    /// Finds the key and connects to its shard. Shard maps call this. Other programs can call it too, with their own
    /// way to find keys.
    ///
    /// # Errors
    ///
    /// The errors of `find`, and [`RoutingError::Unreachable`].
    pub async fn open(routing: &Routing, find: Find, key: ShardKey) -> Result<Self, RoutingError> {
        Ok(Self { link: Link::open(routing, find, key).await? })
    }

    /// The shard to which the connection leads at present.
    pub fn location(&self) -> &Location {
        &self.link.route.location
    }

    /// The mapping of the key, which names that shard.
    pub fn mapping(&self) -> MappingId {
        self.link.route.mapping
    }

    /// Begins a transaction on the key. Nothing is sent before its first statement.
    pub fn transaction(&mut self, isolation: Isolation, read_only: bool) -> ShardTransaction<'_> {
        ShardTransaction::new(&mut self.link, isolation, read_only)
    }

    /// Runs one statement and returns its rows. It is a transaction of its own at READ COMMITTED: one round trip.
    ///
    /// # Errors
    ///
    /// A [`RoutingError`], which says whether to try again.
    pub async fn query_typed(
        &mut self,
        sql: &str,
        parameters: &[Typed<'_>],
    ) -> Result<Vec<Row>, RoutingError> {
        let mut alone = First::alone();
        loop {
            let answer = self.link.depart(&alone).await?.query_typed(sql, parameters).await;
            if let Some(rows) = self.link.arrive(&mut alone, answer).await? {
                return Ok(rows);
            }
        }
    }

    /// Runs one statement and returns how many rows it changed. It is a transaction of its own at READ COMMITTED: one
    /// round trip.
    ///
    /// # Errors
    ///
    /// A [`RoutingError`], which says whether to try again.
    pub async fn execute_typed(&mut self, sql: &str, parameters: &[Typed<'_>]) -> Result<u64, RoutingError> {
        let mut alone = First::alone();
        loop {
            let answer = self.link.depart(&alone).await?.execute_typed(sql, parameters).await;
            if let Some(count) = self.link.arrive(&mut alone, answer).await? {
                return Ok(count);
            }
        }
    }

    /// As [`query_typed`](ShardConnection::query_typed), but the server says the types: two round trips.
    ///
    /// # Errors
    ///
    /// A [`RoutingError`], which says whether to try again.
    pub async fn query(
        &mut self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, RoutingError> {
        let mut transaction = self.transaction(Isolation::ReadCommitted, false);
        let statement = transaction.prepare(sql).await?;
        let answer = transaction.depart_last().await?.query(&statement, parameters).await;
        transaction.arrive_last(answer)
    }

    /// As [`execute_typed`](ShardConnection::execute_typed), but the server says the types: two round trips.
    ///
    /// # Errors
    ///
    /// A [`RoutingError`], which says whether to try again.
    pub async fn execute(
        &mut self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, RoutingError> {
        let mut transaction = self.transaction(Isolation::ReadCommitted, false);
        let statement = transaction.prepare(sql).await?;
        let answer = transaction.depart_last().await?.execute(&statement, parameters).await;
        transaction.arrive_last(answer)
    }

    /// The driver's client without a fence, for statements that do not concern the key. They may run on a
    /// shard that has lost the key.
    ///
    /// # Errors
    ///
    /// A [`RoutingError`] if the shard cannot be reached.
    pub async fn unfenced(&mut self) -> Result<&Client, RoutingError> {
        Ok(self.link.connected().await?.lend())
    }
}
