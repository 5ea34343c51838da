//! The format object: by which rules a data directory was written.
//!
//! `rangehold-format.json` stands in the directory in plain JSON, without a seal, so that every
//! release, older or newer, can read it whatever else has changed:
//!
//! ```json
//! { "format": 1, "engine": "slatedb 0.18", "log": "objects", "files": "sealed" }
//! ```
//!
//! It is made once, when the directory is empty. A release opens the formats up to its own; what it
//! does not know it refuses by name rather than guess. A directory with other things in it and no
//! format object is somebody else's, and is left alone.
//!
//! While a copy is being written into a directory, it also holds [`COPY_MARK`]. The mark goes when
//! the copy is whole, so a copy that was interrupted is never opened for a smaller, older truth.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::lock::LOCK_FILE;
use super::{StoreError, directory};

/// Name of the format object.
pub const FORMAT_FILE: &str = "rangehold-format.json";
/// Name of the mark of a copy that is not finished.
pub const COPY_MARK: &str = "COPYING";

/// The newest format this release writes and reads.
pub const FORMAT: u32 = 1;
const ENGINE: &str = "slatedb 0.18";
const LOG: &str = "objects";
const FILES: &str = "sealed";

/// What the format object says. Members that a later format adds are not lost on this one: it
/// refuses the later format by its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// Counts up with every change that older releases cannot read.
    pub format: u32,
    /// The storage engine below the ranges, with the version that sets its format.
    pub engine: String,
    /// How the log is kept: `objects`, one sealed file per flush.
    pub log: String,
    /// How files are kept: `sealed`, each with its check at its end.
    pub files: String,
}

impl Format {
    /// What this release writes.
    pub fn current() -> Self {
        Self { format: FORMAT, engine: ENGINE.into(), log: LOG.into(), files: FILES.into() }
    }

    /// Reads the text of a format object. Fails, with the reason in words, on one that this release
    /// cannot open. The number is judged before the rest is looked at, since only it is promised
    /// to be there in every later format.
    fn parse(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Number {
            format: u32,
        }
        let unreadable = |error| format!("{FORMAT_FILE} cannot be read ({error}); restore it from a backup");
        let Number { format } = serde_json::from_slice(text).map_err(unreadable)?;
        if format > FORMAT {
            return Err(format!(
                "it was written in format {format}; this program opens up to {FORMAT}; use a later release"
            ));
        }
        let found: Self = serde_json::from_slice(text).map_err(unreadable)?;
        let known = Self::current();
        for (member, found, known) in [
            ("engine", &found.engine, &known.engine),
            ("log", &found.log, &known.log),
            ("files", &found.files, &known.files),
        ] {
            if found != known {
                return Err(format!(
                    "its {member} is {found:?}; this program knows {known:?}; use the release that wrote it"
                ));
            }
        }
        if found.format != FORMAT {
            return Err(format!("there is no format {}", found.format));
        }
        Ok(found)
    }
}

/// Checks the format object of `directory`, whose lock is held, or makes it if nothing else is
/// there.
pub(super) fn check_or_create(directory: &Path, fsync: bool) -> Result<Format, StoreError> {
    match check(directory)? {
        Some(format) => Ok(format),
        None => create(directory, fsync),
    }
}

/// Checks the format object of `directory`; `None` if there is none.
pub(super) fn check(directory: &Path) -> Result<Option<Format>, StoreError> {
    if directory.join(COPY_MARK).exists() {
        return Err(StoreError::UnfinishedCopy { directory: directory.to_owned() });
    }
    let path = directory.join(FORMAT_FILE);
    match fs::read(&path) {
        Ok(text) => Format::parse(&text)
            .map(Some)
            .map_err(|reason| StoreError::Format { directory: directory.to_owned(), reason }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", &path, error)),
    }
}

/// Makes the format object of `directory`, in which nothing else may be.
pub(super) fn create(directory: &Path, fsync: bool) -> Result<Format, StoreError> {
    if let Some(foreign) = first_foreign_name(directory)? {
        return Err(StoreError::Foreign { directory: directory.to_owned(), found: foreign });
    }
    let format = Format::current();
    let mut text = serde_json::to_vec_pretty(&format).expect("plain strings and a number");
    text.push(b'\n');
    write_plain(directory, FORMAT_FILE, &text, fsync)?;
    Ok(format)
}

/// Writes a file without a seal so that it is there whole or not at all.
pub(super) fn write_plain(directory: &Path, name: &str, text: &[u8], fsync: bool) -> Result<(), StoreError> {
    let path = directory.join(name);
    let staging = directory.join(format!("{name}#0"));
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&staging)?;
        file.write_all(text)?;
        if fsync {
            file.sync_all()?;
        }
        fs::rename(&staging, &path)?;
        if fsync { directory::sync(directory) } else { Ok(()) }
    };
    write().map_err(|source| StoreError::io("write", &path, source))
}

/// Something in `directory` that this service did not put there before its format object. A file
/// system keeps `lost+found` in its root, and a start may have been interrupted before.
pub(super) fn first_foreign_name(directory: &Path) -> Result<Option<String>, StoreError> {
    let failed = |source| StoreError::io("read", directory, source);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let staging = [format!("{FORMAT_FILE}#0"), format!("{COPY_MARK}#0")];
        let ours = [LOCK_FILE, COPY_MARK, "lost+found", &staging[0], &staging[1]];
        if !ours.iter().any(|known| name == **known) {
            return Ok(Some(name.to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_that_are_refused_by_name() {
        let refused = |text: &str| Format::parse(text.as_bytes()).expect_err("must be refused");
        assert!(
            refused(r#"{"format":2,"news":[]}"#).contains("written in format 2; this program opens up to 1")
        );
        let other = r#"{"format":1,"engine":"slatedb 0.19","log":"objects","files":"sealed"}"#;
        assert!(refused(other).contains(r#"its engine is "slatedb 0.19""#));
        let other = r#"{"format":1,"engine":"slatedb 0.18","log":"append","files":"sealed"}"#;
        assert!(refused(other).contains(r#"its log is "append""#));
        assert!(refused("").contains("cannot be read"));
        assert!(refused(r#"{"format":1}"#).contains("cannot be read"));
        let zero = r#"{"format":0,"engine":"slatedb 0.18","log":"objects","files":"sealed"}"#;
        assert!(refused(zero).contains("no format 0"));
    }

    #[test]
    fn made_once_and_read_back() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("lost+found")).unwrap();
        let made = check_or_create(directory.path(), true).unwrap();
        assert_eq!(made, Format::current());
        assert_eq!(check_or_create(directory.path(), true).unwrap(), made);
        fs::write(directory.path().join("other"), "").unwrap();
        assert_eq!(check_or_create(directory.path(), true).unwrap(), made);
        fs::remove_file(directory.path().join(FORMAT_FILE)).unwrap();
        let refused = check_or_create(directory.path(), true).unwrap_err().to_string();
        assert!(refused.contains("other"), "{refused}");
    }
}
