//! Sessions that are kept. There is one pool for each shard and each set of credentials.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use deadpool::managed::{
    Manager, Metrics, Object, Pool, PoolError, RecycleError, RecycleResult, TimeoutType,
};
use rangehold_map::shard::MappingId;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::error::RoutingError;
use super::session::Session;
use crate::limits::{CONNECT_TIMEOUT, ROUTED_CONNECTION_WAIT, ROUTED_CONNECTIONS_PER_SHARD};
use crate::location::Location;
use crate::store::postgres::PostgresAccess;

/// A session that goes back into its pool when it is dropped.
pub(super) type Pooled = Object<Sessions>;

/// Routing credentials, and the sessions that are kept with them. Cheap to clone: all clones share them.
///
/// These credentials are separate from the manager's. Their role needs its own tables in the shards, and nothing else
/// there, because every role may enter a key.
#[derive(Debug, Clone)]
pub struct Routing(Arc<Shared>);

struct Shared {
    access: PostgresAccess,
    sessions_per_shard: usize,
    pools: Mutex<HashMap<Location, Pool<Sessions>>>,
    backoff: Mutex<Backoff>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Routing {
    /// Uses these credentials, with at most [`ROUTED_CONNECTIONS_PER_SHARD`] connections to each shard.
    pub fn new(access: PostgresAccess) -> Self {
        Self::with_size(access, ROUTED_CONNECTIONS_PER_SHARD)
    }

    /// The same with another number of connections to each shard; at least one.
    pub fn with_size(access: PostgresAccess, sessions_per_shard: usize) -> Self {
        Self(Arc::new(Shared {
            access,
            sessions_per_shard: sessions_per_shard.max(1),
            pools: Mutex::default(),
            backoff: Mutex::default(),
        }))
    }

    /// A session with the shard at `location`. It comes from the pool, or it is new.
    pub(super) async fn session(&self, location: &Location) -> Result<Pooled, RoutingError> {
        let pool = self.pool(location)?;
        let unreachable = |why: String| {
            let location = location.clone();
            RoutingError::Unreachable { location, source: why.into() }
        };
        pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => error,
            PoolError::Timeout(TimeoutType::Wait) => unreachable(format!(
                "all {} connections were in use for {ROUTED_CONNECTION_WAIT:?}",
                self.0.sessions_per_shard
            )),
            other => unreachable(other.to_string()),
        })
    }

    fn pool(&self, location: &Location) -> Result<Pool<Sessions>, RoutingError> {
        let mut pools = self.0.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(location) {
            return Ok(pool.clone());
        }
        let sessions = Sessions { location: location.clone(), access: self.0.access.clone() };
        let pool = Pool::builder(sessions)
            .max_size(self.0.sessions_per_shard)
            .runtime(deadpool::Runtime::Tokio1)
            .wait_timeout(Some(ROUTED_CONNECTION_WAIT))
            .recycle_timeout(Some(CONNECT_TIMEOUT))
            .build()
            .map_err(|error| RoutingError::Unreachable {
                location: location.clone(),
                source: error.into(),
            })?;
        pools.insert(location.clone(), pool.clone());
        Ok(pool)
    }

    /// Whether the global map may be asked about a mapping whose shard could not be reached.
    pub(super) fn may_look(&self, mapping: MappingId) -> bool {
        self.backoff().may_look(mapping, Instant::now())
    }

    /// Notes that the shard of a mapping was reached.
    pub(super) fn reached(&self, mapping: MappingId) {
        self.backoff().reached(mapping);
    }

    /// The pause between two looks at the global map, for a mapping whose shard cannot be reached. It is zero if the
    /// last attempt reached the shard.
    pub fn pause(&self, mapping: MappingId) -> std::time::Duration {
        self.backoff().pause(mapping)
    }

    fn backoff(&self) -> std::sync::MutexGuard<'_, Backoff> {
        self.0.backoff.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes and checks the sessions of one pool.
#[derive(Debug)]
pub(super) struct Sessions {
    location: Location,
    access: PostgresAccess,
}

impl Manager for Sessions {
    type Type = Session;
    type Error = RoutingError;

    async fn create(&self) -> Result<Session, RoutingError> {
        Session::open(&self.location, &self.access).await
    }

    /// The session was cleaned when it was given back, so this waits only if the answer has not come yet.
    async fn recycle(&self, session: &mut Session, _: &Metrics) -> RecycleResult<RoutingError> {
        if session.is_closed() {
            return Err(RecycleError::message("the connection is closed"));
        }
        let settled = session.cleaned().await;
        settled.map_err(|source| RoutingError::of_driver(&self.location, source, false).into())
    }
}
