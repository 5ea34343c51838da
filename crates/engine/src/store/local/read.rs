//! Reading: sorted files are kept open, and small ranges are read by the calling thread.
//!
//! SlateDB reads its sorted files block by block. In the ordinary way, each of these reads opens the file,
//! asks for its length and reads, all on a blocking thread: 80 us for a block that is in the page cache.
//! Sorted files never change once they are published. So they are kept open, at most [`OPEN_FILES_MAX`] of
//! them. A blocking thread opens a sorted file the first time. After that a range of at most
//! [`INLINE_READ_BYTES_MAX`](super::super::limits::INLINE_READ_BYTES_MAX) is read by one `pread` in the calling
//! thread, in some 10 us. Files of the log are read in the same way, mostly from the [journal](super::journal). Any other file, such as a manifest or a
//! record, is opened by the calling thread and read as a whole: by the same thread up to that size, and by a
//! blocking thread above it.
//!
//! When a file is opened, its seal is checked. So a file that was cut short, or whose footer was damaged,
//! is found before a byte of it is used.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use object_store::ObjectMeta;
use object_store::path::Path;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use super::super::damage::Damage;
use super::super::limits::{CHECKED_PIECE_BYTES, OPEN_FILES_MAX};
use super::super::seal::{SEAL_LEN, Seal, Sealer, TAIL_LEN};
use super::is_read_in_parts;
use super::journal::Place;

/// Why a file was not read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The operating system refused.
    Io(io::Error),
    /// The bytes of the file are not what was written.
    Damaged(Damage),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A file that is open for reading and whose seal was found right, or an object of the journal.
#[derive(Debug)]
pub(super) struct SealedFile {
    file: Arc<File>,
    /// Where the object begins in the file.
    start: u64,
    seal: Seal,
    /// Names it for an operator.
    pub(super) shown: PathBuf,
    /// Whether parts of it may be read alone, as they have checks of their own. An object of the journal is always read and checked as a
    /// whole, so that damage is told of with the name of its segment.
    pub(super) in_parts: bool,
    /// Where it lies in a journal that another process may write over.
    pub(super) may_change: Option<Place>,
    /// What SlateDB is told about the file: without the seal.
    pub(super) meta: ObjectMeta,
}

impl SealedFile {
    /// Opens the file at `path`, which is the object `location`, and checks its seal and its tail.
    pub(super) fn open(path: &FilePath, location: &Path) -> Result<Self, ReadError> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(ReadError::Damaged(Damage::NotAFile));
        }
        let (seal, in_parts) = (read_seal(&file, 0, metadata.len())?, is_read_in_parts(location));
        let meta = ObjectMeta {
            location: location.clone(),
            last_modified: metadata.modified()?.into(),
            size: seal.payload_len,
            e_tag: Some(e_tag(&metadata, &seal)),
            version: None,
        };
        Ok(Self {
            file: Arc::new(file),
            start: 0,
            seal,
            shown: path.to_owned(),
            in_parts,
            may_change: None,
            meta,
        })
    }

    /// Opens the object `location` at its place in the journal, and checks its seal and its tail.
    pub(super) fn in_journal(place: Place, location: &Path) -> Result<Self, ReadError> {
        let seal = read_seal(&place.file, place.start, place.len)?;
        let shown = place.describe(location);
        let meta = ObjectMeta {
            location: location.clone(),
            last_modified: place.modified.into(),
            size: seal.payload_len,
            e_tag: Some(place.e_tag),
            version: None,
        };
        Ok(Self {
            file: place.file,
            start: place.start,
            seal,
            shown,
            in_parts: false,
            may_change: None,
            meta,
        })
    }

    /// What its seal says.
    pub(super) fn seal(&self) -> Seal {
        self.seal
    }

    /// Reads a range, which must be within the payload. The bytes are not checked here.
    pub(super) fn read(&self, range: Range<u64>) -> Result<Bytes, ReadError> {
        let len = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
        let (mut bytes, start) = (Vec::with_capacity(len), self.start + range.start);
        // Into memory that was not set to zero before.
        while bytes.len() < len {
            let at = start + bytes.len() as u64;
            match rustix::io::pread(&self.file, spare_capacity(&mut bytes), at) {
                Ok(0) => return Err(ReadError::Damaged(Damage::Shrunk)),
                Ok(_) => {}
                Err(Errno::INTR) => {}
                Err(error) => return Err(read_failed(error.into())),
            }
        }
        // The vector may have more room than was asked for, and a read fills all of it.
        bytes.truncate(len);
        Ok(bytes.into())
    }

    /// Reads the whole payload, and checks it.
    pub(super) fn read_whole(&self) -> Result<Bytes, ReadError> {
        let payload = self.read(0..self.seal.payload_len)?;
        self.seal.check_payload(&payload).map_err(ReadError::Damaged)?;
        Ok(payload)
    }

    /// Checks the whole payload, and holds no more than a piece of it in memory.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        let mut sealer = Sealer::default();
        let mut at = 0;
        while at < self.seal.payload_len {
            let end = self.seal.payload_len.min(at + CHECKED_PIECE_BYTES);
            sealer.update(&self.read(at..end)?);
            at = end;
        }
        if sealer.finish() == self.seal { Ok(()) } else { Err(ReadError::Damaged(Damage::Payload)) }
    }
}

