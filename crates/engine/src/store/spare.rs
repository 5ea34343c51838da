//! The spare file: space that is kept so that a server can start on a full disk.
//!
//! An opening writes files: a lease, and for each range a fence and a manifest. With no byte free it would fail, and
//! nothing could be read or dropped. So a file of [`SPARE_BYTES`] lies in the data directory. A start that finds less
//! than that free removes it before it writes anything. It is made again when the disk is not low any more.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::directory::remove_if_there;
use super::limits::SPARE_BYTES;

/// The file's name in the data directory.
const SPARE_FILE: &str = "spare";

/// Removes the spare file, and says whether there was one.
pub(super) fn release(directory: &Path) -> io::Result<bool> {
    remove_if_there(&directory.join(SPARE_FILE))
}

/// Makes the spare file, unless it is there in full. It need not survive a loss of power: the next start makes it again.
pub(super) fn make(directory: &Path) -> io::Result<()> {
    let path = directory.join(SPARE_FILE);
    if fs::metadata(&path).is_ok_and(|found| found.len() >= SPARE_BYTES) {
        return Ok(());
    }
    let written = write(&path);
    if written.is_err() {
        // A part of it would take space, and would not be enough for a start.
        let _removed = fs::remove_file(&path);
    }
    written
}

/// Bytes are written, since a file that only has a length takes no space.
fn write(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    let piece = [0_u8; 64 << 10];
    let mut left = SPARE_BYTES as usize;
    while left > 0 {
        let length = left.min(piece.len());
        file.write_all(&piece[..length])?;
        left -= length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_space_until_it_is_released() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!release(directory.path()).unwrap());
        fs::write(directory.path().join(SPARE_FILE), "a part").unwrap();
        make(directory.path()).unwrap();
        assert_eq!(fs::metadata(directory.path().join(SPARE_FILE)).unwrap().len(), SPARE_BYTES);
        assert!(release(directory.path()).unwrap());
        assert!(fs::read_dir(directory.path()).unwrap().next().is_none());
    }
}
