//! The manager: the entrance to all functions. A process has one, and clones it for each place that uses it.

mod adopt;
mod calendar;
mod handles;
mod list_map;
mod locks;
mod lookup;
mod maps;
mod pending;
mod placement;
mod provision;
mod queries;
pub mod query;
mod range_map;
pub mod recovery;
mod rollout;
mod routes;
mod schema_info;
mod shard_map;
mod shards;
mod sizes;
pub mod tenants;
mod upgrade;

use std::sync::Arc;
use std::time::Duration;

pub use handles::{MapInfo, Mapping, PointMapping, RangeMapping, Shard, ShardUpdate};
pub use list_map::ListShardMap;
pub use lookup::LookIn;
pub(crate) use maps::write_map;
pub use range_map::RangeShardMap;
pub use schema_info::{SchemaInfo, SchemaInfos, TableInfo};
pub use shard_map::{KindOfMap, List, MappingChange, Range, ShardMap};

use crate::cache::Cache;
use crate::chance::Chance;
use crate::error::{Category, Code, Error};
use crate::limits::{DRAIN_GRACE, LEASE};
use crate::location::Location;
use crate::metrics::Metrics;
use crate::operation::{Operations, RetryPolicy, StepHook};
pub use crate::store::STORE_VERSION;
use crate::store::postgres::PostgresAccess;
use crate::store::{Databases, Failure, For, Schema, StoreError, Tx};

/// What a manager needs to know.
#[derive(Debug, Clone)]
pub struct ManagerOptions {
    /// How PostgreSQL servers are reached, with credentials for managing maps.
    pub postgres: Option<PostgresAccess>,
    /// The name of this process in the log, such as a host and a program. It is for people.
    pub owner: String,
    /// The time without a renewal after which other processes take over an operation of this process.
    pub lease: Duration,
    /// How long transactions on keys that go offline may take to end by themselves.
    pub drain_grace: Duration,
    /// How often a step of an operation is tried again.
    pub retries: RetryPolicy,
    /// Whether the cache begins full or empty.
    pub load: LoadPolicy,
    /// The seed for ids: the same seed gives the same ids. Without one, the system gives a seed.
    pub seed: Option<u64>,
    /// Fail points, for tests.
    pub hook: StepHook,
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self {
            postgres: None,
            owner: format!("process {}", std::process::id()),
            lease: LEASE,
            drain_grace: DRAIN_GRACE,
            retries: RetryPolicy::default(),
            load: LoadPolicy::Lazy,
            seed: None,
            hook: StepHook::default(),
        }
    }
}

/// What the cache of a manager begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadPolicy {
    /// It begins empty. Each mapping is cached when it is first needed.
    #[default]
    Lazy,
    /// It begins with all maps and all mappings.
    Eager,
}

/// What to do if the database already has a global map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CreateMode {
    /// It is an error.
    #[default]
    KeepExisting,
    /// It is replaced by an empty map. Its shards are detached first, so that they serve nothing until they are
    /// attached or added again. They keep their local maps, closed.
    ReplaceExisting,
}

/// The manager of all shard maps of one global map.
#[derive(Clone)]
pub struct ShardMapManager(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) operations: Operations,
    pub(crate) cache: Cache,
    drain_grace: Duration,
}

impl ShardMapManager {
    /// Makes a global map in a database, and opens it.
    ///
    /// # Errors
    ///
    /// [`Code::StoreAlreadyExists`] if there is one and it is to be kept; [`Code::StorageOperationFailure`], also if one
    /// is to be replaced and one of its shards cannot be closed: detach that shard as lost first.
    pub async fn create(
        location: Location,
        mode: CreateMode,
        options: ManagerOptions,
    ) -> Result<Self, Error> {
        let manager = Self::unopened(location, options).map_err(factory)?;
        if mode == CreateMode::ReplaceExisting {
            manager.detach_all().await?;
        }
        let created = manager.create_store(mode).await;
        created.map_err(|trouble| trouble.seen_by(Category::Factory))?;
        Ok(manager)
    }

