//! The judges of folders. All of them change rows of the bucket's partition of folders, in one batch.
//!
//! A judge answers `None` if a folder was renamed or deleted since the sender looked, or if a folder that it wants to make
//! is there by now: then nothing is changed, and the sender looks again.

use bytes::Bytes;
use rangehold_map::Timestamp;
use rangehold_map::key::ObjectRow;

use super::{Folder, ROOT, Tree, decode_id, encode_id, name_row, no_such_folder};
use crate::object::bucket::Bucket;
use crate::object::condition::{Conditions, Purpose};
use crate::object::error::{ErrorKind, ObjectError};
use crate::object::micros::Micros;
use crate::object::write::{Judge, Name, Outcome, RowChanges, Verdict};

/// Where a folder is, as the sender has found it.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Its whole name, for messages.
    pub whole: &'a str,
    /// The folder above it, or [`ROOT`].
    pub parent: u64,
    /// Its name there, with its slash.
    pub name: &'a str,
}

/// Makes folders, each in the one before it.
#[derive(Debug, Clone, Copy)]
pub struct Make<'a> {
    /// The bucket.
    pub bucket: &'a Bucket,
    /// The last change that the sender has seen.
    pub seen: u64,
    /// The folder in which the first of them is made.
    pub parent: u64,
    /// Their names, with their slashes. At least one.
    pub names: &'a [&'a str],
}

/// Renames a folder, or moves it into another one.
#[derive(Debug, Clone, Copy)]
pub struct Rename<'a> {
    /// The bucket.
    pub bucket: &'a Bucket,
    /// The last change that the sender has seen. This is the next one.
    pub seen: u64,
    /// The folder.
    pub id: u64,
    /// Where it is.
    pub from: Place<'a>,
    /// Where it will be.
    pub to: Place<'a>,
    /// The ids of all folders in which it will lie.
    pub above: &'a [u64],
    /// On the folder.
    pub conditions: &'a Conditions,
}

/// Deletes a folder in which nothing lies. The sender has announced the change and then seen that there is no object in it.
#[derive(Debug, Clone, Copy)]
pub struct Remove<'a> {
    /// The bucket.
    pub bucket: &'a Bucket,
    /// The last change that the sender has seen. This is the next one.
    pub seen: u64,
    /// The folder.
    pub id: u64,
    /// Where it is.
    pub at: Place<'a>,
    /// On the folder.
    pub conditions: &'a Conditions,
}

/// Counts a change that was announced and perhaps never made. If it comes later, it is not made any more.
#[derive(Debug, Clone, Copy)]
pub struct Raise<'a> {
    /// The bucket.
    pub bucket: &'a Bucket,
    /// The number of the change.
    pub to: u64,
}

/// Removes a row of folders that a bucket has left whose life is over.
#[derive(Debug, Clone, Copy)]
pub struct RemoveRow<'a> {
    /// The bucket.
    pub bucket: &'a Bucket,
    /// The row.
    pub row: &'a ObjectRow<'a>,
}

/// The partition of the folders of a bucket.
fn partition(bucket: &Bucket) -> Name<'_> {
    Name { bucket, name: "" }
}

fn keys<'r>(bucket: &Bucket, rows: impl IntoIterator<Item = ObjectRow<'r>>) -> Vec<Vec<u8>> {
    let partition = partition(bucket).partition();
    rows.into_iter().map(|row| partition.object_row(&row)).collect()
}

fn unchanged<T>(answer: T) -> Outcome<T> {
    Outcome { changes: Vec::new(), releases: Vec::new(), answer }
}

/// The changes of one judge.
struct Changes<'a> {
    bucket: &'a Bucket,
    rows: RowChanges,
}

impl<'a> Changes<'a> {
    fn new(bucket: &'a Bucket) -> Self {
        Self { bucket, rows: Vec::new() }
    }

    fn set(&mut self, row: &ObjectRow<'_>, value: Option<Vec<u8>>) {
        self.rows.push((partition(self.bucket).key(row), value));
    }

