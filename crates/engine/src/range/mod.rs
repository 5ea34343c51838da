//! A range: an interval of the key space, kept in one database.
//!
//! ```text
//!   read:  rows that are durable ------------------------------> still served? -> answer
//!   write: stripe lock > newest rows > judge > batch into the log > unlock > durable > answer
//!                                       \ refused > unlock > the rows it was judged on durable > answer
//! ```
//!
//! One task, its *supervisor* ([`supervise`]), owns the database. It flushes for the writes that wait, and opens
//! the database again when the engine below has closed it. All other code borrows the database for
//! one request with [`Range::open_now`], and calls [`Range::still_serves`] before it answers: by then
//! the range may have been opened again or moved, or the table may have been dropped.
//!
//! Architecture Invariant: every read of a client goes through [`read`], and every row enters the log
//! through [`write`]. The cache of rows ([`cache`]) is asked and told there, and nowhere else.

mod cache;
mod closed;
mod dropped;
mod fences;
mod flush;
mod gate;
mod inheritance;
mod load;
mod meta;
mod newest;
mod open;
mod read;
mod reopen;
mod request;
mod retire;
mod snapshot_rows;
mod state;
mod statistics;
mod stored;
mod stripes;
mod supervise;
mod timestamps;
mod turns;
mod unflushed;
mod walk;
mod warm;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use rangehold_map::load::LoadPolicy;
use rangehold_map::{DatabaseName, Generation, KeyRange, RangeEntry, RangeId, Timestamp};
use slatedb::Db;

pub(crate) use cache::RowBudget;
use closed::ClosedBuckets;
pub(crate) use dropped::Remains;
use fences::Fences;
use gate::Gate;
pub(crate) use gate::{Frozen, HeldBytes};
pub(crate) use inheritance::Inheritance;
use load::Meter;
pub use load::{RangeGlance, RangeSeen};
pub(crate) use open::OpenRanges;
pub use request::{Judge, RowChanges, WriteRequest};
pub use retire::NotReady;
use state::{Opening, State};
use statistics::Counts;
pub use statistics::RangeStatistics;
use stripes::Stripes;
use timestamps::HighWater;
use turns::Turns;
pub(crate) use unflushed::Unsorted;
pub use walk::{ScanEnd, Visit, Visitor};
pub(crate) use warm::WarmRows;

use crate::database::{self, DatabaseError, Databases, DroppedTables, LeaveOut, Place, database_path};
use crate::lease::Lease;
use crate::record_name::RecordName;
use crate::store::Store;

/// Which range, which keys, and which database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: RangeId,
    pub(crate) keys: KeyRange,
    pub(crate) database: DatabaseName,
}

impl Identity {
    /// The identity of a range that the map names.
    pub(crate) fn of(entry: &RangeEntry) -> Self {
        Self { id: entry.id, keys: entry.keys.clone(), database: entry.place.database }
    }

    /// Where its database is. The path is never used again for another database.
    pub(crate) fn path(&self) -> String {
        database_path(self.database)
    }
}

/// What a range gets from the server that holds it.
#[derive(Clone)]
pub(crate) struct RangeContext {
    pub(crate) databases: Databases,
    pub(crate) store: Arc<Store>,
    pub(crate) lease: Lease,
    pub(crate) held_bytes: Arc<HeldBytes>,
    /// The memory that the caches of rows share.
    pub(crate) rows: Arc<RowBudget>,
    /// The rules that say when its load is hot, and why.
    pub(crate) load: Arc<LoadPolicy>,
}

