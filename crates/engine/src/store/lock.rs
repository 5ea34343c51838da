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

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::StoreError;

/// Name of the lock file in the data directory.
pub const LOCK_FILE: &str = "LOCK";

/// Held as long as the directory is in use.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    _file: File,
    name: String,
}

impl DirectoryLock {
    /// Takes the lock of `directory` without waiting. [`StoreError::Locked`] if it is held, by
    /// another process or by another store of this one.
    pub(super) fn take(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(LOCK_FILE);
        let failed = |source| StoreError::io("lock", &path, source);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // If the holder's name cannot be read, the refusal is given without it.
                let _ = file.read_to_string(&mut holder);
                let holder = match holder.trim() {
                    "" => "another process".to_owned(),
                    known => known.to_owned(),
                };
                return Err(StoreError::Locked { directory: directory.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let text = format!("process {} (rangehold {})\n", std::process::id(), env!("CARGO_PKG_VERSION"));
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(text.as_bytes()))
            .map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        Ok(Self { name: format!("{}-{}", metadata.dev(), metadata.ino()), _file: file })
    }

    /// The name of the lock; see the module.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_process_is_told_the_holder_and_a_third_gets_the_lock_after_its_release() {
        let directory = tempfile::tempdir().unwrap();
        let first = DirectoryLock::take(directory.path()).unwrap();
        let refused = DirectoryLock::take(directory.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {} ", std::process::id())), "{refused}");
        assert!(refused.contains(directory.path().to_str().unwrap()), "{refused}");
        let name = first.name().to_owned();
        drop(first);
        let second = DirectoryLock::take(directory.path()).unwrap();
        assert_eq!(second.name(), name);
        std::fs::remove_file(directory.path().join(LOCK_FILE)).unwrap();
        assert_ne!(DirectoryLock::take(directory.path()).unwrap().name(), name);
    }
}