    fn put(&mut self, id: u64, folder: &Folder) {
        self.set(&ObjectRow::Folder(id), Some(folder.encode()));
    }

    /// Adds to the folders that lie in a folder. The bucket itself does not count them.
    fn count(&mut self, id: u64, row: Option<&Bytes>, by: i64) -> Result<(), ObjectError> {
        if id == ROOT {
            return Ok(());
        }
        let row = row.ok_or_else(|| ObjectError::damaged("a folder has a name and no row"))?;
        let mut folder = Folder::decode(row)?;
        folder.folders = folder.folders.saturating_add_signed(by);
        self.put(id, &folder);
        Ok(())
    }

    fn done<T>(self, answer: T) -> Outcome<T> {
        Outcome { changes: self.rows, releases: Vec::new(), answer }
    }
}

impl Judge for Make<'_> {
    type Answer = Option<(u64, Folder)>;

    fn name(&self) -> Name<'_> {
        partition(self.bucket)
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let first = name_row(self.parent, self.names[0]);
        keys(self.bucket, [ObjectRow::Tree, first, ObjectRow::Folder(self.parent)])
    }

    /// Decides the change. The answer is the last folder that was made.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<Self::Answer> {
        let mut tree = Tree::read(rows[0].as_ref())?;
        if tree.changes != self.seen || rows[1].is_some() {
            return Ok(unchanged(None));
        }
        let (mut changes, now) = (Changes::new(self.bucket), Micros::from(stamp));
        changes.count(self.parent, rows[2].as_ref(), 1)?;
        let (mut parent, mut last) = (self.parent, None);
        for (place, name) in self.names.iter().enumerate() {
            let id = tree.next;
            tree.next += 1;
            let folders = u64::from(place + 1 < self.names.len());
            let name = (*name).to_owned();
            let folder = Folder { parent, name, created: now, updated: now, metageneration: 1, folders };
            changes.set(&name_row(parent, &folder.name), Some(encode_id(id)));
            changes.put(id, &folder);
            (parent, last) = (id, Some((id, folder)));
        }
        changes.set(&ObjectRow::Tree, Some(tree.encode()));
        Ok(changes.done(last))
    }
}

impl Judge for Rename<'_> {
    type Answer = Option<Folder>;

    fn name(&self) -> Name<'_> {
        partition(self.bucket)
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let names = [name_row(self.from.parent, self.from.name), name_row(self.to.parent, self.to.name)];
        let folders = [self.id, self.from.parent, self.to.parent].map(ObjectRow::Folder);
        keys(self.bucket, std::iter::once(ObjectRow::Tree).chain(names).chain(folders))
    }

    /// Decides the change. The answer is the folder as it is afterwards.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<Self::Answer> {
        let mut tree = Tree::read(rows[0].as_ref())?;
        if tree.changes != self.seen {
            return Ok(unchanged(None));
        }
        let Self { bucket, from, to, .. } = *self;
        let mut folder = standing(bucket, self.id, &from, rows[1].as_ref(), rows[3].as_ref())?;
        self.conditions.check_seen(Some(&folder.seen()), Purpose::Write)?;
        if self.above.contains(&self.id) {
            let hint = "A folder cannot be moved into itself.";
            return Err(ObjectError::invalid("destinationFolder", to.whole, hint).into());
        }
        if rows[2].is_some() {
            let message = format!("The folder exists already: {}/{}", bucket.name, to.whole);
            return Err(ObjectError::new(ErrorKind::Conflict, message).into());
        }
        let mut changes = Changes::new(bucket);
        if from.parent != to.parent {
            changes.count(from.parent, rows[4].as_ref(), -1)?;
            changes.count(to.parent, rows[5].as_ref(), 1)?;
        }
        changes.set(&name_row(from.parent, from.name), None);
        changes.set(&name_row(to.parent, to.name), Some(encode_id(self.id)));
        (folder.parent, folder.name) = (to.parent, to.name.to_owned());
        folder.updated = Micros::from(stamp);
        folder.metageneration += 1;
        changes.put(self.id, &folder);
        tree.changes += 1;
        changes.set(&ObjectRow::Tree, Some(tree.encode()));
        Ok(changes.done(Some(folder)))
    }
}

