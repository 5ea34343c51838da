//! Rows one by one, as the server sends them.

use std::sync::Arc;

use tokio_postgres::RowStream;
use tokio_postgres::types::Type;

use super::{PostgresDatabase, PostgresTx};
use crate::store::{Brake, Stop, StoreError};
use crate::store::{Cell, Line};

impl PostgresTx {
    pub(crate) async fn stream(&self, sql: &str, parameters: &[Cell]) -> Result<RowStream, StoreError> {
        let typed: Vec<(Cell, Type)> =
            parameters.iter().map(|cell| (cell.clone(), cell.postgres_type())).collect();
        let rows = self.client()?.query_typed_raw(sql, typed).await;
        rows.map_err(|error| self.database.failed(&error))
    }

    pub(crate) fn brake(&self) -> Brake {
        Brake::new(
            self.client.as_ref().map(|client| Stop {
                token: client.cancel_token(),
                connector: self.database.connector.clone(),
            }),
        )
    }

    /// The database of this transaction, to which its rows belong.
    pub(crate) fn database(&self) -> &PostgresDatabase {
        &self.database
    }
}

impl PostgresDatabase {
    /// A row as cells. The names of the columns are taken from the first row.
    pub(crate) fn cells(
        &self,
        row: Result<tokio_postgres::Row, tokio_postgres::Error>,
        columns: &mut Option<Arc<Vec<String>>>,
    ) -> Result<Line, StoreError> {
        let row = row.map_err(|error| self.failed(&error))?;
        let named = columns.get_or_insert_with(|| {
            let name = |column: &tokio_postgres::Column| format!("{}\t{}", column.name(), column.type_());
            Arc::new(row.columns().iter().map(name).collect())
        });
        let cells = (0..row.len()).map(|index| row.try_get(index)).collect::<Result<Vec<Cell>, _>>();
        Ok((named.clone(), cells.map_err(|error| self.failed(&error))?))
    }
}
