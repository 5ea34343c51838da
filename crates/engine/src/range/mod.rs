//! A range: an interval of the key space, kept in one database.
//!
//! ```text
//!   read:  rows that are durable ------------------------------> still served? -> answer
//!   write: stripe lock > newest rows > judge > batch into the log > unlock > durable > answer
//!                                       \ refused > unlock > what it was judged on durable > answer
//! ```
//!
//! One task, the *keeper* ([`keep`]), owns the database: it flushes for those who wait, and opens
//! the database again when the engine below has closed it. Everybody else borrows the database for
//! one request by [`Range::open_now`] and asks [`Range::still_serves`] before he answers: by then
//! the range may have been opened anew, moved, or the table dropped.
//!
//! Architecture Invariant: every read of a client goes through [`read`], every row enters the log
//! through [`write`]. A cache of rows will sit there, and nowhere else.

mod database;
mod dropped;
mod flush;
mod keep;
mod latest;
mod meta;
mod read;
mod run_to_end;
mod stripes;
mod sweep;
mod timestamps;
mod unflushed;
mod write;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rangehold_map::{Generation, KeyRange, RangeId, TableId, Timestamp};
use slatedb::{Db, DbStatus};
use tokio::sync::{Semaphore, watch};

#[cfg(test)]
pub(crate) use database::open as open_database;
pub(crate) use database::{BLOCK_SIZE, Place, Surroundings, create as create_database};
pub(crate) use dropped::{DroppedTable, DroppedTables};
use flush::Flusher;
pub(crate) use flush::flush;
pub(crate) use meta::NEWEST_FILE_KEY;
pub use read::ScanEnd;
pub(crate) use run_to_end::RunToEnd;
use stripes::Stripes;
pub(crate) use sweep::Remains;
use timestamps::HighWater;
use unflushed::Unflushed;
pub(crate) use write::Admission;
pub use write::Changes;

use crate::compaction::LeaveOut;
use crate::error::{Damaged, OpenError, ReadError};
use crate::housekeeping::Borrowed;
use crate::limits::WRITES_IN_FLIGHT_MAX;
use crate::store::Store;

/// Which range, which keys, in which generation, and in which of the attempts to make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: RangeId,
    pub(crate) keys: KeyRange,
    pub(crate) generation: Generation,
    pub(crate) attempt: u64,
}

impl Identity {
    /// Where its database is. Never used again for another one.
    pub(crate) fn path(&self) -> String {
        format!("ranges/{}-{}-{}", self.id.0, self.generation.0, self.attempt)
    }
}

/// A range that this server holds.
pub(crate) struct Range {
    identity: Identity,
    place: Place,
    around: Surroundings,
    store: Arc<Store>,
    state: RwLock<State>,
    stripes: Stripes,
    high_water: Mutex<HighWater>,
    dropped: Arc<DroppedTables>,
    in_flight: Arc<Semaphore>,
    counts: Counts,
}

/// Whether the range can be asked.
enum State {
    Open(Arc<Opening>),
    /// The engine below closed the database; it is being opened again.
    Reopening(String),
    /// It cannot be opened again: a file is missing, or not what was written.
    Damaged(Damaged),
    /// Somebody else opened the database: it is his.
    Fenced,
    /// It was closed here.
    Closed,
}

/// One opening of the database. A read that began in one is not answered in the next.
struct Opening {
    number: u64,
    db: Db,
    status: watch::Receiver<DbStatus>,
    flusher: Flusher,
    unflushed: Unflushed,
}

/// What happened since the process began.
#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    scans: AtomicU64,
    writes: AtomicU64,
    refusals: AtomicU64,
    reopenings: AtomicU64,
}

/// What a range counts, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeStatistics {
    /// Reads of single rows.
    pub reads: u64,
    /// Scans.
    pub scans: u64,
    /// Writes that were acknowledged.
    pub writes: u64,
    /// Writes that their conditions refused.
    pub refusals: u64,
    /// Flushes of the log since the database was opened.
    pub flushes: u64,
    /// Bytes that are in memtables and the log only.
    pub unflushed_bytes: u64,
    /// Dropped tables with rows that are not yet gone.
    pub dropped_tables_pending: u64,
    /// How often the database had to be opened again.
    pub reopenings: u64,
    /// What its database reads from the files of others, such as a parent's.
    pub borrowed: Borrowed,
}

impl Range {
    /// Makes the database of a new range.
    pub(crate) async fn create(
        identity: Identity,
        around: Surroundings,
        store: Arc<Store>,
    ) -> Result<Arc<Self>, OpenError> {
        let dropped = Arc::<DroppedTables>::default();
        let place = place(&identity, &dropped);
        let db = database::create(&around, &place).await?;
        Self::with_database(identity, around, store, place, dropped, db).await
    }

    /// Opens the database of a range that exists.
    pub(crate) async fn open(
        identity: Identity,
        around: Surroundings,
        store: Arc<Store>,
    ) -> Result<Arc<Self>, OpenError> {
        let dropped = Arc::<DroppedTables>::default();
        let place = place(&identity, &dropped);
        let db = database::open(&around, &place, None).await?;
        Self::with_database(identity, around, store, place, dropped, db).await
    }

    /// Whether the range's database was made.
    pub(crate) async fn exists(identity: &Identity, around: &Surroundings) -> Result<bool, OpenError> {
        Ok(database::inspect(around, &identity.path()).await?.is_some())
    }

