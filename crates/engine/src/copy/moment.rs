//! Holds one moment of a range, while another process writes the range.
//!
//! SlateDB keeps the sorted files of a manifest as long as a checkpoint names the manifest, and every
//! process may make a checkpoint: manifests are only ever created, so two processes that write the next one
//! at the same time do not overwrite each other. But a checkpoint holds no rows that are only in the log.
//! And a reader that sees those rows drops its own checkpoint when the writer moves on. So, for each range:
//!
//! ```text
//!   1 make a checkpoint                       it names manifest m
//!   2 open a reader, which replays the log    everything acknowledged before 1 is in m or in the log
//!   3 begin a scan, check that the log is whole, note what the database holds
//!   4 is m still the newest manifest?         no: the log files after it may be gone; begin again at 1
//!                                             (also if 2 or 3 failed: this may be the reason)
//!   5 copy what the scan shows                and renew the checkpoint now and then
//!   6 delete the checkpoint
//! ```

use bytes::Bytes;
use rangehold_map::key::KIND_RANGE_META;
use rangehold_map::{KeyRange, RangeEntry, RangeId};
use slatedb::admin::{Admin, AdminBuilder};
use slatedb::config::{CheckpointOptions, DbReaderOptions, ScanOptions};
use slatedb::{CheckpointCreateResult, DbIterator, DbReader, DbReaderMode, KeyValue};
use tokio::time::Instant;

use super::CopyError;
use super::contents::Contents;
use crate::database::{DatabaseError, Databases};
use crate::error::{Damaged, ReadError, Reason, read_error};
use crate::limits::{
    CHECKPOINT_LIFETIME, CHECKPOINT_RENEWED_EVERY, COPY_READ_AHEAD_BYTES, MOMENT_ATTEMPTS_MAX,
};
use crate::range::Identity;
use crate::store::{Store, check_log, damaged_file};

/// Rows that a range keeps about itself: keys and values.
pub(super) type OwnRows = Vec<(Bytes, Bytes)>;

/// One moment of a range, held while its rows are read.
pub(super) struct Moment {
    admin: Admin,
    checkpoint: CheckpointCreateResult,
    reader: DbReader,
    rows: DbIterator,
    /// What the database holds at this moment, if that was asked for.
    contents: Option<Contents>,
    /// The next row, if it was read already.
    read_ahead: Option<KeyValue>,
    renewed: Instant,
}

impl Moment {
    /// Finds a moment at or after the call, by the steps in the module's description. What the database holds is noted
    /// with `with_contents`: that takes a second reading of the end of its log.
    pub(super) async fn hold(
        store: &Store,
        identity: &Identity,
        databases: &Databases,
        with_contents: bool,
    ) -> Result<Self, CopyError> {
        let path = identity.path();
        let failed = |source| CopyError::read(store, identity.id, source);
        let admin = AdminBuilder::new(path.as_str(), store.object_store())
            .with_system_clock(databases.clock.for_database())
            .with_seed(databases.seed)
            .build();
        if newest_manifest(&admin).await.map_err(|error| failed(read_error(error)))?.is_none() {
            return Err(DatabaseError::Missing(path).into());
        }
        for attempt in 1..=MOMENT_ATTEMPTS_MAX {
            let checkpoint = admin
                .create_detached_checkpoint(&CheckpointOptions {
                    lifetime: Some(CHECKPOINT_LIFETIME),
                    name: Some("copy".to_owned()),
                    ..CheckpointOptions::default()
                })
                .await
                .map_err(|error| failed(read_error(error)))?;
            match Self::begin(store, &path, (&admin, &checkpoint), databases, with_contents).await {
                Ok(Some((reader, rows, contents))) => {
                    return Ok(Self {
                        admin,
                        checkpoint,
                        reader,
                        rows,
                        contents,
                        read_ahead: None,
                        renewed: Instant::now(),
                    });
                }
                Ok(None) => forget(&admin, &checkpoint).await,
                Err(error) => {
                    let newest = newest_manifest(&admin).await;
                    forget(&admin, &checkpoint).await;
                    // If the writer has moved on, the missing file may have been collected.
                    let moved_on = newest.is_ok_and(|newest| newest != Some(checkpoint.manifest_id));
                    if !moved_on || attempt == MOMENT_ATTEMPTS_MAX {
                        return Err(failed(error));
                    }
                }
            }
        }
        Err(CopyError::Unsteady { range: identity.id })
    }

