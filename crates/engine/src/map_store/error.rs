//! Why the stored map could not be read or changed.

use object_store::path::Path;
use rangehold_map::{Finding, NotADatabaseName, RangeId};
use thiserror::Error;

use super::FORMAT;
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
    #[error("{0} is not a map of ranges: {1}")]
    Bad(Path, #[source] BadMap),
    /// A version of the map that breaks the rules of maps was about to be stored. It was not stored, since
    /// no process could have opened the store after that.
    #[error(
        "version {0} of the map of ranges was not stored, because {findings}: this is a bug in Rangehold; the map in \
         the store is unchanged",
        findings = listed(.1)
    )]
    Unsound(u64, Vec<Finding>),
}

/// What is wrong with the bytes of a stored map.
#[derive(Debug, Error)]
pub enum BadMap {
    /// It is not JSON, or has not the members of a map.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A later release wrote it.
    #[error("it has format {0}, and this program reads up to {FORMAT}: use a later release")]
    Format(u32),
    /// Its version is not the number in the name of its object.
    #[error("it says that it is version {0}")]
    Version(u64),
    /// A key is not in hexadecimal.
    #[error("{0:?} is not a key in hexadecimal")]
    Key(String),
    /// A range has a database with a malformed name.
    #[error("{0}: {1}")]
    Database(RangeId, #[source] NotADatabaseName),
    /// A range has no database.
    #[error("{0} has no database")]
    NoDatabase(RangeId),
    /// It breaks rules of maps.
    #[error("{}", listed(.0))]
    Rules(Vec<Finding>),
}

fn listed(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
