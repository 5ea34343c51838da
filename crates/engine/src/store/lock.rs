//! The lock of a data directory: one process at a time.
//!
//! SlateDB's epochs already keep a second writer out of a range, but by fencing the first one: the
//! process that was started by mistake would win. So whoever serves a directory holds an `flock` on
//! its file `LOCK`. The kernel lets go of it when the process ends, however it ends, so a lock is
//! never stale; the file stays, since removing it would let two processes lock two files of one
//! name. Its text tells who holds it, for the one who is refused.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::StoreError;

/// Name of the lock file in the data directory.
pub const LOCK_FILE: &str = "LOCK";

/// Held as long as the directory is in use.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    _file: File,
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
                // What cannot be read is not worth a second error: the refusal stands without it.
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
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_holds_it_and_the_third_gets_it() {
        let directory = tempfile::tempdir().unwrap();
        let first = DirectoryLock::take(directory.path()).unwrap();
        let refused = DirectoryLock::take(directory.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {} ", std::process::id())), "{refused}");
        assert!(refused.contains(directory.path().to_str().unwrap()), "{refused}");
        drop(first);
        DirectoryLock::take(directory.path()).unwrap();
    }
}
