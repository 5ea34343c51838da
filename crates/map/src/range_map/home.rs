//! Where a range of the service is: the server that owns it and the database that holds it.
//!
//! A move changes the server and keeps the database. A split and a merge make new databases.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::range::{Generation, RangeId, ServerId};

/// Names one database. Its directory is `ranges/<range>-<generation>-<attempt>`.
///
/// The name never changes, although a move gives the range a later generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseName {
    /// The range for which it was made.
    pub range: RangeId,
    /// The generation for which it was made.
    pub generation: Generation,
    /// Counts the attempts to make it. The name of a failed attempt is not used again, because a database that
    /// is made in a used directory would keep what the directory holds.
    pub attempt: u64,
}

/// Where a range of the service is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Home {
    /// Its owner.
    pub server: ServerId,
    /// The database that holds its rows.
    pub database: DatabaseName,
}

/// A text that is not the name of a database.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not the name of a database: write range, generation and attempt, such as 7-3-1")]
pub struct NotADatabaseName {
    /// The text.
    pub text: String,
}

impl fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.range.0, self.generation, self.attempt)
    }
}

impl FromStr for DatabaseName {
    type Err = NotADatabaseName;

    /// Accepts only what `Display` writes: `07-3-1` would be another directory.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut numbers = text.split('-').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        let name = match (next(), next(), next()) {
            (Some(range), Some(generation), Some(attempt)) => {
                Some(Self { range: RangeId(range), generation: Generation(generation), attempt })
            }
            _ => None,
        };
        name.filter(|name| name.to_string() == text).ok_or_else(|| NotADatabaseName { text: text.to_owned() })
    }
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.database, self.server)
    }
}