impl Judge for Remove<'_> {
    type Answer = Option<()>;

    fn name(&self) -> Name<'_> {
        partition(self.bucket)
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let name = name_row(self.at.parent, self.at.name);
        let folders = [self.id, self.at.parent].map(ObjectRow::Folder);
        keys(self.bucket, [ObjectRow::Tree, name].into_iter().chain(folders))
    }

    /// Decides the change. It is refused if a folder lies in this one.
    fn judge(&self, rows: &[Option<Bytes>], _: Timestamp) -> Verdict<Self::Answer> {
        let mut tree = Tree::read(rows[0].as_ref())?;
        if tree.changes != self.seen {
            return Ok(unchanged(None));
        }
        let Self { bucket, at, .. } = *self;
        let folder = standing(bucket, self.id, &at, rows[1].as_ref(), rows[2].as_ref())?;
        self.conditions.check_seen(Some(&folder.seen()), Purpose::Write)?;
        if folder.folders > 0 {
            return Err(not_empty(bucket, at.whole).into());
        }
        let mut changes = Changes::new(bucket);
        changes.count(at.parent, rows[3].as_ref(), -1)?;
        changes.set(&name_row(at.parent, at.name), None);
        changes.set(&ObjectRow::Folder(self.id), None);
        tree.changes += 1;
        changes.set(&ObjectRow::Tree, Some(tree.encode()));
        Ok(changes.done(Some(())))
    }
}

impl Judge for Raise<'_> {
    type Answer = ();

    fn name(&self) -> Name<'_> {
        partition(self.bucket)
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        keys(self.bucket, [ObjectRow::Tree])
    }

    fn judge(&self, rows: &[Option<Bytes>], _: Timestamp) -> Verdict<()> {
        let mut tree = Tree::read(rows[0].as_ref())?;
        if tree.changes >= self.to {
            return Ok(unchanged(()));
        }
        tree.changes = self.to;
        let mut changes = Changes::new(self.bucket);
        changes.set(&ObjectRow::Tree, Some(tree.encode()));
        Ok(changes.done(()))
    }
}

impl Judge for RemoveRow<'_> {
    type Answer = bool;

    fn name(&self) -> Name<'_> {
        partition(self.bucket)
    }

    fn only_removes(&self) -> bool {
        true
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        keys(self.bucket, [self.row.clone()])
    }

    /// Decides the change. Nothing is removed from a bucket that lives, or can be restored.
    fn judge(&self, rows: &[Option<Bytes>], stamp: Timestamp) -> Verdict<bool> {
        if rows[0].is_none() || !self.bucket.is_over(Micros::from(stamp)) {
            return Ok(unchanged(false));
        }
        let mut changes = Changes::new(self.bucket);
        changes.set(self.row, None);
        Ok(changes.done(true))
    }
}

/// The folder at a place, from the row of its name and its own row.
fn standing(
    bucket: &Bucket,
    id: u64,
    at: &Place<'_>,
    name: Option<&Bytes>,
    row: Option<&Bytes>,
) -> Result<Folder, ObjectError> {
    let found = name.map(|row| decode_id(row)).transpose()?;
    match (found == Some(id), row) {
        (true, Some(row)) => Folder::decode(row),
        (true, None) => Err(ObjectError::damaged("a folder has a name and no row")),
        (false, _) => Err(no_such_folder(&bucket.name, at.whole)),
    }
}

/// Something lies in a folder that is to be deleted.
pub fn not_empty(bucket: &Bucket, whole: &str) -> ObjectError {
    let message = format!("The folder you tried to delete is not empty: {}/{whole}", bucket.name);
    ObjectError::new(ErrorKind::BucketRule, message)
}
