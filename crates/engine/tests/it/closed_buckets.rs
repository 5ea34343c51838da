//! Closed buckets: no write comes through, also after changes of ranges and crashes, until they are opened again.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::support::{Passage, memory, open, open_gated, simulated, soon, start, write};
use rangehold_engine::{Clock, Node, Options, ReadError, Router, Step, StepHook, WriteError, WriteRequest};
use rangehold_map::key::{bucket_objects, names_from};
use rangehold_map::{BucketId, Change, KeyRange, PartitionPrefix};

const BUCKET: BucketId = BucketId(17);
const OTHER: BucketId = BucketId(18);

async fn put(node: &Node, bucket: BucketId, name: &str) -> Result<(), ()> {
    let partition = PartitionPrefix::object(bucket, name);
    let key = [partition.as_bytes(), &[0]].concat();
    match write(node, &partition, vec![(key, Some(vec![1]))]).await {
        Ok(_) => Ok(()),
        Err(WriteError::BucketClosed) => Err(()),
        Err(error) => panic!("{error}"),
    }
}

async fn names(node: &Node, bucket: BucketId) -> usize {
    crate::support::rows(node, &KeyRange::prefix(&bucket_objects(bucket))).await.unwrap().len()
}

async fn split(node: &Node, at: Vec<u8>) {
    let map = node.executor().maps().current();
    let entry = map.lookup(&at).unwrap();
    let change = Change::Split { range: entry.id, generation: entry.generation, at };
    node.executor().carry_out(&change).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_closed_bucket_takes_no_writes_over_splits_merges_and_crashes() {
    let objects = memory();
    let (gate, node) = open_gated(&objects, simulated(&Clock::manual(start()))).await;
    put(&node, BUCKET, "a").await.unwrap();
    put(&node, BUCKET, "x").await.unwrap();
    split(&node, names_from(BUCKET, "m")).await;
    node.router().close_bucket(BUCKET, soon(), ()).await.unwrap();
    node.router().close_bucket(BUCKET, soon(), ()).await.unwrap();
    for name in ["a", "x"] {
        assert_eq!(put(&node, BUCKET, name).await, Err(()));
        assert_eq!(put(&node, OTHER, name).await, Ok(()));
    }
    assert_eq!(names(&node, BUCKET).await, 2);
    // A part that is split, and the two that are merged again, still refuse.
    split(&node, names_from(BUCKET, "t")).await;
    assert_eq!(put(&node, BUCKET, "u").await, Err(()));
    let map = node.executor().maps().current();
    let [left, right] = ["o", "u"].map(|name| map.lookup(&names_from(BUCKET, name)).unwrap().clone());
    let (left_generation, right_generation) = (left.generation, right.generation);
    let change = Change::Merge { left: left.id, left_generation, right: right.id, right_generation };
    node.executor().carry_out(&change).await.unwrap();
    assert_eq!(put(&node, BUCKET, "u").await, Err(()));
    gate.set(Passage::Dead);

    let node = open(&objects, simulated(&Clock::manual(start()))).await;
    assert_eq!(node.router().closed_buckets(), BTreeSet::from([BUCKET]));
    for name in ["a", "n", "u", "x"] {
        assert_eq!(put(&node, BUCKET, name).await, Err(()));
    }
    node.router().reopen_bucket(BUCKET, soon(), ()).await.unwrap();
    assert_eq!(node.router().closed_buckets(), BTreeSet::new());
    assert_eq!(put(&node, BUCKET, "n").await, Ok(()));
    node.close().await;
    let node = open(&objects, simulated(&Clock::manual(start()))).await;
    assert_eq!(put(&node, BUCKET, "u").await, Ok(()));
    assert_eq!((names(&node, BUCKET).await, names(&node, OTHER).await), (4, 2));
    node.close().await;
}

/// A write that has seen changes of folders up to `seen`. Fails with the fence that it meets.
async fn put_having_seen(node: &Node, name: &str, seen: u64) -> Result<(), u64> {
    let partition = PartitionPrefix::object(BUCKET, name);
    let key = [partition.as_bytes(), &[0]].concat();
    let request = WriteRequest { seen: Some(seen), ..WriteRequest::new(&partition, &[], soon()) };
    let judged = |_: &[_], _| Ok::<_, ()>(vec![(key.clone(), Some(vec![1]))]);
    match node.router().write(&request, judged).await {
        Ok(_) => Ok(()),
        Err(WriteError::Fenced(fence)) => Err(fence),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_fence_refuses_writes_that_have_seen_less_over_splits_merges_and_crashes() {
    let objects = memory();
    let (gate, node) = open_gated(&objects, simulated(&Clock::manual(start()))).await;
    assert_eq!(put_having_seen(&node, "a", 0).await, Ok(()));
    split(&node, names_from(BUCKET, "m")).await;
    node.router().fence_bucket(BUCKET, 2, soon()).await.unwrap();
    node.router().fence_bucket(BUCKET, 1, soon()).await.unwrap();
    split(&node, names_from(BUCKET, "t")).await;
    for name in ["a", "o", "u"] {
        assert_eq!(put_having_seen(&node, name, 1).await, Err(2));
        assert_eq!(put_having_seen(&node, name, 2).await, Ok(()));
        assert_eq!(put(&node, BUCKET, name).await, Ok(()), "folders have no part in it");
        assert_eq!(put(&node, OTHER, name).await, Ok(()));
    }
    let map = node.executor().maps().current();
    let [left, right] = ["o", "u"].map(|name| map.lookup(&names_from(BUCKET, name)).unwrap().clone());
    let (left_generation, right_generation) = (left.generation, right.generation);
    let change = Change::Merge { left: left.id, left_generation, right: right.id, right_generation };
    node.executor().carry_out(&change).await.unwrap();
    assert_eq!(put_having_seen(&node, "u", 1).await, Err(2));
    gate.set(Passage::Dead);

    let node = open(&objects, simulated(&Clock::manual(start()))).await;
    for name in ["a", "n", "u"] {
        assert_eq!(put_having_seen(&node, name, 1).await, Err(2));
    }
    node.router().unfence_bucket(BUCKET, soon()).await.unwrap();
    assert_eq!(put_having_seen(&node, "n", 0).await, Ok(()));
    node.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_is_raised_while_heirs_take_over_is_not_lowered_by_what_they_inherit() {
    let (objects, router) = (memory(), Arc::new(OnceLock::<Router>::new()));
    let raised = Arc::clone(&router);
    let hook = StepHook::new(move |step, _| {
        let router = raised.get().filter(|_| step == Step::Served).cloned();
        async move {
            if let Some(router) = router {
                router.fence_bucket(BUCKET, 5, soon()).await.unwrap();
            }
        }
    });
    let options = Options { after_step: hook, ..simulated(&Clock::manual(start())) };
    let (gate, node) = open_gated(&objects, options).await;
    node.router().fence_bucket(BUCKET, 3, soon()).await.unwrap();
    assert!(router.set(node.router().clone()).is_ok());
    split(&node, names_from(BUCKET, "m")).await;
    gate.set(Passage::Dead);

    let node = open(&objects, simulated(&Clock::manual(start()))).await;
    for name in ["a", "n"] {
        assert_eq!(put_having_seen(&node, name, 4).await, Err(5), "{name}");
    }
    node.close().await;
}

#[tokio::test(start_paused = true)]
async fn no_write_is_acknowledged_between_the_look_and_the_deletion() {
    let objects = memory();
    let node = open(&objects, simulated(&Clock::manual(start()))).await;
    split(&node, names_from(BUCKET, "5")).await;
    for round in 0..20 {
        let bucket = BucketId(100 + round);
        let mut writers = tokio::task::JoinSet::new();
        for n in 0..20_u64 {
            let node = node.clone();
            writers.spawn(async move {
                tokio::time::sleep(Duration::from_millis(n)).await;
                put(&node, bucket, &n.to_string()).await.is_ok()
            });
        }
        tokio::time::sleep(Duration::from_millis(round)).await;
        node.router().close_bucket(bucket, soon(), ()).await.unwrap();
        let seen = names(&node, bucket).await;
        let acknowledged = writers.join_all().await.into_iter().filter(|&made| made).count();
        assert_eq!(seen, acknowledged, "round {round}");
    }
    node.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_bucket_with_an_offline_range_cannot_be_closed() {
    let node = open(&memory(), simulated(&Clock::manual(start()))).await;
    split(&node, names_from(BUCKET, "m")).await;
    let entry = node.executor().maps().current().lookup(&names_from(BUCKET, "x")).unwrap().clone();
    let change = Change::Offline { range: entry.id, generation: entry.generation };
    node.executor().carry_out(&change).await.unwrap();
    let refused = node.router().close_bucket(BUCKET, soon(), ()).await;
    assert!(matches!(refused, Err(ReadError::Offline(range)) if range == entry.id), "{refused:?}");
    node.close().await;
}
