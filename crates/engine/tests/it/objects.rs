//! Rows of objects: scans that seek, and generations that grow.

use std::borrow::Cow;

use crate::support::{Passage, memory, open_gated, simulated, soon, start, write};
use bytes::Bytes;
use proptest::prelude::*;
use rangehold_engine::{Clock, Node, Visit, WriteRequest};
use rangehold_map::key::{bucket_objects, names_from};
use rangehold_map::{
    BucketId, Change, KeyRange, ObjectGeneration, ObjectKey, ObjectRow, PartitionPrefix, Timestamp,
};

const BUCKET: BucketId = BucketId(17);

fn key(name: &str, row: ObjectRow<'static>) -> Vec<u8> {
    ObjectKey { bucket: BUCKET, name: Cow::Borrowed(name), row }.encode()
}

/// Writes the head of a name, and `older` generations behind it.
async fn put_name(node: &Node, name: &str, older: u64) {
    let partition = PartitionPrefix::object(BUCKET, name);
    let behind = (0..older).map(|n| key(name, ObjectRow::NotLive(ObjectGeneration(n))));
    let rows = std::iter::once(key(name, ObjectRow::Head)).chain(behind);
    write(node, &partition, rows.map(|key| (key, Some(Vec::new()))).collect()).await.unwrap();
}

async fn split(node: &Node, at: &str) {
    let at = names_from(BUCKET, at);
    let map = node.executor().maps().current();
    let entry = map.lookup(&at).unwrap();
    let change = Change::Split { range: entry.id, generation: entry.generation, at };
    node.executor().carry_out(&change).await.unwrap();
}

/// The keys that a scan of the bucket shows to a visitor that answers by `want`.
async fn visited(node: &Node, want: impl Fn(&[u8]) -> Visit + Send + Sync) -> Vec<Vec<u8>> {
    let note = |seen: &mut Vec<Vec<u8>>, key: &[u8], _: &Bytes| {
        seen.push(key.to_vec());
        want(key)
    };
    let keys = KeyRange::prefix(&bucket_objects(BUCKET));
    node.router().scan(&keys, Vec::new, note).await.unwrap()
}

fn past_name(key: &[u8]) -> Visit {
    Visit::Seek(ObjectKey::decode(key).unwrap().past_name())
}

#[tokio::test(start_paused = true)]
async fn a_scan_that_seeks_sees_only_heads_in_all_ranges() {
    let (_gate, node) = open_gated(&memory(), simulated(&Clock::manual(start()))).await;
    for name in ["a", "b", "c", "d", "e", "f"] {
        put_name(&node, name, if name == "c" { 1_000 } else { 3 }).await;
    }
    split(&node, "c").await;
    split(&node, "e").await;
    put_name(&node, "g", 50).await;
    let heads: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"].map(|name| key(name, ObjectRow::Head)).into();
    assert_eq!(visited(&node, past_name).await, heads);
    // From the first range into the last one, past all keys of the middle one.
    let jump = |_: &[u8]| Visit::Seek(names_from(BUCKET, "f"));
    let seen = visited(&node, jump).await;
    assert_eq!(seen[..2], [heads[0].clone(), heads[5].clone()]);
    // Past the end of the scan, and from there on nothing.
    assert_eq!(visited(&node, |_| Visit::Seek(vec![0x31])).await, heads[..1]);
    assert_eq!(visited(&node, |_| Visit::Stop).await, heads[..1]);
    node.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the visitor asks for, it sees what a walk over all rows would find. Some rows are in sorted files,
    /// some in the memtable, some are deleted.
    #[test]
    fn a_seek_finds_what_a_walk_finds(
        names in prop::collection::vec((0u8..12, 0u64..30), 1..12),
        gone in prop::collection::vec(0u8..12, 0..3),
        cuts in prop::collection::btree_set(1u8..12, 0..3),
        seeks in prop::collection::vec(prop::option::of((0u8..13, 0u64..30)), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (_gate, node) = open_gated(&memory(), simulated(&Clock::manual(start()))).await;
            let name = |n: u8| format!("n{n:02}");
            for (n, older) in &names {
                put_name(&node, &name(*n), *older).await;
            }
            for cut in &cuts {
                split(&node, &name(*cut)).await;
            }
            for n in &gone {
                let name = name(*n);
                write(&node, &PartitionPrefix::object(BUCKET, &name), vec![(key(&name, ObjectRow::Head), None)]).await.unwrap();
            }
            let all = visited(&node, |_| Visit::Next).await;
            let wants: Vec<Visit> = seeks.iter().map(|seek| match seek {
                None => Visit::Next,
                Some((n, row)) => Visit::Seek(key(&name(*n), ObjectRow::NotLive(ObjectGeneration(*row)))),
            }).collect();
            // What is wanted depends on the row alone, so that a try that is made again asks for the same.
            let want = |key: &[u8]| wants[key.iter().map(|&byte| usize::from(byte)).sum::<usize>() % wants.len()].clone();
            let mut expected = Vec::new();
            let mut at = 0;
            while let Some(row) = all.get(at) {
                expected.push(row.clone());
                at = match want(row) {
                    Visit::Seek(key) => all.partition_point(|other| *other < key).max(at + 1),
                    _ => at + 1,
                };
            }
            assert_eq!(visited(&node, want).await, expected);
            node.close().await;
        });
    }
}

/// Generations of one name, over kills and steps of the clock.
#[tokio::test(start_paused = true)]
async fn generations_of_a_name_grow_over_kills_and_clock_steps() {
    let objects = memory();
    let name = PartitionPrefix::object(BUCKET, "a");
    let head = [key("a", ObjectRow::Head)];
    let mut last = ObjectGeneration(0);
    for life in 0..10_i64 {
        // Each life finds another clock: an hour earlier, a minute later, the same.
        let steps = [0, -3_600, 60, -1][life as usize % 4];
        let clock = Clock::manual(start().saturating_add(steps * Timestamp::TICKS_PER_SECOND));
        let (gate, node) = open_gated(&objects, simulated(&clock)).await;
        for turn in 0..100 {
            if turn == 50 {
                clock.step(-Timestamp::TICKS_PER_SECOND);
            }
            let request = WriteRequest::new(&name, &head, soon());
            let made = node.router().write(&request, |current, at| {
                let is_there = current[0].is_some();
                assert_eq!(at.ticks() % Timestamp::TICKS_PER_US, 0);
                Ok::<_, ()>(vec![(head[0].clone(), (!is_there).then(|| at.ticks().to_be_bytes().to_vec()))])
            });
            let generation = ObjectGeneration::of(made.await.unwrap());
            assert!(last < generation && generation.0 < 1 << 53, "{last:?} {generation:?}");
            last = generation;
        }
        gate.set(Passage::Dead);
    }
}
