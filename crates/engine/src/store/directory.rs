//! Directories: making them durable, sweeping what interrupted writes left, and removing them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Makes directories, and remembers which of them a loss of power cannot take away.
///
/// A directory is durable once its parent directory has been synced, and the same holds for each directory
/// above it. That a directory exists does not show this: the process that made it may have been killed
/// before it synced. So the first write of this process into a directory syncs the names on the path to it
/// that are not yet known to be durable, and later writes need not.
#[derive(Debug)]
pub(super) struct Directories {
    fsync: bool,
    durable: Mutex<HashSet<PathBuf>>,
}

impl Directories {
    /// Without `fsync`, directories are made but may not be durable.
    pub(super) fn new(fsync: bool) -> Self {
        Self { fsync, durable: Mutex::default() }
    }

    /// Makes `directory` and the missing ones above it, all of them durable.
    pub(super) fn ensure(&self, directory: &Path) -> io::Result<()> {
        self.ensure_by(directory, sync)
    }

    fn ensure_by(&self, directory: &Path, sync: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
        if self.durable().contains(directory) {
            return Ok(());
        }
        // No lock is held here: if two callers make the same directory, both sync it, which does no harm.
        fs::create_dir_all(directory)?;
        let mut ensured = vec![directory.to_owned()];
        if self.fsync {
            for named in fs::canonicalize(directory)?.ancestors() {
                if self.durable().contains(named) {
                    break;
                }
                named.parent().map_or(Ok(()), &sync).or_else(may_not_be_ours)?;
                ensured.push(named.to_owned());
            }
        }
        self.durable().extend(ensured);
        Ok(())
    }

    fn durable(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.durable.lock().expect("no one panics while holding the set")
    }

    /// Removes `directory` and the directories below it, which must hold no files except those that
    /// interrupted writes left. It is not an error if the directory does not exist, or if another removal of it runs at
    /// the same time. If a file is written there at the same time, either that write fails or this call does.
    pub(super) fn remove(&self, directory: &Path) -> io::Result<()> {
        self.forget(directory);
        while directory.try_exists()? {
            match sweep(directory).and_then(|_| remove_empty(directory)) {
                // The other removal was faster; what it did not reach yet is still there.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => {
                    removed?;
                    break;
                }
            }
        }
        // A write at the same time may have noted the directory again.
        self.forget(directory);
        Ok(())
    }

    fn forget(&self, directory: &Path) {
        self.durable().retain(|known| !known.starts_with(directory));
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

/// We may have no permission to read a parent far up. Then we did not make the directories in it either.
fn may_not_be_ours(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::PermissionDenied { Ok(()) } else { Err(error) }
}

/// Makes the names in `directory` durable.
pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Removes the staging files below `directory` that interrupted writes left, and returns their number. Only
/// the holder of the lock may call this, since the staging files of a running process look the same. Names that go meanwhile are
/// passed: a store that this process had open before may just be ending its last work.
pub(super) fn sweep(directory: &Path) -> io::Result<u64> {
    let mut swept = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match sweep_entry(&entry) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => swept += removed?,
        }
    }
    Ok(swept)
}

fn sweep_entry(entry: &DirEntry) -> io::Result<u64> {
    let kind = entry.file_type()?;
    if kind.is_dir() {
        return match sweep(&entry.path()) {
            // `lost+found` and similar directories hold nothing of ours.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(0),
            swept => swept,
        };
    }
    if kind.is_file() && is_staging(&entry.file_name()) {
        fs::remove_file(entry.path())?;
        return Ok(1);
    }
    Ok(0)
}

/// Whether a file of this name holds a write that is not finished: `<name>#<number>`.
pub(super) fn is_staging(name: &OsStr) -> bool {
    let Some((_, number)) = name.to_str().and_then(|name| name.split_once('#')) else {
        return false;
    };
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Removes a file. Returns whether there was one.
pub(super) fn remove_if_there(file: &Path) -> io::Result<bool> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn two_removals_of_a_directory_at_one_time_both_end_well() {
        let root = tempfile::tempdir().unwrap();
        let directories = Directories::new(false);
        for number in 0..200 {
            let directory = root.path().join(number.to_string());
            fs::create_dir_all(directory.join("a/b")).unwrap();
            fs::write(directory.join("a/1#1"), "staged").unwrap();
            let begin = Barrier::new(2);
            thread::scope(|scope| {
                let removals = [(); 2].map(|()| {
                    scope.spawn(|| {
                        begin.wait();
                        directories.remove(&directory)
                    })
                });
                for removal in removals {
                    removal.join().unwrap().unwrap();
                }
            });
            assert!(!directory.exists());
        }
    }

    #[test]
    fn a_directory_syncs_what_names_it_and_those_above_once() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        let directories = Directories::new(true);
        let ensure = |path: &str| {
            let synced = RefCell::new(Vec::new());
            let note = |directory: &Path| {
                synced.borrow_mut().push(directory.to_owned());
                Ok(())
            };
            directories.ensure_by(&top.join(path), note).unwrap();
            synced.into_inner()
        };
        let above: Vec<PathBuf> = top.ancestors().map(Path::to_owned).collect();
        assert_eq!(ensure("a/b"), [vec![top.join("a")], above].concat());
        assert_eq!(ensure("a/b"), [] as [PathBuf; 0]);
        assert_eq!(ensure("a/c"), [top.join("a")]);
        assert_eq!(ensure("a/c/d/e"), [top.join("a/c/d"), top.join("a/c")]);
    }
}
