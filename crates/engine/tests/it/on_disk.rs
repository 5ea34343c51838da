//! The partition server on a directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{ACCOUNT, TABLE, get, options, partition, put, rows, soon, table_keys};
use rangehold_engine::store::{Space, Store, StoreError, StoreLocation, StoreOptions};
use rangehold_engine::{
    ChangeError, Clock, Node, NotReady, OpenError, Options, ReadError, WriteError, WriteRequest, with_causes,
};
use rangehold_map::{Change, PartitionPrefix};
use tokio::time::{sleep, timeout};

async fn store(directory: &Path, disk_reserve_bytes: Option<u64>) -> Store {
    let location = StoreLocation::parse(directory.to_str().unwrap()).unwrap();
    // A node that was dropped gives up its directory only when its tasks have noticed that.
    for _ in 0..100 {
        let options = StoreOptions { disk_reserve_bytes, ..StoreOptions::default() };
        match Store::open(&location, options) {
            Err(StoreError::Locked { .. }) => sleep(Duration::from_millis(100)).await,
            opened => return opened.unwrap(),
        }
    }
    panic!("{} stays locked", directory.display());
}

async fn open(directory: &Path) -> Result<Node, OpenError> {
    Node::open(store(directory, None).await, options(&Clock::system())).await
}

/// The change that splits the first range, as it is now.
fn split_at_q(server: &Node) -> Change {
    let map = server.executor().maps().current();
    let entry = &map.entries()[0];
    Change::Split { range: entry.id, generation: entry.generation, at: partition("q").as_bytes().to_vec() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_and_reads_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let server = open(directory.path()).await.unwrap();
    put(&server, "p", "1", "v").await.unwrap();
    server.close().await;

    let full = store(directory.path(), Some(u64::MAX)).await;
    let server = Node::open(full, options(&Clock::system())).await.unwrap();
    let refused = put(&server, "p", "2", "v").await;
    let Err(error @ WriteError::DiskFull { .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(error.to_string().contains(directory.path().to_str().unwrap()), "{error}");
    assert!(get(&server, "p", "1").await.unwrap().is_some());
    assert!(server.statistics().disk_low);
    // A change of ranges needs files too. It is refused at once, and does not wait for room.
    let refused = timeout(Duration::from_secs(60), server.executor().carry_out(&split_at_q(&server))).await;
    let refused = refused.unwrap();
    assert!(matches!(&refused, Err(ChangeError::NotYet { waits_for: NotReady::DiskLow, .. })), "{refused:?}");
    server.close().await;

    let server = open(directory.path()).await.unwrap();
    put(&server, "p", "2", "v").await.unwrap();
    assert_eq!(rows(&server, &table_keys(TABLE)).await.unwrap().len(), 2);
    // The refusal has begun nothing: with room again the same change is carried out.
    let changed = server.executor().carry_out(&split_at_q(&server)).await.unwrap();
    assert_eq!(changed.ranges.len(), 2, "{changed:?}");
    server.close().await;
}

/// When less than the reserve is free, but more than half of it, rows can be deleted. A table can be dropped, and the
/// sweeper finishes the work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nearly_full_disk_lets_rows_be_deleted_and_tables_be_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let server = open(directory.path()).await.unwrap();
    put(&server, "p", "1", "v").await.unwrap();
    put(&server, "p", "2", "v").await.unwrap();
    let free = server.statistics().disk_free_bytes;
    server.close().await;

    let nearly_full = store(directory.path(), Some(free / 2 * 3)).await;
    let options = Options { dropped_remembered: Duration::ZERO, ..options(&Clock::system()) };
    let server = Node::open(nearly_full, options).await.unwrap();
    assert!(matches!(put(&server, "p", "3", "v").await, Err(WriteError::DiskFull { .. })));
    let rows = partition("p");
    let row = rows.key("2");
    let request = WriteRequest { space: Space::Returns, ..WriteRequest::new(&rows, &[], soon()) };
    let deleted = server.router().write(&request, |_, _| Ok::<_, ()>(vec![(row.clone(), None)])).await;
    deleted.unwrap();
    assert!(get(&server, "p", "2").await.unwrap().is_none());
    let note = crate::support::dropped_key(TABLE);
    let catalogue = PartitionPrefix::catalogue(ACCOUNT);
    let change = vec![(note.clone(), Some(Vec::new()))];
    let request = WriteRequest { space: Space::ReturnsMuch, ..WriteRequest::new(&catalogue, &[], soon()) };
    let dropped = server.router().write(&request, |_, _| Ok::<_, ()>(change.clone())).await;
    dropped.unwrap();
    server.router().drop_table(ACCOUNT, TABLE, soon()).await.unwrap();
    let swept = async {
        while server.router().get(&note).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), swept).await.unwrap();
    server.close().await;
}

/// In each sorted file, one byte at a time is changed. Either no read needs that byte, or the error names the file.
/// Rows that differ from what was written are never shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_is_named_and_never_served() {
    let directory = tempfile::tempdir().unwrap();
    let server = open(directory.path()).await.unwrap();
    for row in 0..300 {
        put(&server, "p", &format!("{row:03}"), &format!("{row:03}").repeat(20)).await.unwrap();
    }
    server.close().await;
    let server = open(directory.path()).await.unwrap();
    let intact = rows(&server, &table_keys(TABLE)).await.unwrap();
    assert_eq!(intact.len(), 300);
    server.close().await;

    let files = sorted_files(directory.path());
    assert!(!files.is_empty());
    let mut named = 0;
    for file in files {
        let good = fs::read(&file).unwrap();
        for at in (0..good.len()).step_by(good.len() / 7 + 1) {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            fs::write(&file, &bad).unwrap();
            let error = match open(directory.path()).await {
                Err(error) => with_causes(&error),
                Ok(server) => match rows(&server, &table_keys(TABLE)).await {
                    Ok(seen) => {
                        assert_eq!(seen, intact);
                        continue;
                    }
                    Err(ReadError::Damaged(damage)) => with_causes(&damage),
                    Err(other) => panic!("{other:?}"),
                },
            };
            assert!(error.contains(file.file_name().unwrap().to_str().unwrap()), "{error}");
            named += 1;
        }
        fs::write(&file, &good).unwrap();
    }
    assert!(named > 0);
}

fn sorted_files(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory.join("ranges/1-1-1/compacted"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}
