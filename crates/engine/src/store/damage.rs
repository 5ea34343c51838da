//! Damage: a file whose bytes are not what was written.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use slatedb_common::retry::NonRetryable;

use super::limits::DAMAGED_FILES_MAX;

/// Names a file whose bytes are not what was written, and says how that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// The file.
    pub file: PathBuf,
    /// How that is known.
    pub reason: Damage,
}

/// How it is known that the bytes of a file are not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// Something else has its name.
    #[error("it is not a file")]
    NotAFile,
    /// It is shorter than a seal.
    #[error("it has {0} bytes, fewer than the seal of a whole file")]
    Short(u64),
    /// It does not end in a seal.
    #[error("it has {0} bytes and does not end in a seal")]
    Unsealed(u64),
    /// The seal is damaged.
    #[error("its seal fails its own check")]
    Seal,
    /// A later release may know the seal.
    #[error("its seal is of the unknown kind {0}")]
    SealKind(u32),
    /// It was cut, or something was added.
    #[error("its seal tells of {0} bytes, but it holds {1}")]
    Length(u64, u64),
    /// The check of its last bytes fails.
    #[error("its last bytes are not what was written")]
    Tail,
    /// The check of all bytes fails.
    #[error("its bytes are not what was written")]
    Payload,
    /// It was cut while it was read.
    #[error("it became shorter while it was open")]
    Shrunk,
    /// The disk reports an error, by this number of the operating system.
    #[error("the disk cannot read it ({})", std::io::Error::from_raw_os_error(*.0))]
    Unreadable(i32),
    /// A file of the log is not there, and a later one is.
    #[error("it is missing from the log, which goes on with number {0}")]
    Missing(u64),
}

impl fmt::Display for DamagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the file {} is damaged: {}; restore the data from a backup, or the file if you have it",
            self.file.display(),
            self.reason
        )
    }
}

impl Error for DamagedFile {}

/// Finds the damaged file that caused an error of the engine or the store, if there is one.
pub fn damaged_file<'a>(mut error: &'a (dyn Error + 'static)) -> Option<&'a DamagedFile> {
    loop {
        if let Some(damaged) = error.downcast_ref::<DamagedFile>() {
            return Some(damaged);
        }
        // The source of an `io::Error` is not the error that it wraps, but the source of that error.
        error = match error.downcast_ref::<std::io::Error>() {
            Some(io) => io.get_ref()?,
            None => error.source()?,
        };
    }
}

/// The damaged files that were met since the store was opened. Clones share the list. Some errors of
/// SlateDB lose their cause on the way up, and the operator needs the name of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct DamageLog(Arc<Mutex<Vec<DamagedFile>>>);

impl DamageLog {
    /// Notes `file`, and makes an error that tells SlateDB to give up at once: a damaged file does not
    /// repair itself, and SlateDB would otherwise try again forever.
    pub(super) fn note(&self, file: &Path, reason: Damage) -> object_store::Error {
        let damaged = DamagedFile { file: file.to_owned(), reason };
        let mut known = self.0.lock().expect("no one panics while holding the list");
        if known.len() < DAMAGED_FILES_MAX && !known.contains(&damaged) {
            tracing::error!(file = %file.display(), reason = %damaged.reason, "damaged file");
            known.push(damaged.clone());
        }
        object_store::Error::Generic { store: "rangehold", source: Box::new(NonRetryable(Box::new(damaged))) }
    }

    pub(super) fn known(&self) -> Vec<DamagedFile> {
        self.0.lock().expect("no one panics while holding the list").clone()
    }
}
