//! Opens the database of a range again after the engine below has closed it.
//!
//! Meanwhile another server may have taken the range. It may even have split it, and then nothing in the old database
//! can refuse a write any more. So this is as careful as a first opening:
//!
//! * The opening names the epoch that it follows. An epoch counts as this server's own if an opening of this server
//!   had it. It may also come from a failed attempt to open, or from another server. Every other opening comes after a
//!   new entry in the map. So if the map is read after the epoch and still has the old entry, the epoch is our own.
//! * After opening, the database must not be retired, the map must still name this server, and its lease must hold.

use tokio::time::{sleep, timeout};

use super::{Opening, Range, State, meta};
use crate::database::{self, DatabaseError};
use crate::error::{Damaged, Reason, with_causes};
use crate::limits::{CLOSE_MAX, REOPEN_WAIT_MAX, REOPEN_WAIT_MIN};
use crate::map_store::{self, MapError};

/// Why the database is not open again.
enum NotOpened {
    /// Another server has the range or will have it.
    Lost,
    /// This server may not serve yet.
    NotYet(&'static str),
    Database(DatabaseError),
    Map(MapError),
}

impl From<DatabaseError> for NotOpened {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl From<MapError> for NotOpened {
    fn from(error: MapError) -> Self {
        Self::Map(error)
    }
}

/// What the map says of a range that this server held.
#[derive(PartialEq, Eq)]
enum InMap {
    Ours,
    /// The range is being changed, or was changed and this server does not know how.
    Changing,
    Lost,
}

impl Range {
    /// Opens the database again, however long that takes. False if another server has it now, or if the range
    /// was closed meanwhile.
    pub(super) async fn reopen(&self, before: &Opening) -> bool {
        // Free what the old opening still holds. It has nothing to save, since it is closed.
        let _ = timeout(CLOSE_MAX, before.db.close()).await;
        let mut own_epoch = before.db.manifest().writer_epoch();
        let mut wait = REOPEN_WAIT_MIN;
        loop {
            let state = match self.open_as_at_first(before.number + 1, &mut own_epoch).await {
                Ok(opening) => return self.take(opening).await,
                Err(NotOpened::Lost) => State::Fenced,
                Err(NotOpened::NotYet(why)) => State::Reopening(Reason::Found(why)),
                Err(NotOpened::Map(error)) => State::Reopening(Reason::failed(error)),
                Err(NotOpened::Database(error)) => {
                    let (range, why) = (self.identity.id, with_causes(&error));
                    tracing::error!(%range, error = why, "the database could not be opened again");
                    match error {
                        DatabaseError::Damaged(damage) => State::Damaged(damage),
                        missing @ DatabaseError::Missing(_) => State::Damaged(Damaged::new(missing)),
                        other => State::Reopening(Reason::failed(other)),
                    }
                }
            };
            let lost = matches!(state, State::Fenced);
            if lost {
                tracing::warn!(range = %self.identity.id, "another server has the range; it is not opened again");
            }
            if !self.change_state(state) || lost {
                return false;
            }
            // Try again after damage too: an operator may bring the file back.
            sleep(wait).await;
            wait = REOPEN_WAIT_MAX.min(wait * 2);
        }
    }

    /// One attempt. `own_epoch` is the greatest epoch that is known to be this server's own.
    async fn open_as_at_first(&self, number: u64, own_epoch: &mut u64) -> Result<Opening, NotOpened> {
        self.check_lease()?;
        let path = &self.place.path;
        let Some(manifest) = database::inspect(&self.databases, path).await? else {
            return Err(DatabaseError::Missing(path.clone()).into());
        };
        let epoch = manifest.writer_epoch();
        if epoch != *own_epoch {
            match self.look_in_map().await? {
                InMap::Ours => *own_epoch = epoch,
                InMap::Changing => return Err(NotOpened::NotYet("its place in the map is being changed")),
                InMap::Lost => return Err(NotOpened::Lost),
            }
        }
        let db = database::open(&self.databases, &self.place, Some(epoch)).await?;
        *own_epoch = db.manifest().writer_epoch();
        let opening = self.opening(number, db);
        if let Err(refused) = self.check_opening(&opening).await {
            self.abandon(&opening).await;
            return Err(refused);
        }
        Ok(opening)
    }

    /// Whether the database that was just opened may be served.
    async fn check_opening(&self, opening: &Opening) -> Result<(), NotOpened> {
        let meta = meta::load(&opening.db, &self.dropped).await;
        let meta = meta.map_err(DatabaseError::reading(&self.place.path))?;
        // While this process changes the range itself, the gate is held, and the change needs the database to go on.
        if meta.retired.is_some() && !self.gate.is_held() {
            return Err(NotOpened::Lost);
        }
        self.high_water.lock().inherit(meta.reserved);
        if self.look_in_map().await? == InMap::Lost {
            return Err(NotOpened::Lost);
        }
        self.check_lease()
    }

    fn check_lease(&self) -> Result<(), NotOpened> {
        if self.lease.has_ended() {
            return Err(NotOpened::Lost);
        }
        if self.lease.holds() { Ok(()) } else { Err(NotOpened::NotYet("the server waits for its lease")) }
    }

    async fn look_in_map(&self) -> Result<InMap, MapError> {
        let map = map_store::load(&self.databases.objects).await?;
        let entry = map.as_ref().and_then(|map| map.get(self.identity.id));
        let is_mine = |place: rangehold_map::Home| {
            place.server == self.lease.server() && place.database == self.identity.database
        };
        Ok(match entry {
            // A range that a change has just made is served before it is in the map.
            None => InMap::Changing,
            Some(entry) if !entry.online || !is_mine(entry.place) => InMap::Lost,
            Some(entry) if entry.intent.is_some() || entry.generation < self.generation() => InMap::Changing,
            Some(entry) => {
                // A later generation in the same place: another process undid a change of the range.
                self.renumber(entry.generation);
                InMap::Ours
            }
        })
    }
}
