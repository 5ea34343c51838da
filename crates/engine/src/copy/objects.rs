//! What a restored range needs besides its rows if they are rows of objects.
//!
//! Rows of objects depend on rows of other ranges, and these are not as of the backup:
//!
//! | a restored row | what was done since the backup | what is done here |
//! |---|---|---|
//! | of an object with a blob | the object was deleted, and its blob with it | the files are copied from the backup, and the object is noted as a user of the blob |
//! | of a blob's users | objects were written or copied, whose rows lie in other ranges | all rows of objects are read, and their users are noted |
//! | that counts ids of buckets or folders | ids were given, and rows with these ids lie in other ranges | it counts on far above them |
//! | that counts ids of folders, and is missing | the bucket or its first folder was made | it is made, for each bucket with folders |
//!
//! A user too many does no harm: the audit of blobs asks it, and removes it. One too few would let the audit delete the
//! files of an object that is still there. So users are only added.
//!
//! A range with rows of blobs may be damaged too. Then it gets no users from here, and the report names it: when it is restored itself,
//! the rows of all objects are read.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt};
use rangehold_map::blob::{BlobId, BlobUser};
use rangehold_map::key::{BlobRow, BucketRow, KIND_BLOB, KIND_BUCKET, KIND_OBJECT};
use rangehold_map::{KeyRange, PartitionPrefix, RangeEntry, RangeId, RangeMap};
use slatedb::config::{DurabilityLevel, ReadOptions, ScanOptions};
use slatedb::{Db, KeyValue, WriteBatch};

use super::blobs::{Twice, copy_file};
use super::moment::HeldRows;
use super::moments::Moments;
use super::rows::{save, while_there_is_room, write};
use super::{CopyError, CopyReport, give_up, location, place};
use crate::blob::{self, directory_of};
use crate::database::{self, Databases};
use crate::error::{ReadError, read_error};
use crate::limits::COPY_BATCH_ROWS_MAX;
use crate::range::Identity;
use crate::store::{ObjectError, Store, damaged_file};

/// A blob and one that uses it.
type Use = (BlobId, BlobUser);

/// A row that counts on, or what is wrong with the row.
pub type CountedOn = Result<Option<Vec<u8>>, String>;

/// The key of a row that counts, and the row; or what is wrong with the row that was asked about.
pub type Count = Result<Option<(Vec<u8>, Vec<u8>)>, String>;

/// What rows of objects say. The engine keeps them, and does not know their form.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRows {
    /// The blobs that the row with this key names, each with the user in whose name.
    pub uses: fn(&[u8], &Bytes) -> Result<Vec<Use>, String>,
    /// A row that counts ids, moved on so far that no id is given again that was given since the backup. `None` for every
    /// other row. The row may be missing, if nothing was counted when the backup was made.
    pub counted_on: fn(&[u8], Option<&Bytes>) -> CountedOn,
    /// For the row of a bucket with folders: the row that counts the ids of its folders, as far on as above. `None` for every other
    /// row.
    pub folder_count: fn(&[u8], &Bytes) -> Count,
}

/// Settles what the restored range needs.
pub(super) struct Objects<'a> {
    rows: ObjectRows,
    source: &'a Store,
    target: &'a Store,
    databases: &'a Databases,
    map: &'a RangeMap,
    entry: &'a RangeEntry,
    restored: &'a Db,
    /// The databases of other ranges with rows of blobs.
    others: BTreeMap<RangeId, Db>,
    /// Other ranges with rows of blobs that are damaged.
    damaged: BTreeSet<RangeId>,
    /// The blobs whose files are all there.
    completed: BTreeSet<BlobId>,
}

impl<'a> Objects<'a> {
    pub(super) fn new(
        rows: ObjectRows,
        (source, target): (&'a Store, &'a Store),
        databases: &'a Databases,
        map: &'a RangeMap,
        entry: &'a RangeEntry,
        restored: &'a Db,
    ) -> Self {
        let (others, damaged, completed) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { rows, source, target, databases, map, entry, restored, others, damaged, completed }
    }

