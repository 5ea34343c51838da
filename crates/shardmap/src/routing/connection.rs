//! A connection to the shard that has a key.
//!
//! It is a promise, not a socket: each transaction enters the key in the shard, and where the shard refuses
//! because the key has gone elsewhere, the connection looks it up once more and goes there, before anything
//! was done. What a caller sees of that is the latency.

use std::sync::Arc;

use futures::future::BoxFuture;
use rangehold_map::shard::{MappingId, ShardKey};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::Isolation;
use super::error::RoutingError;
use super::flight::Escort;
use super::pool::{Pooled, Routing};
use super::session::Session;
use super::transaction::ShardTransaction;
use crate::error::Error;
use crate::location::Location;

/// The first statement of a transaction, on its way.
#[derive(Debug)]
pub(super) struct First {
    isolation: Isolation,
    read_only: bool,
    /// Whether it is the only one too, and the commit goes with it.
    commits: bool,
    /// Whether it may be sent a second time.
    again: bool,
}

impl First {
    pub(super) fn of(isolation: Isolation, read_only: bool) -> Self {
        Self { isolation, read_only, commits: false, again: true }
    }

    fn alone() -> Self {
        Self { commits: true, ..Self::of(Isolation::ReadCommitted, false) }
    }
}

/// Where a key is, as the global map or a cache of it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The shard map.
    pub map: Uuid,
    /// The key's mapping.
    pub mapping: MappingId,
    /// The shard's place.
    pub location: Location,
}

/// Looks a key up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// In the cache, and where that has nothing, in the global map.
    Cached,
    /// In the global map, since what the cache says is wrong.
    Fresh,
}

/// How a connection finds its key.
pub type Find = Arc<dyn Fn(ShardKey, Lookup) -> BoxFuture<'static, Result<Route, Error>> + Send + Sync>;

/// A parameter of a statement: its value, and its type in PostgreSQL.
pub type Typed<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection to the shard that has a key, wherever that is.
///
/// Its doors are [`transaction`](ShardConnection::transaction) and single statements, each a transaction of
/// its own; both are fenced. A connection of the pool belongs to it from the time it is opened until it is
/// dropped.
pub struct ShardConnection {
    routing: Routing,
    find: Find,
    key: ShardKey,
    route: Route,
    session: Option<Pooled>,
}