/// Reads and checks the seal of what lies in `file` from `start`, `len` bytes with the seal, and its tail.
fn read_seal(file: &File, start: u64, len: u64) -> Result<Seal, ReadError> {
    let end_len = len.min(TAIL_LEN + SEAL_LEN);
    let mut end = [0; (TAIL_LEN + SEAL_LEN) as usize];
    let end = &mut end[..end_len as usize];
    read_exact(file, end, start + len - end_len)?;
    Seal::open(len, end).map_err(ReadError::Damaged)
}

fn read_exact(file: &File, bytes: &mut [u8], at: u64) -> Result<(), ReadError> {
    file.read_exact_at(bytes, at).map_err(read_failed)
}

/// Bytes that the disk cannot read, or no longer has, count as damaged: trying again will not bring them
/// back.
fn read_failed(error: io::Error) -> ReadError {
    const EIO: i32 = 5;
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadError::Damaged(Damage::Shrunk),
        _ if error.raw_os_error() == Some(EIO) => ReadError::Damaged(Damage::Unreadable(EIO)),
        _ => ReadError::Io(error),
    }
}

/// An ETag that differs whenever the object is replaced. It holds the inode and the time. Since both may be
/// the same again within one tick of the file system's clock, it also holds the check of the payload.
pub(super) fn e_tag(metadata: &Metadata, seal: &Seal) -> String {
    let (inode, seconds, nanoseconds) = (metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
    format!("\"{inode:x}-{seconds:x}.{nanoseconds:x}-{:x}-{:x}\"", seal.payload_len, seal.payload_check)
}

/// The sorted files that are open.
#[derive(Debug, Default)]
pub(super) struct OpenFiles(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    files: HashMap<Path, (Arc<SealedFile>, u64)>,
    /// Counts uses; the file with the lowest count was used longest ago.
    uses: u64,
}

impl OpenFiles {
    /// The file, if it is open.
    pub(super) fn get(&self, location: &Path) -> Option<Arc<SealedFile>> {
        let mut open = self.0.lock().expect("no one panics while holding the table");
        open.uses += 1;
        let uses = open.uses;
        let (file, used) = open.files.get_mut(location)?;
        *used = uses;
        Some(Arc::clone(file))
    }

    /// Keeps `file` open. If there are too many, it takes the place of the one that was not used for
    /// longest.
    pub(super) fn keep(&self, file: &Arc<SealedFile>) {
        let mut open = self.0.lock().expect("no one panics while holding the table");
        if open.files.len() >= OPEN_FILES_MAX && !open.files.contains_key(&file.meta.location) {
            let oldest = open.files.iter().min_by_key(|(_, (_, used))| *used).map(|(path, _)| path.clone());
            oldest.and_then(|path| open.files.remove(&path));
        }
        open.uses += 1;
        let uses = open.uses;
        open.files.insert(file.meta.location.clone(), (Arc::clone(file), uses));
    }

    /// Closes the file once its readers are done, so that its space is freed.
    pub(super) fn forget(&self, location: &Path) {
        self.0.lock().expect("no one panics while holding the table").files.remove(location);
    }
}