    /// Does what the module's table says. Everything is durable when this returns, except what is in the restored range.
    /// Returns the damaged ranges in which users of blobs could not be noted.
    pub(super) async fn settle(
        &mut self,
        moments: &mut Moments,
        report: &mut CopyReport,
        progress: &mut (dyn FnMut(&CopyReport) + Send),
    ) -> Result<BTreeSet<RangeId>, CopyError> {
        if !self.target.has_objects() {
            return Ok(BTreeSet::new());
        }
        let settled = self.settle_all(moments, report, progress).await;
        for (range, db) in std::mem::take(&mut self.others) {
            if settled.is_ok() {
                save(self.target, &db, range).await?;
            }
            let closed = while_there_is_room(self.target, db.close()).await?;
            closed.map_err(CopyError::writing(self.target, range))?;
        }
        settled.map(|()| std::mem::take(&mut self.damaged))
    }

    async fn settle_all(
        &mut self,
        moments: &mut Moments,
        report: &mut CopyReport,
        progress: &mut (dyn FnMut(&CopyReport) + Send),
    ) -> Result<(), CopyError> {
        self.count_buckets_on().await?;
        let (range, keys) = (self.entry.id, of_objects(self.entry));
        if !keys.is_empty() {
            self.settle_rows(&keys, moments, report, progress).await?;
            self.count_folders_on().await?;
        }
        if KeyRange::prefix(&[KIND_BLOB]).intersect(&self.entry.keys).is_empty() {
            return Ok(());
        }
        for other in self.map.overlapping(&KeyRange::prefix(&[KIND_OBJECT])) {
            if other.id != range {
                self.note_users_in(other).await?;
                moments.renew_when_due().await?;
            }
        }
        Ok(())
    }

    /// Does what restored rows of objects need.
    async fn settle_rows(
        &mut self,
        keys: &KeyRange,
        moments: &mut Moments,
        report: &mut CopyReport,
        progress: &mut (dyn FnMut(&CopyReport) + Send),
    ) -> Result<(), CopyError> {
        let (target, range) = (self.target, self.entry.id);
        let mut left = keys.clone();
        loop {
            let part = self.next_part(&mut left).await?;
            if part.is_empty() {
                return Ok(());
            }
            for KeyValue { key, value, .. } in part {
                let on = (self.rows.counted_on)(&key, Some(&value));
                if let Some(on) = on.map_err(CopyError::bad_row(target, range))? {
                    self.put(&key, on).await?;
                }
                let uses = (self.rows.uses)(&key, &value);
                for (blob, user) in uses.map_err(CopyError::bad_row(target, range))? {
                    self.copy_missing_files(blob, moments, report).await?;
                    progress(report);
                    self.note(blob, &user).await?;
                }
            }
            moments.renew_when_due().await?;
        }
    }

    /// The first rows of the restored range that are `left`, at most [`COPY_BATCH_ROWS_MAX`]; those after them are left then. To
    /// copy files takes long, and the housekeeper replaces files of the range meanwhile: so no iteration goes on for so long.
    async fn next_part(&self, left: &mut KeyRange) -> Result<Vec<KeyValue>, CopyError> {
        let unreadable = CopyError::reading(self.target, self.entry.id);
        let scan = self.restored.scan_with_options(bounds(left), &newest_rows()).await;
        let mut scan = scan.map_err(&unreadable)?;
        let mut rows = Vec::new();
        while rows.len() < COPY_BATCH_ROWS_MAX
            && let Some(row) = scan.next().await.map_err(&unreadable)?
        {
            rows.push(row);
        }
        if let Some(last) = rows.last() {
            *left = KeyRange::new([&*last.key, &[0]].concat(), left.high().map(<[u8]>::to_vec));
        }
        Ok(rows)
    }

    /// Makes the rows that count ids of folders, where they are missing. The buckets are those of all ranges.
    async fn count_folders_on(&self) -> Result<(), CopyError> {
        for entry in self.map.overlapping(&KeyRange::prefix(&[KIND_BUCKET])) {
            let buckets = entry.keys.intersect(&KeyRange::prefix(&[KIND_BUCKET]));
            if entry.id == self.entry.id {
                self.count_folders_of_restored(buckets).await?;
            } else {
                self.count_folders_of_other(entry, buckets).await?;
            }
        }
        Ok(())
    }

