//! Copying a store in which tables are dropped meanwhile.

use std::ops::ControlFlow;

use rangehold_engine::{Node, RowChanges, WriteRequest};
use rangehold_map::{Change, Key, KeyRange, PartitionPrefix, TableId};

use crate::copy::{copy_quietly, serve};
use crate::support::{ACCOUNT, soon};

/// Tables that are dropped while one copy is made.
const TABLES: u64 = 120;
/// Every so many tables lie in a range of their own.
const TABLES_OF_RANGE: usize = 15;
const COPIES: u64 = 3;

/// The partition of a table's only row.
fn partition(table: u64) -> PartitionPrefix {
    PartitionPrefix::entity(ACCOUNT, TableId(table), "p")
}

fn name(table: u64) -> Key {
    Key::Table { account: ACCOUNT.to_owned(), lower_name: format!("table{table:06}") }
}

async fn write(server: &Node, partition: &PartitionPrefix, changes: RowChanges) {
    let request = WriteRequest::new(partition, &[], soon());
    server.router().write(&request, |_, _| Ok::<_, ()>(changes.clone())).await.unwrap();
}

async fn make(server: &Node, table: u64) {
    let listed = vec![(name(table).encode(), Some(table.to_be_bytes().to_vec()))];
    write(server, &PartitionPrefix::catalogue(ACCOUNT), listed).await;
    write(server, &partition(table), vec![(partition(table).key("1"), Some("v".into()))]).await;
}

/// As the table service drops one: first in the catalogue, and then in the ranges.
async fn drop_table(server: &Node, table: u64) {
    let id = TableId(table);
    let note = Key::DroppedTable { account: ACCOUNT.to_owned(), table: id };
    let changes = vec![(name(table).encode(), None), (note.encode(), Some(Vec::new()))];
    write(server, &PartitionPrefix::catalogue(ACCOUNT), changes).await;
    server.router().drop_table(ACCOUNT, id, soon()).await.unwrap();
}

async fn listed(server: &Node) -> Vec<u64> {
    let catalogue = KeyRange::prefix(PartitionPrefix::catalogue(ACCOUNT).as_bytes());
    let visit = |found: &mut Vec<u64>, key: &[u8], row: &bytes::Bytes| {
        if let Ok(Key::Table { .. }) = Key::decode(key) {
            found.push(u64::from_be_bytes(row[..8].try_into().unwrap()));
        }
        ControlFlow::Continue(())
    };
    server.router().scan(&catalogue, Vec::new, visit).await.unwrap()
}

/// Cuts the last range where this table begins.
async fn split_at(server: &Node, table: u64) {
    let map = server.executor().maps().current();
    let last = map.entries().last().unwrap();
    let at = partition(table).as_bytes().to_vec();
    let split = Change::Split { range: last.id, generation: last.generation, at };
    server.executor().carry_out(&split).await.unwrap();
}

/// A table is dropped in the catalogue before its ranges are told. If the moment of the catalogue were the earlier one,
/// a copy could list a table whose rows it does not have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_has_the_rows_of_each_table_that_it_lists() {
    let (from, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = serve(from.path()).await;
    for table in (1..TABLES * COPIES).step_by(TABLES_OF_RANGE) {
        split_at(&server, table).await;
    }
    for number in 0..COPIES {
        let tables = 1 + number * TABLES..1 + (number + 1) * TABLES;
        for table in tables.clone() {
            make(&server, table).await;
        }
        let dropping = tokio::spawn({
            let server = server.clone();
            async move {
                // From all ranges in turn.
                for first in 0..TABLES_OF_RANGE {
                    for table in tables.clone().skip(first).step_by(TABLES_OF_RANGE) {
                        drop_table(&server, table).await;
                    }
                }
            }
        });
        let to = above.path().join(number.to_string());
        copy_quietly(from.path(), &to).await.unwrap();
        dropping.await.unwrap();
        let copied = serve(&to).await;
        for table in listed(&copied).await {
            let row = copied.router().get(&partition(table).key("1")).await;
            assert!(matches!(row, Ok(Some(_))), "copy {number} lists table {table}: {row:?}");
        }
        copied.close().await;
    }
    server.close().await;
}