    /// Detaches all shards of a global map that is to be replaced.
    async fn detach_all(&self) -> Result<(), Error> {
        match self.version().await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(error) if matches!(error.failure, Failure::NoSchema | Failure::Unreachable) => return Ok(()),
            Err(error) => return Err(factory(error)),
        }
        for location in self.shard_locations().await? {
            self.recovery().detach(&location, None).await?;
        }
        Ok(())
    }

    async fn create_store(&self, mode: CreateMode) -> Result<(), crate::operation::Trouble> {
        let mut tx = self.0.operations.global.begin_or_create(For::Writing).await?;
        // A missing table is an error that ends a transaction. So this is checked in a transaction of its own.
        let exists = match store_version(&mut tx).await {
            Ok(version) => version.is_some(),
            Err(error) if error.failure == Failure::NoSchema => {
                drop(tx);
                tx = self.0.operations.global.begin_or_create(For::Writing).await?;
                false
            }
            Err(error) => return Err(error.into()),
        };
        if exists && mode == CreateMode::KeepExisting {
            let text = "there is a global map in this database: open it, or ask for it to be replaced";
            return Err(Error::new(Category::Factory, Code::StoreAlreadyExists, text).into());
        }
        if exists {
            tx.remove_global().await?;
        }
        tx.install(Schema::Global).await?;
        let sql = "insert into __shard_management.global_meta (one, version_major, version_minor, serial)
            values (1, $1, $2, 0) on conflict do nothing";
        tx.execute(sql, &[STORE_VERSION.0.into(), STORE_VERSION.1.into()]).await?;
        Ok(tx.commit().await?)
    }

    /// Opens a global map.
    ///
    /// # Errors
    ///
    /// [`Code::StoreDoesNotExist`]; [`Code::StoreVersionMismatch`] for one of another major version;
    /// [`Code::StorageOperationFailure`].
    pub async fn open(location: Location, options: ManagerOptions) -> Result<Self, Error> {
        let missing = format!("there is no global map in {location}: create it first");
        let manager = Self::try_open(location, options).await?;
        manager.ok_or_else(|| Error::new(Category::Factory, Code::StoreDoesNotExist, missing))
    }

    /// Opens a global map. Returns `None` if the database has none.
    ///
    /// # Errors
    ///
    /// As [`ShardMapManager::open`], but for [`Code::StoreDoesNotExist`].
    pub async fn try_open(location: Location, options: ManagerOptions) -> Result<Option<Self>, Error> {
        let load = options.load;
        let manager = Self::unopened(location, options).map_err(factory)?;
        let version = match manager.version().await {
            Ok(Some(version)) => version,
            Ok(None) => return Ok(None),
            Err(error) if error.failure == Failure::NoSchema => return Ok(None),
            Err(error) => return Err(factory(error)),
        };
        if version.0 != STORE_VERSION.0 {
            let text = format!(
                "the global map is of version {}.{}, and this program writes {}.{}: use a program of its version",
                version.0, version.1, STORE_VERSION.0, STORE_VERSION.1
            );
            return Err(Error::new(Category::Validation, Code::StoreVersionMismatch, text));
        }
        if load == LoadPolicy::Eager {
            manager.load_all().await?;
        }
        Ok(Some(manager))
    }

    fn unopened(location: Location, options: ManagerOptions) -> Result<Self, StoreError> {
        let databases = Databases::new(options.postgres, options.lease);
        let operations = Operations {
            global: databases.at(&location)?,
            databases,
            global_location: location,
            owner: options.owner,
            lease: options.lease,
            retries: options.retries,
            hook: options.hook,
            chance: Chance::new(options.seed),
            metrics: Metrics::default(),
        };
        Ok(Self(Arc::new(Inner { operations, cache: Cache::default(), drain_grace: options.drain_grace })))
    }

    async fn version(&self) -> Result<Option<(i64, i64)>, StoreError> {
        let mut tx = self.0.operations.global.begin(For::Reading).await?;
        let version = store_version(&mut tx).await?;
        tx.commit().await?;
        Ok(version)
    }

    /// The place of the global map.
    pub fn location(&self) -> &Location {
        &self.0.operations.global_location
    }

    /// What this manager has counted since it was opened.
    pub fn metrics(&self) -> &Metrics {
        &self.0.operations.metrics
    }

    /// How many transactions this manager has begun in a database; 0 for an unknown one.
    pub fn transactions_begun(&self, location: &Location) -> u64 {
        self.0.operations.databases.at(location).map_or(0, |database| database.transactions())
    }

    /// The recovery tools.
    pub fn recovery(&self) -> recovery::RecoveryManager {
        recovery::RecoveryManager::of(self.clone())
    }

    /// A transaction in the global map that reads.
    pub(crate) async fn reading(&self) -> Result<Tx, StoreError> {
        self.0.operations.global.begin(For::Reading).await
    }

    /// A transaction in the global map that writes.
    pub(crate) async fn writing(&self) -> Result<Tx, StoreError> {
        self.0.operations.global.begin(For::Writing).await
    }
}

impl std::fmt::Debug for ShardMapManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShardMapManager({})", self.location())
    }
}

fn factory(error: StoreError) -> Error {
    error.seen_by(Category::Factory)
}

/// The version of the global map; `None` if the tables are empty.
async fn store_version(tx: &mut Tx) -> Result<Option<(i64, i64)>, StoreError> {
    let sql = "select version_major, version_minor from __shard_management.global_meta where one = 1";
    let row = tx.query_one(sql, &[]).await?;
    row.map(|mut row| Ok((row.int()?, row.int()?))).transpose()
}
