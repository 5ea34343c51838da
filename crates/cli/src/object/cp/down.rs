//! An object becomes a file.
//!
//! The bytes go into a file beside the target, which takes the target's name when its checksum is right. So a reader never sees half
//! an object, and a process that is killed leaves the part: the next one goes on behind it. The name of the part has the
//! generation in it, so a part of an older generation is not taken up.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rangehold_client::object::{Bucket, Crc32c, Error, Object};

use super::engine::Engine;
use super::entry::{Body, sum_of};
use crate::object::limits::SMALL_BYTES;
use crate::object::moving::Moving;
use crate::object::report::Ended;
use crate::object::walk::PART_ENDING;

/// Downloads a generation, unless the file has its bytes already.
pub(super) async fn download(
    engine: &Engine,
    bucket: &Bucket,
    object: &Object,
    path: &Path,
    moving: &Moving,
) -> Result<Ended> {
    if let Ok(about) = std::fs::metadata(path) {
        if engine.no_clobber {
            return Ok(Ended::Skipped);
        }
        let there = Body::File { path: path.to_owned(), size: about.len() };
        if about.is_file() && there.has_bytes_of(&Body::Object(Box::new(object.clone()))).await? {
            return Ok(Ended::Skipped);
        }
    }
    let part = part_of(path, object);
    let is_small = object.size <= SMALL_BYTES;
    let bytes = match is_small {
        true => {
            let bytes = bucket.read(&object.name, Some(object.generation)).await?;
            let size = bytes.len() as u64;
            blocking(&part, move |part| create(part)?.write_all(&bytes)).await?;
            size
        }
        false => {
            let _place = engine.large.acquire().await.context("the command is ending")?;
            large(bucket, object, &part, moving).await?
        }
    };
    let target = path.to_owned();
    blocking(&part, move |part| std::fs::rename(part, target))
        .await
        .with_context(|| path.display().to_string())?;
    Ok(Ended::Done(bytes))
}

/// The rest of a large object behind what the part has.
async fn large(bucket: &Bucket, object: &Object, part: &Path, moving: &Moving) -> Result<u64> {
    let (mut sum, mut had) = match part.exists() {
        true => sum_of(part, None).await?,
        false => (Crc32c::default(), 0),
    };
    if had > object.size {
        (sum, had) = (Crc32c::default(), 0);
    }
    let mut file = blocking(part, move |part| {
        let file = if had == 0 { create(part)? } else { OpenOptions::new().append(true).open(part)? };
        Ok(file)
    })
    .await?;
    let download = bucket.download(&object.name, Some(object.generation))?;
    let mut download = download.after(had, sum).expecting(object.crc32c);
    let mut bytes = 0;
    loop {
        let piece = match download.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return Ok(bytes),
            Err(error @ Error::Damaged { .. }) => {
                // The next run must not go on behind wrong bytes.
                let _ = std::fs::remove_file(part);
                return Err(error.into());
            }
            Err(error) => return Err(error.into()),
        };
        bytes += piece.len() as u64;
        moving.add(piece.len() as u64);
        file = blocking(part, move |_| file.write_all(&piece).map(|()| file)).await?;
    }
}

/// Work on a file, outside of the threads that serve connections.
async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> std::io::Result<T> + Send + 'static,
) -> Result<T> {
    let owned = path.to_owned();
    let done = tokio::task::spawn_blocking(move || work(&owned)).await.context("a file was not written")?;
    done.with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a file, and the folders above it.
fn create(path: &Path) -> std::io::Result<File> {
    match File::create(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            File::create(path)
        }
        other => other,
    }
}

/// The file beside `path` that has the bytes until all of them have come.
fn part_of(path: &Path, object: &Object) -> PathBuf {
    let sum = Crc32c::of(object.name.as_bytes()).0;
    path.with_file_name(format!(".{sum:08x}-{}{PART_ENDING}", object.generation))
}
