//! Writes a file so that the whole file is there, durably, or none.
//!
//! A write makes a staging file `<name>#<number>` beside its target, fills it and syncs it. Then it
//! publishes the file under the target's name, and syncs the directory. It publishes by a link if the
//! target must not exist yet, and by a rename if the target is replaced.
//!
//! If the link is made and the sync of the directory fails, the link is removed again. Otherwise SlateDB
//! would try the write again, find that the name is taken, and conclude that another writer has shut it
//! out.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};

use super::super::directory;
use super::super::limits::STAGING_NAMES_MAX;

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
    let (mut file, staging) = staging_file(target)?;
    let mut write = || {
        write_all(&mut file, pieces)?;
        if fsync {
            file.sync_all()?;
        }
        let metadata = file.metadata()?;
        match publish {
            Publish::New => link(&staging, target, fsync)?,
            Publish::Replace => {
                fs::rename(&staging, target)?;
                sync_parent(target, fsync)?;
            }
        }
        Ok(metadata)
    };
    let written = write();
    // After a rename it is gone already. A staging file that stays is swept when the store is opened next.
    if publish == Publish::New || written.is_err() {
        let _ = fs::remove_file(&staging);
    }
    written
}

fn link(staging: &Path, target: &Path, fsync: bool) -> io::Result<()> {
    fs::hard_link(staging, target)?;
    sync_parent(target, fsync).inspect_err(|_| {
        let _ = fs::remove_file(target);
    })
}

fn staging_file(target: &Path) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut number = 1;
    loop {
        let mut staging = target.as_os_str().to_owned();
        staging.push(format!("#{number}"));
        let staging = PathBuf::from(staging);
        match options.open(&staging) {
            Ok(file) => return Ok((file, staging)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < STAGING_NAMES_MAX => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

fn write_all(file: &mut File, pieces: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<_> =
        pieces.iter().filter(|piece| !piece.is_empty()).map(|p| IoSlice::new(p)).collect();
    let mut left = slices.as_mut_slice();
    while !left.is_empty() {
        match file.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
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
