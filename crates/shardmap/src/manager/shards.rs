//! The shards of a map.

use std::sync::Arc;

use rangehold_map::shard::ShardKeyValue;

use super::handles::{Shard, ShardUpdate};
use super::shard_map::{KindOfMap, ShardMap};
use crate::error::{Category, Code, Error};
use crate::location::Location;
use crate::operation::shards::shard_at;
use crate::operation::{Met, ShardRequest, local};
use crate::rows::{Marked, ShardRow};
use crate::store::{For, Row, StoreError};

impl<K: ShardKeyValue, M: KindOfMap> ShardMap<K, M> {
    /// Adds a database as a shard, online, and makes the tables of the local map in it. A SQLite file is made if it
    /// does not exist.
    ///
    /// # Errors
    ///
    /// [`Code::ShardLocationAlreadyExists`]; [`Code::ShardNotValid`] if the database says that it is another shard, for
    /// it is that shard by another name, or a copy of it ([`ShardMap::create_shard_from_copy`]);
    /// [`Code::ShardMapDoesNotExist`] if the map was deleted meanwhile.
    pub async fn create_shard(&self, location: &Location) -> Result<Shard, Error> {
        let request = ShardRequest::Add { map: &self.map, location, online: true };
        self.made(&request).await?.ok_or_else(|| Error::damaged("a shard that was added is not there"))
    }

    /// Adds a copy of a shard, such as a restored backup, as a new shard without mappings. The local map that the copy
    /// took along is forgotten first.
    ///
    /// # Errors
    ///
    /// As [`ShardMap::create_shard`]; [`Code::ShardNotValid`] if the database is the shard itself by another name;
    /// [`Code::StorageOperationFailure`] if the shard cannot be reached, so that the two cannot be compared.
    pub async fn create_shard_from_copy(&self, location: &Location) -> Result<Shard, Error> {
        let forgotten = self.manager.0.operations.forget_copy(&self.map, location).await;
        forgotten.map_err(|trouble| trouble.seen_by(Category::ShardMap))?;
        self.create_shard(location).await
    }

    /// Takes a copy of a shard for the shard itself: the shard is at this place from now on.
    ///
    /// # Errors
    ///
    /// As [`ShardMap::update_shard`]; [`Code::ShardNotValid`] if the database does not say that it is a shard of the map.
    pub async fn keep_copy(&self, location: &Location) -> Result<Shard, Error> {
        let claimed = self.local_shard(location).await?.map(|found| found.id);
        let shards = self.shards().await?;
        let Some(shard) = shards.iter().find(|shard| Some(shard.row.id) == claimed) else {
            let text = format!("{location} does not say that it is a shard of map {:?}", self.map.name);
            return Err(Error::new(Category::ShardMap, Code::ShardNotValid, text));
        };
        let to = ShardUpdate { online: None, location: Some(location.clone()) };
        self.update_shard(shard, &to).await
    }

    /// Removes a shard that has no mappings.
    ///
    /// # Errors
    ///
    /// [`Code::ShardHasMappings`], [`Code::ShardDoesNotExist`], [`Code::ShardVersionMismatch`].
    pub async fn delete_shard(&self, shard: &Shard) -> Result<(), Error> {
        self.own_shard(shard)?;
        self.made(&ShardRequest::Remove { map: &self.map, shard: &shard.row }).await.map(|_| ())
    }

    /// Sets the status or the location of a shard. The database at the new location must say that it is this shard: it
    /// is the same database by another name, or a copy of it. The shard is closed at the old location in the same
    /// operation: its transactions there are ended, and no transaction enters its keys there any more. It gets the
    /// mappings of the global map at the new location.
    ///
    /// # Errors
    ///
    /// [`Code::ShardDoesNotExist`], [`Code::ShardVersionMismatch`], [`Code::ShardLocationAlreadyExists`];
    /// [`Code::ShardNotValid`] if something else is at the new place; [`Code::StorageOperationFailure`] if the old place
    /// cannot be closed ([`ShardMap::move_lost_shard`]).
    pub async fn update_shard(&self, shard: &Shard, update: &ShardUpdate) -> Result<Shard, Error> {
        if *update == ShardUpdate::default() {
            self.own_shard(shard)?;
            return Ok(shard.clone());
        }
        let online = update.online.unwrap_or(shard.row.online);
        match &update.location {
            Some(to) if to != shard.location() => self.move_shard(shard, to, online, false).await,
            _ => {
                self.own_shard(shard)?;
                let request = ShardRequest::Update { map: &self.map, shard: &shard.row, online };
                self.made(&request)
                    .await?
                    .ok_or_else(|| Error::damaged("a shard that was updated is not there"))
            }
        }
    }

    /// Gives a shard another location although the old one cannot be closed, because it is gone for good. If it comes
    /// back, it is refused everywhere. But a client that still reaches it, and has its place in a cache, would be
    /// served there.
    ///
    /// # Errors
    ///
    /// As [`ShardMap::update_shard`].
    pub async fn move_lost_shard(&self, shard: &Shard, to: &Location) -> Result<Shard, Error> {
        self.move_shard(shard, to, shard.row.online, true).await
    }

