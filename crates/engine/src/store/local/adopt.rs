//! Takes over a file of another directory that never changes, without writing its bytes again.
//!
//! The file gets a second name by a hard link, so both directories share its bytes on the disk. If one of the names is
//! deleted, the other one stays. Where no link can be made (the directories are on two volumes, or the file system has
//! no links), the bytes are copied.
//!
//! Before that, all bytes are read and checked against the seal: a damaged file is refused, and not handed on.

use std::fs::{self, File};
use std::io::{self, Read};
use std::iter;
use std::path::Path as FilePath;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{Error, Result};

use super::super::limits::SYNCED_EACH_BYTES;
use super::publish::{Publish, Staging, link};
use super::{Inner, SealedDirectory, file_error, is_chunk, is_sorted_file};

/// A file that was taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Adopted {
    /// The bytes of the object.
    pub(crate) bytes: u64,
    /// Whether both directories share them.
    pub(crate) is_shared: bool,
}

impl Adopted {
    /// The bytes that both directories share.
    pub(crate) fn shared_bytes(self) -> u64 {
        if self.is_shared { self.bytes } else { 0 }
    }
}

impl SealedDirectory {
    /// Whether the object `object` of `other` has the length and the checksum of the one here. The bytes are not read.
    pub(in super::super) async fn has_same(&self, other: &Self, object: &Path) -> Result<bool> {
        let seal = async |directory: &Self| {
            let path = directory.0.plain.path_to_filesystem(object)?;
            let object = object.clone();
            directory.blocking(move |inner| Ok(inner.open(&path, &object)?.seal())).await
        };
        match seal(other).await {
            Ok(found) => Ok(found == seal(self).await?),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes over the object `object` of `other` under the name `to`, which must be free here. It is durable when this
    /// returns. Only sorted files and chunks can be taken over: files of other kinds may change under their names.
    pub(in super::super) async fn adopt(&self, other: &Self, object: &Path, to: &Path) -> Result<Adopted> {
        let path = other.0.plain.path_to_filesystem(object)?;
        let target = self.0.plain.path_to_filesystem(to)?;
        if !is_sorted_file(object) && !is_chunk(object) {
            let refused = io::Error::new(io::ErrorKind::InvalidInput, "a file that may change is not shared");
            return Err(file_error("take over", &path, &refused));
        }
        let (other, object, to) = (Arc::clone(&other.0), object.clone(), to.clone());
        self.blocking(move |inner| {
            let file = other.open(&path, &object)?;
            file.check().map_err(|error| other.read_error(&path, error))?;
            let bytes = file.meta.size;
            let is_shared = inner.link_or_copy(&path, &target, || inner.admit(&to, &target, bytes))?;
            Ok(Adopted { bytes, is_shared })
        })
        .await
    }
}

impl Inner {
    /// Returns whether a link was made. `admit` is asked before bytes are written.
    fn link_or_copy(
        &self,
        path: &FilePath,
        target: &FilePath,
        admit: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        let failed = |error| self.io_error("write", target, error);
        self.directories.ensure(target.parent().unwrap_or(FilePath::new("/"))).map_err(failed)?;
        match link_durably(path, target, self.fsync) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(failed(error)),
            // There are many reasons, such as two volumes, or too many links of one file. If something else is wrong, the
            // copy fails too.
            Err(_) => {}
        }
        admit()?;
        copy(path, target, self.fsync).map_err(failed)?;
        Ok(false)
    }
}

/// Makes the bytes of a file durable, which another program may have written just now, and gives it a second name.
fn link_durably(path: &FilePath, target: &FilePath, fsync: bool) -> io::Result<()> {
    // A link of a symbolic link would depend on the file that it names.
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if fsync {
        File::open(path)?.sync_all()?;
    }
    link(path, target, fsync)
}

/// Copies a file with its seal.
fn copy(path: &FilePath, target: &FilePath, fsync: bool) -> io::Result<()> {
    let mut file = File::open(path)?;
    let staging = Staging::beside(target, fsync)?;
    let mut piece = vec![0; SYNCED_EACH_BYTES as usize];
    let mut at = 0;
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return staging.publish(target, Publish::New).map(drop);
        }
        staging.write_at(at, iter::once(&piece[..read]))?;
        at += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt;

    use super::super::super::damage::DamageLog;
    use super::super::super::disk::DiskWatch;
    use super::super::{Access, make_journal};
    use super::*;

    /// A symbolic link is copied, and what it names is the file.
    #[test]
    fn what_cannot_be_linked_is_copied() {
        let directory = tempfile::tempdir().unwrap();
        let store = |name: &str| {
            let root = directory.path().join(name);
            fs::create_dir(&root).unwrap();
            make_journal(&root, true).unwrap();
            let (damage, disk) = (DamageLog::default(), DiskWatch::of_directory(&root, Some(0)).unwrap());
            SealedDirectory::new(&root, true, Access::Owner, damage, disk).unwrap()
        };
        let (one, other) = (store("one"), store("other"));
        let object = Path::from("blobs/7/0.chunk");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            one.put(&object, "bytes".into()).await.unwrap();
            let file = directory.path().join("one/blobs/7/0.chunk");
            fs::rename(&file, directory.path().join("elsewhere")).unwrap();
            std::os::unix::fs::symlink(directory.path().join("elsewhere"), &file).unwrap();
            let adopted = other.adopt(&one, &object, &object).await.unwrap();
            assert_eq!(adopted, Adopted { bytes: 5, is_shared: false });
            assert!(other.has_same(&one, &object).await.unwrap());
            fs::remove_file(directory.path().join("elsewhere")).unwrap();
            assert_eq!(other.get(&object).await.unwrap().bytes().await.unwrap(), "bytes");

            let log = Path::from("ranges/1-1-1/wal/00000000000000000001.sst");
            let refused = other.adopt(&one, &log, &log).await.unwrap_err().to_string();
            assert!(refused.contains("may change"), "{refused}");
        });
    }

    #[test]
    fn a_copy_has_all_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        let bytes: Vec<u8> = (0..SYNCED_EACH_BYTES * 2 + 7).map(|at| (at % 251) as u8).collect();
        fs::write(&from, &bytes).unwrap();
        copy(&from, &to, true).unwrap();
        assert_eq!(fs::read(&to).unwrap(), bytes);
        assert_eq!(copy(&from, &to, true).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "a staging file is left");
    }
}
