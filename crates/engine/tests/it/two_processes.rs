//! Two processes over one store: what the one that lost a range may still do.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Gate, Passage, get, insert, open, partition, put, simulated, start};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use rangehold_engine::store::{LOCK_FILE, Store, StoreLocation, StoreOptions};
use rangehold_engine::{Clock, Node, Options, WriteError};
use rangehold_map::{Change, ServerId};
use tokio::time::sleep;

/// A process with one server, which does not know the servers of other processes.
async fn process(objects: &Arc<dyn ObjectStore>, server: u64) -> Node {
    let options = Options { first_server: ServerId(server), ..simulated(&Clock::manual(start())) };
    Node::join(Store::on(Arc::clone(objects)), options).await.unwrap()
}

fn split_at_5(node: &Node) -> Change {
    let map = node.executor().maps().current();
    let entry = &map.entries()[0];
    Change::Split { range: entry.id, generation: entry.generation, at: partition("5").as_bytes().to_vec() }
}

/// The first process cannot write its log for a while, so its database closes and cannot be opened again. Meanwhile
/// the second process takes the range over and splits it.
#[tokio::test(start_paused = true)]
async fn a_database_that_another_process_took_over_is_not_opened_again() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let gate = Gate::before(&objects);
    let gated: Arc<dyn ObjectStore> = gate.clone();
    let first = open(&gated, simulated(&Clock::manual(start()))).await;
    put(&first, "1", "old", "v").await.unwrap();
    gate.set(Passage::FailLog);
    put(&first, "1", "lost", "v").await.unwrap_err();
    // It tries to open the database again, and takes the next epoch before it fails.
    sleep(Duration::from_secs(1)).await;

    let second = process(&objects, 2).await;
    second.executor().take_over(ServerId(1)).await.unwrap();
    second.executor().carry_out(&split_at_5(&second)).await.unwrap();
    gate.set(Passage::Open);
    sleep(Duration::from_secs(20)).await;

    let late = insert(&first, "1", "late", "v").await;
    let there = get(&second, "1", "late").await.unwrap();
    assert!(late.is_err(), "{late:?}, and the owner has {there:?}");
    insert(&second, "1", "late", "v").await.unwrap();
    assert!(get(&second, "1", "old").await.unwrap().is_some());
}

/// The same without a change of the range: the process that has it now is not disturbed.
#[tokio::test(start_paused = true)]
async fn a_database_that_another_process_serves_is_left_to_it() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let gate = Gate::before(&objects);
    let gated: Arc<dyn ObjectStore> = gate.clone();
    let first = open(&gated, simulated(&Clock::manual(start()))).await;
    gate.set(Passage::FailLog);
    put(&first, "1", "lost", "v").await.unwrap_err();
    sleep(Duration::from_secs(1)).await;
    let second = process(&objects, 2).await;
    second.executor().take_over(ServerId(1)).await.unwrap();
    put(&second, "1", "old", "v").await.unwrap();
    gate.set(Passage::Open);
    for round in 0..20 {
        sleep(Duration::from_secs(1)).await;
        let written = put(&second, "1", &round.to_string(), "v").await;
        assert!(written.is_ok(), "second {round}: {written:?}");
    }
}

/// Its ranges were given to others, but no other process has opened them yet.
#[tokio::test(start_paused = true)]
async fn a_server_whose_lease_was_ended_acknowledges_no_write() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let first = open(&objects, simulated(&Clock::manual(start()))).await;
    put(&first, "1", "old", "v").await.unwrap();
    let second = process(&objects, 2).await;
    let taking = tokio::spawn({
        let second = second.clone();
        async move { second.executor().take_over(ServerId(1)).await }
    });
    sleep(Duration::from_secs(3)).await;
    let late = insert(&first, "1", "late", "v").await;
    assert!(matches!(late, Err(WriteError::Unavailable(_))), "{late:?}");
    taking.await.unwrap().unwrap();
    assert_eq!(get(&second, "1", "late").await.unwrap(), None, "it was not made");
}

/// A server is started in a second process while its first process still runs. Each answers only what is true.
async fn second_life(first: Node, store: impl FnOnce() -> Store) {
    put(&first, "1", "row", "old").await.unwrap();
    let second = Node::open(store(), simulated(&Clock::manual(start()))).await.unwrap();
    put(&second, "1", "row", "new").await.unwrap();
    for _ in 0..200 {
        let read = get(&first, "1", "row").await;
        assert!(!matches!(&read, Ok(Some(value)) if value == "old"), "{read:?}");
        sleep(Duration::from_secs(1)).await;
    }
    put(&second, "1", "row", "newer").await.unwrap();
    assert_eq!(get(&second, "1", "row").await.unwrap().unwrap(), "newer");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_started_again_elsewhere_answers_no_more() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let first = open(&objects, simulated(&Clock::manual(start()))).await;
    second_life(first, || Store::on(objects)).await;
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_has_lost_its_lock_file_is_answered_for_by_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let store = || {
        let location = StoreLocation::Directory(directory.path().to_owned());
        Store::open(&location, StoreOptions::default()).unwrap()
    };
    let first = Node::open(store(), simulated(&Clock::manual(start()))).await.unwrap();
    std::fs::remove_file(directory.path().join(LOCK_FILE)).unwrap();
    second_life(first, store).await;
}

/// Both processes find no map, and each makes the first one.
#[tokio::test(start_paused = true)]
async fn of_two_processes_that_make_a_store_at_the_same_time_one_serves_it() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let gate = Gate::before(&objects);
    let gated: Arc<dyn ObjectStore> = gate.clone();
    gate.set(Passage::HoldMap);
    let slow = tokio::spawn(async move {
        let options = Options { first_server: ServerId(2), ..simulated(&Clock::manual(start())) };
        Node::join(Store::on(gated), options).await.unwrap()
    });
    sleep(Duration::from_secs(1)).await;
    assert_eq!(gate.held(), 1, "it has made the range, and not the map");
    let fast = open(&objects, simulated(&Clock::manual(start()))).await;
    put(&fast, "1", "row", "v").await.unwrap();
    gate.set(Passage::Open);
    let slow = slow.await.unwrap();
    let read = slow.executor().servers()[0].get(&partition("1").key("row")).await;
    assert!(read.is_err(), "{read:?}");
    put(&fast, "1", "row", "again").await.unwrap();
    assert!(get(&fast, "1", "row").await.unwrap().is_some());
}

/// The second process does not know the server of the first one, and gives its range to its own server.
#[tokio::test(start_paused = true)]
async fn the_range_of_a_server_that_is_not_known_is_opened_after_its_lease() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let first = open(&objects, simulated(&Clock::manual(start()))).await;
    put(&first, "1", "row", "old").await.unwrap();
    let second = process(&objects, 2).await;
    second.executor().open_all().await.unwrap();
    put(&second, "1", "row", "new").await.unwrap();
    let read = get(&first, "1", "row").await;
    assert!(!matches!(&read, Ok(Some(value)) if value == "old"), "{read:?}");
    assert_eq!(get(&second, "1", "row").await.unwrap().unwrap(), "new");
}