/// A range that a server holds.
pub(crate) struct Range {
    identity: Identity,
    place: Place,
    databases: Databases,
    rows: Arc<RowBudget>,
    store: Arc<Store>,
    /// Counts how often the range changed hands. A command that names another generation is refused.
    generation: AtomicU64,
    lease: Lease,
    state: RwLock<State>,
    /// [`Range::open_again`] holds it until the new opening is in `state`. The supervisor holds it while it judges why
    /// an opening ended, because that new opening may be the reason.
    opening_again: tokio::sync::Mutex<()>,
    gate: Arc<Gate>,
    stripes: Stripes,
    turns: Turns,
    high_water: Mutex<HighWater>,
    dropped: Arc<DroppedTables>,
    closed: ClosedBuckets,
    fences: Fences,
    /// The record that decides about the range, if its database says that it is retired.
    retired: Mutex<Option<RecordName>>,
    /// Held by the task that carries out a change of the range: one change at a time.
    changing: Arc<tokio::sync::Mutex<()>>,
    counts: Counts,
    meter: Meter,
}

impl Range {
    /// Makes the database of a new range.
    pub(crate) async fn create(
        identity: Identity,
        context: &RangeContext,
    ) -> Result<Arc<Self>, DatabaseError> {
        let dropped = Arc::<DroppedTables>::default();
        let place = place(&identity, &dropped);
        let db = database::create(&context.databases, &place).await?;
        Self::with_database(identity, Generation::FIRST, context, place, dropped, db).await
    }

    /// Opens the database of a range that exists, and so shuts out every process that had it open. With
    /// `expected_epoch`, this fails if the database was opened again after it was opened in that epoch.
    ///
    /// The range is not served yet: it may be retired ([`Range::retired`]), and the catalogue may say that
    /// tables are dropped although this range has no note of them.
    pub(crate) async fn open(
        identity: Identity,
        generation: Generation,
        context: &RangeContext,
        expected_epoch: Option<u64>,
    ) -> Result<Arc<Self>, DatabaseError> {
        let dropped = Arc::<DroppedTables>::default();
        let place = place(&identity, &dropped);
        let db = database::open(&context.databases, &place, expected_epoch).await?;
        Self::with_database(identity, generation, context, place, dropped, db).await
    }

    /// Tells the range that its last owner gave no timestamp above `high_water`. It then need not begin at the
    /// reservation.
    pub(crate) fn resume_at(&self, high_water: Timestamp) {
        self.high_water.lock().resume_at(high_water);
    }

    /// Opens a database that a change has just made, and gives it its inheritance. Until
    /// [`Range::save_inheritance`] the inheritance is only in memory.
    pub(crate) async fn open_heir(
        identity: Identity,
        context: &RangeContext,
        inheritance: &Inheritance,
    ) -> Result<Arc<Self>, DatabaseError> {
        let range = Self::open(identity, Generation::FIRST, context, None).await?;
        range.high_water.lock().inherit(inheritance.high_water);
        for (account, table, at) in &inheritance.dropped {
            range.inherit_dropped(account, *table, *at);
        }
        for bucket in &inheritance.closed {
            range.inherit_closed(*bucket);
        }
        for (bucket, fence) in &inheritance.fences {
            range.inherit_fence(*bucket, *fence);
        }
        Ok(range)
    }

    /// Whether the range's database was made.
    pub(crate) async fn exists(identity: &Identity, databases: &Databases) -> Result<bool, DatabaseError> {
        Ok(database::inspect(databases, &identity.path()).await?.is_some())
    }

    async fn with_database(
        identity: Identity,
        generation: Generation,
        context: &RangeContext,
        place: Place,
        dropped: Arc<DroppedTables>,
        db: Db,
    ) -> Result<Arc<Self>, DatabaseError> {
        let reader = context.databases.file_reader(&place.path);
        let opening = Opening::new(1, db, &context.rows, reader);
        let meta = meta::load(&opening.db, &dropped).await.map_err(DatabaseError::reading(&place.path))?;
        // The seed differs from range to range, so the ranges do not all look closely at the same requests.
        let meter = Meter::new(&context.load, context.databases.seed ^ identity.id.0);
        Ok(Arc::new(Self {
            identity,
            place,
            databases: context.databases.clone(),
            rows: Arc::clone(&context.rows),
            store: Arc::clone(&context.store),
            generation: AtomicU64::new(generation.0),
            lease: context.lease.clone(),
            state: RwLock::new(State::Open(Arc::new(opening))),
            opening_again: tokio::sync::Mutex::default(),
            gate: Arc::new(Gate::new(Arc::clone(&context.held_bytes))),
            stripes: Stripes::new(),
            turns: Turns::default(),
            high_water: Mutex::new(HighWater::starting_at(meta.reserved)),
            dropped,
            closed: ClosedBuckets::of(meta.closed),
            fences: Fences::of(meta.fences),
            retired: Mutex::new(meta.retired),
            changing: Arc::default(),
            counts: Counts::default(),
            meter,
        }))
    }

