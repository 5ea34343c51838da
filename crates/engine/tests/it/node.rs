//! The partition server: what it acknowledges, refuses, and keeps through crashes.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{
    Exists, Passage, TABLE, Written, delete, get, insert, memory, open, open_gated, options, partition, put,
    put_all, rows, simulated, start, table_keys, write,
};
use bytes::Bytes;
use futures::TryStreamExt;
use futures::future::join_all;
use object_store::{ObjectStore, ObjectStoreExt};
use rangehold_engine::store::Store;
use rangehold_engine::{
    ChangeError, Clock, DatabaseError, Node, OpenError, ReadError, WriteError, WriteRequest,
};
use rangehold_map::{KeyRange, PartitionPrefix, Timestamp};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// An insert that goes on by itself.
fn inserting(server: &Node, row: &'static str) -> JoinHandle<Written> {
    let server = server.clone();
    tokio::spawn(async move { insert(&server, "p", row, "v").await })
}

/// Reads until a read succeeds.
async fn recovered(server: &Node) {
    let reading = async {
        while get(server, "p", "1").await.is_err() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), reading).await.unwrap();
}

#[tokio::test]
async fn what_was_written_is_read_in_order_and_after_opening_again() {
    let objects = memory();
    let clock = Clock::system();
    let server = open(&objects, options(&clock)).await;
    put(&server, "b", "2", "two").await.unwrap();
    put(&server, "a", "1", "one").await.unwrap();
    put(&server, "b", "1", "gone").await.unwrap();
    delete(&server, "b", "1").await.unwrap();
    assert!(matches!(insert(&server, "a", "1", "x").await, Err(WriteError::Refused(Exists))));
    let before = rows(&server, &table_keys(TABLE)).await.unwrap();
    let expected =
        vec![(partition("a").key("1"), b"one".to_vec()), (partition("b").key("2"), b"two".to_vec())];
    assert_eq!(before, expected);
    server.close().await;
    let server = open(&objects, options(&clock)).await;
    assert_eq!(rows(&server, &table_keys(TABLE)).await.unwrap(), expected);
    assert_eq!(get(&server, "a", "1").await.unwrap().unwrap(), "one");
    assert_eq!(get(&server, "b", "1").await.unwrap(), None);
}

#[tokio::test]
async fn keys_outside_of_every_range_are_not_owned() {
    let server = open(&memory(), options(&Clock::system())).await;
    assert!(matches!(server.router().get(&[0x01, 0x01]).await, Err(ReadError::NotOwned)));
    let low = KeyRange::new(vec![0x01], Some(vec![0x11]));
    assert!(matches!(rows(&server, &low).await, Err(ReadError::NotOwned)));
}

/// This runs on one thread, with all rows in memory. The visitor takes 20 ms for them.
#[tokio::test]
async fn a_long_scan_lets_others_go_on() {
    let server = open(&memory(), options(&Clock::system())).await;
    let names: Vec<String> = (0..400).map(|i| format!("{i:04}")).collect();
    let pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
    put_all(&server, &partition("p"), &pairs).await.unwrap();
    let visit_slowly = |rows: &mut usize, _: &[u8], _: &Bytes| {
        let until = Instant::now() + Duration::from_micros(50);
        while Instant::now() < until {}
        *rows += 1;
        ControlFlow::Continue(())
    };
    let scan = tokio::spawn(async move {
        server.router().scan(&table_keys(TABLE), usize::default, visit_slowly).await.unwrap()
    });
    let mut turns = 0;
    while !scan.is_finished() {
        turns += 1;
        tokio::task::yield_now().await;
    }
    assert_eq!(scan.await.unwrap(), 400);
    assert!(turns > 15, "{turns} turns during a scan of 20 ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_writes_at_once_have_ten_thousand_timestamps() {
    let server = open(&memory(), options(&Clock::system())).await;
    let writes = (0..10_000).map(|i| {
        let server = server.clone();
        tokio::spawn(async move { insert(&server, &format!("p{}", i % 100), &format!("{i}"), "v").await })
    });
    let mut stamps: Vec<_> = join_all(writes).await.into_iter().map(|w| w.unwrap().unwrap()).collect();
    stamps.sort();
    stamps.dedup();
    assert_eq!(stamps.len(), 10_000);
    assert_eq!(rows(&server, &table_keys(TABLE)).await.unwrap().len(), 10_000);
    let statistics = &server.statistics().ranges[0].1;
    assert_eq!(statistics.writes, 10_000);
    assert!(statistics.flushes < 5_000, "writes share flushes: {}", statistics.flushes);
}

/// Ten inserts of one row at the same time: one of them succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_inserts_of_one_row_one_wins() {
    let server = open(&memory(), options(&Clock::system())).await;
    for row in 0..100 {
        let row = row.to_string();
        let inserts = (0..10).map(|_| insert(&server, "p", &row, "v"));
        let won = join_all(inserts).await.into_iter().filter(Result::is_ok).count();
        assert_eq!(won, 1);
    }
}

