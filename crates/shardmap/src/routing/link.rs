//! The link from a connection to the shard that has its key.
//!
//! A link has a session of the pool, and follows its key. If the shard refuses the first statement of a transaction
//! because the key has moved, the link looks the key up again and goes to the new shard. Connections and transactions
//! both work through a link.

use std::sync::Arc;

use futures::future::BoxFuture;
use rangehold_map::shard::{MappingId, ShardKey};
use tokio_postgres::Client;
use uuid::Uuid;

use super::Isolation;
use super::error::RoutingError;
use super::flight::Envelope;
use super::pool::{Pooled, Routing};
use super::session::Session;
use crate::error::Error;
use crate::location::Location;

/// The first statement of a transaction, on its way.
#[derive(Debug)]
pub(super) struct First {
    isolation: Isolation,
    read_only: bool,
    /// Whether it is also the last statement, so that the commit is sent with it.
    commits: bool,
    /// Whether it may be sent a second time.
    again: bool,
}

impl First {
    pub(super) fn of(isolation: Isolation, read_only: bool) -> Self {
        Self { isolation, read_only, commits: false, again: true }
    }

    pub(super) fn alone() -> Self {
        Self { commits: true, ..Self::of(Isolation::ReadCommitted, false) }
    }
}

/// The place of a key, as the global map or a cache of it has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The shard map.
    pub map: Uuid,
    /// The key's mapping.
    pub mapping: MappingId,
    /// The shard's place.
    pub location: Location,
}

/// Where a key is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// In the cache. If the key is not there, in the global map.
    Cached,
    /// In the global map, because the cache is wrong.
    Fresh,
}

/// How a connection finds its key.
pub type Find = Arc<dyn Fn(ShardKey, Lookup) -> BoxFuture<'static, Result<Route, Error>> + Send + Sync>;

/// The way to the shard that has a key.
pub(super) struct Link {
    routing: Routing,
    find: Find,
    pub(super) key: ShardKey,
    pub(super) route: Route,
    session: Option<Pooled>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("key", &self.key).field("route", &self.route).finish_non_exhaustive()
    }
}

impl Link {
    /// Finds the key and connects to its shard.
    pub(super) async fn open(routing: &Routing, find: Find, key: ShardKey) -> Result<Self, RoutingError> {
        let route = find(key.clone(), Lookup::Cached).await?;
        let mut link = Self { routing: routing.clone(), find, key, route, session: None };
        link.connected().await?;
        Ok(link)
    }

    /// The client for the first statement of a transaction, with its envelope ready.
    pub(super) async fn depart(&mut self, first: &First) -> Result<&Client, RoutingError> {
        let envelope = Envelope::begin(first.isolation, first.read_only, self.route.map, self.key.raw());
        let envelope = if first.commits { envelope.and_commit() } else { envelope };
        let session = self.connected().await?;
        session.depart(envelope);
        Ok(session.client())
    }

    /// Takes the answer to the first statement. `None` means that the statement must be sent again. Then it was
    /// refused because the key has moved, or the connection had broken in the pool. So it has not run, and the link
    /// now leads to the place of the key. This happens at most once.
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

    /// A settled session. Connects if there is no session or if it has broken.
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

    /// The envelope of a later statement of a transaction. There is none, except after a command that may have ended
    /// the transaction and begun another (`COMMIT AND CHAIN`). Then the key is entered again.
    pub(super) fn envelope(&self) -> Envelope {
        match &self.session {
            Some(session) if session.may_have_left() => Envelope::enter(self.route.map, self.key.raw()),
            _ => Envelope::none(),
        }
    }

    /// The session as it is. This sends nothing to the server.
    pub(super) fn session(&mut self) -> Option<&mut Session> {
        self.session.as_deref_mut()
    }

    /// The shard cannot be reached, and may no longer have the key. Asks the global map, but not too often, and tries
    /// once more.
    async fn connect_elsewhere(&mut self, error: RoutingError) -> Result<Pooled, RoutingError> {
        if !self.routing.may_look(self.route.mapping) {
            return Err(error);
        }
        self.route = (self.find)(self.key.clone(), Lookup::Fresh).await?;
        self.routing.session(&self.route.location).await
    }

    /// Asks the global map. Returns whether the route has changed.
    async fn look_again(&mut self) -> Result<bool, RoutingError> {
        let route = (self.find)(self.key.clone(), Lookup::Fresh).await?;
        let is_new = route != self.route;
        if route.location != self.route.location {
            self.give_back();
        }
        self.route = route;
        Ok(is_new)
    }

    /// Gives the session back to the pool, for any key.
    fn give_back(&mut self) {
        if let Some(mut session) = self.session.take() {
            session.leave();
        }
    }

    /// Drops a broken session.
    fn part(&mut self) {
        drop(self.session.take().map(Pooled::take));
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.give_back();
    }
}
