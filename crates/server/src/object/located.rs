//! Where an object lies in a bucket with folders.
//!
//! A request finds the id of an object's folder once, before it reads or writes ([`ObjectService::located`]), and goes on with
//! the stored name. The bucket remembers what it has found, and the number of the last change of folders that came before
//! (`Bucket::look`).
//!
//! A write says that number. If a later change was announced to the range, the write is refused, and looks again: if all
//! names that the request has found still lead to the same folders, it goes on with the new number, else the client is told to
//! try again. A read asks for the number once more after it has read, and looks again if it has grown.

use std::borrow::Cow;

use bytes::Bytes;
use rangehold_map::PartitionPrefix;
use rangehold_map::key::{BucketId, ObjectKey, ObjectRow};
use rangehold_protocol::object::bucket::{Bucket, Look};
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::folder::{
    Folder, Make, ROOT, Raise, Tree, decode_id, folders_of, name_row, stored_name, stored_parts,
};
use rangehold_protocol::object::write::Name;
use tokio::time::{Instant, timeout_at};

use super::ObjectService;
use super::exchange::Exchange;
use super::failure::Failure;
use crate::limits::FOLDER_TRIES_MAX;

/// What a request wants of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// What is there. If a folder is missing, there is no such object.
    There,
    /// To write it. Missing folders are made.
    New,
}

/// How far a whole name leads.
#[derive(Debug)]
pub(super) struct Way {
    /// The ids of the folders that exist, from above.
    pub(super) ids: Vec<u64>,
    /// The last change of folders that came before. No folder of the way was renamed or deleted while it was looked for.
    pub(super) tree: Tree,
}

impl Way {
    /// The last folder that exists.
    pub(super) fn last(&self) -> u64 {
        self.ids.last().copied().unwrap_or(ROOT)
    }
}

