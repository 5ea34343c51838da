//! Directories: made durably, swept of what interrupted writes left, removed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Makes directories, and knows of which it is sure that a loss of power does not take them.
///
/// A directory is durable once the one that names it has been synced. That a directory is there says
/// nothing: the process that made it may have been killed before it synced. So the first write of
/// this process into a directory syncs all names on the way to it, and later ones need not.
#[derive(Debug)]
pub(super) struct Directories {
    fsync: bool,
    durable: Mutex<HashSet<PathBuf>>,
}

impl Directories {
    /// Without `fsync`, directories are made and nothing is promised.
    pub(super) fn new(fsync: bool) -> Self {
        Self { fsync, durable: Mutex::default() }
    }

    /// Makes `directory` and those above it that are missing, all of them durable.
    pub(super) fn ensure(&self, directory: &Path) -> io::Result<()> {
        let mut durable = self.durable.lock().expect("no one panics while holding the set");
        if durable.contains(directory) {
            return Ok(());
        }
        fs::create_dir_all(directory)?;
        if self.fsync {
            let absolute = fs::canonicalize(directory)?;
            for parent in absolute.ancestors().skip(1) {
                if durable.contains(parent) {
                    break;
                }
                sync(parent).or_else(may_not_be_ours)?;
            }
            durable.insert(absolute);
        }
        durable.insert(directory.to_owned());
        Ok(())
    }
}

impl Directories {
    /// Removes `directory` and those below it, which hold no files but what interrupted writes left.
    /// If it is not there, that is as well. Whoever writes there at the same time gets an error, here
    /// or there.
    pub(super) fn remove(&self, directory: &Path) -> io::Result<()> {
        self.durable
            .lock()
            .expect("no one panics while holding the set")
            .retain(|known| !known.starts_with(directory));
        if !directory.try_exists()? {
            return Ok(());
        }
        sweep(directory)?;
        remove_empty(directory)
    }
}

fn remove_empty(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_empty(&entry.path())?;
        }
    }
    fs::remove_dir(directory)
}

/// A parent far up may not be readable for us; then we did not make what it names either.
fn may_not_be_ours(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::PermissionDenied { Ok(()) } else { Err(error) }
}

/// Makes the names in `directory` durable.
pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Removes the staging files below `directory` that interrupted writes left, and tells how many.
/// Only whoever holds the lock may: the staging files of a running process look the same.
pub(super) fn sweep(directory: &Path) -> io::Result<u64> {
    let mut swept = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            swept += match sweep(&entry.path()) {
                // `lost+found` and the like, which hold nothing of ours.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => 0,
                result => result?,
            };
        } else if kind.is_file() && is_staging(&entry.file_name()) {
            fs::remove_file(entry.path())?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// Whether a file of this name holds a write that is not finished: `<name>#<number>`.
pub(super) fn is_staging(name: &OsStr) -> bool {
    let Some((_, number)) = name.to_str().and_then(|name| name.split_once('#')) else {
        return false;
    };
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
