//! One row of a query over many shards.

use std::sync::Arc;

use crate::error::Error;
use crate::location::Location;
use crate::store::{Cell, FromCell};

/// A row, and the shard that it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryRow {
    shard: Arc<Location>,
    version: i64,
    columns: Arc<Vec<String>>,
    cells: Vec<Cell>,
}

impl QueryRow {
    pub(super) fn new(
        shard: Arc<Location>,
        version: i64,
        columns: Arc<Vec<String>>,
        cells: Vec<Cell>,
    ) -> Self {
        Self { shard, version, columns, cells }
    }

    /// The shard that the row came from.
    pub fn shard(&self) -> &Location {
        &self.shard
    }

    /// The version of the map in that shard when the row was read: it grows with each change there.
    pub fn map_version(&self) -> i64 {
        self.version
    }

    /// The names of its columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| name(column))
    }

    /// Its values, in the order of the columns.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The value in a column, as a Rust type. If two columns have this name, the value of the first one.
    ///
    /// # Errors
    ///
    /// [`crate::Code::InvalidArgument`] if there is no such column, or if it holds another type.
    pub fn get<T: FromCell>(&self, column: &str) -> Result<T, Error> {
        let found = self.columns().position(|found| found == column);
        let cell = found.and_then(|index| self.cells.get(index));
        let missing = || {
            let columns: Vec<&str> = self.columns().collect();
            Error::argument(format!("there is no column {column:?}: there are {}", columns.join(", ")))
        };
        cell.ok_or_else(missing)?.to()
    }
}

/// The name of a column, which is kept with a tab and its type behind it. Columns of SQLite have no type, and nothing
/// follows their names.
fn name(column: &str) -> &str {
    column.rsplit_once('\t').map_or(column, |(name, _)| name)
}
