//! Renames and deletions of folders: one change or none.
//!
//! ```text
//!   1 Announced: each range of the bucket has noted the number of the change, and refuses writes that have not seen it
//!   2 (a deletion looks whether an object lies in the folder)
//!   3 Changed: the rows of folders are changed, in one batch. This is the change
//! ```
//!
//! If the process dies before step 3, the change never happens: a write that meets the fence counts the number as used, and
//! a change that comes later with this number is refused. After step 3 there is nothing left to do. The same is done if the outcome
//! of step 3 is unknown: once the number counts as used, the folder itself tells whether the change was made.
//!
//! In this process, one folder of a bucket is changed at a time, and writes that meet a fence wait for the end of the change
//! (`changes`, with the empty name, which no object has).

use rangehold_engine::NamesStep;
use rangehold_map::KeyRange;
use rangehold_map::key::names_beginning_with;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::{Conditions, Purpose};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::folder::{
    Folder, Place, Raise, Remove, Rename, check_folder, folders_of, no_such_folder, not_empty, stored_name,
    with_slash,
};
use rangehold_protocol::object::operation::Operation;
use rangehold_protocol::object::write::{Judge, Name};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::warn;

use super::ObjectService;
use super::exchange::Exchange;
use super::failure::Failure;
use super::folders::no_parent;
use super::json::resource;
use super::located::moved_meanwhile;
use super::reply::Reply;
use crate::limits::FOLDER_TRIES_MAX;

/// What is known of a change that was announced.
enum Changed<T> {
    /// What the judge answered.
    Known(T),
    /// It was made, or never will be: the folder tells.
    LookAt,
}

impl ObjectService {
    pub(super) async fn rename_folder(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        from: &str,
        to: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket_with_folders(exchange, bucket).await?;
        let (from, to) = (with_slash(from), with_slash(to));
        check_folder(&to)?;
        let (conditions, deadline) = (exchange.query.source_conditions()?, exchange.deadline());
        let folder = self.renamed(&bucket, &from, &to, &conditions, deadline).await?;
        let details = json!({ "sourceFolderId": from, "destinationFolderId": to });
        let mut response = folder.json(&bucket, &exchange.base, &to);
        response["@type"] = "type.googleapis.com/google.storage.control.v2.Folder".into();
        self.told(exchange, &bucket, "RenameFolder", &details, &response).await
    }

    pub(super) async fn delete_folder(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket_with_folders(exchange, bucket).await?;
        let (whole, conditions) = (with_slash(name), exchange.conditions()?);
        self.deleted(&bucket, &whole, None, &conditions, exchange.deadline()).await?;
        Ok(Reply::empty(204))
    }

    /// Stores and shows an operation that is done. If it cannot be stored, it was done all the same.
    pub(super) async fn told(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        sort: &str,
        details: &Value,
        response: &Value,
    ) -> Result<Reply, Failure> {
        let make = |now| Operation::done(sort, details, response, now);
        let (id, operation) = match self.store_operation(bucket, exchange.deadline(), make).await {
            Ok(stored) => stored,
            Err(error) => {
                warn!(%error, sort, "an operation is done and cannot be asked for later");
                (exchange.id.to_owned(), make(exchange.now.into()))
            }
        };
        resource(exchange, operation.json(&exchange.base, &bucket.name, &id))
    }

    /// Renames a folder. The parent of its new name must exist, and the new name must be free.
    async fn renamed(
        &self,
        bucket: &Bucket,
        from: &str,
        to: &str,
        conditions: &Conditions,
        deadline: Instant,
    ) -> Result<Folder, Failure> {
        // The window first: a move whose window is open may wait for the end of this turn.
        let _window = self.window(Name { bucket, name: "" }, deadline).await?;
        let _turn = self.turn(bucket, [""], deadline).await?;
        let (target, _) = folders_of(to);
        let (to_name, above) = target.split_last().expect("a name that was checked has a folder");
        for _ in 0..FOLDER_TRIES_MAX {
            let (id, folder, way) = self.found_folder(bucket, from).await?;
            let new = self.way(bucket.id, &target).await?;
            let seen = way.tree.changes;
            if new.tree.changes != seen {
                continue;
            }
            // What can be refused is refused before anything is announced.
            conditions.check_seen(Some(&folder.seen()), Purpose::Write)?;
            if new.ids.len() == target.len() && from != to {
                let message = format!("The folder exists already: {}/{to}", bucket.name);
                return Err(ObjectError::new(ErrorKind::Conflict, message).into());
            }
            if new.ids.contains(&id) {
                let hint = "A folder cannot be moved into itself.";
                return Err(ObjectError::invalid("destinationFolder", to, hint).into());
            }
            if new.ids.len() < above.len() {
                return Err(no_parent(bucket, to).into());
            }
            let place = Place { whole: from, parent: folder.parent, name: &folder.name };
            let target = Place { whole: to, parent: new.last(), name: to_name };
            let rename = Rename { bucket, seen, id, from: place, to: target, above: &new.ids, conditions };
            self.announce(bucket, seen + 1, from, deadline).await?;
            let is_there =
                |folder: &Folder| (folder.parent, folder.name.as_str()) == (target.parent, to_name);
            let renamed = match self.changed(&rename, seen + 1, deadline).await? {
                Changed::Known(renamed) => renamed,
                Changed::LookAt => self.folder(bucket.id, id).await?.filter(is_there),
            };
            if let Some(renamed) = renamed {
                self.names_hook.after(NamesStep::FolderChanged, from.to_owned()).await;
                return Ok(renamed);
            }
        }
        Err(moved_meanwhile())
    }

