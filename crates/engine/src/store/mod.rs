//! The store below the ranges: an object store, and what belongs to it.
//!
//! SlateDB keeps a range as objects: sorted files, log files, manifests. The map, leases and change records are
//! objects too. A [`Store`] is where these objects are: in memory for tests, or in a directory. A directory holds
//! more than the objects of the engine:
//!
//! ```text
//!   rangehold-data/
//!     LOCK                    names the one process that serves it         lock
//!     rangehold-format.json   the rules by which it was written            format
//!     COPYING                 only while a copy is being written into it   format
//!     admin-token             for the admin endpoint                       (the server)
//!     cluster/map/<version>   the map of ranges                            map_store
//!     cluster/copied          in a copy: what was copied into it           copy
//!     cluster/servers/<id>/   the lives of partition servers               lease
//!     journal/                the small files of the logs of all databases     local
//!     changes/<range>/        change records of splits and merges          change
//!     ranges/<id>-<generation>-<attempt>/{manifest,wal,compacted,..}/      (SlateDB)
//!     blobs/<id>/<n>.chunk    the bytes of large objects                   blob
//!     holds/                  a copy that is under way                     blob
//!     history/                the history of load                          (the server)
//! ```
//!
//! [`Store::open`] makes or checks all of this, sweeps what interrupted writes left, and returns an object
//! store. A write to it is durable when it returns, and a damaged file is refused with an error that names
//! it (`local`). The answers of any other store are checked for their length (`answer_length`). The
//! [`DiskWatch`] tells when to refuse writes.

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
mod object_error;
mod seal;
mod spare;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use parking_lot::Mutex;

pub use self::damage::{Damage, DamagedFile, damaged_file};
pub use self::disk::{DiskSpace, DiskWatch, Space};
pub(crate) use self::filling::Filling;
pub use self::format::{COPY_MARK, FORMAT, FORMAT_FILE, Format, FormatError};
pub use self::location::{LocationError, StoreLocation};
pub use self::lock::LOCK_FILE;
pub use self::log::check_log;
pub(crate) use self::log::log_file;
pub use self::object_error::ObjectError;

use self::answer_length::CheckedLengths;
use self::damage::DamageLog;
pub(crate) use self::local::Adopted;
use self::local::{Access, OpenError, SealedDirectory};
use self::lock::DirectoryLock;

/// The options of a store. The defaults are for production.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreOptions {
    /// Writes are refused if the volume has fewer free bytes than this; `None` for a hundredth of the
    /// volume within [`limits::DISK_RESERVE_BYTES`].
    pub disk_reserve_bytes: Option<u64>,
    /// Writes do not wait for the disk: acknowledged writes may be gone after a loss of power. This is only
    /// for checking that a test of durability can fail.
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
    /// The directory is served already.
    #[error("{} is in use by {holder}; stop it first, or give another directory", directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
        /// The process that serves it, as far as it is known.
        holder: String,
    },
    /// The directory was written by rules that this release does not know.
    #[error("{} cannot be opened: {source}", directory.display())]
    Format {
        /// The directory.
        directory: PathBuf,
        /// Which rule is not known, and what helps.
        source: FormatError,
    },
    /// The directory holds something else than a store.
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
    /// The directory is to be filled, and is not empty.
    #[error("{} is not empty: it holds {found:?}; give an empty or a new directory", directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
        /// The name of something in it.
        found: String,
    },
    /// The directory to be read does not exist.
    #[error("there is no directory {}", directory.display())]
    Missing {
        /// The directory.
        directory: PathBuf,
    },
    /// A segment of the journal is missing, or damaged where not even the names of its objects can be read.
    #[error("the journal of {} is damaged: {reason}; restore the directory from a backup", directory.display())]
    Journal {
        /// The directory.
        directory: PathBuf,
        /// Which segment, and where.
        reason: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl StoreError {
    fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    fn journal(root: &Path, error: OpenError) -> Self {
        match error {
            OpenError::Io(source) => Self::io("open the journal of", root, source),
            OpenError::Segment { .. } | OpenError::Missing(_) => {
                Self::Journal { directory: root.to_owned(), reason: error.to_string() }
            }
        }
    }
}

/// An open store. Cheap to clone; the lock of a directory is released with the last clone.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    objects: Arc<dyn ObjectStore>,
    /// The same objects, if they are in a directory.
    directory: Option<SealedDirectory>,
    root: Option<PathBuf>,
    disk: DiskWatch,
    damage: DamageLog,
    /// `None` in memory, and if the store is only read.
    lock: Option<DirectoryLock>,
    fsync: bool,
    /// Whether the format object says that there are objects.
    has_objects: Mutex<bool>,
}

impl Store {
    /// Opens the store at `location`, and makes it if nothing is there. This waits for the disk. Except at
    /// start-up, call it on a thread that may block.
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

    /// A store on objects that the caller brings. Tests use it to put faults below the engine.
    pub fn on(objects: Arc<dyn ObjectStore>) -> Self {
        Self(Arc::new(Inner {
            objects: Arc::new(CheckedLengths(objects)),
            directory: None,
            root: None,
            disk: DiskWatch::of_memory(),
            damage: DamageLog::default(),
            lock: None,
            fsync: false,
            has_objects: Mutex::new(true),
        }))
    }

    fn open_directory(root: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let fsync = !options.unsafe_no_fsync;
        let lock = Self::take_directory(root, fsync)?;
        disk::make_room_for_start(root).map_err(|source| StoreError::io("make room in", root, source))?;
        let format = format::check_or_create(root, fsync)?;
        let swept = directory::sweep(root).map_err(|source| StoreError::io("sweep", root, source))?;
        if swept > 0 {
            tracing::info!(directory = %root.display(), swept, "removed what interrupted writes had left");
        }
        Self::of_directory(root, options, Some(lock), &format)
    }

