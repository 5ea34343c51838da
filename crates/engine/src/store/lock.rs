//! The lock of a data directory: one process at a time.
//!
//! SlateDB's epochs already prevent two writers of a range, but the later one wins: a second process that was
//! started by mistake would shut the first one out. So the process that serves a directory holds an
//! `flock` on its file `LOCK`. The kernel releases it when the process ends, even by a crash, so a lock is
//! never stale. The file must not be removed: otherwise two processes could lock two files of the same
//! name. Its text names the holder, for the message to the process that is refused.
//!
//! A lock has a name: the file's device and number on it. If two processes held locks of one name, the first of them
//! has ended. A file that was removed keeps its number as long as a process has it open, so that a lock on the next
//! file has another name.
//!
//! **What a lock proves.** If the file was never replaced, a process that holds its lock knows that all processes before
//! it have ended. If it was replaced, a process may still hold the lock of the file that was removed. So the second line of the
//! file says how it was made, and names its lock:
//!
//! | second line | when the file was made | the processes before have ended |
//! |---|---|---|
//! | `<name of the lock> made with the directory` | before anything else in it | always |
//! | `<name of the lock> made in boot <id>` | when there was data already | once the machine was started again |
//!
//! A store of this process that was opened before may still have a file under way, so it counts as well: only the first store that a
//! process opens in a directory proves anything.
//!
//! A file without this line is from an earlier release, and one with the name of another lock is a copy: both count as
//! made now. All of this holds for a disk of the machine. A directory on a network file system may be locked by two machines at
//! once: do not keep data there.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::StoreError;

/// Name of the lock file in the data directory.
pub const LOCK_FILE: &str = "LOCK";

/// Held as long as the directory is in use.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    _file: File,
    name: String,
    made: Made,
    is_first_of_process: bool,
}

/// The directories and names of all locks that this process has held.
static HELD_BEFORE: Mutex<BTreeSet<(PathBuf, String)>> = Mutex::new(BTreeSet::new());

/// How a lock file was made.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Made {
    WithDirectory,
    /// `None` if the machine does not tell its boots apart.
    InBoot(Option<String>),
}

const WITH_DIRECTORY: &str = "made with the directory";
const IN_BOOT: &str = "made in boot ";

impl DirectoryLock {
    /// Takes the lock of `directory` without waiting. [`StoreError::Locked`] if it is held, by
    /// another process or by another store of this one. `holds_data`: whether there is anything else in the directory.
    pub(super) fn take(
        directory: &Path,
        holds_data: impl FnOnce() -> Result<bool, StoreError>,
    ) -> Result<Self, StoreError> {
        let path = directory.join(LOCK_FILE);
        let failed = |source| StoreError::io("lock", &path, source);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        let locked = file.try_lock();
        let mut before = String::new();
        // If it cannot be read, a refusal does not name the holder, and the lock proves nothing.
        let _ = file.read_to_string(&mut before);
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = before.lines().next().unwrap_or("another process").to_owned();
                return Err(StoreError::Locked { directory: directory.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let metadata = file.metadata().map_err(failed)?;
        let name = format!("{}-{}", metadata.dev(), metadata.ino());
        let made = match Made::read(&before, &name) {
            Some(made) => made,
            None if holds_data()? => Made::InBoot(boot()),
            None => Made::WithDirectory,
        };
        let process = std::process::id();
        let text =
            format!("process {process} (rangehold {})\n{name} {}\n", env!("CARGO_PKG_VERSION"), made.text());
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(text.as_bytes()))
            .map_err(failed)?;
        let is_first_of_process = HELD_BEFORE.lock().insert((directory.to_owned(), name.clone()));
        Ok(Self { name, made, is_first_of_process, _file: file })
    }

    /// Whether all processes that had the directory open before have ended, certainly.
    pub(super) fn others_are_over(&self) -> bool {
        self.is_first_of_process && self.made.proves_that_others_are_over()
    }

    /// The name of the lock; see the module.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Made {
    /// What the text of the file with the lock of this name says.
    fn read(text: &str, name: &str) -> Option<Self> {
        let made = text.lines().nth(1)?.strip_prefix(name)?.strip_prefix(' ')?;
        if made == WITH_DIRECTORY {
            return Some(Self::WithDirectory);
        }
        let boot = made.strip_prefix(IN_BOOT)?;
        Some(Self::InBoot((!boot.is_empty()).then(|| boot.to_owned())))
    }

    fn proves_that_others_are_over(&self) -> bool {
        match self {
            Self::WithDirectory => true,
            Self::InBoot(made) => made.is_some() && boot().is_some() && *made != boot(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::WithDirectory => WITH_DIRECTORY.to_owned(),
            Self::InBoot(boot) => format!("{IN_BOOT}{}", boot.as_deref().unwrap_or_default()),
        }
    }
}

/// What tells this boot of the machine from every other.
fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str = "data";

    fn take(directory: &Path) -> Result<DirectoryLock, StoreError> {
        DirectoryLock::take(directory, || Ok(directory.join(DATA).exists()))
    }

    #[test]
    fn a_second_process_is_told_the_holder_and_a_third_gets_the_lock_after_its_release() {
        let directory = tempfile::tempdir().unwrap();
        let first = take(directory.path()).unwrap();
        let refused = take(directory.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {} ", std::process::id())), "{refused}");
        assert!(refused.contains(directory.path().to_str().unwrap()), "{refused}");
        let name = first.name().to_owned();
        drop(first);
        let second = take(directory.path()).unwrap();
        assert_eq!(second.name(), name);
        std::fs::remove_file(directory.path().join(LOCK_FILE)).unwrap();
        assert_ne!(take(directory.path()).unwrap().name(), name);
    }

    #[test]
    fn the_second_store_of_a_process_proves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert!(take(directory.path()).unwrap().others_are_over());
        assert!(!take(directory.path()).unwrap().others_are_over());
    }

    #[test]
    fn a_lock_file_that_was_replaced_proves_nothing_until_the_machine_was_started_again() {
        let directory = tempfile::tempdir().unwrap();
        let proves = || take(directory.path()).unwrap().made.proves_that_others_are_over();
        assert!(proves());
        fs::write(directory.path().join(DATA), "").unwrap();
        assert!(proves(), "the file was there before the data");
        let lock = directory.path().join(LOCK_FILE);
        let (copy, original) = (directory.path().join("copy"), fs::read(&lock).unwrap());
        fs::write(&copy, original).unwrap();
        fs::rename(&copy, &lock).unwrap();
        assert!(!proves(), "a copy of the file is another lock");
        fs::remove_file(&lock).unwrap();
        assert!(!proves());
        assert!(!proves(), "the process that lost its lock file may still run");
        let made = fs::read_to_string(&lock).unwrap();
        fs::write(&lock, made.replace(&boot().unwrap_or_default(), "of-yesterday")).unwrap();
        assert_eq!(proves(), boot().is_some());
        fs::write(&lock, "process 7 (rangehold 0.1.0)\n").unwrap();
        assert!(!proves(), "an earlier release did not write how the file was made");
    }
}