    async fn with_database(
        identity: Identity,
        around: Surroundings,
        store: Arc<Store>,
        place: Place,
        dropped: Arc<DroppedTables>,
        db: Db,
    ) -> Result<Arc<Self>, OpenError> {
        let opening = Opening::new(1, db);
        let reserved = read::load_meta(&opening.db, &dropped)
            .await
            .map_err(|error| database_error(&place.path, error))?;
        Ok(Arc::new(Self {
            identity,
            place,
            around,
            store,
            state: RwLock::new(State::Open(Arc::new(opening))),
            stripes: Stripes::new(),
            high_water: Mutex::new(HighWater::starting_at(reserved)),
            dropped,
            in_flight: Arc::new(Semaphore::new(WRITES_IN_FLIGHT_MAX)),
            counts: Counts::default(),
        }))
    }

    /// Which range it is.
    pub(crate) fn id(&self) -> RangeId {
        self.identity.id
    }

    /// Its keys.
    pub(crate) fn keys(&self) -> &KeyRange {
        &self.identity.keys
    }

    /// The database as it is open now.
    fn open_now(&self) -> Result<Arc<Opening>, ReadError> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Open(opening) => Ok(Arc::clone(opening)),
            State::Reopening(why) => Err(ReadError::Unavailable(why.clone())),
            State::Damaged(damage) => Err(ReadError::Damaged(damage.clone())),
            State::Fenced => Err(ReadError::NotOwned),
            State::Closed => Err(ReadError::Unavailable("the service is being shut down".to_owned())),
        }
    }

    /// Whether what was read from `opening` may be told: asked *after* reading. Where ranges move
    /// between servers, lease and generation are asked here too.
    fn still_serves(&self, opening: &Opening) -> Result<(), ReadError> {
        let now = self.open_now()?;
        if now.number == opening.number {
            Ok(())
        } else {
            Err(ReadError::Unavailable("its database was opened again meanwhile".to_owned()))
        }
    }

    /// Goes over into `state`, and tells whether it did: who closes a range has the last word,
    /// whatever its keeper finds out at the same time.
    fn change_state(&self, state: State) -> bool {
        let mut now = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*now, State::Closed) {
            return false;
        }
        *now = state;
        true
    }

    /// Refuses reads and writes of a table that its catalogue says is dropped, though no note of
    /// this range says so yet.
    pub(crate) fn inherit_dropped(&self, account: &str, table: TableId, now: Timestamp) {
        self.dropped.insert(DroppedTable::new(account, table, now));
    }

    /// Encoded bytes that are in memtables only.
    pub(crate) fn unflushed_bytes(&self) -> u64 {
        self.open_now().map_or(0, |opening| opening.unflushed_bytes())
    }

    /// Files of the log that would be replayed if the database were opened now, those excepted
    /// that were there when it was opened last.
    pub(crate) fn log_files(&self) -> usize {
        self.open_now().map_or(0, |opening| opening.unflushed.log_files(opening.sorted_sequence()))
    }

    /// What keeps it from being served now, in words.
    pub(crate) fn trouble(&self) -> Option<String> {
        let range = self.identity.id;
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Open(_) => None,
            State::Reopening(why) => Some(format!("range {range} is being opened again: {why}")),
            State::Damaged(damage) => Some(format!("range {range}: {damage}")),
            State::Fenced => Some(format!("range {range} was opened by another process")),
            State::Closed => Some(format!("range {range} is closed")),
        }
    }

    /// What it counts.
    pub(crate) fn statistics(&self) -> RangeStatistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let opening = self.open_now().ok();
        RangeStatistics {
            reads: count(&self.counts.reads),
            scans: count(&self.counts.scans),
            writes: count(&self.counts.writes),
            refusals: count(&self.counts.refusals),
            flushes: opening.as_ref().map_or(0, |opening| opening.flusher.flushes()),
            unflushed_bytes: opening.as_ref().map_or(0, |opening| opening.unflushed_bytes()),
            dropped_tables_pending: self.dropped.len() as u64,
            reopenings: count(&self.counts.reopenings),
            borrowed: opening.as_ref().map_or_else(Borrowed::default, |opening| opening.borrowed()),
        }
    }
}

impl Opening {
    fn new(number: u64, db: Db) -> Self {
        Self {
            number,
            status: db.subscribe(),
            db,
            flusher: Flusher::default(),
            unflushed: Unflushed::default(),
        }
    }

    /// The sequence number up to which rows are durable.
    fn durable_sequence(&self) -> u64 {
        self.status.borrow().durable_seq
    }

    /// The sequence number up to which rows are in sorted files.
    fn sorted_sequence(&self) -> u64 {
        self.status.borrow().current_manifest.last_l0_seq()
    }

    fn unflushed_bytes(&self) -> u64 {
        self.unflushed.bytes(self.sorted_sequence())
    }

    fn borrowed(&self) -> Borrowed {
        Borrowed::in_manifest(&self.status.borrow().current_manifest)
    }
}

fn place(identity: &Identity, dropped: &Arc<DroppedTables>) -> Place {
    Place {
        path: identity.path(),
        cache_id: identity.id.0,
        filter: Arc::new(LeaveOut::new(Arc::clone(dropped))),
    }
}

fn database_error(path: &str, error: ReadError) -> OpenError {
    match error {
        ReadError::Damaged(damage) => OpenError::Damaged(damage),
        other => OpenError::Database { path: path.to_owned(), why: other.to_string() },
    }
}

#[cfg(test)]
impl Range {
    /// A new range in memory, without a keeper.
    async fn in_memory() -> Arc<Self> {
        let store = Store::in_memory();
        let shares = crate::Shares::of(crate::limits::MEMORY_BYTES_MIN).expect("it is the least");
        let background = tokio::runtime::Handle::current();
        let around = Surroundings::new(store.object_store(), shares, crate::Clock::system(), 1, background);
        let identity =
            Identity { id: RangeId(1), keys: KeyRange::whole(), generation: Generation(1), attempt: 1 };
        Self::create(identity, around, Arc::new(store)).await.expect("memory takes everything")
    }
}
