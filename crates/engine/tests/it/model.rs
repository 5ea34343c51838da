//! Random requests, crashes, clean restarts and steps of the clock, against an ordered map.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::support::{
    ACCOUNT, Exists, Gate, Passage, memory, note_in_catalogue, open, rows, simulated, soon, start, table_keys,
};
use object_store::ObjectStore;
use proptest::prelude::*;
use rangehold_engine::{Clock, Node, ReadError, RowChanges, WriteError, WriteRequest};
use rangehold_map::{KeyRange, PartitionPrefix, TableId, Timestamp};
use tokio::time::sleep;

/// A row, by numbers: table, partition, row.
type Name = (u64, u8, u8);

#[derive(Debug, Clone)]
enum Step {
    /// Puts rows of one partition in one batch.
    Put {
        table: u64,
        partition: u8,
        rows: BTreeSet<u8>,
        size: usize,
    },
    Insert(Name),
    Delete(Name),
    Get(Name),
    /// Scans the rows of a table between two partitions.
    Scan {
        table: u64,
        from: u8,
        to: u8,
    },
    Drop(u64),
    Crash,
    Restart,
    ClockBy {
        seconds: i64,
    },
    Wait {
        seconds: u64,
    },
}

fn name() -> impl Strategy<Value = Name> {
    (0u64..3, 0u8..4, 0u8..8)
}

