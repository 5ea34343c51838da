//! The store below the ranges: an object store, and what surrounds it.
//!
//! SlateDB keeps a range as objects: sorted files, log files, manifests. A [`Store`] is where they
//! are: in memory for tests, or in a directory. A directory is more than its objects:
//!
//! ```text
//!   rangehold-data/
//!     LOCK                    who serves it: one process at a time          lock
//!     rangehold-format.json   by which rules it was written                 format
//!     COPYING                 only while a copy is being written into it    format
//!     cluster/map/<version>   the map of ranges                             (the partition server)
//!     ranges/<id>-<generation>-<attempt>/{manifest,wal,compacted,..}/       (SlateDB)
//! ```
//!
//! [`Store::open`] makes or checks all of that, sweeps what interrupted writes left, and hands out
//! an object store whose writes are durable when they return and whose damaged files are refused by
//! name (`local`). The answers of any other store are measured (`answer_length`). Beside it stands the
//! [`DiskWatch`], which tells when to refuse writes.

mod answer_length;
mod damage;
mod directory;
mod disk;
mod filling;
mod format;
pub mod limits;
mod local;
mod location;
mod lock;
mod log;
mod seal;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::memory::InMemory;

pub use self::damage::{DamagedFile, damaged_file};
pub use self::disk::{DiskSpace, DiskWatch};
pub(crate) use self::filling::Filling;
pub use self::format::{COPY_MARK, FORMAT, FORMAT_FILE, Format};
pub use self::location::{LocationError, StoreLocation};
pub use self::lock::LOCK_FILE;
pub use self::log::check_log;

use self::answer_length::CheckedLengths;
use self::damage::DamageLog;
use self::local::SealedDirectory;
use self::lock::DirectoryLock;

/// What can be chosen about a store. The default is what production wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreOptions {
    /// Free bytes of the volume below which writes are refused; `None` for a hundredth of the
    /// volume within [`limits::DISK_RESERVE_BYTES`].
    pub disk_reserve_bytes: Option<u64>,
    /// Writes without waiting for the disk: what was acknowledged may be gone after a loss of
    /// power. Only there so that a test of that can be seen to fail.
    pub unsafe_no_fsync: bool,
}

/// What kind of place a store is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// This process's memory.
    Memory,
    /// A directory.
    Directory,
}

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else serves the directory.
    #[error("{} is in use by {holder}; stop it first, or give another directory", directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
        /// The process that serves it, as far as known.
        holder: String,
    },
    /// The directory was written by rules that this release does not know.
    #[error("{} cannot be opened: {reason}", directory.display())]
    Format {
        /// The directory.
        directory: PathBuf,
        /// Which, and what helps.
        reason: String,
    },
    /// The directory holds something else.
    #[error("{} holds {found:?} but no {FORMAT_FILE}, so it is not a data directory; give an empty or a new one", directory.display())]
    Foreign {
        /// The directory.
        directory: PathBuf,
        /// The name of something in it.
        found: String,
    },
    /// A copy into the directory was interrupted.
    #[error("{} holds an unfinished copy; run the copy again, or delete the directory", directory.display())]
    UnfinishedCopy {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory is meant to be filled and is not empty.
    #[error("{} is not empty: it holds {found:?}; give an empty or a new directory", directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
        /// The name of something in it.
        found: String,
    },
    /// There is no such directory, where one is to be read.
    #[error("there is no directory {}", directory.display())]
    Missing {
        /// The directory.
        directory: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl StoreError {
    fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}

/// An open store. Cheap to clone; the lock of a directory is released with the last clone.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    objects: Arc<dyn ObjectStore>,
    /// The same, if they are in a directory.
    directory: Option<SealedDirectory>,
    root: Option<PathBuf>,
    disk: DiskWatch,
    damage: DamageLog,
    /// `None` in memory, and for those who only read.
    _lock: Option<DirectoryLock>,
}

