//! What can go wrong on a routed connection, and whether to try again.

use tokio_postgres::error::SqlState;

use crate::error::Error;
use crate::location::Location;

/// The codes that the fence raises. Their reasons are in `fence.sql`.
pub mod sqlstate {
    /// The key is not in this database.
    pub const NOT_HERE: &str = "RH001";
    /// The key's mapping is offline.
    pub const OFFLINE: &str = "RH002";
    /// There is no such shard map in this database.
    pub const UNKNOWN_MAP: &str = "RH003";
    /// The map's keys are of another type.
    pub const KEY_TYPE: &str = "RH004";
    /// The key's mapping changed again and again.
    pub const RESTLESS: &str = "RH005";
    /// A guarded table cannot be truncated.
    pub const TRUNCATE: &str = "RH006";
}

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// The same request will fail again.
    Never,
    /// Nothing was committed. Run the whole transaction again, after a pause.
    Again,
    /// The connection broke while the transaction was being committed. Find out whether it was committed, and then
    /// decide.
    LookFirst,
}

/// An error of a routed connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoutingError {
    /// The key could not be looked up, or has no mapping.
    #[error(transparent)]
    Map(#[from] Error),
    /// The shard was reached and does not have the key, and the global map does not name another place.
    #[error("{location} does not hold the key, and the global map names no other place")]
    NotHere {
        /// The shard.
        location: Location,
        /// What the shard said. SQLite says nothing.
        source: Option<tokio_postgres::Error>,
    },
    /// The key's mapping is offline, for example because its rows are being moved.
    #[error("the mapping of the key is offline at {location}")]
    Offline {
        /// The shard.
        location: Location,
        /// What the shard said. SQLite says nothing.
        source: Option<tokio_postgres::Error>,
    },
    /// The server undid the transaction because of other transactions: a serialization failure (40001), a deadlock,
    /// or a mapping that changed again and again.
    #[error("the transaction met another one at {location}")]
    Conflict {
        /// The shard.
        location: Location,
        /// What it said.
        source: tokio_postgres::Error,
    },
    /// The transaction was ended from outside. This happens when its keys go offline.
    #[error("the transaction was ended at {location}")]
    Ended {
        /// The shard.
        location: Location,
        /// What it said.
        source: tokio_postgres::Error,
    },
    /// No connection could be made.
    #[error("{location} can't be reached")]
    Unreachable {
        /// The shard.
        location: Location,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection broke before the commit of the transaction began.
    #[error("the connection to {location} broke")]
    Lost {
        /// The shard.
        location: Location,
        /// Why.
        source: tokio_postgres::Error,
    },
    /// The connection broke while the transaction was being committed.
    #[error("the connection to {location} broke during the commit: it may have been done or not")]
    OutcomeUnknown {
        /// The shard.
        location: Location,
        /// Why.
        source: tokio_postgres::Error,
    },
    /// The transaction is over or has failed. One of its statements failed, or ended it (`COMMIT`, `ROLLBACK`), or
    /// was given up before its answer came.
    #[error(
        "the transaction at {location} can't go on: an earlier statement failed, ended it or was given up"
    )]
    Spent {
        /// The shard.
        location: Location,
    },
    /// The statement itself is refused.
    #[error("{location} refused the statement")]
    Database {
        /// The shard.
        location: Location,
        /// What it said.
        source: tokio_postgres::Error,
    },
    /// SQLite refused the statement, or could not open the file.
    #[error("{location} refused")]
    Sqlite {
        /// The shard.
        location: Location,
        /// What it said.
        source: rusqlite::Error,
    },
}

impl RoutingError {
    /// What the caller can do about the error.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Map(error) if error.retry() => Retry::Again,
            Self::Map(_) | Self::Spent { .. } | Self::Database { .. } => Retry::Never,
            Self::Unreachable { source, .. } if is_refusal(source.as_ref()) => Retry::Never,
            Self::NotHere { .. }
            | Self::Offline { .. }
            | Self::Conflict { .. }
            | Self::Ended { .. }
            | Self::Unreachable { .. }
            | Self::Lost { .. } => Retry::Again,
            Self::OutcomeUnknown { .. } => Retry::LookFirst,
            Self::Sqlite { source, .. } => match source.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => Retry::Again,
                _ => Retry::Never,
            },
        }
    }

    /// The five characters by which the server names the error, if a PostgreSQL server sent one.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Conflict { source, .. }
            | Self::Ended { source, .. }
            | Self::Lost { source, .. }
            | Self::OutcomeUnknown { source, .. }
            | Self::Database { source, .. }
            | Self::NotHere { source: Some(source), .. }
            | Self::Offline { source: Some(source), .. } => source.code().map(SqlState::code),
            _ => None,
        }
    }

    /// What an error of the driver means. `committing` says whether a commit was under way.
    pub(super) fn of_driver(location: &Location, source: tokio_postgres::Error, committing: bool) -> Self {
        let location = location.clone();
        // The driver's own refusals, for example of a parameter of a wrong type, have no code, and the connection
        // goes on.
        let Some(code) = source.code() else {
            return match (source.is_closed() || is_io(&source), committing) {
                (true, true) => Self::OutcomeUnknown { location, source },
                (true, false) => Self::Lost { location, source },
                (false, _) => Self::Database { location, source },
            };
        };
        match code.code() {
            sqlstate::NOT_HERE | sqlstate::UNKNOWN_MAP => Self::NotHere { location, source: Some(source) },
            sqlstate::OFFLINE => Self::Offline { location, source: Some(source) },
            // serialization failure, deadlock, lock not available
            sqlstate::RESTLESS | "40001" | "40P01" | "55P03" => Self::Conflict { location, source },
            // query canceled, idle in transaction too long
            "57014" | "25P03" => Self::Ended { location, source },
            // shutdown by an administrator, after a crash, and before the server is up again
            "57P01" | "57P02" | "57P03" if committing => Self::OutcomeUnknown { location, source },
            "57P01" | "57P02" | "57P03" => Self::Ended { location, source },
            // connection exceptions, which poolers send too
            other if other.starts_with("08") && committing => Self::OutcomeUnknown { location, source },
            other if other.starts_with("08") => Self::Lost { location, source },
            "25P02" => Self::Spent { location },
            _ => Self::Database { location, source },
        }
    }
}

/// Whether a server was reached and refuses to let us in, because of the credentials or because there is no such
/// database.
fn is_refusal(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let code = error.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::code);
    code.is_some_and(|code| ["28", "3D", "42"].iter().any(|class| code.code().starts_with(class)))
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}