fn step() -> impl Strategy<Value = Step> {
    let put = (0u64..3, 0u8..4, prop::collection::btree_set(0u8..8, 1..8), 0usize..40_000)
        .prop_map(|(table, partition, rows, size)| Step::Put { table, partition, rows, size });
    prop_oneof![
        12 => put,
        4 => name().prop_map(Step::Insert),
        4 => name().prop_map(Step::Delete),
        6 => name().prop_map(Step::Get),
        4 => (0u64..3, 0u8..5, 0u8..5).prop_map(|(table, from, to)| Step::Scan { table, from, to }),
        1 => (0u64..3).prop_map(Step::Drop),
        2 => Just(Step::Crash),
        1 => Just(Step::Restart),
        1 => (-7_200i64..7_200).prop_map(|seconds| Step::ClockBy { seconds }),
        1 => (0u64..90).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

/// The server, and what should be in it.
struct Run {
    objects: Arc<dyn ObjectStore>,
    gate: Arc<Gate>,
    server: Node,
    clock: Clock,
    expected: BTreeMap<Name, Vec<u8>>,
    /// How often each table was dropped. After each drop, a table of the same name has another id.
    lives: [u64; 3],
    last: Timestamp,
    written: u64,
}

impl Run {
    async fn new() -> Self {
        let objects = memory();
        let gate = Gate::before(&objects);
        let gated: Arc<dyn ObjectStore> = gate.clone();
        let clock = Clock::manual(start());
        Self {
            server: open(&gated, simulated(&clock)).await,
            objects,
            gate,
            clock,
            expected: BTreeMap::new(),
            lives: [0; 3],
            last: Timestamp::default(),
            written: 0,
        }
    }

    fn table(&self, table: u64) -> TableId {
        TableId(100 * (table + 1) + self.lives[usize::try_from(table).unwrap()])
    }

    fn partition(&self, table: u64, partition: u8) -> PartitionPrefix {
        PartitionPrefix::entity(ACCOUNT, self.table(table), &partition.to_string())
    }

    fn key(&self, (table, partition, row): Name) -> Vec<u8> {
        self.partition(table, partition).key(&row.to_string())
    }

    async fn reopen(&mut self) {
        // The next process has its own clock.
        self.clock = Clock::manual(self.clock.wall());
        self.gate = Gate::before(&self.objects);
        let gated: Arc<dyn ObjectStore> = self.gate.clone();
        self.server = open(&gated, simulated(&self.clock)).await;
    }

    async fn write(&mut self, (table, partition, _): Name, changes: RowChanges) {
        let place = self.partition(table, partition);
        let written = self
            .server
            .router()
            .write::<Exists>(&WriteRequest::new(&place, &[], soon()), |_, _| Ok(changes.clone()))
            .await;
        self.grows(written.unwrap());
    }

    fn grows(&mut self, at: Timestamp) {
        assert!(at > self.last, "{at:?} after {:?}", self.last);
        self.last = at;
    }

    fn value(&mut self, size: usize) -> Vec<u8> {
        self.written += 1;
        let mut value = self.written.to_be_bytes().to_vec();
        value.resize(size + 8, 0);
        value
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Put { table, partition, rows, size } => {
                let mut changes = Vec::new();
                for row in rows {
                    let value = self.value(size);
                    changes.push((self.key((table, partition, row)), Some(value.clone())));
                    self.expected.insert((table, partition, row), value);
                }
                self.write((table, partition, 0), changes).await;
            }
            Step::Insert(name) => self.insert(name).await,
            Step::Delete(name) => {
                self.expected.remove(&name);
                self.write(name, vec![(self.key(name), None)]).await;
            }
            Step::Get(name) => {
                let got = self.server.router().get(&self.key(name)).await.unwrap();
                assert_eq!(got.as_deref(), self.expected.get(&name).map(Vec::as_slice));
            }
            Step::Scan { table, from, to } => self.scan(table, from, to).await,
            Step::Drop(table) => self.drop_table(table).await,
            Step::Crash => {
                self.gate.set(Passage::Dead);
                self.reopen().await;
            }
            Step::Restart => {
                self.server.clone().close().await;
                self.reopen().await;
            }
            Step::ClockBy { seconds } => self.clock.step(seconds * Timestamp::TICKS_PER_SECOND),
            Step::Wait { seconds } => sleep(Duration::from_secs(seconds)).await,
        }
    }

    async fn insert(&mut self, name: Name) {
        let place = self.partition(name.0, name.1);
        let keys = [self.key(name)];
        let value = self.value(10);
        let request = WriteRequest::new(&place, &keys, soon());
        let judged = self.server.router().write(&request, |current, _| match current {
            [None] => Ok(vec![(keys[0].clone(), Some(value.clone()))]),
            _ => Err(Exists),
        });
        match judged.await {
            Ok(at) => {
                assert_eq!(self.expected.insert(name, value), None);
                self.grows(at);
            }
            Err(WriteError::Refused(Exists)) => assert!(self.expected.contains_key(&name)),
            Err(other) => panic!("{other:?}"),
        }
    }

    async fn scan(&mut self, table: u64, from: u8, to: u8) {
        let low = self.partition(table, from).as_bytes().to_vec();
        let high = self.partition(table, to).as_bytes().to_vec();
        let got = rows(&self.server, &KeyRange::new(low, Some(high))).await.unwrap();
        let inside = self
            .expected
            .iter()
            .filter(|((t, partition, _), _)| *t == table && (from..to).contains(partition));
        let expected: Vec<_> = inside.map(|(name, value)| (self.key(*name), value.clone())).collect();
        assert_eq!(got, expected);
    }

    async fn drop_table(&mut self, table: u64) {
        let id = self.table(table);
        note_in_catalogue(&self.server, id).await;
        self.server.router().drop_table(ACCOUNT, id, soon()).await.unwrap();
        let read = rows(&self.server, &table_keys(id)).await;
        assert!(matches!(read, Err(ReadError::TableDropped)), "{read:?}");
        self.lives[usize::try_from(table).unwrap()] += 1;
        self.expected.retain(|(t, _, _), _| *t != table);
    }

    /// Checks that every row is there, and that in the end nothing else is.
    async fn finish(mut self) {
        for table in 0..3 {
            self.scan(table, 0, 4).await;
        }
        sleep(Duration::from_secs(300)).await;
        for table in 0..3 {
            self.scan(table, 0, 4).await;
        }
        assert_eq!(self.server.statistics().ranges[0].1.dropped_tables_pending, 0);
        let stored = rows(&self.server, &KeyRange::whole()).await.unwrap();
        assert_eq!(stored.len(), self.expected.len(), "rows of dropped tables are left");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_server_is_an_ordered_map(steps in prop::collection::vec(step(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut run = Run::new().await;
            for step in steps {
                run.take(step).await;
            }
            run.finish().await;
        });
    }
}
