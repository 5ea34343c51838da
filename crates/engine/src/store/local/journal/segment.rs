//! A segment: a file of the journal.
//!
//! It grows in steps, each filled with zeros, until it has its full length. From then on it keeps that length: when everything in it
//! was deleted, it is given another name, and is written over from its beginning. So a sync mostly writes the bytes of
//! the records and nothing else: the file system has no new length, block or name to note.
//!
//! Its name has three parts: `<number>-<number before>-<life>.segment`. Numbers grow, so they tell the order; the second one is that of
//! the segment before it when it was made, so that one that is missing is noticed. The life is a random number, by which records
//! are told from those that the file held in an earlier life.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;

use super::super::super::limits::{JOURNAL_GROWS_BY, JOURNAL_SEGMENT_BYTES};
use super::record::{Draft, Header};
use super::synced::SyncedFile;

const ENDING: &str = ".segment";

/// The name of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) number: u64,
    pub(super) before: u64,
    pub(super) life: u64,
}

impl Name {
    /// A name for a segment that begins a new life. `before`: the segment before it.
    pub(super) fn new(number: u64, before: u64) -> Self {
        // Random, so that a client cannot store bytes that look like a record of a later life.
        Self { number, before, life: RandomState::new().build_hasher().finish() }
    }

    /// Reads the name of a file; `None` if it is not that of a segment.
    pub(super) fn parse(file: &str) -> Option<Self> {
        let mut parts = file.strip_suffix(ENDING)?.split('-');
        let name = Self {
            number: parts.next()?.parse().ok()?,
            before: parts.next()?.parse().ok()?,
            life: u64::from_str_radix(parts.next()?, 16).ok()?,
        };
        (name.to_string() == file).then_some(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, before, life } = self;
        write!(f, "{number:010}-{before:010}-{life:016x}{ENDING}")
    }
}

/// A segment that is open.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) name: Name,
    pub(super) path: PathBuf,
    /// Readers hold clones of it. As long as there is one, the segment is not written over.
    pub(super) file: Arc<File>,
    inode: u64,
    /// Where the next record goes.
    written: AtomicU64,
    /// Up to here the file is filled.
    filled: AtomicU64,
    /// Everything before this offset is durable.
    synced: AtomicU64,
    /// Whether a sync failed.
    failed: AtomicBool,
    /// Held during a sync.
    syncing: Mutex<()>,
}

impl Segment {
    /// The segment at `path`, whose records end at `end`.
    pub(super) fn found(name: Name, path: PathBuf, file: File, end: u64) -> io::Result<Self> {
        let (inode, filled) = (file.metadata()?.ino(), file.metadata()?.len());
        Ok(Self {
            name,
            path,
            file: Arc::new(file),
            inode,
            written: AtomicU64::new(end),
            filled: AtomicU64::new(filled),
            synced: AtomicU64::new(end),
            failed: AtomicBool::new(false),
            syncing: Mutex::default(),
        })
    }

    /// Makes a segment in `directory`. Its name is not durable yet.
    pub(super) fn create(directory: &Path, name: Name) -> io::Result<Self> {
        let path = directory.join(name.to_string());
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        Self::found(name, path, file, 0)
    }

    /// Begins another life of this segment, whose records were all deleted. Its name is not durable yet.
    pub(super) fn reborn(&self, directory: &Path, name: Name) -> io::Result<Self> {
        let path = directory.join(name.to_string());
        let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        let reborn = Self::found(name, path, file, 0)?;
        fs::rename(&self.path, &reborn.path)?;
        Ok(reborn)
    }

    /// Where the next record goes.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Whether a sync failed. What was written and not synced then may be lost, whatever a later sync says, so no more is
    /// written here.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Whether a record of `len` bytes fits, and the end after it.
    pub(super) fn has_room(&self, len: u64) -> bool {
        self.written() + len + Draft::end().len() <= JOURNAL_SEGMENT_BYTES
    }

    /// Writes a record behind the last one. Returns its header, and when it was written. One thread at a time may call this.
    pub(super) fn append<'d>(&self, draft: &'d mut Draft) -> io::Result<(&'d Header, SystemTime)> {
        let (offset, synced) = (self.written(), self.synced());
        let (header, bytes) = draft.at(self.name.life, offset, synced);
        self.file.write_all_at(bytes, offset)?;
        self.fill_beyond(header.end());
        self.written.store(header.end(), Ordering::Release);
        Ok((header, self.file.metadata()?.modified()?))
    }

    /// Lets the file grow if a record went beyond what was filled.
    fn fill_beyond(&self, end: u64) {
        if end <= self.filled.load(Ordering::Relaxed) {
            return;
        }
        let filled = end.next_multiple_of(JOURNAL_GROWS_BY).min(JOURNAL_SEGMENT_BYTES).max(end);
        // On a full disk the next records may still find room, so this is not an error.
        let grown = self.file.write_all_at(&vec![0; (filled - end) as usize], end);
        self.filled.store(if grown.is_ok() { filled } else { end }, Ordering::Relaxed);
    }

    /// Makes everything durable, and then the record of the end, behind which nothing is written.
    pub(super) fn finish(&self, fsync: bool) -> io::Result<()> {
        let _syncing = self.syncing.lock();
        let sync = || if fsync { self.file.sync_data() } else { Ok(()) };
        sync()?;
        self.synced.store(self.written(), Ordering::Release);
        self.append(&mut Draft::end())?;
        sync()
    }

    /// Returns once everything before the offset `end` is durable, with one sync for all callers that wait. Notes in `note` how
    /// far the segment is synced.
    pub(super) fn sync_until(&self, end: u64, fsync: bool, note: &SyncedFile) -> io::Result<()> {
        let _syncing = self.syncing.lock();
        if self.synced() >= end {
            return Ok(());
        }
        if self.has_failed() {
            return Err(io::Error::other("an earlier sync of this segment of the journal failed"));
        }
        let until = self.written();
        let synced = if fsync { self.file.sync_data() } else { Ok(()) };
        if let Err(error) = synced.and_then(|()| self.check_name()) {
            self.failed.store(true, Ordering::Release);
            return Err(error);
        }
        self.synced.store(until, Ordering::Release);
        note.write(self.name.life, until);
        Ok(())
    }

    /// Fails if the segment no longer has its name.
    fn check_name(&self) -> io::Result<()> {
        if self.has_name()? { Ok(()) } else { Err(super::taken_over()) }
    }

    /// Whether the segment still has its name: no other process has taken over the journal, and it was not written over.
    pub(super) fn has_name(&self) -> io::Result<bool> {
        match fs::symlink_metadata(&self.path) {
            Ok(found) => Ok(found.ino() == self.inode),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Up to where the segment was synced.
    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }
}
