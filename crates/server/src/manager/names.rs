//! The names of tables. Keys are written with them for people.

use std::ops::ControlFlow;

use bytes::Bytes;
use rangehold_engine::Router;
use rangehold_map::key::{KIND_CATALOGUE, table_prefix};
use rangehold_map::script::{KeyName, Names, TableRef};
use rangehold_map::{Key, KeyRange, TableId};
use rangehold_protocol::table::catalogue::TableRecord;
use tokio::time::timeout;
use tracing::debug;

use crate::limits::{NAMED_TABLES_MAX, NAMES_WITHIN};

/// The names of all tables, or of the first [`NAMED_TABLES_MAX`]. A key without an account belongs to `account`. If
/// the catalogue cannot be read in time, no table has a name; then keys are written with the tables' ids, which
/// commands accept too.
pub(crate) async fn read(router: &Router, account: &str) -> Names {
    let mut names = Names::new(account);
    for (account, name, id) in tables(router).await {
        names.add_table(Some(&account), &name, id);
    }
    names
}

/// The prefix of the keys of each table that has a name here.
pub(crate) async fn table_prefixes(router: &Router) -> Vec<Vec<u8>> {
    tables(router).await.into_iter().map(|(account, _, id)| table_prefix(&account, id)).collect()
}

/// The account, name and id of each table.
async fn tables(router: &Router) -> Vec<(String, String, TableId)> {
    let catalogue = KeyRange::prefix(&[KIND_CATALOGUE]);
    match timeout(NAMES_WITHIN, router.scan(&catalogue, Vec::new, note_table)).await {
        Ok(Ok(tables)) => return tables,
        Ok(Err(error)) => debug!(%error, "the names of tables could not be read"),
        Err(_) => debug!("the names of tables could not be read in time"),
    }
    Vec::new()
}

fn note_table(tables: &mut Vec<(String, String, TableId)>, key: &[u8], value: &Bytes) -> ControlFlow<()> {
    if let (Ok(Key::Table { account, .. }), Ok(table)) = (Key::decode(key), TableRecord::decode(value)) {
        tables.push((account, table.name, table.id));
    }
    if tables.len() < NAMED_TABLES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// The name of an account's table, if it is known.
pub(crate) fn table_name(names: &Names, account: &str, table: TableId) -> Option<String> {
    match names.name(&table_prefix(account, table)) {
        KeyName::Table(table) => match table.table {
            TableRef::Name(name) => Some(name),
            TableRef::Id(_) => None,
        },
        _ => None,
    }
}
