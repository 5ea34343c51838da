//! Rows one by one, from a thread that runs the statement.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{SqliteDatabase, SqliteTx};
use crate::limits::{ROWS_IN_FLIGHT_MAX, SQLITE_STEPS_BETWEEN_LOOKS};
use crate::store::{Cell, Line};
use crate::store::{Failure, StoreError};

impl SqliteTx {
    /// The connection comes back after the last row, or when the rows are no longer taken.
    pub(crate) fn stream(
        &mut self,
        sql: &str,
        parameters: &[Cell],
    ) -> Result<mpsc::Receiver<Result<Line, StoreError>>, StoreError> {
        let ended = || StoreError::new(&self.database.location, Failure::Lost, "the transaction has ended");
        let mut connection = self.connection.take().ok_or_else(ended)?;
        let (rows, taken) = mpsc::channel(ROWS_IN_FLIGHT_MAX);
        let (back, lent) = oneshot::channel();
        self.lent = Some(lent);
        let (database, sql, parameters) = (self.database.clone(), sql.to_owned(), parameters.to_vec());
        tokio::task::spawn_blocking(move || {
            // A statement whose rows are no longer taken ends by itself. An interrupt from outside would have no
            // effect if it came before the first step of the statement.
            let watched = rows.clone();
            let looks = Some(move || watched.is_closed());
            let done = connection
                .progress_handler(SQLITE_STEPS_BETWEEN_LOOKS, looks)
                .map_err(|error| database.failed(&error))
                .and_then(|()| send_rows(&connection, &database, &sql, &parameters, &rows));
            let _ = connection.progress_handler(0, None::<fn() -> bool>);
            if let Err(error) = done {
                let _ = rows.blocking_send(Err(error));
            }
            // If the transaction is gone, the connection is dropped here, which undoes what is open.
            let _ = back.send(connection);
        });
        Ok(taken)
    }
}

fn send_rows(
    connection: &Connection,
    database: &SqliteDatabase,
    sql: &str,
    parameters: &[Cell],
    taken: &mpsc::Sender<Result<Line, StoreError>>,
) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| database.failed(&error);
    let refused = |text: String| StoreError::new(&database.location, Failure::Other, text);
    let mut statement = connection.prepare(sql).map_err(failed)?;
    if !statement.readonly() {
        return Err(refused("a query over shards only reads".to_owned()));
    }
    // For SQLite, `$2` is a name, and SQLite numbers names in the order in which they appear.
    for index in 1..=statement.parameter_count() {
        let name = statement.parameter_name(index).map(str::to_owned).unwrap_or_default();
        let number = name.get(1..).and_then(|digits| digits.parse::<usize>().ok()).unwrap_or(index);
        let cell = number.checked_sub(1).and_then(|position| parameters.get(position));
        let cell = cell.ok_or_else(|| refused(format!("no value was bound to parameter {number}")))?;
        statement.raw_bind_parameter(index, cell).map_err(failed)?;
    }
    let columns = Arc::new(statement.column_names().map(str::to_owned).collect::<Vec<_>>());
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(failed)? {
        let cells: Result<Vec<Cell>, _> =
            (0..columns.len()).map(|index| row.get_ref(index).map(Cell::from)).collect();
        if taken.blocking_send(Ok((columns.clone(), cells.map_err(failed)?))).is_err() {
            return Ok(());
        }
    }
    Ok(())
}