impl Store {
    /// Opens the store at `location`, making it if nothing is there. Waits for the disk: outside of
    /// start-up, call it where blocking harms nobody.
    pub fn open(location: &StoreLocation, options: StoreOptions) -> Result<Self, StoreError> {
        match location {
            StoreLocation::Memory => Ok(Self::in_memory()),
            StoreLocation::Directory(directory) => Self::open_directory(directory, options),
        }
    }

    /// A new, empty store in memory.
    pub fn in_memory() -> Self {
        Self::on(Arc::new(InMemory::new()))
    }

    /// A store on objects that the caller brings: how tests put faults below the engine.
    pub fn on(objects: Arc<dyn ObjectStore>) -> Self {
        Self(Arc::new(Inner {
            objects: Arc::new(CheckedLengths(objects)),
            directory: None,
            root: None,
            disk: DiskWatch::of_memory(),
            damage: DamageLog::default(),
            _lock: None,
        }))
    }

    fn open_directory(root: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let fsync = !options.unsafe_no_fsync;
        let lock = Self::take_directory(root, fsync)?;
        format::check_or_create(root, fsync)?;
        let swept = directory::sweep(root).map_err(|source| StoreError::io("sweep", root, source))?;
        if swept > 0 {
            tracing::info!(directory = %root.display(), swept, "removed what interrupted writes had left");
        }
        Self::of_directory(root, options, Some(lock))
    }

    /// Makes the directory if it is missing, and takes its lock.
    fn take_directory(root: &Path, fsync: bool) -> Result<DirectoryLock, StoreError> {
        directory::Directories::new(fsync)
            .ensure(root)
            .map_err(|source| StoreError::io("create", root, source))?;
        DirectoryLock::take(root)
    }

    fn of_directory(
        root: &Path,
        options: StoreOptions,
        lock: Option<DirectoryLock>,
    ) -> Result<Self, StoreError> {
        let failed = |source| StoreError::io("open", root, source);
        let root = root.canonicalize().map_err(failed)?;
        let damage = DamageLog::default();
        let disk = DiskWatch::of_directory(&root, options.disk_reserve_bytes).map_err(failed)?;
        let objects = SealedDirectory::new(&root, !options.unsafe_no_fsync, damage.clone(), disk.clone())
            .map_err(|error| failed(io::Error::other(error)))?;
        Ok(Self(Arc::new(Inner {
            objects: Arc::new(objects.clone()),
            directory: Some(objects),
            root: Some(root),
            disk,
            damage,
            _lock: lock,
        })))
    }

    /// The objects, for SlateDB and the map.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.0.objects)
    }

    /// Makes the directories of the objects that will lie below `paths`: making one, durably, takes longer
    /// than writing a small file. In memory there are no directories to make.
    pub async fn make_directories(&self, paths: &[String]) -> object_store::Result<()> {
        match &self.0.directory {
            Some(directory) => directory.make_directories(paths).await,
            None => Ok(()),
        }
    }

    /// Removes the directory of objects below `path`, which are all deleted. Not for one that
    /// somebody may still write to. In memory there are no directories to remove.
    pub async fn remove_directory(&self, path: &str) -> object_store::Result<()> {
        match &self.0.directory {
            Some(directory) => directory.remove_directory(path).await,
            None => Ok(()),
        }
    }

    /// What kind of place this is.
    pub fn kind(&self) -> StoreKind {
        if self.0.root.is_some() { StoreKind::Directory } else { StoreKind::Memory }
    }

    /// The directory, absolute; `None` in memory.
    pub fn root(&self) -> Option<&Path> {
        self.0.root.as_deref()
    }

    /// Tells when the disk is too full for new writes.
    pub fn disk(&self) -> &DiskWatch {
        &self.0.disk
    }

    /// The damaged files that were met since the store was opened, at most
    /// [`limits::DAMAGED_FILES_MAX`]. They name what an error of SlateDB may have lost on its way.
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        self.0.damage.known()
    }
}