impl ObjectService {
    /// The bucket of a name, and the stored name.
    pub(super) async fn place<'n>(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &'n str,
        wants: Wants,
    ) -> Result<(Bucket, Cow<'n, str>), Failure> {
        let mut bucket = self.bucket_for(exchange, bucket).await?;
        let stored = self.located(&mut bucket, name, wants, exchange.deadline()).await?;
        Ok((bucket, stored))
    }

    /// The same, for a request about an object's access control list, which a bucket with uniform access refuses.
    pub(super) async fn place_with_list<'n>(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &'n str,
    ) -> Result<(Bucket, Cow<'n, str>), Failure> {
        let mut bucket = self.bucket_for(exchange, bucket).await?;
        bucket.check_lists_in_use()?;
        let stored = self.located(&mut bucket, name, Wants::There, exchange.deadline()).await?;
        Ok((bucket, stored))
    }

    /// The same, in a bucket of whose objects the request has several, or that it needs as it was. Only one with folders is
    /// copied.
    pub(super) async fn located_in<'b, 'n>(
        &self,
        bucket: &'b Bucket,
        name: &'n str,
        wants: Wants,
        deadline: Instant,
    ) -> Result<(Cow<'b, Bucket>, Cow<'n, str>), Failure> {
        if !bucket.has_folders() {
            return Ok((Cow::Borrowed(bucket), Cow::Borrowed(name)));
        }
        let mut own = bucket.clone();
        let stored = self.located(&mut own, name, wants, deadline).await?;
        Ok((Cow::Owned(own), stored))
    }

    /// The stored name of an object. The bucket remembers it.
    pub(super) async fn located<'n>(
        &self,
        bucket: &mut Bucket,
        name: &'n str,
        wants: Wants,
        deadline: Instant,
    ) -> Result<Cow<'n, str>, Failure> {
        if !bucket.has_folders() {
            return Ok(Cow::Borrowed(name));
        }
        let (folders, rest) = folders_of(name);
        let way = match wants {
            Wants::New => self.made_way(bucket, &folders, deadline).await?,
            Wants::There => self.way(bucket.id, &folders).await?,
        };
        if way.ids.len() < folders.len() {
            return Err(ObjectError::no_such_object(&bucket.name, name).into());
        }
        let stored = stored_name(way.last(), rest);
        // Of several looks the oldest counts: a change after it may have moved what it has found.
        bucket.look.get_or_insert_with(|| Look::new(way.tree.changes)).found(&stored, name);
        Ok(Cow::Owned(stored))
    }

    /// What a bucket remembers of its folders.
    pub(super) async fn tree(&self, bucket: BucketId) -> Result<Tree, Failure> {
        let key = PartitionPrefix::object(bucket, "").object_row(&ObjectRow::Tree);
        Ok(Tree::read(self.router.get(&key).await?)?)
    }

    /// Follows the names of folders as far as they exist.
    pub(super) async fn way(&self, bucket: BucketId, folders: &[&str]) -> Result<Way, Failure> {
        let partition = PartitionPrefix::object(bucket, "");
        let mut tree = self.tree(bucket).await?;
        for _ in 0..FOLDER_TRIES_MAX {
            let mut ids = Vec::with_capacity(folders.len());
            for name in folders {
                let parent = ids.last().copied().unwrap_or(ROOT);
                match self.router.get(&partition.object_row(&name_row(parent, name))).await? {
                    Some(row) => ids.push(decode_id(&row)?),
                    None => break,
                }
            }
            // One folder after the other was looked for: between two of them, the first may have gone.
            let now = if folders.len() > 1 { self.tree(bucket).await? } else { tree };
            if now.changes == tree.changes {
                return Ok(Way { ids, tree });
            }
            tree = now;
        }
        Err(moved_meanwhile())
    }

    /// Follows the names of folders, and makes those that do not exist.
    pub(super) async fn made_way(
        &self,
        bucket: &Bucket,
        folders: &[&str],
        deadline: Instant,
    ) -> Result<Way, Failure> {
        for _ in 0..FOLDER_TRIES_MAX {
            let way = self.way(bucket.id, folders).await?;
            if way.ids.len() == folders.len() {
                return Ok(way);
            }
            let (seen, parent) = (way.tree.changes, way.last());
            let make = Make { bucket, seen, parent, names: &folders[way.ids.len()..] };
            // The ids of the folders above the last one are not told, so they are looked for again.
            self.change_object(&make, deadline).await?;
        }
        Err(moved_meanwhile())
    }

    /// The folder of a way.
    pub(super) async fn folder(&self, bucket: BucketId, id: u64) -> Result<Option<Folder>, Failure> {
        let key = PartitionPrefix::object(bucket, "").object_row(&ObjectRow::Folder(id));
        Ok(self.router.get(&key).await?.map(|row| Folder::decode(&row)).transpose()?)
    }

    /// Finds the whole name of the folder of a stored name. One that was deleted keeps the name under which its rest is stored.
    pub(super) async fn find_folder_of(
        &self,
        bucket: BucketId,
        stored: &str,
        look: &mut Look,
    ) -> Result<(), Failure> {
        let Some((mut id, name)) = stored_parts(stored) else { return Ok(()) };
        let key = &stored[..stored.len() - name.len()];
        let mut whole = String::new();
        while id != ROOT {
            let Some(folder) = self.folder(bucket, id).await? else {
                key.clone_into(&mut whole);
                break;
            };
            whole.insert_str(0, &folder.name);
            id = folder.parent;
        }
        look.found_folder(key, &whole);
        Ok(())
    }

    /// A row of a name. If folders were renamed or deleted since the name was looked for, it is looked for again.
    pub(super) async fn row(&self, of: Name<'_>, row: &ObjectRow<'_>) -> Result<Option<Bytes>, Failure> {
        check_located(of)?;
        let key = of.key(row);
        let Some(look) = &of.bucket.look else { return Ok(self.router.get(&key).await?) };
        let mut seen = look.seen;
        for _ in 0..FOLDER_TRIES_MAX {
            let found = self.router.get(&key).await?;
            if self.tree(of.bucket.id).await?.changes == seen {
                return Ok(found);
            }
            seen = self.looked_again(of.bucket, look).await?;
        }
        Err(moved_meanwhile())
    }

    /// A write has met the change `fence`, which its request has not seen. Returns what it has seen when it has looked again.
    pub(super) async fn met_fence(
        &self,
        bucket: &Bucket,
        look: &Look,
        fence: u64,
        deadline: Instant,
    ) -> Result<u64, Failure> {
        if self.tree(bucket.id).await?.changes < fence {
            // If this process is making the change, its end is waited for. Else nobody may be making it any more.
            let ended = timeout_at(deadline, self.changes.wait_for(bucket.id, "")).await;
            ended.map_err(|_| moved_meanwhile())?;
            if self.tree(bucket.id).await?.changes < fence {
                self.judged(&Raise { bucket, to: fence }, None, deadline).await?;
            }
        }
        self.looked_again(bucket, look).await
    }

    /// Looks again for all names of a request. Fails if one of them leads elsewhere.
    async fn looked_again(&self, bucket: &Bucket, look: &Look) -> Result<u64, Failure> {
        let mut seen = None;
        for (stored, whole) in look.names() {
            let (folders, rest) = folders_of(whole);
            let way = self.way(bucket.id, &folders).await?;
            if way.ids.len() < folders.len() || stored_name(way.last(), rest) != stored {
                let message = format!("The folder of {whole:?} was renamed or deleted meanwhile. Try again.");
                return Err(Failure::unavailable(message));
            }
            seen = Some(seen.unwrap_or(u64::MAX).min(way.tree.changes));
        }
        Ok(seen.unwrap_or(look.seen))
    }
}

/// The stored name of a row, if the bucket has a look that does not know its folder yet.
pub(super) fn unknown_name(bucket: &Bucket, key: &[u8]) -> Option<String> {
    let look = bucket.look.as_ref()?;
    let key = ObjectKey::decode(key).ok().filter(|key| !key.name.is_empty())?;
    let is_unknown = stored_parts(&key.name).is_some() && !look.knows_folder_of(&key.name);
    is_unknown.then(|| key.name.into_owned())
}

/// Refuses a request that takes a whole name for a stored one: it does not know of folders.
pub(super) fn check_located(of: Name<'_>) -> Result<(), ObjectError> {
    let is_whole = of.bucket.has_folders() && !of.name.is_empty() && stored_parts(of.name).is_none();
    match is_whole {
        false => Ok(()),
        true => Err(ObjectError::not_implemented("This request, in a bucket with a hierarchical namespace,")),
    }
}

/// Folders were renamed or deleted at each try.
pub(super) fn moved_meanwhile() -> Failure {
    Failure::unavailable("Folders of the bucket are renamed or deleted again and again. Try again.")
}