impl std::fmt::Debug for ShardConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardConnection")
            .field("key", &self.key)
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl ShardConnection {
    /// Finds the key and connects to its shard. Shard maps do this by themselves; this door is for whoever
    /// keeps another list of places.
    ///
    /// # Errors
    ///
    /// What `find` says, and [`RoutingError::Unreachable`].
    pub async fn open(routing: &Routing, find: Find, key: ShardKey) -> Result<Self, RoutingError> {
        let route = find(key.clone(), Lookup::Cached).await?;
        let mut connection = Self { routing: routing.clone(), find, key, route, session: None };
        connection.connected().await?;
        Ok(connection)
    }

    /// Where it leads at the moment.
    pub fn location(&self) -> &Location {
        &self.route.location
    }

    /// The mapping by which it leads there.
    pub fn mapping(&self) -> MappingId {
        self.route.mapping
    }

    /// A transaction on the key. Nothing is sent before its first statement.
    pub fn transaction(&mut self, isolation: Isolation, read_only: bool) -> ShardTransaction<'_> {
        ShardTransaction::new(self, isolation, read_only)
    }

    /// The rows of one statement, which is a transaction of its own at READ COMMITTED: one round trip.
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
            let answer = self.depart(&alone).await?.query_typed(sql, parameters).await;
            if let Some(rows) = self.arrive(&mut alone, answer).await? {
                return Ok(rows);
            }
        }
    }

    /// Runs one statement, which is a transaction of its own at READ COMMITTED, and gives how many rows it
    /// changed: one round trip.
    ///
    /// # Errors
    ///
    /// A [`RoutingError`], which says whether to try again.
    pub async fn execute_typed(&mut self, sql: &str, parameters: &[Typed<'_>]) -> Result<u64, RoutingError> {
        let mut alone = First::alone();
        loop {
            let answer = self.depart(&alone).await?.execute_typed(sql, parameters).await;
            if let Some(count) = self.arrive(&mut alone, answer).await? {
                return Ok(count);
            }
        }
    }

    /// As [`query_typed`](ShardConnection::query_typed), with types that the server says: two round trips.
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

    /// As [`execute_typed`](ShardConnection::execute_typed), with types that the server says: two round trips.
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

    /// The driver's client, without any fence: for what is not about the key. What is done with it may run
    /// on a shard that has lost the key.
    ///
    /// # Errors
    ///
    /// A [`RoutingError`] where the shard can't be reached.
    pub async fn unfenced(&mut self) -> Result<&Client, RoutingError> {
        Ok(self.connected().await?.lend())
    }

    /// The client over which the first statement of a transaction goes, its escort with it.
    pub(super) async fn depart(&mut self, first: &First) -> Result<&Client, RoutingError> {
        let escort = Escort::begin(first.isolation, first.read_only, self.route.map, self.key.raw());
        let escort = if first.commits { escort.and_commit() } else { escort };
        let session = self.connected().await?;
        session.depart(escort);
        Ok(session.client())
    }

    /// Takes the answer of the first statement. `None` says: send it again. It was refused because the key is
    /// elsewhere, or the connection had broken while it lay in the pool; so it has not run, and the
    /// connection leads to where the key is now. That happens once.
    pub(super) async fn arrive<T>(
        &mut self,
        first: &mut First,
        answer: Result<T, tokio_postgres::Error>,
    ) -> Result<Option<T>, RoutingError> {
        let Some(session) = self.session.as_deref_mut() else {
            return Err(RoutingError::Spent { location: self.route.location.clone() });
        };
        let error = match answer {
            Ok(answer) => {
                session.arrived();
                return Ok(Some(answer));
            }
            Err(error) => RoutingError::of_driver(session.location(), error, first.commits),
        };
        session.abandon();
        let again = std::mem::take(&mut first.again);
        let moved = match &error {
            RoutingError::NotHere { .. } if again => self.look_again().await?,
            RoutingError::Lost { .. } if again => {
                self.part();
                true
            }
            _ => false,
        };
        if moved { Ok(None) } else { Err(error) }
    }

    /// The session, settled: connected now, if it was not or has broken.
    pub(super) async fn connected(&mut self) -> Result<&mut Session, RoutingError> {
        let is_good = match &mut self.session {
            Some(session) if !session.is_closed() => session.settle().await.is_ok(),
            _ => false,
        };
        if !is_good {
            self.part();
            let session = match self.routing.session(&self.route.location).await {
                Ok(session) => session,
                Err(error) => self.connect_elsewhere(error).await?,
            };
            self.routing.reached(self.route.mapping);
            self.session = Some(session);
        }
        let session = self.session.as_mut().expect("it was made above, if it was not there");
        Ok(session)
    }

    /// What goes with a statement in a transaction that is open: nothing, but after a command that may have
    /// ended it and begun another (`COMMIT AND CHAIN`) the key is entered once more.
    pub(super) fn escort(&self) -> Escort {
        match &self.session {
            Some(session) if session.may_have_left() => Escort::enter(self.route.map, self.key.raw()),
            _ => Escort::none(),
        }
    }

    /// The session as it is, without a word to the server.
    pub(super) fn session(&mut self) -> Option<&mut Session> {
        self.session.as_deref_mut()
    }

    /// A shard that can't be reached may be one that has lost the key: asks the global map, though not
    /// often, and tries once more.
    async fn connect_elsewhere(&mut self, error: RoutingError) -> Result<Pooled, RoutingError> {
        if !self.routing.may_look(self.route.mapping) {
            return Err(error);
        }
        self.route = (self.find)(self.key.clone(), Lookup::Fresh).await?;
        self.routing.session(&self.route.location).await
    }

    /// Asks the global map; whether it says something new.
    async fn look_again(&mut self) -> Result<bool, RoutingError> {
        let route = (self.find)(self.key.clone(), Lookup::Fresh).await?;
        let is_new = route != self.route;
        if route.location != self.route.location {
            // What was sent is answered, so the session may go back for others.
            self.session = None;
        }
        self.route = route;
        Ok(is_new)
    }

    /// Lets go of a session that is broken.
    fn part(&mut self) {
        drop(self.session.take().map(Pooled::take));
    }
}
