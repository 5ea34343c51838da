//! What can go wrong with a query over many shards.

use std::fmt;
use std::time::Duration;

use crate::error::Error;
use crate::location::Location;
use crate::store::StoreError;

/// An error of a query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The shard map could not be read, the query cannot be run, or a cell was read as another type.
    #[error(transparent)]
    Map(#[from] Error),
    /// Shards failed. If results must be complete, only the first one that failed; otherwise all of them.
    #[error("{} of {asked} shards failed; {}", .failures.len(), first(.failures))]
    Shards {
        /// Each shard that failed, with its reason.
        failures: Vec<ShardFailure>,
        /// How many shards were asked.
        asked: usize,
    },
    /// The whole query took too long.
    #[error("the query took longer than {within:?}")]
    TimedOut {
        /// The time that it had.
        within: Duration,
    },
}

/// A shard that did not give all its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardFailure {
    /// Its place.
    pub location: Location,
    /// Why it failed.
    pub why: Why,
    /// How many of its rows were returned before it failed.
    pub rows: u64,
}

/// Why a shard failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It could not be reached, or it refused the statement.
    Refused {
        /// What the shard says.
        message: String,
        /// Whether the same query may succeed in a moment.
        may_pass: bool,
    },
    /// It did not answer in time.
    TimedOut(Duration),
    /// Its rows have other columns than those of the shard that answered first.
    OtherColumns {
        /// The columns of that first shard, each as `name type`.
        expected: Vec<String>,
        /// The columns of this shard.
        found: Vec<String>,
    },
    /// The map has no shard there, or the database there does not know the map.
    NoShard,
}

impl QueryError {
    /// Whether the same query may succeed in a moment.
    pub fn retry(&self) -> bool {
        match self {
            Self::Map(error) => error.retry(),
            Self::TimedOut { .. } => true,
            Self::Shards { failures, .. } => failures.iter().all(|failure| {
                matches!(&failure.why, Why::TimedOut(_) | Why::Refused { may_pass: true, .. })
            }),
        }
    }
}

impl ShardFailure {
    pub(super) fn of_store(location: &Location, error: &StoreError) -> Self {
        let why = Why::Refused { message: error.message.clone(), may_pass: error.may_pass() };
        Self { location: location.clone(), why, rows: 0 }
    }
}

impl fmt::Display for ShardFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.location)?;
        match &self.why {
            Why::Refused { message, .. } => f.write_str(message),
            Why::TimedOut(within) => write!(f, "no answer within {within:?}"),
            Why::OtherColumns { expected, found } => {
                write!(f, "it has columns ({}), others ({})", found.join(", "), expected.join(", "))
            }
            Why::NoShard => f.write_str("the shard map has no shard there"),
        }
    }
}

fn first(failures: &[ShardFailure]) -> String {
    failures.first().map(ShardFailure::to_string).unwrap_or_default()
}
