//! The format object: says by which rules a data directory was written.
//!
//! `rangehold-format.json` is in the directory as plain JSON, without a seal, so that every release, older
//! or newer, can read it even if everything else has changed:
//!
//! ```json
//! { "format": 1, "engine": "slatedb 0.18", "log": "journal", "files": "sealed" }
//! ```
//!
//! It is made once, when the directory is empty. Format 2 is the same with objects: before the first row of a bucket, an
//! object or a blob is written, the format object is replaced by one of format 2. So releases without objects open
//! directories that have only tables, and refuse the others. A release opens the formats up to its own. It does not
//! guess about a format that it does not know: it refuses it, and the error names the format. A directory
//! that has other files in it and no format object belongs to another program, and is not touched.
//!
//! While a copy is being written into a directory, the directory also holds [`COPY_MARK`]. The mark is
//! removed when the copy is whole. So no process ever opens an interrupted copy, which would show less and
//! older data.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::local::{JOURNAL, journal_is_new, make_journal};
use super::lock::LOCK_FILE;
use super::{StoreError, directory};

/// The name of the format object.
pub const FORMAT_FILE: &str = "rangehold-format.json";
/// The name of the mark of a copy that is not finished.
pub const COPY_MARK: &str = "COPYING";

/// The newest format that this release writes and reads: tables and objects.
pub const FORMAT: u32 = 2;
/// The format of a directory that has only tables.
const TABLES_ONLY: u32 = 1;
const ENGINE: &str = "slatedb 0.18";
const LOG: &str = "journal";
/// How earlier releases kept the log. A directory is noted to have a journal before the first record is written there.
const LOG_OF_FILES: &str = "objects";
const FILES: &str = "sealed";

/// What the format object says. A member that only a later format has is not lost here: this release
/// refuses the later format by its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// Grows with every change that older releases cannot read.
    pub format: u32,
    /// The storage engine below the ranges, with the version that sets its format.
    pub engine: String,
    /// How the log is kept: `journal`, many flushes in one file, or `objects`, one sealed file for each.
    pub log: String,
    /// How files are kept: `sealed`, each with a checksum at its end.
    pub files: String,
}

/// Why this release cannot open a format.
#[derive(Debug, Error)]
pub enum FormatError {
    /// The format object is damaged.
    #[error("{FORMAT_FILE} cannot be read ({0}); restore it from a backup")]
    Unreadable(#[from] serde_json::Error),
    /// A later release wrote it.
    #[error("it was written in format {0}; this program opens up to {FORMAT}; use a later release")]
    Later(u32),
    /// There was never such a format.
    #[error("there is no format {0}")]
    Unknown(u32),
    /// A member has another value than in every format that this release knows.
    #[error("its {member} is {found:?}; this program knows {known:?}; use the release that wrote it")]
    Other {
        /// The member.
        member: &'static str,
        /// Its value.
        found: String,
        /// The value that this release knows.
        known: String,
    },
}

impl Format {
    /// The format of a directory in which this release has written tables only.
    pub fn tables_only() -> Self {
        Self { format: TABLES_ONLY, engine: ENGINE.into(), log: LOG.into(), files: FILES.into() }
    }

    /// The format of a directory in which this release has written objects.
    pub fn with_objects() -> Self {
        Self { format: FORMAT, ..Self::tables_only() }
    }

    /// Whether the small files of logs are in a journal.
    pub(super) fn has_journal(&self) -> bool {
        self.log == LOG
    }