    async fn count_folders_of_restored(&self, mut left: KeyRange) -> Result<(), CopyError> {
        loop {
            let part = self.next_part(&mut left).await?;
            if part.is_empty() {
                return Ok(());
            }
            for bucket in part {
                self.count_folders_of(self.entry.id, &bucket).await?;
            }
        }
    }

    async fn count_folders_of_other(&self, other: &RangeEntry, keys: KeyRange) -> Result<(), CopyError> {
        self.check_settled(other)?;
        let mut buckets = HeldRows::hold(self.target, other, keys, self.databases).await?;
        let counted = async {
            while let Some(bucket) = buckets.next().await? {
                self.count_folders_of(other.id, &bucket).await?;
            }
            Ok(())
        };
        let counted = counted.await;
        buckets.release().await;
        counted
    }

    /// Makes the row that counts the ids of a bucket's folders, if it belongs into the restored range and is missing there.
    async fn count_folders_of(&self, range: RangeId, bucket: &KeyValue) -> Result<(), CopyError> {
        let count = (self.rows.folder_count)(&bucket.key, &bucket.value);
        let Some((key, row)) = count.map_err(CopyError::bad_row(self.target, range))? else { return Ok(()) };
        if self.entry.keys.contains(&key) && self.restored_row(&key).await?.is_none() {
            self.put(&key, row).await?;
        }
        Ok(())
    }

    async fn restored_row(&self, key: &[u8]) -> Result<Option<Bytes>, CopyError> {
        let row = self.restored.get_with_options(key, &newest()).await;
        row.map_err(CopyError::reading(self.target, self.entry.id))
    }

    /// Lets the count of bucket ids go on above all ids that were given.
    async fn count_buckets_on(&self) -> Result<(), CopyError> {
        let key = PartitionPrefix::bucket_ids().bucket_row(&BucketRow::LastId);
        if !self.entry.keys.contains(&key) {
            return Ok(());
        }
        let last = self.restored_row(&key).await?;
        let on = (self.rows.counted_on)(&key, last.as_ref());
        match on.map_err(CopyError::bad_row(self.target, self.entry.id))? {
            Some(on) => self.put(&key, on).await,
            None => Ok(()),
        }
    }

    async fn put(&self, key: &[u8], value: Vec<u8>) -> Result<(), CopyError> {
        let mut batch = WriteBatch::new();
        batch.put(key, value);
        write(self.target, self.restored, self.entry.id, batch).await
    }

    /// Copies those files of a blob that the target lacks, or whose bytes are damaged there. Each blob is looked at once.
    async fn copy_missing_files(
        &mut self,
        blob: BlobId,
        moments: &mut Moments,
        report: &mut CopyReport,
    ) -> Result<(), CopyError> {
        if !self.completed.insert(blob) {
            return Ok(());
        }
        let (from, to) = (self.source.object_store(), self.target.object_store());
        let directory = directory_of(blob);
        let failed = ObjectError::while_doing("listing", &directory);
        let mut files = from.list(Some(&directory));
        while let Some(file) = files.try_next().await.map_err(&failed)? {
            let is_damaged = match to.head(&file.location).await {
                Ok(there) => {
                    let (from, to) = ((&*from, file.size), (&*to, there.size));
                    if (Twice { path: &file.location, from, to }).can_stay(moments).await? {
                        continue;
                    }
                    true
                }
                Err(object_store::Error::NotFound { .. }) => false,
                Err(error) if damaged_file(&error).is_some() => true,
                Err(error) => {
                    return Err(ObjectError::while_doing("looking for", &file.location)(error).into());
                }
            };
            let copied = copy_file(moments, &*from, &*to, &file.location, file.size);
            match while_there_is_room(self.target, copied).await? {
                Err(error) if is_damaged && error.is_damage() => {
                    report.chunks_damaged += 1;
                    report.first_damaged.get_or_insert_with(|| file.location.to_string());
                    continue;
                }
                copied => copied?,
            }
            report.chunks += 1;
            report.chunk_bytes += file.size;
        }
        moments.renew_when_due().await
    }