    /// Makes the directory if it is missing, and takes its lock.
    fn take_directory(root: &Path, fsync: bool) -> Result<DirectoryLock, StoreError> {
        directory::Directories::new(fsync)
            .ensure(root)
            .map_err(|source| StoreError::io("create", root, source))?;
        DirectoryLock::take(root, || Ok(format::first_foreign_name(root)?.is_some()))
    }

    fn of_directory(
        root: &Path,
        options: StoreOptions,
        lock: Option<DirectoryLock>,
        format: &Format,
    ) -> Result<Self, StoreError> {
        let failed = |source| StoreError::io("open", root, source);
        let root = root.canonicalize().map_err(failed)?;
        let damage = DamageLog::default();
        let disk = DiskWatch::of_directory(&root, options.disk_reserve_bytes).map_err(failed)?;
        let fsync = !options.unsafe_no_fsync;
        let access = match lock {
            Some(_) => Access::Owner,
            None => Access::Beside { may_be_missing: !format.has_journal() },
        };
        let objects = SealedDirectory::new(&root, fsync, access, damage.clone(), disk.clone())
            .map_err(|error| StoreError::journal(&root, error))?;
        Ok(Self(Arc::new(Inner {
            objects: Arc::new(objects.clone()),
            directory: Some(objects),
            root: Some(root),
            disk,
            damage,
            lock,
            fsync: !options.unsafe_no_fsync,
            has_objects: Mutex::new(format.format >= FORMAT),
        })))
    }

    /// Notes in the directory that it has objects, so that releases without objects refuse it. Call it before the first
    /// row of an object is written; later calls cost nothing. This is durable when it returns.
    pub(crate) fn mark_objects(&self) -> Result<(), StoreError> {
        let mut has_objects = self.0.has_objects.lock();
        if let (false, Some(root)) = (*has_objects, &self.0.root) {
            format::write(root, &Format::with_objects(), self.0.fsync)?;
        }
        *has_objects = true;
        Ok(())
    }

    /// Whether the directory may have objects; see [`Self::mark_objects`].
    pub(crate) fn has_objects(&self) -> bool {
        *self.0.has_objects.lock()
    }

    /// The objects, for SlateDB and the map.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.0.objects)
    }

    /// Makes the directories of the objects that will be below `paths`. Do this early, since making a
    /// durable directory takes longer than writing a small file. In memory there are no directories to
    /// make.
    pub fn make_directories<'a>(&'a self, paths: &'a [String]) -> BoxFuture<'a, object_store::Result<()>> {
        Box::pin(async move {
            match &self.0.directory {
                Some(directory) => directory.make_directories(paths).await,
                None => Ok(()),
            }
        })
    }

    /// Removes the directory of the objects below `path`, which must all be deleted. Do not call it for a
    /// directory that may still be written to. In memory there are no directories to remove.
    pub fn remove_directory<'a>(&'a self, path: &'a str) -> BoxFuture<'a, object_store::Result<()>> {
        Box::pin(async move {
            match &self.0.directory {
                Some(directory) => directory.remove_directory(path).await,
                None => Ok(()),
            }
        })
    }

    /// Takes over the object `object` of the directory `other` under the name `to`, which must be free. Both share its bytes
    /// if they are on one volume. It must be a sorted file or a chunk; its bytes are checked. It is durable when this returns.
    pub(crate) fn adopt<'a>(
        &'a self,
        other: &'a Self,
        object: &'a ObjectPath,
        to: &'a ObjectPath,
    ) -> BoxFuture<'a, object_store::Result<Adopted>> {
        Box::pin(async move {
            match (&self.0.directory, &other.0.directory) {
                (Some(directory), Some(other)) => directory.adopt(other, object, to).await,
                _ => Err(object_store::Error::NotSupported { source: "memory shares no files".into() }),
            }
        })
    }

    /// Whether the object `object` of the directory `other` has the length and the checksum of the one here. The bytes are
    /// not read.
    pub(crate) fn has_same<'a>(
        &'a self,
        other: &'a Self,
        object: &'a ObjectPath,
    ) -> BoxFuture<'a, object_store::Result<bool>> {
        Box::pin(async move {
            match (&self.0.directory, &other.0.directory) {
                (Some(directory), Some(other)) => directory.has_same(other, object).await,
                _ => Ok(false),
            }
        })
    }

    /// What kind of place this is.
    pub fn kind(&self) -> StoreKind {
        if self.0.root.is_some() { StoreKind::Directory } else { StoreKind::Memory }
    }

    /// The absolute path of the directory; `None` in memory.
    pub fn root(&self) -> Option<&Path> {
        self.0.root.as_deref()
    }

    /// The name of the lock that this process holds on the store; `None` if it holds none. A process that held a lock
    /// of this name before has ended.
    pub fn lock(&self) -> Option<&str> {
        self.0.lock.as_ref().map(DirectoryLock::name)
    }

    /// Whether all processes that had the store open before have ended, certainly.
    pub(crate) fn others_are_over(&self) -> bool {
        self.0.lock.as_ref().is_some_and(DirectoryLock::others_are_over)
    }

    /// Tells when the disk is too full for new writes.
    pub fn disk(&self) -> &DiskWatch {
        &self.0.disk
    }

    /// The damaged files that were met since the store was opened, at most [`limits::DAMAGED_FILES_MAX`].
    /// They give the name of a file that an error of SlateDB may have lost on its way.
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        self.0.damage.known()
    }
}