    /// Begins to read the rows of the checkpoint and the log. `None` if the writer has moved on.
    async fn begin(
        source: &Store,
        path: &str,
        (admin, checkpoint): (&Admin, &CheckpointCreateResult),
        databases: &Databases,
        with_contents: bool,
    ) -> Result<Option<(DbReader, DbIterator, Option<Contents>)>, ReadError> {
        let reader = DbReader::builder(path, source.object_store())
            .with_reader_mode(DbReaderMode::FollowLatest)
            .with_options(DbReaderOptions {
                // For a copy this means never: its only scan keeps what it began with.
                manifest_poll_interval: CHECKPOINT_LIFETIME,
                ..DbReaderOptions::default()
            })
            .with_db_cache_disabled()
            .with_system_clock(databases.clock.for_database())
            .with_seed(databases.seed)
            .build()
            .await
            .map_err(read_error)?;
        let options = ScanOptions { read_ahead_bytes: COPY_READ_AHEAD_BYTES, ..ScanOptions::default() };
        let (first, last) = (reader.manifest(), reader.status().durable_seq);
        let rows = reader.scan_with_options(.., &options).await.map_err(read_error)?;
        let log = check_log(&source.object_store(), path, first.replay_after_wal_id()).await;
        let log = log.map_err(|error| match damaged_file(&error) {
            Some(file) => ReadError::Damaged(Damaged::new(file.clone())),
            None => ReadError::Unavailable(Reason::failed(error)),
        })?;
        let mut contents = None;
        if with_contents {
            // Newer rows may be in the log by now. The scan does not show them.
            let held = Contents::of(path, source.object_store(), &first, &log, last).await;
            contents = Some(held.map_err(read_error)?);
        }
        let newest = newest_manifest(admin).await.map_err(read_error)?;
        let seen = [Some(first.id()), Some(reader.manifest().id()), newest];
        if seen == [Some(checkpoint.manifest_id); 3] {
            return Ok(Some((reader, rows, contents)));
        }
        let _ = reader.close().await;
        Ok(None)
    }

    /// Reads the rows that the range keeps about itself, which come first, and goes on at the key `low`.
    pub(super) async fn begin_at(&mut self, low: &[u8]) -> Result<OwnRows, slatedb::Error> {
        let own = self.own_rows().await?;
        if self.read_ahead.as_ref().is_some_and(|row| *row.key < *low) {
            self.read_ahead = None;
            self.rows.seek(low).await?;
        }
        Ok(own)
    }

    /// Reads the rows that the range keeps about itself, which come first. No other file is read, so this works as well if a
    /// file with other rows is damaged.
    pub(super) async fn own_rows(&mut self) -> Result<OwnRows, slatedb::Error> {
        let mut own = OwnRows::new();
        while let Some(row) = self.rows.next().await? {
            if row.key.first() != Some(&KIND_RANGE_META) {
                self.read_ahead = Some(row);
                break;
            }
            own.push((row.key, row.value));
        }
        Ok(own)
    }

    /// The next row.
    pub(super) async fn next(&mut self) -> Result<Option<KeyValue>, slatedb::Error> {
        match self.read_ahead.take() {
            Some(row) => Ok(Some(row)),
            None => self.rows.next().await,
        }
    }

    /// What the database holds at this moment, if it was noted.
    pub(super) fn contents(&self) -> Option<&Contents> {
        self.contents.as_ref()
    }

    /// The bytes of the sorted files that it reads.
    pub(super) fn files_bytes(&self) -> u64 {
        self.reader.manifest().all_sst_views().map(|file| file.estimate_size()).sum()
    }

    pub(super) async fn renew_when_due(&mut self) -> Result<(), slatedb::Error> {
        if self.renewed.elapsed() >= CHECKPOINT_RENEWED_EVERY {
            self.admin.refresh_checkpoint(self.checkpoint.id, Some(CHECKPOINT_LIFETIME)).await?;
            self.renewed = Instant::now();
        }
        Ok(())
    }

    pub(super) async fn release(self) {
        // If this fails, nothing is lost, since the reader wrote nothing.
        let _ = self.reader.close().await;
        forget(&self.admin, &self.checkpoint).await;
    }
}

/// The rows with some of the keys of a range, as of one moment.
pub(super) struct HeldRows<'a> {
    store: &'a Store,
    range: RangeId,
    keys: KeyRange,
    moment: Moment,
}

impl<'a> HeldRows<'a> {
    pub(super) async fn hold(
        store: &'a Store,
        entry: &RangeEntry,
        keys: KeyRange,
        databases: &Databases,
    ) -> Result<Self, CopyError> {
        let mut moment = Moment::hold(store, &Identity::of(entry), databases, false).await?;
        match moment.begin_at(keys.low()).await {
            Ok(_) => Ok(Self { store, range: entry.id, keys, moment }),
            Err(error) => {
                moment.release().await;
                Err(CopyError::reading(store, entry.id)(error))
            }
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<KeyValue>, CopyError> {
        let unreadable = CopyError::reading(self.store, self.range);
        self.moment.renew_when_due().await.map_err(&unreadable)?;
        let row = self.moment.next().await.map_err(&unreadable)?;
        Ok(row.filter(|row| self.keys.contains(&row.key)))
    }

    pub(super) async fn release(self) {
        self.moment.release().await;
    }
}

/// The number of the newest manifest; `None` without a database.
async fn newest_manifest(admin: &Admin) -> Result<Option<u64>, slatedb::Error> {
    Ok(admin.read_manifest(None).await?.map(|manifest| manifest.id()))
}

/// Deletes a checkpoint. If that fails, the checkpoint ends by itself.
async fn forget(admin: &Admin, checkpoint: &CheckpointCreateResult) {
    if let Err(error) = admin.delete_checkpoint(checkpoint.id).await {
        tracing::warn!(checkpoint = %checkpoint.id, %error, "a checkpoint of the copy stays until it ends");
    }
}
