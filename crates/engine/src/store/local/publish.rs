//! Writes a file so that the whole file is there, durably, or none.
//!
//! A write makes a staging file `<name>#<number>` beside its target, fills it and syncs it. Then it
//! publishes the file under the target's name, and syncs the directory. It publishes by a link if the
//! target must not exist yet, and by a rename if the target is replaced.
//!
//! If the link is made and the sync of the directory fails, the link is removed again. Otherwise SlateDB
//! would try the write again, find that the name is taken, and conclude that another writer has shut it
//! out.
//!
//! **Large files are synced while they are written**, at each [`SYNCED_EACH_BYTES`] of the file, however small the parts
//! are that come. If 64 MiB are synced at their end, the small files of the log that are written meanwhile wait for all of it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::directory;
use super::super::limits::{STAGING_NAMES_MAX, SYNCED_EACH_BYTES};

/// How a file gets its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Publish {
    /// Only if no file has the name; otherwise [`io::ErrorKind::AlreadyExists`].
    New,
    /// In place of the file that has the name.
    Replace,
}

/// Writes `pieces` to the file `target`, whose directory must exist, and returns the metadata of the file.
/// After an error, no new file has the name; a replacement may or may not have been made.
pub(super) fn write(target: &Path, pieces: &[&[u8]], publish: Publish, fsync: bool) -> io::Result<Metadata> {
    let staging = Staging::beside(target, fsync)?;
    staging.write_at(0, pieces.iter().copied())?;
    staging.publish(target, publish)
}

/// A file that is being written, and has no name of its own yet. It is removed when it is dropped before it is published. If it
/// stays, it is swept when the store is opened next.
#[derive(Debug)]
pub(super) struct Staging {
    file: File,
    /// `None` once the file has its name.
    path: Option<PathBuf>,
    fsync: bool,
    /// Whether a write or a sync failed: the file is not whole, and a later sync would not tell.
    is_broken: AtomicBool,
}

impl Staging {
    /// Makes a staging file beside `target`, whose directory must exist.
    pub(super) fn beside(target: &Path, fsync: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut number = 1;
        loop {
            let mut path = target.as_os_str().to_owned();
            path.push(format!("#{number}"));
            let path = PathBuf::from(path);
            match options.open(&path) {
                Ok(file) => {
                    return Ok(Self { file, path: Some(path), fsync, is_broken: AtomicBool::new(false) });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < STAGING_NAMES_MAX => {
                    number += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes pieces one after the other, the first one at `offset`. Syncs whenever it passes a multiple of
    /// [`SYNCED_EACH_BYTES`]. After an error, the file cannot be published.
    pub(super) fn write_at<'p>(&self, offset: u64, pieces: impl Iterator<Item = &'p [u8]>) -> io::Result<()> {
        self.write_and_sync(offset, pieces).inspect_err(|_| self.is_broken.store(true, Ordering::Relaxed))
    }

    fn write_and_sync<'p>(&self, mut offset: u64, pieces: impl Iterator<Item = &'p [u8]>) -> io::Result<()> {
        let (mut gathered, mut bytes) = (Vec::new(), 0);
        for part in pieces.flat_map(|piece| piece.chunks(SYNCED_EACH_BYTES as usize)) {
            gathered.push(IoSlice::new(part));
            bytes += part.len();
            let end = offset + bytes as u64;
            if end / SYNCED_EACH_BYTES > offset / SYNCED_EACH_BYTES {
                write_all_at(&self.file, offset, &mut std::mem::take(&mut gathered))?;
                (offset, bytes) = (end, 0);
                if self.fsync {
                    self.file.sync_data()?;
                }
            }
        }
        write_all_at(&self.file, offset, &mut gathered)
    }

    /// Syncs the file and gives it its name. Returns its metadata. Fails if a part of it could not be written.
    pub(super) fn publish(mut self, target: &Path, publish: Publish) -> io::Result<Metadata> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(io::Error::other("a part of the file was not written"));
        }
        if self.fsync {
            self.file.sync_all()?;
        }
        let metadata = self.file.metadata()?;
        let path = self.path.as_ref().expect("it is published once");
        match publish {
            Publish::New => link(path, target, self.fsync)?,
            Publish::Replace => {
                fs::rename(path, target)?;
                // The name of the staging file is free again, and may be that of another write by now.
                self.path = None;
                sync_parent(target, self.fsync)?;
            }
        }
        Ok(metadata)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Gives a file the name `target` besides its own. After an error, it does not have that name.
pub(super) fn link(file: &Path, target: &Path, fsync: bool) -> io::Result<()> {
    fs::hard_link(file, target)?;
    sync_parent(target, fsync).inspect_err(|_| {
        let _ = fs::remove_file(target);
    })
}

/// Writes all slices one after the other, the first one at `offset`.
fn write_all_at(file: &File, mut offset: u64, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        match rustix::io::pwritev(file, slices, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn sync_parent(target: &Path, fsync: bool) -> io::Result<()> {
    match target.parent() {
        Some(parent) if fsync => directory::sync(parent),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_which_a_part_was_not_written_gets_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("1.sst");
        let mut staging = Staging::beside(&target, false).unwrap();
        staging.write_at(0, [b"ab".as_slice()].into_iter()).unwrap();
        // No write to a file that is open for reading succeeds.
        staging.file = File::open(staging.path.as_ref().unwrap()).unwrap();
        staging.write_at(2, [b"cd".as_slice()].into_iter()).unwrap_err();
        staging.publish(&target, Publish::New).unwrap_err();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
