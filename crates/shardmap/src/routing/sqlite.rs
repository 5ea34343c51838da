//! Routing to SQLite files.
//!
//! A writer has the whole file to itself, so the fence is the transaction. It begins by taking the write lock, then
//! checks whether the key is here, and only then lets the caller work. A change that takes the key away waits for the
//! lock. A transaction that only reads sees one state of the file, and the mapping is part of that state.

use std::path::Path;

use rangehold_map::shard::{MappingId, ShardKey};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};

use super::error::RoutingError;
use super::link::{Find, Lookup, Route};
use crate::limits::LOCK_TIMEOUT;
use crate::location::Location;

const MAPPING: &str = "select high, online from __shard_management_local_mappings
    where map_id = ?1 and low <= ?2 order by low desc limit 1";

/// A connection to the SQLite file that has a key, wherever that file is.
pub struct SqliteShardConnection {
    find: Find,
    key: ShardKey,
    route: Route,
    /// Absent before the first transaction, after a move, and after a transaction that was given up.
    connection: Option<Connection>,
}

impl std::fmt::Debug for SqliteShardConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteShardConnection")
            .field("key", &self.key)
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

/// How a transaction ended.
enum Ended<T, W> {
    Committed(T),
    /// It was refused before the work began. The work is given back.
    NotHere(W),
    Offline,
    /// The work itself ended the transaction.
    Spent,
    Failed(rusqlite::Error),
}

impl SqliteShardConnection {
    /// Finds the key. The file is opened by the first transaction.
    pub(crate) async fn open(find: Find, key: ShardKey) -> Result<Self, RoutingError> {
        let route = find(key.clone(), Lookup::Cached).await?;
        Ok(Self { find, key, route, connection: None })
    }

    /// The file to which the connection leads at present.
    pub fn location(&self) -> &Location {
        &self.route.location
    }

    /// The mapping of the key, which names that file.
    pub fn mapping(&self) -> MappingId {
        self.route.mapping
    }

    /// Runs `work` in a transaction on the key, on a thread that may block, and commits. If `work` returns an error,
    /// the transaction is undone. `work` must not end the transaction by itself.
    ///
    /// If the file does not hold the key any more, the key is looked up once more, and `work` runs in the file that
    /// has it.
    ///
    /// # Errors
    ///
    /// A [`RoutingError`], which says whether to try again. [`RoutingError::Spent`] if `work` has ended the
    /// transaction: what it did after that was not fenced.
    pub async fn transaction<T, W>(&mut self, read_only: bool, work: W) -> Result<T, RoutingError>
    where
        T: Send + 'static,
        W: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let mut work = work;
        let mut again = true;
        loop {
            let location = self.route.location.clone();
            match self.run(read_only, work).await? {
                Ended::Committed(answer) => return Ok(answer),
                Ended::Offline => return Err(RoutingError::Offline { location, source: None }),
                Ended::Spent => return Err(RoutingError::Spent { location }),
                Ended::Failed(source) => return Err(RoutingError::Sqlite { location, source }),
                Ended::NotHere(given_back) => {
                    let route = (self.find)(self.key.clone(), Lookup::Fresh).await?;
                    if !std::mem::take(&mut again) || route == self.route {
                        return Err(RoutingError::NotHere { location, source: None });
                    }
                    self.connection = None;
                    self.route = route;
                    work = given_back;
                }
            }
        }
    }

    async fn run<T, W>(&mut self, read_only: bool, work: W) -> Result<Ended<T, W>, RoutingError>
    where
        T: Send + 'static,
        W: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let Location::Sqlite { path } = &self.route.location else {
            let location = self.route.location.clone();
            return Err(RoutingError::Unreachable { location, source: "it is not a SQLite file".into() });
        };
        let (path, open) = (path.clone(), self.connection.take());
        let (map, key) = (self.route.map.hyphenated().to_string(), self.key.raw().to_vec());
        let running = tokio::task::spawn_blocking(move || {
            let mut connection = match open.map_or_else(|| open_file(Path::new(&*path)), Ok) {
                Ok(connection) => connection,
                Err(error) => return (None, Ended::Failed(error)),
            };
            let ended = fenced(&mut connection, read_only, &map, &key, work);
            (Some(connection), ended.unwrap_or_else(Ended::Failed))
        });
        let location = &self.route.location;
        let panicked = |error: tokio::task::JoinError| RoutingError::Unreachable {
            location: location.clone(),
            source: error.into(),
        };
        let (connection, ended) = running.await.map_err(panicked)?;
        self.connection = connection;
        Ok(ended)
    }
}

fn open_file(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(LOCK_TIMEOUT)?;
    Ok(connection)
}

/// One transaction: lock, look, work, commit. If it is dropped before the commit, it is undone.
fn fenced<T, W: FnOnce(&Transaction<'_>) -> rusqlite::Result<T>>(
    connection: &mut Connection,
    read_only: bool,
    map: &str,
    key: &[u8],
    work: W,
) -> rusqlite::Result<Ended<T, W>> {
    let behavior = if read_only { TransactionBehavior::Deferred } else { TransactionBehavior::Immediate };
    let transaction = connection.transaction_with_behavior(behavior)?;
    match online(&transaction, map, key)? {
        None => return Ok(Ended::NotHere(work)),
        Some(false) => return Ok(Ended::Offline),
        Some(true) => {}
    }
    if read_only {
        transaction.pragma_update(None, "query_only", true)?;
    }
    let done = work(&transaction);
    let spent = transaction.is_autocommit();
    if read_only {
        transaction.pragma_update(None, "query_only", false)?;
    }
    let answer = done?;
    if spent {
        return Ok(Ended::Spent);
    }
    transaction.commit()?;
    Ok(Ended::Committed(answer))
}

/// Whether the key's mapping is online; `None` if the key is not here.
fn online(transaction: &Transaction<'_>, map: &str, key: &[u8]) -> rusqlite::Result<Option<bool>> {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, bool>(1)?));
    let found = transaction
        .prepare_cached(MAPPING)
        .and_then(|mut mapping| mapping.query_row((map, key), read).optional());
    match found {
        Ok(found) => Ok(found
            .filter(|(high, _)| high.as_deref().is_none_or(|high| key < high))
            .map(|(_, online)| online)),
        // There is no table of mappings: the file is not a shard, or is no longer one.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => Ok(None),
        Err(error) => Err(error),
    }
}
