//! A folder that is moved within a bucket with a hierarchical namespace: the service renames it with all that lies in it, in one
//! change or none.

use anyhow::{Context, Result, bail};
use rangehold_client::bulk::Gate;
use rangehold_client::object::{Bucket, Error, Storage};
use rangehold_protocol::object::folder::parent_of;

use super::cp::name_of_folder;
use super::folders::has_folders;
use super::place::{Place, base};

/// Renames the folder `source`, and says so. `None` if it has to be moved object by object: to another bucket, in a bucket without
/// such folders, into a folder that exists, and where `source` is a pattern or an object.
pub(super) async fn rename(
    storage: &Storage,
    gate: &Gate,
    source: &Place,
    target: &Place,
    several: bool,
) -> Result<Option<String>> {
    let (Place::Cloud(from), Place::Cloud(to)) = (source, target) else { return Ok(None) };
    if from.bucket != to.bucket || from.name.is_empty() || from.is_pattern() || from.generation.is_some() {
        return Ok(None);
    }
    let bucket = storage.bucket(&from.bucket)?;
    let about = || from.to_string();
    if !has_folders(&bucket).await.with_context(about)? {
        return Ok(None);
    }
    let is_object = !from.is_folder() && bucket.stat(&from.name, None).await.with_context(about)?.is_some();
    let folder = if is_object { None } else { bucket.folder(&from.name).await.with_context(about)? };
    let name = name_of_folder(storage, target, base(&from.name), several)?;
    let (Some(folder), Some(name)) = (folder, name) else { return Ok(None) };
    if name.starts_with(&folder.name) {
        bail!("{from} cannot be moved into itself, to gs://{}/{name}", to.bucket);
    }
    if bucket.folder(&name).await.with_context(|| to.to_string())?.is_some() {
        return Ok(None);
    }
    let place = format!("gs://{}/{name}", to.bucket);
    let above = parent_of(&name);
    if !above.is_empty() {
        make(&bucket, above).await.with_context(|| place.clone())?;
    }
    gate.pass().await;
    bucket.rename_folder(&folder, &name).await.with_context(|| format!("{from} to {place}"))?;
    Ok(Some(format!("renamed the folder {from} to {place}")))
}

/// Makes a folder and those above it, unless it exists.
async fn make(bucket: &Bucket, name: &str) -> Result<(), Error> {
    if bucket.folder(name).await?.is_some() {
        return Ok(());
    }
    match bucket.create_folder(name, true).await {
        // Another client was faster.
        Err(error) if error.has_status(409) => Ok(()),
        made => made.map(drop),
    }
}
