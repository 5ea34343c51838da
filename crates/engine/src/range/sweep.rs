//! Getting rid of the rows of dropped tables, in one range.
//!
//! A table with few rows is erased by deletes: nobody scans its keys again, so that the deletes
//! lie there costs nobody anything. A larger one goes by compaction, which leaves its rows out
//! ([`crate::compaction`]) and would otherwise not touch a cold file for a long time. The order to
//! compact comes in two parts, since one that covers everything keeps new files waiting for as
//! long as it runs:
//!
//! 1. the memtable and the new files become one run (short);
//! 2. the runs that were there before become one (long; new files go on being compacted).

use rangehold_map::KeyRange;
use slatedb::WriteBatch;
use slatedb::admin::Admin;
use slatedb::compactor::{CompactionSpec, CompactionStatus, SourceId};
use slatedb::config::{DurabilityLevel, FlushType};
use slatedb::manifest::VersionedManifest;
use tokio::time::sleep;

use super::dropped::DroppedTable;
use super::{Range, database, flush, meta};
use crate::error::{ReadError, with_causes};
use crate::limits::{COMPACTION_ASK, COMPACTION_ORDERS_MAX, ERASED_AT_ONCE, ERASED_ROW_BY_ROW_MAX};

/// What a range still shows of a dropped table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remains {
    /// Nothing.
    Nothing,
    /// Too much to erase row by row: compaction must leave it out.
    Much,
}

impl Range {
    /// The dropped tables that wait to go.
    pub(crate) fn dropped_tables(&self) -> Vec<DroppedTable> {
        self.dropped.list()
    }

    /// Erases the rows of a dropped table if they are few. [`Remains::Nothing`] means that none is
    /// left and none can come.
    pub(crate) async fn erase(&self, dropped: &DroppedTable) -> Result<Remains, ReadError> {
        let keys: KeyRange = dropped.keys().intersect(self.keys());
        // Who was let in before the table was dropped may still be about to enter the log; and
        // what is in the log may not be durable yet, which would hide it at the other level.
        self.stripes.wait_for_holders().await;
        let rows = self.first_keys(&keys, ERASED_ROW_BY_ROW_MAX + 1, DurabilityLevel::Memory).await?;
        if rows.len() > ERASED_ROW_BY_ROW_MAX {
            return Ok(Remains::Much);
        }
        for some in rows.chunks(ERASED_AT_ONCE) {
            let mut batch = WriteBatch::new();
            for key in some {
                batch.delete(key);
            }
            self.write_own(batch).await?;
        }
        Ok(Remains::Nothing)
    }

    /// Deletes the note of a dropped table. To be called when no row of it is left and no request
    /// that began before it was dropped can still be under way.
    pub(crate) async fn forget_dropped(&self, dropped: &DroppedTable) -> Result<(), ReadError> {
        let mut batch = WriteBatch::new();
        batch.delete(meta::dropped_key(&dropped.account, dropped.table));
        self.write_own(batch).await?;
        self.dropped.remove(dropped);
        Ok(())
    }

    /// Rewrites every file of the range, so that what compaction leaves out is gone.
    pub(crate) async fn compact(&self) -> Result<(), String> {
        let opening = self.open_now().map_err(|error| error.to_string())?;
        flush::flush(&opening.db, FlushType::MemTable).await?;
        let admin = database::admin(&self.around, &self.place.path);
        let before = manifest(&admin).await?;
        let new_files: Vec<_> = before.l0().iter().map(|file| file.id).collect();
        order(&admin, |now| {
            // While only files newer than `before` are there, those of then are compacted.
            let files: Vec<_> = now.l0().iter().map(|file| file.id).collect();
            files.iter().any(|id| new_files.contains(id)).then(|| {
                let next_run = now.compacted().iter().map(|run| run.id + 1).max().unwrap_or(0);
                CompactionSpec::new(files.into_iter().map(SourceId::SstView).collect(), next_run)
            })
        })
        .await?;
        // The newest of the runs of then says which ones are older than step 1.
        let Some(newest) = before.compacted().iter().map(|run| run.id).max() else {
            return Ok(());
        };
        order(&admin, |now| {
            let runs: Vec<_> = now.compacted().iter().map(|run| run.id).filter(|id| *id <= newest).collect();
            let destination = runs.iter().copied().min()?;
            Some(CompactionSpec::new(runs.into_iter().map(SourceId::SortedRun).collect(), destination))
        })
        .await
    }
}

async fn manifest(admin: &Admin) -> Result<VersionedManifest, String> {
    admin
        .read_manifest(None)
        .await
        .map_err(|error| with_causes(&error))?
        .ok_or_else(|| "the database has no manifest".to_owned())
}

/// Orders what `plan` makes of the newest manifest, until it plans nothing more or its order was
/// carried out. An order is refused while another compaction uses its files; then it is planned
/// anew.
async fn order(
    admin: &Admin,
    mut plan: impl FnMut(&VersionedManifest) -> Option<CompactionSpec>,
) -> Result<(), String> {
    for _ in 0..COMPACTION_ORDERS_MAX {
        let Some(spec) = plan(&manifest(admin).await?) else {
            return Ok(());
        };
        let ordered = admin.submit_compaction(spec).await.map_err(|error| with_causes(&error))?;
        loop {
            sleep(COMPACTION_ASK).await;
            let now = admin.read_compaction(ordered.id(), None).await.map_err(|error| with_causes(&error))?;
            match now.map(|compaction| compaction.status()) {
                Some(CompactionStatus::Completed) => return Ok(()),
                // Finished ones are forgotten after a while: the manifest tells.
                Some(CompactionStatus::Failed) | None => break,
                Some(_) => {}
            }
        }
    }
    Err("other compactions kept using the files".to_owned())
}
