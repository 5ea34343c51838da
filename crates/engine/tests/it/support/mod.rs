//! What the tests of the engine share: short ways to open a server and to write.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use rangehold_engine::store::Store;
use rangehold_engine::{Clock, Node, Options, ReadError, RowChanges, WriteError, WriteRequest};
use rangehold_map::{Key, KeyRange, PartitionPrefix, TableId, Timestamp};
pub(crate) use rangehold_testkit::gate::{Gate, Passage};
use tokio::time::Instant;

pub(crate) const ACCOUNT: &str = "account";
pub(crate) const TABLE: TableId = TableId(7);
pub(crate) const MEMORY: u64 = 64 << 20;

/// The refusal that the judges of these tests give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exists;

pub(crate) type Written = Result<Timestamp, WriteError<Exists>>;

pub(crate) fn start() -> Timestamp {
    Timestamp::from_unix_seconds(1_700_000_000)
}

pub(crate) fn options(clock: &Clock) -> Options {
    Options::new(MEMORY, clock.clone(), 1)
}

/// Options for tests in tokio's paused time: everything runs on one thread, and time passes when all tasks wait.
pub(crate) fn simulated(clock: &Clock) -> Options {
    Options { compact_on_callers_runtime: true, ..options(clock) }
}

/// Opens a server on `objects`.
pub(crate) async fn open(objects: &Arc<dyn ObjectStore>, options: Options) -> Node {
    Node::open(Store::on(Arc::clone(objects)), options).await.unwrap()
}

/// Opens a server on `objects` behind a gate.
pub(crate) async fn open_gated(objects: &Arc<dyn ObjectStore>, options: Options) -> (Arc<Gate>, Node) {
    let gate = Gate::before(objects);
    let gated: Arc<dyn ObjectStore> = gate.clone();
    (gate, open(&gated, options).await)
}

/// An empty store.
pub(crate) fn memory() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

pub(crate) fn partition(partition_key: &str) -> PartitionPrefix {
    PartitionPrefix::entity(ACCOUNT, TABLE, partition_key)
}

pub(crate) fn table_keys(table: TableId) -> KeyRange {
    KeyRange::prefix(&rangehold_map::key::table_prefix(ACCOUNT, table))
}

/// Writes these changes of a partition, whatever is there.
pub(crate) async fn write(server: &Node, partition: &PartitionPrefix, changes: RowChanges) -> Written {
    server.router().write(&WriteRequest::new(partition, &[], soon()), |_, _| Ok(changes.clone())).await
}

/// Writes some rows of a partition. Rows that are there are replaced.
pub(crate) async fn put_all(server: &Node, partition: &PartitionPrefix, rows: &[(&str, &str)]) -> Written {
    let changes = rows.iter().map(|(row, value)| (partition.key(row), Some(value.as_bytes().to_vec())));
    write(server, partition, changes.collect()).await
}

pub(crate) async fn put(server: &Node, partition_key: &str, row: &str, value: &str) -> Written {
    put_all(server, &partition(partition_key), &[(row, value)]).await
}

pub(crate) async fn delete(server: &Node, partition_key: &str, row: &str) -> Written {
    let partition = partition(partition_key);
    write(server, &partition, vec![(partition.key(row), None)]).await
}

/// Writes a row unless it is there already.
pub(crate) async fn insert(server: &Node, partition_key: &str, row: &str, value: &str) -> Written {
    let partition = partition(partition_key);
    let keys = [partition.key(row)];
    let value = value.as_bytes().to_vec();
    server
        .router()
        .write(&WriteRequest::new(&partition, &keys, soon()), |current, _| match current {
            [None] => Ok(vec![(keys[0].clone(), Some(value.clone()))]),
            _ => Err(Exists),
        })
        .await
}

pub(crate) async fn get(server: &Node, partition_key: &str, row: &str) -> Result<Option<Bytes>, ReadError> {
    server.router().get(&partition(partition_key).key(row)).await
}

/// All rows of `keys`.
pub(crate) async fn rows(server: &Node, keys: &KeyRange) -> Result<Vec<(Vec<u8>, Vec<u8>)>, ReadError> {
    let take = |rows: &mut Vec<_>, key: &[u8], value: &Bytes| {
        rows.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    server.router().scan(keys, Vec::new, take).await
}

/// What the caller does before `drop_table`: the catalogue says that the table is dropped.
pub(crate) async fn note_in_catalogue(server: &Node, table: TableId) {
    let note = vec![(dropped_key(table), Some(Vec::new()))];
    write(server, &PartitionPrefix::catalogue(ACCOUNT), note).await.unwrap();
}

pub(crate) fn dropped_key(table: TableId) -> Vec<u8> {
    Key::DroppedTable { account: ACCOUNT.to_owned(), table }.encode()
}