#[tokio::test]
async fn a_refusal_waits_until_what_it_tells_of_is_durable() {
    let objects = memory();
    let (gate, server) = open_gated(&objects, options(&Clock::system())).await;
    put(&server, "p", "0", "v").await.unwrap();
    gate.set(Passage::HoldWrites);
    let first = inserting(&server, "1");
    while gate.held() == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    // The row is not durable. It is not shown, and no refusal may tell of it.
    assert_eq!(get(&server, "p", "1").await.unwrap(), None);
    let second = inserting(&server, "1");
    sleep(Duration::from_millis(200)).await;
    assert!(!first.is_finished() && !second.is_finished());
    gate.set(Passage::Open);
    first.await.unwrap().unwrap();
    assert!(matches!(second.await.unwrap(), Err(WriteError::Refused(Exists))));
    assert_eq!(get(&server, "p", "1").await.unwrap().unwrap(), "v");
    // If the row is durable, an insert is refused at once, without another flush.
    gate.set(Passage::HoldWrites);
    let refused = timeout(Duration::from_secs(5), insert(&server, "p", "1", "v")).await.unwrap();
    assert!(matches!(refused, Err(WriteError::Refused(Exists))));
}

#[tokio::test]
async fn after_the_deadline_nobody_knows() {
    let objects = memory();
    let (gate, server) = open_gated(&objects, options(&Clock::system())).await;
    gate.set(Passage::HoldWrites);
    let place = partition("p");
    let key = place.key("1");
    let soon_over = tokio::time::Instant::now() + Duration::from_millis(50);
    let late = server
        .router()
        .write::<Exists>(&WriteRequest::new(&place, &[], soon_over), |_, _| {
            Ok(vec![(key.clone(), Some(b"v".to_vec()))])
        })
        .await;
    assert!(matches!(late, Err(WriteError::OutcomeUnknown(_))), "{late:?}");
    let abandoned = insert(&server, "p", "2", "v");
    assert!(timeout(Duration::from_millis(50), abandoned).await.is_err());
    gate.set(Passage::Open);
    // Both writes were stored, and later writes are judged on them.
    for row in ["1", "2"] {
        assert!(matches!(insert(&server, "p", row, "x").await, Err(WriteError::Refused(Exists))));
        assert_eq!(get(&server, "p", row).await.unwrap().unwrap(), "v");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_cannot_be_told_in_time_was_certainly_not_made() {
    let objects = memory();
    let (gate, server) = open_gated(&objects, simulated(&Clock::manual(start()))).await;
    gate.set(Passage::HoldWrites);
    let first = inserting(&server, "1");
    sleep(Duration::from_secs(1)).await;
    let refused = insert(&server, "p", "1", "w").await;
    assert!(matches!(refused, Err(WriteError::Busy(_))), "{refused:?}");
    assert!(matches!(first.await.unwrap(), Err(WriteError::OutcomeUnknown(_))));
}

/// Clients hang up while their batches wait for room in memory, and the server is closed meanwhile.
#[tokio::test(start_paused = true)]
async fn closing_waits_for_writes_that_were_abandoned_on_their_way() {
    let objects = memory();
    let (gate, server) = open_gated(&objects, simulated(&Clock::manual(start()))).await;
    gate.set(Passage::HoldWrites);
    let value = "v".repeat(1 << 20);
    let mut abandoned = Vec::new();
    for i in 0..30 {
        let (partition, row) = (format!("p{i}"), "1");
        let write = put(&server, &partition, row, &value);
        assert!(timeout(Duration::from_millis(10), write).await.is_err());
        abandoned.push(partition);
    }
    let closing = tokio::spawn(server.close());
    sleep(Duration::from_secs(1)).await;
    assert!(!closing.is_finished());
    gate.set(Passage::Open);
    closing.await.unwrap();
    let server = open(&objects, simulated(&Clock::manual(start()))).await;
    for partition in abandoned {
        assert!(get(&server, &partition, "1").await.unwrap().is_some(), "{partition} was lost");
    }
}

/// A batch has 100 KB, so that memtables are written out and compacted while scans go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_sees_each_batch_whole() {
    let server = open(&memory(), options(&Clock::system())).await;
    let names: Vec<String> = (0..50).map(|i| format!("{i:02}")).collect();
    let batch = |value: String| {
        let server = server.clone();
        let names = names.clone();
        async move {
            let pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
            put_all(&server, &partition("p"), &pairs).await.unwrap();
        }
    };
    let value = |i: i32| format!("{i:04}").repeat(500);
    batch(value(0)).await;
    let writer = tokio::spawn({
        let batches: Vec<_> = (1..300).map(|i| batch(value(i))).collect();
        async move {
            for batch in batches {
                batch.await;
            }
        }
    });
    let mut scans = 0;
    while !writer.is_finished() {
        let seen = rows(&server, &table_keys(TABLE)).await.unwrap();
        assert_eq!(seen.len(), 50);
        assert!(seen.iter().all(|(_, value)| *value == seen[0].1), "a torn batch");
        scans += 1;
    }
    writer.await.unwrap();
    assert!(scans > 10, "{scans} scans");
}

/// The first insert is given up after it was sent to the log and before it is there.
#[tokio::test]
async fn an_abandoned_write_does_not_let_others_pass() {
    let server = open(&memory(), options(&Clock::system())).await;
    for row in 0..50 {
        let row = row.to_string();
        let mut first = Box::pin(insert(&server, "p", &row, "first"));
        assert!(futures::poll!(&mut first).is_pending());
        drop(first);
        let second = insert(&server, "p", &row, "second").await;
        assert!(matches!(second, Err(WriteError::Refused(Exists))), "{second:?}");
        assert_eq!(get(&server, "p", &row).await.unwrap().unwrap(), "first");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_loses_nothing_that_was_acknowledged() {
    let objects = memory();
    let clock = Clock::system();
    let mut acknowledged: Vec<(String, Timestamp)> = Vec::new();
    for round in 0..8 {
        let (gate, server) = open_gated(&objects, options(&clock)).await;
        for (row, _) in &acknowledged {
            assert!(
                get(&server, "p", row).await.unwrap().is_some(),
                "row {row} was lost before round {round}"
            );
        }
        let writers: Vec<_> = (0..16)
            .map(|writer| {
                let server = server.clone();
                tokio::spawn(async move {
                    let mut done = Vec::new();
                    for i in 0.. {
                        let row = format!("{round}-{writer}-{i}");
                        let write = insert(&server, "p", &row, "v");
                        match timeout(Duration::from_millis(300), write).await {
                            Ok(Ok(at)) => done.push((row, at)),
                            _ => break,
                        }
                    }
                    done
                })
            })
            .collect();
        sleep(Duration::from_millis(20 + round * 17)).await;
        gate.set(Passage::Dead);
        let before = acknowledged.iter().map(|(_, at)| *at).max();
        for done in join_all(writers).await {
            for (row, at) in done.unwrap() {
                assert!(Some(at) > before, "timestamps grow across crashes");
                acknowledged.push((row, at));
            }
        }
    }
    assert!(acknowledged.len() > 100, "{} writes", acknowledged.len());
}

#[tokio::test]
async fn timestamps_grow_though_the_clock_steps_back_an_hour_under_load_and_between_runs() {
    let objects = memory();
    let hour = 3_600 * Timestamp::TICKS_PER_SECOND;
    let mut last = Timestamp::default();
    let mut wall = start();
    for _ in 0..3 {
        // A new process knows nothing of the clock of the last one.
        let clock = Clock::manual(wall);
        let server = open(&objects, options(&clock)).await;
        for i in 0..100 {
            if i == 50 {
                clock.step(-hour);
            }
            let at = timeout(Duration::from_secs(5), put(&server, "p", "r", "v")).await.unwrap().unwrap();
            assert!(at > last, "{at:?} after {last:?}");
            last = at;
        }
        server.close().await;
        wall = clock.wall();
    }
    assert!(last < start().saturating_add(hour), "time did not run away");
}

#[tokio::test]
async fn the_clock_may_jump_ahead_too() {
    let objects = memory();
    let clock = Clock::manual(start());
    let server = open(&objects, options(&clock)).await;
    put(&server, "p", "r", "v").await.unwrap();
    clock.step(86_400 * Timestamp::TICKS_PER_SECOND);
    let at = put(&server, "p", "r", "v").await.unwrap();
    assert!(at >= start().saturating_add(86_400 * Timestamp::TICKS_PER_SECOND));
    // The first server is not closed, and the clock is back where it was.
    let again = open(&objects, options(&Clock::manual(start()))).await;
    assert!(put(&again, "p", "r", "v").await.unwrap() > at);
}

#[tokio::test]
async fn a_database_that_closed_itself_is_opened_again() {
    let objects = memory();
    let (gate, server) = open_gated(&objects, options(&Clock::system())).await;
    put(&server, "p", "1", "v").await.unwrap();
    gate.set(Passage::FailLog);
    let lost = put(&server, "p", "2", "v").await;
    assert!(matches!(lost, Err(WriteError::OutcomeUnknown(_))), "{lost:?}");
    sleep(Duration::from_millis(300)).await;
    let refused = get(&server, "p", "1").await;
    assert!(matches!(refused, Err(ReadError::Unavailable(_))), "{refused:?}");
    gate.set(Passage::Open);
    recovered(&server).await;
    assert_eq!(get(&server, "p", "1").await.unwrap().unwrap(), "v");
    put(&server, "p", "3", "v").await.unwrap();
    // A refusal because of a row from before the reopening does not wait for a sequence number that never comes.
    assert!(matches!(insert(&server, "p", "1", "x").await, Err(WriteError::Refused(Exists))));
    assert_eq!(server.statistics().ranges[0].1.reopenings, 1);
}

/// This is as with a file that goes missing while the process runs. Asking again does not help, and the operator must
/// be told.
#[tokio::test]
async fn damage_found_when_opening_again_is_told_as_damage() {
    let objects = memory();
    let (gate, server) = open_gated(&objects, options(&Clock::system())).await;
    for row in ["1", "2", "3"] {
        put(&server, "p", row, "v").await.unwrap();
    }
    assert_eq!(server.statistics().troubles, []);
    let log = objects.list(Some(&"ranges/1-1-1/wal".into())).try_collect::<Vec<_>>().await.unwrap();
    let mut files: Vec<_> = log.into_iter().map(|object| object.location).collect();
    files.sort();
    let missing = &files[files.len() - 2];
    let kept = objects.get(missing).await.unwrap().bytes().await.unwrap();
    objects.delete(missing).await.unwrap();
    gate.set(Passage::FailLog);
    put(&server, "p", "4", "v").await.unwrap_err();

    let told = async {
        loop {
            match get(&server, "p", "1").await {
                Err(ReadError::Damaged(damage)) => break damage.to_string(),
                _ => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let told = timeout(Duration::from_secs(60), told).await.unwrap();
    assert!(told.contains(missing.filename().unwrap()), "{told}");
    let write = put(&server, "p", "4", "v").await;
    assert!(matches!(write, Err(WriteError::Damaged(_))), "{write:?}");
    let troubles = server.statistics().troubles;
    assert!(
        troubles.len() == 1 && troubles[0].to_string().contains(missing.filename().unwrap()),
        "{troubles:?}"
    );

    // When the file is back, the process need not be restarted.
    gate.set(Passage::Open);
    objects.put(missing, kept.into()).await.unwrap();
    recovered(&server).await;
    assert_eq!(server.statistics().troubles, []);
}

/// This is as on a full disk, where the database tries forever.
#[tokio::test(start_paused = true)]
async fn closing_ends_though_nothing_can_be_written() {
    let objects = memory();
    let (gate, server) = open_gated(&objects, simulated(&Clock::manual(start()))).await;
    put(&server, "p", "1", "v").await.unwrap();
    gate.set(Passage::HoldWrites);
    timeout(Duration::from_secs(120), server.close()).await.unwrap();
    let server = open(&objects, simulated(&Clock::manual(start()))).await;
    assert_eq!(get(&server, "p", "1").await.unwrap().unwrap(), "v");
}

#[tokio::test]
async fn a_node_that_opens_a_range_takes_it() {
    let objects = memory();
    let first = open(&objects, options(&Clock::system())).await;
    put(&first, "p", "1", "v").await.unwrap();
    let second = open(&objects, options(&Clock::system())).await;
    put(&second, "p", "2", "v").await.unwrap();
    let refused = put(&first, "p", "3", "v").await;
    assert!(
        matches!(refused, Err(WriteError::OutcomeUnknown(_) | WriteError::Unavailable(_))),
        "{refused:?}"
    );
    sleep(Duration::from_millis(1_500)).await;
    // It looks for the owner with a map that names itself. In the end it gives up.
    let read = get(&first, "p", "1").await;
    assert!(
        matches!(&read, Err(ReadError::Unavailable(why)) if why.to_string().contains("owner")),
        "{read:?}"
    );
    assert!(get(&second, "p", "2").await.unwrap().is_some());
    assert_eq!(get(&second, "p", "3").await.unwrap(), None);
}

#[tokio::test]
async fn rows_without_a_map_and_a_map_without_rows_are_refused() {
    let objects = memory();
    let clock = Clock::system();
    let server = open(&objects, options(&clock)).await;
    put(&server, "p", "1", "v").await.unwrap();
    server.close().await;
    let map = "cluster/map/00000000000000000001.json".into();
    let bytes = objects.get(&map).await.unwrap().bytes().await.unwrap();
    objects.delete(&map).await.unwrap();
    let refused = Node::open(Store::on(Arc::clone(&objects)), options(&clock)).await.err();
    assert!(matches!(refused, Some(OpenError::First(DatabaseError::NoMap(_)))), "{refused:?}");

    let empty = memory();
    empty.put(&map, bytes.into()).await.unwrap();
    let refused = Node::open(Store::on(empty), options(&clock)).await.err();
    let missing =
        matches!(refused, Some(OpenError::Ranges(ChangeError::Database(DatabaseError::Missing(_)))));
    assert!(missing, "{refused:?}");
}

#[tokio::test]
async fn a_creation_that_was_broken_off_is_finished() {
    let objects = memory();
    let clock = Clock::system();
    open(&objects, options(&clock)).await.close().await;
    objects.delete(&"cluster/map/00000000000000000001.json".into()).await.unwrap();
    let server = open(&objects, options(&clock)).await;
    put(&server, "p", "1", "v").await.unwrap();
    server.close().await;
    assert!(get(&open(&objects, options(&clock)).await, "p", "1").await.unwrap().is_some());
}

#[tokio::test]
async fn a_change_outside_of_its_partition_is_a_bug() {
    let server = open(&memory(), options(&Clock::system())).await;
    let write = tokio::spawn(async move {
        let other = PartitionPrefix::entity("account", TABLE, "other").key("1");
        write(&server, &partition("p"), vec![(other, None)]).await
    });
    assert!(write.await.unwrap_err().is_panic());
}
