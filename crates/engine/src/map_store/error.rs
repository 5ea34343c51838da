//! Why the stored map could not be read or changed.

use std::fmt;

use rangehold_map::{Finding, NotADatabaseName, RangeId};
use thiserror::Error;

use crate::store::ObjectError;

/// Why the stored map could not be read or changed.
#[derive(Debug, Error)]
pub enum MapError {
    /// The store failed. Asking again may help; if a version was to be stored, it is not known whether it was.
    #[error(transparent)]
    Store(#[from] ObjectError),
    /// No map was ever stored.
    #[error("the store has no map of ranges yet")]
    None,
    /// The stored map is not a valid map.
    #[error("{object} is not a map of ranges: {why}")]
    Bad {
        /// The object's name.
        object: String,
        /// What is wrong with it.
        #[source]
        why: BadMap,
    },
    /// A version of the map that breaks the rules of maps was about to be stored. It was not stored, since
    /// no process could have opened the store after that.
    #[error(
        "version {version} of the map of ranges was not stored, because {findings}: this is a bug in Rangehold; the \
         map in the store is unchanged"
    )]
    Unsound {
        /// The version that was about to be stored.
        version: u64,
        /// The rules that it breaks.
        findings: Findings,
    },
}

/// What is wrong with the bytes of a stored map.
#[derive(Debug, Error)]
pub enum BadMap {
    /// It is not JSON, or has not the members of a map.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A later release wrote it.
    #[error("it has format {found}, and this program reads up to {known}: use a later release")]
    Format {
        /// Its format.
        found: u32,
        /// The greatest format that this program reads.
        known: u32,
    },
    /// Its name has another number than it has itself.
    #[error("it says that it is version {0}")]
    Version(u64),
    /// A key is not in hexadecimal.
    #[error("{0:?} is not a key in hexadecimal")]
    Key(String),
    /// A range has a database with a malformed name.
    #[error("{range}: {source}")]
    Database {
        /// The range.
        range: RangeId,
        /// What is wrong with the name.
        source: NotADatabaseName,
    },
    /// A range has no database.
    #[error("{0} has no database")]
    NoDatabase(RangeId),
    /// It breaks rules of maps.
    #[error("{0}")]
    Rules(Findings),
}

/// The rules that a map breaks, at least one.
#[derive(Debug)]
pub struct Findings(pub Vec<Finding>);

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.0.iter().enumerate() {
            write!(f, "{}{finding}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}
