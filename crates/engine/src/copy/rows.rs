//! Puts the rows of a moment into a database of the target, in batches, as long as the target's disk has room.

use std::future::Future;
use std::pin::pin;

use rangehold_map::RangeId;
use rangehold_map::key::is_of_objects;
use slatedb::config::{FlushOptions, FlushType};
use slatedb::{Db, WriteBatch};
use tokio::time::timeout;

use super::moments::Moments;
use super::{CopyError, CopyReport, location};
use crate::limits::{COPY_BATCH_BYTES_MAX, COPY_BATCH_ROWS_MAX, COPY_ROOM_POLL};
use crate::store::Store;

/// Copies the rows that the moment of `range` has not given yet, below `end` if it is given. The first row at or above `end` is
/// taken from the moment too, and dropped. The rows are durable after [`save`].
pub(super) async fn copy_rows(
    moments: &mut Moments,
    target: &Store,
    db: &Db,
    range: RangeId,
    end: Option<&[u8]>,
    report: &mut CopyReport,
    progress: &mut (dyn FnMut(&CopyReport) + Send),
) -> Result<(), CopyError> {
    let (bytes_before, files_before) = (report.bytes, report.files_bytes_done);
    let files = moments.of(range).map_or(0, |moment| moment.files_bytes());
    loop {
        let mut batch = WriteBatch::new();
        let (mut rows, mut bytes) = (0, 0);
        while rows < COPY_BATCH_ROWS_MAX && bytes < COPY_BATCH_BYTES_MAX {
            let row = moments.next_of(range).await?;
            let Some(row) = row.filter(|row| end.is_none_or(|end| *row.key < *end)) else {
                break;
            };
            if is_of_objects(&row.key) {
                target.mark_objects()?;
            }
            rows += 1;
            bytes += row.key.len() + row.value.len();
            batch.put(row.key, row.value);
        }
        if rows == 0 {
            report.files_bytes_done = files_before + files;
            return Ok(());
        }
        write(target, db, range, batch).await?;
        report.rows += rows as u64;
        report.bytes += bytes as u64;
        report.files_bytes_done = files_before + files.min(report.bytes - bytes_before);
        progress(report);
        moments.renew_when_due().await?;
    }
}

/// Writes a batch into the database of a range.
pub(super) async fn write(
    target: &Store,
    db: &Db,
    range: RangeId,
    batch: WriteBatch,
) -> Result<(), CopyError> {
    let written = while_there_is_room(target, db.write(batch)).await?;
    written.map(drop).map_err(CopyError::writing(target, range))
}

/// Puts the rows into sorted files, so that the database has no log to replay.
pub(super) async fn save(target: &Store, db: &Db, range: RangeId) -> Result<(), CopyError> {
    for flush_type in [FlushType::Wal, FlushType::MemTable] {
        let flushed = db.flush_with_options(FlushOptions { flush_type });
        let flushed = while_there_is_room(target, flushed).await?;
        flushed.map_err(CopyError::writing(target, range))?;
    }
    Ok(())
}

/// Waits for a step of the target's database as long as the disk has room: on a full disk such a step is
/// tried forever.
pub(super) async fn while_there_is_room<T>(
    target: &Store,
    step: impl Future<Output = T>,
) -> Result<T, CopyError> {
    let mut step = pin!(step);
    let disk = target.disk();
    loop {
        if disk.is_low() {
            let to = location(target);
            return Err(CopyError::DiskFull { to, reserve_bytes: disk.reserve_bytes() });
        }
        if let Ok(done) = timeout(COPY_ROOM_POLL, &mut step).await {
            return Ok(done);
        }
    }
}