    pub(crate) fn id(&self) -> RangeId {
        self.identity.id
    }

    pub(crate) fn keys(&self) -> &KeyRange {
        &self.identity.keys
    }

    /// Where its database is.
    pub(crate) fn path(&self) -> String {
        self.identity.path()
    }

    pub(crate) fn database(&self) -> DatabaseName {
        self.identity.database
    }

    /// The generation in which it is held here.
    pub(crate) fn generation(&self) -> Generation {
        Generation(self.generation.load(Ordering::Acquire))
    }

    /// Gives the range a later generation: a change of it was carried out or undone, and it stays here.
    pub(crate) fn renumber(&self, generation: Generation) {
        self.generation.fetch_max(generation.0, Ordering::AcqRel);
    }

    /// The record that decides about the range, if its database says that it is retired. Then the range must not
    /// be served as it is.
    pub(crate) fn retired(&self) -> Option<RecordName> {
        *self.retired.lock()
    }

    /// Waits until no other change of the range is under way, and keeps other changes away until the guard is
    /// dropped.
    pub(crate) async fn change_alone(&self) -> tokio::sync::OwnedMutexGuard<()> {
        Arc::clone(&self.changing).lock_owned().await
    }

    /// Whether both ranges have the same database, and this one opened it later. Then the other range has lost
    /// the database, and may not know it yet.
    pub(crate) fn was_opened_after(&self, other: &Self) -> bool {
        let epochs = self.epoch().ok().zip(other.epoch().ok());
        self.database() == other.database() && epochs.is_some_and(|(own, others)| own > others)
    }
}

fn place(identity: &Identity, dropped: &Arc<DroppedTables>) -> Place {
    Place {
        path: identity.path(),
        cache_id: identity.id.0,
        filter: Arc::new(LeaveOut::new(Arc::clone(dropped))),
    }
}

#[cfg(test)]
impl Range {
    /// A new range in memory, without a supervisor.
    async fn in_memory() -> Arc<Self> {
        let store = Store::in_memory();
        let objects = store.object_store();
        let shares = crate::database::Shares::of(crate::limits::MEMORY_BYTES_MIN).expect("it is the least");
        let background = tokio::runtime::Handle::current();
        let databases = Databases::new(Arc::clone(&objects), shares, crate::Clock::system(), 1, background);
        let lease =
            Lease::take(&objects, rangehold_map::ServerId(1), None).await.expect("memory takes everything");
        let context = RangeContext {
            databases,
            store: Arc::new(store),
            lease,
            held_bytes: Arc::default(),
            rows: RowBudget::new(1 << 20),
            load: Arc::new(LoadPolicy::fast()),
        };
        let database = DatabaseName { range: RangeId(1), generation: Generation::FIRST, attempt: 1 };
        let identity = Identity { id: RangeId(1), keys: KeyRange::whole(), database };
        Self::create(identity, &context).await.expect("memory takes everything")
    }

    /// The same range, as another process opens it.
    async fn opened_elsewhere(&self) -> Arc<Self> {
        let context = RangeContext {
            databases: self.databases.clone(),
            store: Arc::clone(&self.store),
            lease: self.lease.clone(),
            held_bytes: Arc::default(),
            rows: Arc::clone(&self.rows),
            load: Arc::new(LoadPolicy::fast()),
        };
        let opened = Self::open(self.identity.clone(), self.generation(), &context, None).await;
        opened.expect("memory takes everything")
    }
}
