//! The journal: the small files of SlateDB's logs, one behind another in a few large files.
//!
//! SlateDB writes its log as objects: each flush makes one. As a file of its own, such an object costs a new inode, a new block,
//! two changes of a directory, two syncs, and as much again when it is deleted some seconds later. In the journal it is a
//! [record] behind the last one in a [segment], and its sync writes little else than its bytes. All databases of
//! the store share the journal, so their flushes share syncs too.
//!
//! ```text
//!   journal/<epoch>/                                     the directory of the owner      owner
//!     0000000007-0000000006-<life>.segment               records, oldest first           segment, record
//!     0000000008-0000000007-<life>.segment               the newest, which grows
//!     synced                                             how far the newest is durable   synced
//! ```
//!
//! **What is where.** An [index] in memory says where each object lies. It is made by reading the [headers of all
//! records](scan) when the journal is opened. The journal takes objects of at most [`JOURNAL_RECORD_BYTES_MAX`] bytes; larger ones
//! are files of their own.
//!
//! **A put** appends a record, and returns when the segment is synced behind it ([`Segment::sync_until`]). Puts that wait for
//! the same segment share a sync. If a sync fails, all records that were not durable are taken back, and the next
//! record begins a new segment. A reader may see an object before it is durable, as it may see a file before its
//! directory is synced.
//!
//! **A delete** appends a note, and syncs nothing. If the note is lost, the object is there again after a start, and is
//! deleted again: only objects that nobody needs are deleted.
//!
//! **Old segments.** Segments leave the journal from the oldest one on, so a note of a deletion never goes before the
//! record that it is about. A segment without objects is written over. An oldest segment with few objects gives them up:
//! they become files of their own. [`Journal::upkeep`] does all this, one at a time. Segments that an opening found are removed and not
//! written over, since a process from before may still have them open.
//!
//! **One [owner].** Whether a name is free is known to this process alone. So each opening takes the journal over. A process from
//! before, which may still run if somebody removed the lock file, acknowledges nothing after that. The new owner reads what it wrote before,
//! acknowledged or not. A process that only reads [beside] the owner looks for new records at each call.

mod append;
mod beside;
mod index;
mod owner;
mod record;
mod scan;
mod segment;
mod synced;
#[cfg(test)]
mod tests;
mod upkeep;

use std::fs::{self, File};
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use object_store::ObjectMeta;
use object_store::path::Path;
use parking_lot::Mutex;

use self::append::Owned;
pub(super) use self::append::Reservation;
use self::beside::Beside;
use self::index::{Entry, Index};
use self::record::{Header, Kind};
use self::scan::ScanError;
use self::segment::{Name, Segment};
use super::super::limits::JOURNAL_RECORD_BYTES_MAX;

/// The directory of the journal, in that of the store.
pub(in super::super) const JOURNAL: &str = "journal";

/// What a process may do with a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Access {
    /// It holds the lock of the store.
    Owner,
    /// It reads, perhaps while another process is the owner.
    Beside {
        /// Whether there may be no journal: the directory is of an earlier release.
        may_be_missing: bool,
    },
}

/// Why a journal was not opened.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum OpenError {
    #[error("{}: {source}", path.display())]
    Segment { path: PathBuf, source: ScanError },
    #[error("its segment number {0} is missing")]
    Missing(u64),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The journal of a store.
#[derive(Debug)]
pub(super) struct Journal {
    fsync: bool,
    index: Mutex<Index>,
    role: Role,
    /// Whether [`Journal::upkeep`] has something to do.
    needs_upkeep: AtomicBool,
}

#[derive(Debug)]
enum Role {
    Owner(Owned),
    Beside(Mutex<Beside>),
}

/// Makes an empty journal in the store at `root`, durably. Does nothing if there is one.
pub(in super::super) fn make(root: &FilePath, fsync: bool) -> io::Result<()> {
    owner::make(root, fsync)
}

/// Whether the journal of the store at `root` was made and never used.
pub(in super::super) fn is_new(root: &FilePath) -> io::Result<bool> {
    owner::is_new(root)
}

impl Journal {
    /// Opens the journal of the store at `root`, which was [made](make) before.
    pub(super) fn open(root: &FilePath, fsync: bool, access: Access) -> Result<Self, OpenError> {
        let mut journal = Self {
            fsync,
            index: Mutex::default(),
            role: Role::Beside(Mutex::new(Beside::new(root.to_owned(), access))),
            needs_upkeep: AtomicBool::new(true),
        };
        match access {
            Access::Owner => journal.role = Role::Owner(journal.take_over(root)?),
            Access::Beside { .. } => journal.refresh()?,
        }
        Ok(journal)
    }

    /// Fails if a segment is missing. Segments go from the oldest on, so from the newest one with records each must follow the one that it
    /// names, down to the oldest with objects. A segment that was made and never used may lie between.
    fn check_chain(&self, segments: impl DoubleEndedIterator<Item = (Name, bool)>) -> Result<(), OpenError> {
        let index = self.index.lock();
        let mut wanted = None;
        for (name, is_used) in segments.rev() {
            match wanted {
                Some(wanted) if name.number < wanted && index.live_bytes(name.number) > 0 => {
                    return Err(OpenError::Missing(wanted));
                }
                Some(wanted) if name.number != wanted => {}
                None if !is_used => {}
                _ => wanted = Some(name.before),
            }
        }
        Ok(())
    }