    async fn move_shard(
        &self,
        shard: &Shard,
        to: &Location,
        online: bool,
        lost: bool,
    ) -> Result<Shard, Error> {
        self.own_shard(shard)?;
        if self.local_shard(to).await?.map(|found| found.id) != Some(shard.row.id) {
            let text = format!("{to} does not have the local map of the shard at {}", shard.location());
            return Err(Error::new(Category::ShardMap, Code::ShardNotValid, text));
        }
        let (map, drain) = (&*self.map, self.drain());
        let request = ShardRequest::Move { map, shard: &shard.row, online, to, lost, drain };
        let moved = self.made(&request).await?;
        moved.ok_or_else(|| Error::damaged("a shard that was moved is not there"))
    }

    /// The shard as an operation left it.
    async fn made(&self, request: &ShardRequest<'_>) -> Result<Option<Shard>, Error> {
        let done = self.manager.0.operations.change_shard(request).await?;
        let after = done.plan.sides.into_iter().find_map(|side| side.after);
        Ok(after.map(|row| Shard { map: self.map.id, row: Arc::new(row) }))
    }

    /// All shards of the map, by place.
    ///
    /// # Errors
    ///
    /// [`Code::StorageOperationFailure`].
    pub async fn shards(&self) -> Result<Vec<Shard>, Error> {
        let rows = self.read_shards().await.map_err(|error: StoreError| error.seen_by(Category::ShardMap))?;
        let mut shards: Vec<Shard> =
            rows.into_iter().map(|row| Shard { map: self.map.id, row: Arc::new(row) }).collect();
        shards.sort_by(|a, b| a.location().cmp(b.location()));
        Ok(shards)
    }

    async fn read_shards(&self) -> Result<Vec<ShardRow>, StoreError> {
        let mut tx = self.manager.reading().await?;
        let columns = ShardRow::COLUMNS;
        let sql = format!(
            "select {columns} from __shard_management.global_shards where map_id = $1 and readable = $2"
        );
        let rows = tx.query(&sql, &[self.map.id.into(), true.into()]).await?;
        tx.commit().await?;
        rows.into_iter().map(|mut row: Row| ShardRow::read(&mut row)).collect()
    }

    /// The shard at a place.
    ///
    /// # Errors
    ///
    /// [`Code::ShardDoesNotExist`].
    pub async fn shard(&self, location: &Location) -> Result<Shard, Error> {
        let missing = || {
            let text = format!("shard map {:?} has no shard at {location}", self.map.name);
            Error::new(Category::ShardMap, Code::ShardDoesNotExist, text)
        };
        self.try_shard(location).await?.ok_or_else(missing)
    }

    /// The shard at a place; `None` if the map has no shard there.
    ///
    /// # Errors
    ///
    /// [`Code::PendingOperation`], if it is just being added or removed.
    pub async fn try_shard(&self, location: &Location) -> Result<Option<Shard>, Error> {
        loop {
            let found = self.read_shard_at(location).await;
            match found.map_err(|error: StoreError| error.seen_by(Category::ShardMap))? {
                // A shard that is held only because its mappings change stays in the map all the time.
                Some(Marked { row, readable: true, .. }) => {
                    return Ok(Some(Shard { map: self.map.id, row: Arc::new(row) }));
                }
                Some(Marked { operation: Some(operation), .. }) => {
                    self.manager.0.operations.settle(&Met { operation }, Category::ShardMap, false).await?;
                }
                _ => return Ok(None),
            }
        }
    }

    async fn read_shard_at(&self, location: &Location) -> Result<Option<Marked<ShardRow>>, StoreError> {
        let mut tx = self.manager.reading().await?;
        let found = shard_at(&mut tx, &self.map, location).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// Which of the shards of this map a database says that it is.
    pub(crate) async fn local_shard(&self, location: &Location) -> Result<Option<ShardRow>, Error> {
        let read = async {
            let mut tx = self.manager.0.operations.databases.at(location)?.begin(For::Reading).await?;
            let found = local::read_local_shard(&mut tx, self.map.id).await?;
            Ok(found)
        };
        read.await.map_err(|error: StoreError| error.seen_by(Category::ShardMap))
    }

    /// Asks the shard itself whether it still is what the handle says: a shard of the map, in this version.
    ///
    /// # Errors
    ///
    /// [`Code::ShardDoesNotExist`] and [`Code::ShardVersionMismatch`], of the category
    /// [`Category::Validation`].
    pub async fn validate_shard(&self, shard: &Shard) -> Result<(), Error> {
        self.own_shard(shard)?;
        let refused = |code, what: &str| {
            Err(Error::new(Category::Validation, code, format!("the shard at {} {what}", shard.location())))
        };
        match self.local_shard(shard.location()).await? {
            Some(found) if found.id == shard.row.id && found.version == shard.row.version => Ok(()),
            Some(found) if found.id == shard.row.id => {
                refused(Code::ShardVersionMismatch, "was changed meanwhile: get it again")
            }
            _ => refused(Code::ShardDoesNotExist, "is not a shard of the map, or not any more"),
        }
    }

    pub(super) fn own_shard(&self, shard: &Shard) -> Result<(), Error> {
        if shard.map == self.map.id {
            return Ok(());
        }
        Err(Error::argument(format!(
            "the shard at {} is of another map than {:?}",
            shard.location(),
            self.map.name
        )))
    }
}
