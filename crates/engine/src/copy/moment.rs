//! How one moment of a range is held beside the one who writes it.
//!
//! SlateDB keeps the sorted files of a manifest for as long as a checkpoint names it, and anybody
//! may make a checkpoint: manifests are create-only objects, so two who write the next one at once
//! do not overwrite each other. But a checkpoint holds no rows that are only in the log, and a
//! reader that sees those drops its own checkpoint when the writer moves on. So, for each range:
//!
//! ```text
//!   1 make a checkpoint                       it names manifest m
//!   2 open a reader, which replays the log    everything acknowledged before 1 is in m or in the log
//!   3 begin a scan, check that the log is whole
//!   4 is m still the newest manifest?         no: the log files behind it may be gone; from 1 again
//!   5 copy what the scan shows                renewing the checkpoint now and then
//!   6 delete the checkpoint
//! ```

use std::time::Duration;

use slatedb::admin::{Admin, AdminBuilder};
use slatedb::config::{CheckpointOptions, DbReaderOptions, ScanOptions};
use slatedb::{CheckpointCreateResult, DbIterator, DbReader, DbReaderMode};
use tokio::time::Instant;

use super::CopyError;
use crate::error::{Damaged, OpenError, ReadError, read_error};
use crate::range::{Identity, Surroundings};
use crate::store::{Store, check_log, damaged_file};

/// How long the source keeps the files of a copy that nobody goes on with. Longer than an hour, by
/// which the clocks of two processes may differ after one of them was set back.
pub const CHECKPOINT_LIFETIME: Duration = Duration::from_secs(2 * 3_600);
/// How often a copy that goes on renews its checkpoint.
const CHECKPOINT_RENEWED: Duration = Duration::from_secs(600);
/// How often a moment is sought in a range whose manifest keeps changing.
const ATTEMPTS_MAX: u32 = 50;
/// What the scan of the source fetches at once, in bytes.
const READ_AHEAD_BYTES: usize = 1 << 20;

/// One moment of a range, held while its rows are read.
pub(super) struct Moment {
    admin: Admin,
    checkpoint: CheckpointCreateResult,
    reader: DbReader,
    pub(super) rows: DbIterator,
    renewed: Instant,
}

impl Moment {
    /// Finds a moment at or after the call. See the module for the steps.
    pub(super) async fn hold(
        source: &Store,
        identity: &Identity,
        around: &Surroundings,
    ) -> Result<Self, CopyError> {
        let path = identity.path();
        let failed = |source| CopyError::Read { range: identity.id, source };
        let admin = AdminBuilder::new(path.as_str(), source.object_store())
            .with_system_clock(around.clock.for_database())
            .with_seed(around.seed)
            .build();
        if admin.read_manifest(None).await.map_err(|error| failed(read_error(&error)))?.is_none() {
            return Err(OpenError::MissingDatabase { path }.into());
        }
        for _ in 0..ATTEMPTS_MAX {
            let checkpoint = admin
                .create_detached_checkpoint(&CheckpointOptions {
                    lifetime: Some(CHECKPOINT_LIFETIME),
                    name: Some("copy".to_owned()),
                    ..CheckpointOptions::default()
                })
                .await
                .map_err(|error| failed(read_error(&error)))?;
            match Self::begin(source, &path, &admin, &checkpoint, around).await {
                Ok(Some((reader, rows))) => {
                    return Ok(Self { admin, checkpoint, reader, rows, renewed: Instant::now() });
                }
                Ok(None) => forget(&admin, &checkpoint).await,
                Err(error) => {
                    forget(&admin, &checkpoint).await;
                    return Err(failed(error));
                }
            }
        }
        Err(CopyError::Unsteady { range: identity.id })
    }

    /// Begins to read what the checkpoint and the log hold. `None` if the writer has moved on.
    async fn begin(
        source: &Store,
        path: &str,
        admin: &Admin,
        checkpoint: &CheckpointCreateResult,
        around: &Surroundings,
    ) -> Result<Option<(DbReader, DbIterator)>, ReadError> {
        let reader = DbReader::builder(path, source.object_store())
            .with_reader_mode(DbReaderMode::FollowLatest)
            .with_options(DbReaderOptions {
                // Never, as far as a copy is concerned: its one scan keeps what it began with.
                manifest_poll_interval: CHECKPOINT_LIFETIME,
                ..DbReaderOptions::default()
            })
            .with_db_cache_disabled()
            .with_system_clock(around.clock.for_database())
            .with_seed(around.seed)
            .build()
            .await
            .map_err(|error| read_error(&error))?;
        let options = ScanOptions { read_ahead_bytes: READ_AHEAD_BYTES, ..ScanOptions::default() };
        let first = reader.manifest();
        let rows = reader.scan_with_options(.., &options).await.map_err(|error| read_error(&error))?;
        check_log(&source.object_store(), path, first.replay_after_wal_id()).await.map_err(|error| {
            match damaged_file(&error) {
                Some(file) => ReadError::Damaged(Damaged(file.to_string())),
                None => ReadError::Unavailable(error.to_string()),
            }
        })?;
        let newest = admin.read_manifest(None).await.map_err(|error| read_error(&error))?;
        let seen = [Some(first.id()), Some(reader.manifest().id()), newest.map(|newest| newest.id())];
        if seen == [Some(checkpoint.manifest_id); 3] {
            return Ok(Some((reader, rows)));
        }
        let _ = reader.close().await;
        Ok(None)
    }

    pub(super) async fn renew_when_due(&mut self) -> Result<(), slatedb::Error> {
        if self.renewed.elapsed() >= CHECKPOINT_RENEWED {
            self.admin.refresh_checkpoint(self.checkpoint.id, Some(CHECKPOINT_LIFETIME)).await?;
            self.renewed = Instant::now();
        }
        Ok(())
    }

    pub(super) async fn release(self) {
        // Nothing is lost if it fails: the reader wrote nothing.
        let _ = self.reader.close().await;
        forget(&self.admin, &self.checkpoint).await;
    }
}

/// Deletes a checkpoint; one that cannot be deleted ends by itself.
async fn forget(admin: &Admin, checkpoint: &CheckpointCreateResult) {
    if let Err(error) = admin.delete_checkpoint(checkpoint.id).await {
        tracing::warn!(checkpoint = %checkpoint.id, %error, "a checkpoint of the copy stays until it ends");
    }
}
