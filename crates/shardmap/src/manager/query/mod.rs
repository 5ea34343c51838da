//! Queries over many shards: one statement is sent to each shard, and the rows of all shards come in one stream.
//!
//! ```no_run
//! # use rangehold_shardmap::{ListShardMap, query::{QueryError, Readers}};
//! # async fn example(tenants: ListShardMap<i64>) -> Result<(), QueryError> {
//! let readers = Readers::new(None);
//! let query = tenants.query("select tenant, total from orders_here where total > $1").bind(100);
//! let mut rows = query.run(&readers).await?;
//! while let Some(row) = rows.next().await? {
//!     let (tenant, total): (i64, f64) = (row.get("tenant")?, row.get("total")?);
//!     println!("{tenant} {total} from {}", row.shard());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **One moment.** While rows move, two shards can have the rows of one key. So a table is read through
//! [`owned_view`] (or a policy with the same rule). It shows a row only if the shard's own local map holds the key of
//! the row. And all shards are read in snapshots that *fit*: between the first snapshot and the last, the map did not
//! change. The global map shows this, because it gives each change of a shard a new epoch:
//!
//! ```text
//!   global map    epochs, nothing under way ───────────────────▶ the same epochs, nothing under way
//!   shard A                 └─ snapshot ────────────────────────────────────── rows ──▶
//!   shard B                        └─ snapshot ────────────────────────────────────── rows ──▶
//! ```
//!
//! A shard whose epoch has changed between the two looks gets a new snapshot, and the global map is looked at once
//! more. Until then no row is returned. So each key is seen once, in one of the shards, as at one moment of the map.
//! The rows are those of each shard's own snapshot, because no transaction spans two shards.
//!
//! **Price.** Two reads of the global map, and one connection to each shard from its snapshot to its last row. At
//! most [`MultiShardQuery::at_once`] of the shards are opened at the same time, and later at most as many are read.

mod error;
mod fit;
mod owned;
mod read;
mod row;
mod rows;
mod snapshot;

use std::sync::Arc;
use std::time::Duration;

pub use error::{QueryError, ShardFailure, Why};
pub(crate) use owned::quoted;
pub use owned::{owned_policy, owned_view};
pub use row::QueryRow;
pub use rows::QueryRows;

pub use crate::store::{Cell, FromCell};

use super::ShardMapManager;
use crate::error::Error;
use crate::limits::{LEASE, QUERY_SHARDS_MAX};
use crate::location::Location;
use crate::rows::MapRow;
use crate::store::Databases;
use crate::store::postgres::PostgresAccess;

/// What happens to the rows of other shards when one shard fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// The query fails. If a caller reaches the end, it has seen all rows.
    #[default]
    Complete,
    /// The query goes on without that shard, and says so ([`QueryRows::failures`]). It fails if all shards fail.
    Partial,
}

/// What happened to a query at one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShardEvent {
    /// The shard is asked.
    Began,
    /// All rows of the shard were returned.
    Succeeded,
    /// The shard failed.
    Failed,
    /// The query was given up before its end.
    Cancelled,
}

/// Called with each event of each shard.
pub type Watch = Arc<dyn Fn(&Location, ShardEvent) + Send + Sync>;

/// Credentials for reading, and the connections that are kept with them. Cheap to clone.
///
/// They are separate from the manager's. Their role needs to read the tables that queries name, and nothing else.
#[derive(Clone)]
pub struct Readers(pub(crate) Databases);

impl Readers {
    /// Reads PostgreSQL shards with these credentials. SQLite files need none.
    pub fn new(postgres: Option<PostgresAccess>) -> Self {
        Self(Databases::new(postgres, LEASE))
    }
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Readers")
    }
}

/// A query over the shards of a map, before it is run. It may be run many times, and also several times at once.
#[derive(Clone)]
pub struct MultiShardQuery {
    pub(crate) manager: ShardMapManager,
    pub(crate) map: Arc<MapRow>,
    pub(crate) sql: Arc<str>,
    pub(crate) parameters: Arc<[Cell]>,
    pub(crate) policy: Policy,
    pub(crate) at_once: usize,
    pub(crate) shard_within: Duration,
    pub(crate) within: Option<Duration>,
    pub(crate) retries: u32,
    pub(crate) only: Option<Arc<[Location]>>,
    pub(crate) watch: Option<Watch>,
}

impl std::fmt::Debug for MultiShardQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MultiShardQuery({:?} over {:?})", self.sql, self.map.name)
    }
}

impl MultiShardQuery {
    /// Adds the next parameter: the first call sets `$1`, the second sets `$2`.
    pub fn bind(mut self, value: impl Into<Cell>) -> Self {
        self.parameters = self.parameters.iter().cloned().chain([value.into()]).collect();
        self
    }

    /// What happens when a shard fails.
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// How many shards are asked at the same time; at least one.
    pub fn at_once(self, shards: usize) -> Self {
        Self { at_once: shards.max(1), ..self }
    }

    /// How long each shard may take to be opened, and then to send each next row that the query waits for.
    pub fn shard_within(self, within: Duration) -> Self {
        Self { shard_within: within, ..self }
    }

    /// How long the whole query may take, from [`MultiShardQuery::run`] to the last row.
    pub fn within(self, within: Duration) -> Self {
        Self { within: Some(within), ..self }
    }

    /// How often the query tries again to open a shard that failed for a temporary reason.
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// Asks only these shards. A place without a shard of the map counts as a failure.
    pub fn only(self, places: &[Location]) -> Self {
        Self { only: Some(places.into()), ..self }
    }

    /// Tells what happens at each shard.
    pub fn watch(self, watch: Watch) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// Takes the snapshots, and begins to read.
    ///
    /// # Errors
    ///
    /// [`QueryError::Map`] for a map without shards, or if the global map cannot be read or changes all the time;
    /// [`QueryError::Shards`] if a shard cannot be opened and results must be complete, or if no shard can be opened;
    /// [`QueryError::TimedOut`].
    pub async fn run(&self, readers: &Readers) -> Result<QueryRows, QueryError> {
        let deadline = self.within.map(|within| tokio::time::Instant::now() + within);
        if self.only.as_ref().is_some_and(|only| only.is_empty()) {
            return Err(Error::argument("a query over no shards: name one at least").into());
        }
        let opening = snapshot::open(self, &readers.0);
        let opened = match deadline {
            None => opening.await?,
            Some(at) => tokio::time::timeout_at(at, opening).await.map_err(|_| self.timed_out())??,
        };
        QueryRows::begin(self.clone(), opened, deadline)
    }

    pub(crate) fn timed_out(&self) -> QueryError {
        QueryError::TimedOut { within: self.within.unwrap_or_default() }
    }

    pub(crate) fn tell(&self, location: &Location, event: ShardEvent) {
        if let Some(watch) = &self.watch {
            watch(location, event);
        }
    }

    /// Refuses more shards than one query may hold open.
    pub(crate) fn check_count(&self, shards: usize) -> Result<(), Error> {
        match shards {
            0 => Err(Error::argument(format!("shard map {:?} has no shards: add one first", self.map.name))),
            1..=QUERY_SHARDS_MAX => Ok(()),
            _ => Err(Error::argument(format!(
                "{shards} shards are more than {QUERY_SHARDS_MAX} for one query: name some of them"
            ))),
        }
    }
}
