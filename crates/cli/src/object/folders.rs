//! Folders of a bucket with a hierarchical namespace, which stay when the last object in them goes.

use anyhow::Result;
use futures::{StreamExt, TryStreamExt};
use rangehold_client::bulk::Gate;
use rangehold_client::object::{Bucket, Error, Folder};

use super::limits::FOLDERS_AT_ONCE;
use super::report::{Ended, Report};

/// Whether the folders of a bucket are resources. In a service that cannot tell they are not.
pub(super) async fn has_folders(bucket: &Bucket) -> Result<bool> {
    match bucket.has_folders().await {
        Err(Error::Refused(refusal)) if matches!(refusal.status, 400 | 403 | 404 | 405 | 501) => Ok(false),
        told => Ok(told?),
    }
}

/// Deletes the folders whose whole names begin with `prefix`, each after those that lie in it. Says whether one of them could not be
/// deleted. In other buckets there are none.
pub(super) async fn delete_folders(
    bucket: &Bucket,
    prefix: &str,
    gate: &Gate,
    report: &mut Report,
) -> Result<bool> {
    if !has_folders(bucket).await? {
        return Ok(false);
    }
    loop {
        let found = bucket.folders(prefix).take(FOLDERS_AT_ONCE);
        let found: Vec<Folder> = found.try_collect().await?;
        let is_all = found.len() < FOLDERS_AT_ONCE;
        let (mut deleted, mut failed) = (false, false);
        // A folder is listed before those that lie in it.
        for folder in found.iter().rev() {
            gate.pass().await;
            match bucket.delete_folder(&folder.name).await {
                Ok(()) => {
                    deleted = true;
                    report.count(Ended::Done(0));
                }
                // Another client was faster.
                Err(error) if error.has_status(404) => deleted = true,
                // Others lie in it that the next listing has.
                Err(error) if error.has_status(412) && !is_all => {}
                Err(error) => {
                    failed = true;
                    let place = format!("gs://{}/{}", bucket.name(), folder.name);
                    report.count(Ended::Failed(place, error.into()));
                }
            }
        }
        if is_all || failed || !deleted {
            return Ok(failed);
        }
    }
}
