//! Garbage: on a directory, collection goes on for as long as the database is open.
//!
//! *Seen* on the plain directory store: it stops after its first round, because the boundary that
//! says how far was collected cannot be advanced there.

use std::time::Duration;

use futures::StreamExt;
use object_store::ObjectStore;
use rangehold_engine::store::{Store, StoreLocation, StoreOptions};
use slatedb::Db;
use slatedb::config::{
    FlushOptions, FlushType, GarbageCollectorDirectoryOptions, GarbageCollectorOptions, Settings,
};

const RANGE: &str = "ranges/1-1-1";
/// Rounds of ten flushes. Without collection each leaves more than ten manifests and log files.
const ROUNDS: usize = 6;

fn settings() -> Settings {
    let often = Some(GarbageCollectorDirectoryOptions {
        interval: Some(Duration::from_millis(20)),
        min_age: Duration::from_millis(1),
        dry_run: false,
    });
    Settings {
        flush_interval: None,
        // Compactions hold on to manifests for a while, and level 0 waits for them.
        compactor_options: None,
        l0_max_ssts: 1_000,
        l0_max_ssts_per_key: 1_000,
        garbage_collector_options: Some(GarbageCollectorOptions {
            manifest_options: often,
            wal_options: often,
            ..GarbageCollectorOptions::default()
        }),
        ..Settings::default()
    }
}

async fn count(store: &Store, kind: &str) -> usize {
    store.object_store().list(Some(&format!("{RANGE}/{kind}").into())).count().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_and_log_files_do_not_grow_without_end() {
    let directory = tempfile::tempdir().unwrap();
    let location = StoreLocation::Directory(directory.path().to_owned());
    let store = Store::open(&location, StoreOptions::default()).unwrap();
    let db = Db::builder(RANGE, store.object_store()).with_settings(settings()).build().await.unwrap();
    for round in 0..ROUNDS {
        for row in 0..10_u32 {
            db.put(row.to_be_bytes(), [round as u8; 100]).await.unwrap();
            for flush_type in [FlushType::Wal, FlushType::MemTable] {
                db.flush_with_options(FlushOptions { flush_type }).await.unwrap();
            }
        }
        let collected = async {
            while count(&store, "manifest").await > 8 || count(&store, "wal").await > 8 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let collected = tokio::time::timeout(Duration::from_secs(60), collected).await;
        let left = (count(&store, "manifest").await, count(&store, "wal").await);
        assert!(collected.is_ok(), "round {round}: manifests and log files left: {left:?}");
    }
    db.close().await.unwrap();
}