    /// Deletes a folder in which nothing lies. With an id, only that one counts as the folder of this name.
    pub(super) async fn deleted(
        &self,
        bucket: &Bucket,
        whole: &str,
        expected: Option<u64>,
        conditions: &Conditions,
        deadline: Instant,
    ) -> Result<(), Failure> {
        // The window first: a move whose window is open may wait for the end of this turn.
        let _window = self.window(Name { bucket, name: "" }, deadline).await?;
        let _turn = self.turn(bucket, [""], deadline).await?;
        for _ in 0..FOLDER_TRIES_MAX {
            let (id, folder, way) = self.found_folder(bucket, whole).await?;
            if expected.is_some_and(|expected| expected != id) {
                return Err(no_such_folder(&bucket.name, whole).into());
            }
            let seen = way.tree.changes;
            conditions.check_seen(Some(&folder.seen()), Purpose::Write)?;
            let keys = KeyRange::prefix(&names_beginning_with(bucket.id, &stored_name(id, "")));
            if folder.folders > 0 || self.has_objects(bucket, &keys).await? {
                return Err(not_empty(bucket, whole).into());
            }
            self.announce(bucket, seen + 1, whole, deadline).await?;
            // Now that nothing is written into it, what is seen stays so.
            if self.has_objects(bucket, &keys).await? {
                self.raise(bucket, seen + 1, deadline).await;
                return Err(not_empty(bucket, whole).into());
            }
            let at = Place { whole, parent: folder.parent, name: &folder.name };
            let remove = Remove { bucket, seen, id, at, conditions };
            let removed = match self.changed(&remove, seen + 1, deadline).await? {
                Changed::Known(removed) => removed.is_some(),
                Changed::LookAt => self.folder(bucket.id, id).await?.is_none(),
            };
            if removed {
                self.names_hook.after(NamesStep::FolderChanged, whole.to_owned()).await;
                return Ok(());
            }
        }
        Err(moved_meanwhile())
    }

    /// Announces a change of folders to all ranges of the bucket.
    async fn announce(
        &self,
        bucket: &Bucket,
        number: u64,
        whole: &str,
        deadline: Instant,
    ) -> Result<(), Failure> {
        self.router.fence_bucket(bucket.id, number, deadline).await?;
        self.names_hook.after(NamesStep::Announced, whole.to_owned()).await;
        Ok(())
    }

    /// Makes a change that was announced. If it is refused, its number counts as used, so that nobody waits for it. If its
    /// outcome is unknown, the number counts as used too: then the change is made, or never will be.
    async fn changed<J: Judge>(
        &self,
        judge: &J,
        number: u64,
        deadline: Instant,
    ) -> Result<Changed<J::Answer>, Failure> {
        let bucket = judge.name().bucket;
        match self.change_object(judge, deadline).await {
            Ok(answer) => Ok(Changed::Known(answer)),
            Err(failure) if failure.is_unknown() => {
                let raised = self.change_object(&Raise { bucket, to: number }, deadline).await;
                raised.map(|()| Changed::LookAt).map_err(|_| failure)
            }
            Err(failure) => {
                self.raise(bucket, number, deadline).await;
                Err(failure)
            }
        }
    }

    /// Counts the number of a change that is not made. If this fails, the next write that meets the fence does it.
    async fn raise(&self, bucket: &Bucket, to: u64, deadline: Instant) {
        if let Err(error) = self.change_object(&Raise { bucket, to }, deadline).await {
            warn!(%error, "a change of folders that was not made holds the next write up");
        }
    }
}
