//! One segment: records one after the other, in a file or in memory.
//!
//! ```text
//!   head     "RHHIST01"
//!   record   length of the payload (4 bytes), CRC-32 of the payload (4 bytes), payload
//! ```
//!
//! Numbers are little-endian. A record that is incomplete, or whose check is wrong, ends the segment, because it is
//! not known where the next record begins.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rangehold_map::history::{Boundaries, Column, Record};
use tracing::warn;

const HEAD: &[u8; 8] = b"RHHIST01";
/// Bytes of a frame, which comes before each payload.
const FRAME_BYTES: usize = 8;
/// The most bytes of one payload. The largest axis with the longest keys has fewer.
const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// The place of the bytes of a segment.
#[derive(Debug)]
pub(super) enum Body {
    /// In memory, until the process ends.
    Memory(Vec<u8>),
    /// In this file.
    File(PathBuf),
}

/// The content of a segment.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Its columns, in the order in which they were written.
    pub(super) columns: Vec<Column>,
    /// Its last axis.
    pub(super) axis: Option<Arc<Boundaries>>,
    /// Bytes up to the end of the last whole record.
    pub(super) whole: usize,
}

impl Body {
    /// A new segment, with its head.
    pub(super) fn create(path: Option<PathBuf>) -> io::Result<Self> {
        match path {
            None => Ok(Self::Memory(HEAD.to_vec())),
            Some(path) => {
                OpenOptions::new().write(true).create_new(true).open(&path)?.write_all(HEAD)?;
                Ok(Self::File(path))
            }
        }
    }

    /// Adds records in frames. If the disk refuses them, a part of them may have been written. It counts as a torn
    /// end.
    pub(super) fn append(&mut self, framed: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(bytes) => bytes.extend_from_slice(framed),
            Self::File(path) => OpenOptions::new().append(true).open(path)?.write_all(framed)?,
        }
        Ok(())
    }

    /// Waits until the segment and its name are on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        if let Self::File(path) = self {
            File::open(path)?.sync_data()?;
            if let Some(directory) = path.parent() {
                File::open(directory)?.sync_all()?;
            }
        }
        Ok(())
    }

    /// Deletes the segment, and so frees its space.
    pub(super) fn delete(self) {
        if let Self::File(path) = self
            && let Err(error) = fs::remove_file(&path)
        {
            warn!(path = %path.display(), %error, "a segment of the history could not be deleted");
        }
    }

    /// Reads its content.
    pub(super) fn read(&self) -> io::Result<Found> {
        match self {
            Self::Memory(bytes) => Ok(read(bytes)),
            Self::File(path) => Ok(read(&fs::read(path)?)),
        }
    }
}

/// Bytes of the head.
pub(super) const HEAD_BYTES: u64 = HEAD.len() as u64;

/// Puts a payload into its frame.
pub(super) fn frame(out: &mut Vec<u8>, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    out.extend_from_slice(payload);
}

fn read(bytes: &[u8]) -> Found {
    let mut found = Found::default();
    if !bytes.starts_with(HEAD) {
        return found;
    }
    found.whole = HEAD.len();
    while let Some(payload) = next(&bytes[found.whole..]) {
        match Record::decode(payload) {
            Ok(Record::Axis(axis)) => found.axis = Some(Arc::new(axis)),
            Ok(Record::Column { at, cells }) => match &found.axis {
                Some(axis) => found.columns.push(Column { at, axis: Arc::clone(axis), cells }),
                None => return found,
            },
            Err(_) => return found,
        }
        found.whole += FRAME_BYTES + payload.len();
    }
    found
}

fn next(bytes: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (length, check) = (number(0)? as usize, number(4)?);
    let payload = bytes.get(FRAME_BYTES..FRAME_BYTES.checked_add(length)?)?;
    (length <= PAYLOAD_BYTES_MAX && crc32fast::hash(payload) == check).then_some(payload)
}

/// Cuts off everything after the last whole record of a file.
pub(super) fn cut_tail(path: &Path, whole: usize) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(whole as u64)?;
    file.sync_all()
}
