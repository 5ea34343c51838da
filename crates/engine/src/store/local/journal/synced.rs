//! The file `synced`: how far the newest segment was synced.
//!
//! It is written after each sync and is never synced itself, so it costs a microsecond. It never tells too much. After a crash of the
//! process it tells of all that was acknowledged; after a loss of power it may be older, and tell less than the records do.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::super::directory::remove_if_there;

const NAME: &str = "synced";

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct SyncedFile(File);

impl SyncedFile {
    /// Makes it in the directory of the journal. A process that was shut out may still have the one before.
    pub(super) fn make(directory: &Path) -> io::Result<Self> {
        let path = directory.join(NAME);
        remove_if_there(&path)?;
        Ok(Self(OpenOptions::new().write(true).create_new(true).open(path)?))
    }

    /// Notes that the segment of this life was synced up to an offset. An error is of no importance: the file tells less then.
    pub(super) fn write(&self, life: u64, until: u64) {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&life.to_be_bytes());
        bytes[8..16].copy_from_slice(&until.to_be_bytes());
        let check = crc32fast::hash(&bytes[..16]);
        bytes[16..].copy_from_slice(&check.to_be_bytes());
        let _ = self.0.write_all_at(&bytes, 0);
    }
}

/// How far the segment of this life was synced, as far as the file in `directory` tells; else 0.
pub(super) fn read(directory: &Path, life: u64) -> u64 {
    let Ok(bytes) = fs::read(directory.join(NAME)) else { return 0 };
    let Some(bytes) = bytes.first_chunk::<20>() else { return 0 };
    let number_at = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let check = u32::from_be_bytes(bytes[16..].try_into().expect("four bytes"));
    if check == crc32fast::hash(&bytes[..16]) && number_at(0) == life { number_at(8) } else { 0 }
}
