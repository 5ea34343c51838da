//! How shard maps open connections for their keys.

use std::sync::Arc;

use rangehold_map::shard::{MappingId, ShardKey, ShardKeyValue};

use super::lookup::LookIn;
use super::shard_map::{KindOfMap, ShardMap};
use crate::error::Error;
use crate::routing::{Find, Lookup, Route, Routing, RoutingError, ShardConnection, SqliteShardConnection};
use crate::rows::ShardRow;

impl<K: ShardKeyValue + 'static, M: KindOfMap> ShardMap<K, M> {
    /// A connection to the PostgreSQL shard that has a key, with the credentials of `routing`.
    ///
    /// The key is looked up in the cache, and if it is not there, in the global map. It may have moved since then:
    /// each transaction of the connection enters the key in the shard, and follows the key if necessary.
    ///
    /// # Errors
    ///
    /// [`crate::Code::MappingNotFoundForKey`] for a key without a mapping; [`RoutingError::Unreachable`].
    pub async fn open_connection_for_key(
        &self,
        key: &K,
        routing: &Routing,
    ) -> Result<ShardConnection, RoutingError> {
        let connection = ShardConnection::open(routing, self.find(), self.key(key)?).await?;
        self.manager.metrics().routed_connections.one();
        Ok(connection)
    }

    /// The same for a key whose shard is a SQLite file.
    ///
    /// # Errors
    ///
    /// [`crate::Code::MappingNotFoundForKey`] for a key without a mapping.
    pub async fn open_sqlite_connection_for_key(
        &self,
        key: &K,
    ) -> Result<SqliteShardConnection, RoutingError> {
        let connection = SqliteShardConnection::open(self.find(), self.key(key)?).await?;
        self.manager.metrics().routed_connections.one();
        Ok(connection)
    }

    /// The place of a key, as the cache has it: no IO and no waiting. `None` if the cache does not have the key.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`] for a value that is not a key of this map.
    pub fn cached_route(&self, key: &K) -> Result<Option<Route>, Error> {
        let key = self.key(key)?;
        Ok(self.remembered(&key))
    }

    fn remembered(&self, key: &ShardKey) -> Option<Route> {
        let found = self.manager.0.cache.route(self.map.id, key.raw(), self.manager.metrics());
        found.map(|(mapping, shard)| self.route(mapping, &shard))
    }

    fn route(&self, mapping: MappingId, shard: &ShardRow) -> Route {
        Route { map: self.map.id, mapping, location: shard.location.clone() }
    }

    /// How the connections of this map find their keys.
    pub(crate) fn find(&self) -> Find {
        let map = self.clone();
        Arc::new(move |key, how| {
            let map = map.clone();
            Box::pin(async move { map.find_route(&key, how).await })
        })
    }

    async fn find_route(&self, key: &ShardKey, how: Lookup) -> Result<Route, Error> {
        if how == Lookup::Cached
            && let Some(route) = self.remembered(key)
        {
            return Ok(route);
        }
        match self.manager.find_key(&self.map, key.raw()).await? {
            Some(found) => Ok(self.route(found.mapping.id, &found.shard)),
            None => Err(self.not_found(key, LookIn::Store).await),
        }
    }
}
