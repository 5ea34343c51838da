//! The latest time that a database has seen.
//!
//! If a database meets a time before one that it knows, it closes itself for good, and again after each
//! opening. It keeps times not only in its rows: names of sorted files and of compactions begin with the
//! time at which they were made, and a new name must not be older than the last one. So before a database
//! is opened, our clock is set beyond all of these times. Without that, a wall clock that was set back
//! while the process was down would keep a range closed until the clock has caught up.
//!
//! | time | where |
//! |---|---|
//! | of rows in sorted files | the manifest |
//! | of rows in the log | the last file of the log that has a row: times grow along the log |
//! | of sorted files | their names, in the manifest |
//! | of compactions, ordered or done | their names, in the newest list of compactions |

use std::sync::Arc;

use object_store::ObjectStore;
use rangehold_map::Timestamp;
use slatedb::WalReader;
use slatedb::admin::Admin;
use slatedb::manifest::VersionedManifest;

/// A time just after all times that the database at `path` has seen. `manifest` is its newest manifest, and
/// `log` are the files of its log that the manifest does not cover, ascending. `None` if the database has
/// seen no time.
pub(crate) async fn seen(
    objects: &Arc<dyn ObjectStore>,
    admin: &Admin,
    path: &str,
    manifest: &VersionedManifest,
    log: &[u64],
) -> Result<Option<Timestamp>, slatedb::Error> {
    let latest =
        in_manifest(manifest).max(in_log(objects, path, log).await?).max(in_compactions(admin).await?);
    // For a database that never had a row this is `i64::MIN`.
    let after = latest.checked_add(1).and_then(|ms| ms.checked_mul(Timestamp::TICKS_PER_MS));
    Ok(after.map(Timestamp::from_ticks))
}

/// In milliseconds, like all functions below.
fn in_manifest(manifest: &VersionedManifest) -> i64 {
    let files = manifest
        .all_sst_views()
        .flat_map(|view| [view.id.timestamp_ms(), view.sst.id.value().timestamp_ms()]);
    let compacted = [manifest.last_compacted_l0_sst_view_id(), manifest.last_compacted_l0_sst_id()];
    let compacted = compacted.into_iter().flatten().map(|id| id.timestamp_ms());
    let latest = files.chain(compacted).max().unwrap_or(0);
    manifest.last_l0_clock_tick().max(milliseconds(latest))
}

async fn in_log(objects: &Arc<dyn ObjectStore>, path: &str, files: &[u64]) -> Result<i64, slatedb::Error> {
    let log = WalReader::new(path, Arc::clone(objects));
    // Each opening leaves a file without rows, as a mark.
    for id in files.iter().rev() {
        let mut rows = log.get(*id).iterator().await?;
        let mut latest = None;
        while let Some(row) = rows.next().await? {
            latest = latest.max(row.create_ts);
        }
        if let Some(latest) = latest {
            return Ok(latest);
        }
    }
    Ok(i64::MIN)
}

async fn in_compactions(admin: &Admin) -> Result<i64, slatedb::Error> {
    let compactions = admin.read_compactions(None).await?;
    let latest = compactions
        .iter()
        .flat_map(|list| list.recent_compactions())
        .map(|compaction| compaction.id().timestamp_ms())
        .max();
    Ok(latest.map_or(i64::MIN, milliseconds))
}

fn milliseconds(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
