//! The directory of the owner, by which one process at a time has the journal.
//!
//! All segments are in `journal/<epoch>/`. An opening takes the journal over by giving this directory the next number. That is one
//! step of the file system: of two openings at one time, one fails and looks again. The process from before no longer finds its
//! directory, so it can neither make, rename nor remove a segment, and it acknowledges no record, since it looks after each
//! sync whether its segment still has its name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::super::directory;
use super::super::super::limits::JOURNAL_TAKE_OVERS_MAX;
use super::JOURNAL;

/// Makes the directories of a new journal in the store at `root`, durably.
pub(super) fn make(root: &Path, fsync: bool) -> io::Result<()> {
    let journal = root.join(JOURNAL);
    fs::create_dir_all(&journal)?;
    if newest(&journal)?.is_none() {
        fs::create_dir_all(journal.join("1"))?;
    }
    if fsync {
        directory::sync(&journal)?;
        directory::sync(root)?;
    }
    Ok(())
}

/// Takes the journal over, durably. Returns the directory.
pub(super) fn take_over(root: &Path, fsync: bool) -> io::Result<PathBuf> {
    let journal = root.join(JOURNAL);
    for _ in 0..JOURNAL_TAKE_OVERS_MAX {
        let epoch = newest(&journal)?.ok_or_else(missing)?;
        let mine = journal.join((epoch + 1).to_string());
        match fs::rename(journal.join(epoch.to_string()), &mine) {
            // Another opening was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(()) => {
                if fsync {
                    directory::sync(&journal)?;
                }
                return Ok(mine);
            }
        }
    }
    Err(io::Error::other("other processes take over the journal again and again"))
}

/// The directory of the owner as it is now called.
pub(super) fn find(root: &Path) -> io::Result<PathBuf> {
    let journal = root.join(JOURNAL);
    let epoch = newest(&journal)?.ok_or_else(missing)?;
    Ok(journal.join(epoch.to_string()))
}

fn newest(journal: &Path) -> io::Result<Option<u64>> {
    let mut newest = None;
    let entries = match fs::read_dir(journal) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        let epoch =
            name.to_str().and_then(|name| name.parse::<u64>().ok().filter(|epoch| epoch.to_string() == name));
        newest = newest.max(epoch.filter(|epoch| *epoch < u64::MAX));
    }
    Ok(newest)
}

/// Whether the journal in the store at `root` was made and never used.
pub(super) fn is_new(root: &Path) -> io::Result<bool> {
    let names = |directory: &Path| -> io::Result<Vec<_>> {
        fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
    };
    let journal = root.join(JOURNAL);
    let inside = names(&journal)?;
    Ok(inside.is_empty() || (inside == ["1"] && names(&journal.join("1"))?.is_empty()))
}

/// Not of the kind `NotFound`: a database takes that for the end of its log, and would open without its last rows.
fn missing() -> io::Error {
    io::Error::other("the directory of the journal is missing; restore it from a backup")
}