    /// Notes the users whose rows another range has and whose blobs the restored range has.
    async fn note_users_in(&mut self, other: &RangeEntry) -> Result<(), CopyError> {
        self.check_settled(other)?;
        let target = self.target;
        let mut objects = HeldRows::hold(target, other, of_objects(other), self.databases).await?;
        let noted = async {
            while let Some(row) = objects.next().await? {
                let uses = (self.rows.uses)(&row.key, &row.value);
                for (blob, user) in uses.map_err(CopyError::bad_row(target, other.id))? {
                    if self.entry.keys.contains(PartitionPrefix::blob(blob).as_bytes()) {
                        self.note(blob, &user).await?;
                    }
                }
            }
            Ok(())
        };
        let noted = noted.await;
        objects.release().await;
        noted
    }

    /// Notes that `user` uses the blob. If the range with the blob's rows is damaged, this is left to its own restore.
    async fn note(&mut self, blob: BlobId, user: &BlobUser) -> Result<(), CopyError> {
        let partition = PartitionPrefix::blob(blob);
        let keys = [BlobRow::State, BlobRow::User(user.clone())].map(|row| partition.blob_row(&row));
        let target = self.target;
        let Some((range, db)) = self.home_of(partition.as_bytes()).await? else { return Ok(()) };
        let mut rows = Vec::new();
        for key in &keys {
            match db.get_with_options(key, &newest()).await.map_err(read_error) {
                Ok(row) => rows.push(row),
                Err(ReadError::Damaged(_)) if range != self.entry.id => {
                    self.give_up_damaged(range).await;
                    return Ok(());
                }
                Err(source) => return Err(CopyError::read(target, range, source)),
            }
        }
        let mut batch = WriteBatch::new();
        for (key, value) in blob::note_user(blob, &rows, &keys)? {
            batch.put(key, value.expect("a user is only added"));
        }
        if batch.is_empty() {
            return Ok(());
        }
        write(target, db, range, batch).await
    }

    /// Notes that another range with rows of blobs is damaged.
    async fn give_up_damaged(&mut self, range: RangeId) {
        self.damaged.insert(range);
        if let Some(db) = self.others.remove(&range) {
            give_up(&db).await;
        }
    }

    /// Refuses a range of which another database may have the rows.
    fn check_settled(&self, entry: &RangeEntry) -> Result<(), CopyError> {
        let begun = |doing| CopyError::Begun { store: location(self.target), range: entry.id, doing };
        entry.intent.as_ref().map_or(Ok(()), |intent| Err(begun(intent.doing())))
    }

    /// The database with the rows of this partition, and its range; `None` if it is damaged.
    async fn home_of(&mut self, partition: &[u8]) -> Result<Option<(RangeId, &Db)>, CopyError> {
        if self.entry.keys.contains(partition) {
            return Ok(Some((self.entry.id, self.restored)));
        }
        let entry = self.map.lookup(partition).expect("each key belongs to a range");
        if self.damaged.contains(&entry.id) {
            return Ok(None);
        }
        self.check_settled(entry)?;
        let db = match self.others.entry(entry.id) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(missing) => {
                let place = place(&Identity::of(entry));
                let opening = database::open(self.databases, &place, None);
                match while_there_is_room(self.target, opening).await? {
                    Ok(db) => missing.insert(db),
                    Err(error) if error.damage().is_some() => {
                        self.damaged.insert(entry.id);
                        return Ok(None);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        Ok(Some((entry.id, db)))
    }
}

/// The keys of objects that a range has.
fn of_objects(entry: &RangeEntry) -> KeyRange {
    entry.keys.intersect(&KeyRange::prefix(&[KIND_OBJECT]))
}

/// Nobody else writes these databases, so what was written here is read before it is durable.
fn newest() -> ReadOptions {
    ReadOptions::default().with_durability_filter(DurabilityLevel::Memory)
}

/// As [`newest`], for a scan.
fn newest_rows() -> ScanOptions {
    ScanOptions::default().with_durability_filter(DurabilityLevel::Memory)
}

/// Keys of objects as SlateDB wants them. They end below those of blobs.
fn bounds(keys: &KeyRange) -> std::ops::Range<Vec<u8>> {
    keys.low().to_vec()..keys.high().map_or(vec![KIND_BLOB], <[u8]>::to_vec)
}