    /// Reads the text of a format object. Fails if this release cannot open the format. The number is checked first,
    /// since it is the only member that every later format is sure to have.
    fn parse(text: &[u8]) -> Result<Self, FormatError> {
        #[derive(Deserialize)]
        struct Number {
            format: u32,
        }
        let Number { format } = serde_json::from_slice(text)?;
        if format > FORMAT {
            return Err(FormatError::Later(format));
        }
        let found: Self = serde_json::from_slice(text)?;
        let known = Self::tables_only();
        for (member, found, known) in
            [("engine", &found.engine, &known.engine), ("files", &found.files, &known.files)]
        {
            if found != known {
                return Err(FormatError::Other { member, found: found.clone(), known: known.clone() });
            }
        }
        if ![LOG, LOG_OF_FILES].contains(&found.log.as_str()) {
            return Err(FormatError::Other { member: "log", found: found.log, known: known.log });
        }
        if !(TABLES_ONLY..=FORMAT).contains(&found.format) {
            return Err(FormatError::Unknown(found.format));
        }
        Ok(found)
    }
}

/// Checks the format object of `directory`, whose lock is held, or makes it if nothing else is
/// there.
pub(super) fn check_or_create(directory: &Path, fsync: bool) -> Result<Format, StoreError> {
    match check(directory)? {
        Some(format) if format.has_journal() => Ok(format),
        Some(format) => write_with_journal(directory, Format { log: LOG.into(), ..format }, fsync),
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
            .map_err(|source| StoreError::Format { directory: directory.to_owned(), source }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", &path, error)),
    }
}

/// Makes the format object of `directory`, in which nothing else may be.
pub(super) fn create(directory: &Path, fsync: bool) -> Result<Format, StoreError> {
    if let Some(foreign) = first_foreign_name(directory)? {
        return Err(StoreError::Foreign { directory: directory.to_owned(), found: foreign });
    }
    write_with_journal(directory, Format::tables_only(), fsync)
}

/// Makes a journal before the format object that tells of it.
fn write_with_journal(directory: &Path, format: Format, fsync: bool) -> Result<Format, StoreError> {
    make_journal(directory, fsync)
        .map_err(|source| StoreError::io("make a journal in", directory, source))?;
    write(directory, &format, fsync)?;
    Ok(format)
}

/// Replaces the format object of `directory`.
pub(super) fn write(directory: &Path, format: &Format, fsync: bool) -> Result<(), StoreError> {
    let mut text = serde_json::to_vec_pretty(format).expect("plain strings and a number");
    text.push(b'\n');
    write_plain(directory, FORMAT_FILE, &text, fsync)
}

/// Writes a file without a seal. Afterwards the whole file is there, or none.
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

/// The name of something in `directory` that this service did not put there before the format object. The
/// names that are ours include `lost+found`, which a file system keeps in its root, and what an interrupted
/// start left.
pub(super) fn first_foreign_name(directory: &Path) -> Result<Option<String>, StoreError> {
    let failed = |source| StoreError::io("read", directory, source);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let staging = [format!("{FORMAT_FILE}#0"), format!("{COPY_MARK}#0")];
        let ours = [LOCK_FILE, COPY_MARK, "lost+found", &staging[0], &staging[1]];
        let is_new_journal = name == JOURNAL && journal_is_new(directory).unwrap_or(false);
        if !is_new_journal && !ours.iter().any(|known| name == **known) {
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
        let refused = |text: &str| Format::parse(text.as_bytes()).expect_err("must be refused").to_string();
        assert!(
            refused(r#"{"format":3,"news":[]}"#).contains("written in format 3; this program opens up to 2")
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
        assert_eq!(made, Format::tables_only());
        assert_eq!(check_or_create(directory.path(), true).unwrap(), made);
        fs::write(directory.path().join("other"), "").unwrap();
        assert_eq!(check_or_create(directory.path(), true).unwrap(), made);
        write(directory.path(), &Format::with_objects(), true).unwrap();
        assert_eq!(check_or_create(directory.path(), true).unwrap(), Format::with_objects());
        fs::remove_file(directory.path().join(FORMAT_FILE)).unwrap();
        let refused = check_or_create(directory.path(), true).unwrap_err().to_string();
        assert!(refused.contains("other"), "{refused}");
    }
}
