//! A directory that is read while another process serves it, and a directory that is being filled.
//!
//! A directory that is being filled holds [`COPY_MARK`] from before its first object until it is whole. So
//! if the filling is interrupted, no process opens the half as if it were the whole. A new filling first
//! deletes what the interrupted one left. Only the mark permits that.

use std::fs;
use std::io;
use std::path::Path;

use super::format::{self, COPY_MARK, FORMAT_FILE};
use super::local::JOURNAL;
use super::lock::LOCK_FILE;
use super::{Store, StoreError, StoreOptions, directory};

impl Store {
    /// Opens a directory that another process may be serving, without its lock. The caller may only read,
    /// and make checkpoints, which SlateDB allows beside a writer.
    pub(crate) fn open_beside(root: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        if !root.is_dir() {
            return Err(StoreError::Missing { directory: root.to_owned() });
        }
        let Some(format) = format::check(root)? else {
            let found = format::first_foreign_name(root)?.unwrap_or_default();
            return Err(StoreError::Foreign { directory: root.to_owned(), found });
        };
        Self::of_directory(root, options, None, &format)
    }

    /// Makes a store at `root`, or clears one whose filling was interrupted, and marks it as being
    /// filled. [`StoreError::NotEmpty`] if something else is there.
    pub(crate) fn fill(root: &Path, options: StoreOptions) -> Result<Filling, StoreError> {
        let fsync = !options.unsafe_no_fsync;
        let lock = Self::take_directory(root, fsync)?;
        if root.join(COPY_MARK).exists() {
            clear(root).map_err(|source| StoreError::io("clear", root, source))?;
        } else {
            if let Some(found) = format::first_foreign_name(root)? {
                return Err(StoreError::NotEmpty { directory: root.to_owned(), found });
            }
            format::write_plain(root, COPY_MARK, b"a copy is being written here\n", fsync)?;
        }
        let format = format::create(root, fsync)?;
        Ok(Filling { store: Self::of_directory(root, options, Some(lock), &format)?, fsync })
    }
}

/// A store that is being filled. If this is dropped, the store stays unfinished.
#[derive(Debug)]
pub(crate) struct Filling {
    store: Store,
    fsync: bool,
}

impl Filling {
    /// The store.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Declares the store whole. This is durable when it returns.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let root = self.store.root().expect("only directories are filled");
        let mark = root.join(COPY_MARK);
        fs::remove_file(&mark)
            .and_then(|()| if self.fsync { directory::sync(root) } else { Ok(()) })
            .map_err(|source| StoreError::io("remove", &mark, source))
    }
}

/// Removes what an interrupted filling left: everything with a name that a filling makes, except the mark.
fn clear(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == LOCK_FILE || name == COPY_MARK {
            continue;
        }
        if name == "ranges" || name == "cluster" || name == "blobs" || name == JOURNAL {
            fs::remove_dir_all(entry.path())?;
        } else if name == FORMAT_FILE || directory::is_staging(&name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
