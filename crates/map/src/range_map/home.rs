//! Where a range of the service is: the server that owns it and the database that holds it.
//!
//! The two change apart from each other. A move hands a database from one server to the next and
//! leaves it where it is; a split and a merge make new databases.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::range::{Generation, RangeId, ServerId};

/// Names one database for good; its directory is `ranges/<range>-<generation>-<attempt>`.
///
/// The generation is the one for which the database was made. It stays in the name while moves
/// make later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseName {
    /// The range for which it was made.
    pub range: RangeId,
    /// The generation for which it was made.
    pub generation: Generation,
    /// Which try to make it. A try that came to nothing leaves its name behind, never to be used
    /// again: making a database in a directory where one was would keep what was there.
    pub attempt: u64,
}

/// Where a range of the service is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Home {
    /// Its owner.
    pub server: ServerId,
    /// What holds its rows.
    pub database: DatabaseName,
}

/// A text that is no name of a database.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is no database: one is named by range, generation and attempt, such as 7-3-1")]
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

    /// Takes what `Display` makes and nothing else: `07-3-1` names another directory.
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