    fn take_records(&self, segment: &Arc<Segment>, records: &[Header]) -> io::Result<()> {
        let modified = segment.file.metadata()?.modified()?;
        let mut index = self.index.lock();
        for header in records {
            match header.kind {
                Kind::Put => {
                    let (start, len) = (header.payload_start(), u64::from(header.payload_len));
                    let entry = Entry { segment: Arc::clone(segment), start, len, modified };
                    index.insert(header.path.clone(), entry);
                }
                Kind::Delete => drop(index.remove(&header.path)),
                Kind::End => {}
            }
        }
        Ok(())
    }

    /// Whether the journal takes an object of so many bytes at this path: a small file of a log.
    pub(super) fn takes(location: &Path, bytes: u64) -> bool {
        is_of_log(location)
            && bytes <= JOURNAL_RECORD_BYTES_MAX
            && location.as_ref().len() <= usize::from(u16::MAX)
    }

    /// Whether another process may write over what this one reads. Then look after each read whether [`Place::is_there`].
    pub(super) fn is_beside(&self) -> bool {
        matches!(self.role, Role::Beside(_))
    }

    /// Whether it is known without the disk where the object at `location` lies, and its bytes are surely in the page cache.
    pub(super) fn answers_at_once(&self, location: &Path) -> bool {
        let Role::Owner(owned) = &self.role else { return !is_of_log(location) };
        let index = self.index.lock();
        index.get(location.as_ref()).is_none_or(|entry| entry.segment.name.number >= owned.first_own)
    }

    /// Where an object lies, if the journal has it.
    pub(super) fn get(&self, location: &Path) -> io::Result<Option<Place>> {
        if !is_of_log(location) {
            return Ok(None);
        }
        self.refresh_beside()?;
        Ok(self.index.lock().get(location.as_ref()).map(Place::of))
    }

    /// The objects below `prefix`, in the order of their paths.
    pub(super) fn below(&self, prefix: Option<&Path>) -> io::Result<Vec<ObjectMeta>> {
        self.refresh_beside()?;
        let index = self.index.lock();
        let objects =
            index.below(prefix.map_or("", |prefix| prefix.as_ref())).map(|(path, entry)| entry.meta(path));
        Ok(objects.collect())
    }
}

/// Another process has taken over the journal. Trying again is of no use.
#[derive(Debug, thiserror::Error)]
#[error("another process has taken over this data directory")]
pub(super) struct TakenOver;

fn taken_over() -> io::Error {
    io::Error::other(TakenOver)
}

/// The path that was noted in a record.
fn location(path: &str) -> Path {
    Path::parse(path).unwrap_or_else(|_| Path::from(path))
}

/// Where an object lies. As long as this is held, its segment is not written over by this process.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) file: Arc<File>,
    /// Where the object begins in the file.
    pub(super) start: u64,
    /// The length of the object and its seal.
    pub(super) len: u64,
    pub(super) modified: SystemTime,
    /// An ETag that no other object ever had.
    pub(super) e_tag: String,
    segment: Arc<Segment>,
}

impl Place {
    /// Whether this is where `entry` lies.
    fn is_of(&self, entry: &Entry) -> bool {
        Arc::ptr_eq(&self.segment, &entry.segment) && self.start == entry.start
    }

    fn of(entry: &Entry) -> Self {
        let Entry { segment, start, len, modified } = entry;
        Self {
            file: Arc::clone(&segment.file),
            start: *start,
            len: *len,
            modified: *modified,
            e_tag: format!("\"{:x}-{start:x}-{len:x}\"", segment.name.life),
            segment: Arc::clone(segment),
        }
    }

    /// Whether the segment is still the same one. If it is not, bytes that were read may be those of another object: read again.
    pub(super) fn is_there(&self) -> io::Result<bool> {
        self.segment.has_name()
    }

    /// Names the object at `location` and the file that it is in, for an operator.
    pub(super) fn describe(&self, location: &Path) -> PathBuf {
        PathBuf::from(format!("{} ({location})", self.segment.path.display()))
    }
}

impl Entry {
    /// What a listing shows. As in listings of files, the length is that with the seal.
    fn meta(&self, path: &str) -> ObjectMeta {
        ObjectMeta {
            location: location(path),
            last_modified: self.modified.into(),
            size: self.len,
            e_tag: None,
            version: None,
        }
    }
}

/// Whether this is a file of the log of a database.
pub(super) fn is_of_log(location: &Path) -> bool {
    location.as_ref().ends_with(".sst") && location.parts().any(|part| part.as_ref() == "wal")
}

/// The names of the segments in `directory`, oldest first.
fn segments_in(directory: &FilePath) -> io::Result<Vec<Name>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        found.extend(entry?.file_name().to_str().and_then(Name::parse));
    }
    found.sort_unstable();
    Ok(found)
}
