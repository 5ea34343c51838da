//! The places of databases.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::limits::{DATABASE_BYTES_MAX, SERVER_CHARACTERS_MAX, SQLITE_PATH_BYTES_MAX};

/// The place of a database. It is stored in global maps, so it has no user and no password.
///
/// It is cheap to clone, because each connection has one.
///
/// Names of servers are compared without regard to case. Names of databases and paths are compared exactly, as
/// PostgreSQL and file systems do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    /// A PostgreSQL database.
    Postgres {
        /// The server's name or address, in lower case.
        server: Arc<str>,
        /// Its port.
        port: u16,
        /// The database's name.
        database: Arc<str>,
    },
    /// A SQLite file.
    Sqlite {
        /// The file's absolute path.
        path: Arc<str>,
    },
}

impl Location {
    /// A PostgreSQL database.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`] for an empty name, one with a control character, or one that is
    /// too long.
    pub fn postgres(server: &str, port: u16, database: &str) -> Result<Self, Error> {
        let bad = |name: &str| name.is_empty() || name.chars().any(char::is_control);
        if bad(server) || server.chars().count() > SERVER_CHARACTERS_MAX {
            return Err(Error::argument(format!("{server:?} names no server: give 1 to 128 characters")));
        }
        if bad(database) || database.len() > DATABASE_BYTES_MAX {
            return Err(Error::argument(format!("{database:?} names no database: give 1 to 63 bytes")));
        }
        Ok(Self::Postgres { server: server.to_lowercase().into(), port, database: database.into() })
    }

    /// A SQLite file. A path that is not absolute is taken from the present directory, and stored as an absolute one,
    /// because the next program may run in another directory.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`] for an empty path, one with a zero byte, or one that is too long.
    pub fn sqlite(path: &str) -> Result<Self, Error> {
        if path.is_empty() || path.contains('\0') || path.len() > SQLITE_PATH_BYTES_MAX {
            return Err(Error::argument(format!(
                "{path:?} is not a path of a database: give 1 to 1024 bytes"
            )));
        }
        let absolute = std::path::absolute(path).map_err(|error| {
            Error::argument(format!("{path:?} cannot be made an absolute path")).because(error)
        })?;
        // The length and the text were checked before, so the path is still a text.
        Ok(Self::Sqlite { path: absolute.to_string_lossy().into() })
    }

    /// The column `database` of this place in a map that an earlier version wrote: it did not make paths absolute.
    pub(crate) fn database_before(&self) -> &str {
        match self {
            Self::Postgres { database, .. } => database,
            Self::Sqlite { path } => {
                let here = std::env::current_dir().unwrap_or_default();
                let relative = std::path::Path::new(path.as_ref()).strip_prefix(here).ok();
                relative.and_then(std::path::Path::to_str).unwrap_or(path)
            }
        }
    }

    /// Reads `sqlite:PATH` or `postgres://SERVER[:PORT]/DATABASE`, as `Display` writes them.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`], also for a text with a user or a password.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let unreadable = || {
            Error::argument(format!(
                "{text:?} is not a location: write sqlite:PATH or postgres://SERVER:PORT/DATABASE"
            ))
        };
        if let Some(path) = text.strip_prefix("sqlite:") {
            return Self::sqlite(path);
        }
        if text.contains('@') {
            // The text is not shown, because it may hold a password.
            return Err(Error::argument("a place has no user and no password: give credentials apart"));
        }
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        let (authority, database) = rest.and_then(|rest| rest.split_once('/')).ok_or_else(unreadable)?;
        let (server, port) = match authority.rsplit_once(':') {
            // Colons inside brackets belong to the address.
            Some((server, port)) if !port.contains(']') => (server, port.parse().map_err(|_| unreadable())?),
            _ => (authority, 5432),
        };
        Self::postgres(server.trim_start_matches('[').trim_end_matches(']'), port, database)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres { server, port, database } if server.contains(':') => {
                write!(f, "postgres://[{server}]:{port}/{database}")
            }
            Self::Postgres { server, port, database } => write!(f, "postgres://{server}:{port}/{database}"),
            Self::Sqlite { path } => write!(f, "sqlite:{path}"),
        }
    }
}
