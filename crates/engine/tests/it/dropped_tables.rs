//! The life of a dropped table, with a crash after each step.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{
    ACCOUNT, Gate, Passage, TABLE, dropped_key, get, insert, memory, note_in_catalogue, open, open_gated,
    partition, put, rows, simulated, soon, start, table_keys, write,
};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use rangehold_engine::{Clock, Node, ReadError, WriteError};
use rangehold_map::{Change, KeyRange, PartitionPrefix, TableId, Timestamp};
use slatedb::admin::AdminBuilder;
use tokio::time::{Instant, sleep, timeout};

const OTHER: TableId = TableId(8);

/// A store whose process can be made to crash.
struct Crashing {
    objects: Arc<dyn ObjectStore>,
    gate: Arc<Gate>,
    server: Node,
    /// The time of the wall clock after each crash. So each crash sets the clock back.
    wall: Timestamp,
}

impl Crashing {
    async fn new() -> Self {
        // A day from now. Objects get their dates from the store's own clock, and look old enough to be garbage.
        let wall = Clock::system().now().saturating_add(86_400 * Timestamp::TICKS_PER_SECOND);
        let objects = memory();
        let (gate, server) = Self::start(&objects, wall).await;
        Self { objects, gate, server, wall }
    }

    async fn start(objects: &Arc<dyn ObjectStore>, wall: Timestamp) -> (Arc<Gate>, Node) {
        open_gated(objects, simulated(&Clock::manual(wall))).await
    }

    async fn crash(&mut self) {
        self.gate.set(Passage::Dead);
        (self.gate, self.server) = Self::start(&self.objects, self.wall).await;
    }

    /// Stops and starts the process. After that, what was in memory is in a sorted file.
    async fn restart(&mut self) {
        self.server.clone().close().await;
        (self.gate, self.server) = Self::start(&self.objects, self.wall).await;
    }

    async fn refuses_the_table(&self) {
        let read = get(&self.server, "p", "1").await;
        assert!(matches!(read, Err(ReadError::TableDropped)), "{read:?}");
        assert!(matches!(rows(&self.server, &table_keys(TABLE)).await, Err(ReadError::TableDropped)));
        let part = table_keys(TABLE).intersect(&KeyRange::prefix(partition("p").as_bytes()));
        assert!(matches!(rows(&self.server, &part).await, Err(ReadError::TableDropped)));
        assert!(matches!(insert(&self.server, "p", "9", "v").await, Err(WriteError::TableDropped)));
    }

    /// The caller's part: the catalogue says that the table is dropped, and then the range is told.
    async fn drop_table(&self) {
        note_in_catalogue(&self.server, TABLE).await;
        self.tell_the_range().await;
    }

    async fn tell_the_range(&self) {
        self.server.router().drop_table(ACCOUNT, TABLE, soon()).await.unwrap();
    }

    /// No row is left of the dropped table, and this many of the other one.
    async fn is_gone(&self, others: usize) {
        assert_eq!(self.server.statistics().ranges[0].1.dropped_tables_pending, 0);
        assert_eq!(rows(&self.server, &table_keys(TABLE)).await.unwrap(), []);
        assert_eq!(rows(&self.server, &table_keys(OTHER)).await.unwrap().len(), others);
    }

    async fn note(&self) -> Option<Bytes> {
        self.server.router().get(&dropped_key(TABLE)).await.unwrap()
    }
}

async fn fill(server: &Node, table: TableId, count: usize) {
    let place = PartitionPrefix::entity(ACCOUNT, table, "p");
    for first in (0..count).step_by(1_000) {
        let rows = first..count.min(first + 1_000);
        let changes = rows.map(|i| (place.key(&i.to_string()), Some(vec![b'v'; 200])));
        write(server, &place, changes.collect()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_table_stays_refused_through_every_crash_and_then_goes() {
    let mut at = Crashing::new().await;
    put(&at.server, "p", "1", "v").await.unwrap();
    fill(&at.server, OTHER, 10).await;

    // The catalogue does not say yet that the table is dropped. A crash leaves the table as it was.
    at.crash().await;
    assert!(get(&at.server, "p", "1").await.unwrap().is_some());

    // The catalogue says it, and the crash comes before any range was told.
    note_in_catalogue(&at.server, TABLE).await;
    at.crash().await;
    at.refuses_the_table().await;

    // The range is told, twice.
    at.tell_the_range().await;
    at.tell_the_range().await;
    at.refuses_the_table().await;
    at.crash().await;
    at.refuses_the_table().await;

    // The rows of the table are gone soon, but its drop is remembered for a minute.
    sleep(Duration::from_secs(30)).await;
    at.refuses_the_table().await;
    assert!(at.note().await.is_some());
    at.crash().await;
    at.refuses_the_table().await;

    sleep(Duration::from_secs(80)).await;
    at.is_gone(10).await;
    assert_eq!(at.note().await, None);
    at.crash().await;
    at.is_gone(10).await;
}

/// The minute is measured by a clock that nobody can set, not by the wall clock.
#[tokio::test(start_paused = true)]
async fn a_step_of_the_wall_clock_does_not_shorten_the_time_of_refusal() {
    let objects = memory();
    let clock = Clock::manual(start());
    let server = open(&objects, simulated(&clock)).await;
    put(&server, "p", "1", "v").await.unwrap();
    server.router().drop_table(ACCOUNT, TABLE, soon()).await.unwrap();
    clock.step(3_600 * Timestamp::TICKS_PER_SECOND);
    sleep(Duration::from_secs(50)).await;
    assert!(matches!(get(&server, "p", "1").await, Err(ReadError::TableDropped)));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(get(&server, "p", "1").await.unwrap(), None);
}

/// The process goes on, and the range is not opened again.
#[tokio::test(start_paused = true)]
async fn a_drop_that_was_abandoned_half_way_is_finished() {
    let at = Crashing::new().await;
    put(&at.server, "p", "1", "v").await.unwrap();
    note_in_catalogue(&at.server, TABLE).await;
    // The caller gives up here.
    sleep(Duration::from_secs(70)).await;
    at.refuses_the_table().await;
    sleep(Duration::from_secs(70)).await;
    at.is_gone(0).await;
    assert_eq!(at.note().await, None);
}

/// The deadline passes while the drop waits for writes that were let in before it and have no room in memory.
#[tokio::test(start_paused = true)]
async fn a_drop_goes_on_after_its_deadline() {
    let mut at = Crashing::new().await;
    at.gate.set(Passage::HoldWrites);
    let value = "v".repeat(1 << 20);
    for i in 0..30 {
        let partition = format!("p{i}");
        let write = put(&at.server, &partition, "1", &value);
        assert!(timeout(Duration::from_millis(10), write).await.is_err());
    }
    let late = at.server.router().drop_table(ACCOUNT, TABLE, Instant::now() + Duration::from_secs(2)).await;
    assert!(matches!(late, Err(ReadError::Unavailable(_))), "{late:?}");
    at.gate.set(Passage::Open);
    sleep(Duration::from_secs(1)).await;
    // The drop is durable: a process that knows nothing of it finds the note.
    at.crash().await;
    at.refuses_the_table().await;
}

/// The row of the catalogue is deleted before the note. A crash between the two leaves the note alone.
#[tokio::test(start_paused = true)]
async fn a_note_without_its_row_in_the_catalogue_goes_too() {
    let mut at = Crashing::new().await;
    put(&at.server, "p", "1", "v").await.unwrap();
    at.tell_the_range().await;
    at.crash().await;
    at.refuses_the_table().await;
    sleep(Duration::from_secs(100)).await;
    at.is_gone(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_large_table_is_left_out_by_compaction_and_its_space_comes_back() {
    let mut at = Crashing::new().await;
    fill(&at.server, OTHER, 500).await;
    fill(&at.server, TABLE, 30_000).await;
    sleep(Duration::from_secs(10)).await;
    let before = stored_bytes(&at.objects).await;
    at.drop_table().await;
    at.refuses_the_table().await;
    // The process crashes in the middle of the work.
    sleep(Duration::from_secs(6)).await;
    at.crash().await;
    at.refuses_the_table().await;
    sleep(Duration::from_secs(120)).await;
    at.is_gone(500).await;
    // Files that compaction replaced are kept for a while for the processes that read them.
    sleep(Duration::from_secs(600)).await;
    let after = stored_bytes(&at.objects).await;
    assert!(after < before / 5, "{before} bytes before, {after} after");
    assert_eq!(rows(&at.server, &table_keys(OTHER)).await.unwrap().len(), 500);
}

/// A small table is erased by deletes. A compaction of the new files alone must not take the deletes
/// away and leave the rows in the old run.
#[tokio::test(start_paused = true)]
async fn deletes_of_a_small_dropped_table_outlive_a_compaction_of_the_new_files() {
    let mut at = Crashing::new().await;
    fill(&at.server, TABLE, 20).await;
    fill(&at.server, OTHER, 20).await;
    at.restart().await;
    compact_new_files(&mut at).await;

    at.drop_table().await;
    sleep(Duration::from_secs(10)).await;
    at.restart().await;
    compact_new_files(&mut at).await;

    sleep(Duration::from_secs(120)).await;
    at.is_gone(20).await;
}

/// A row that was let in before the drop and becomes durable long after the sweeper first looked.
#[tokio::test(start_paused = true)]
async fn a_row_that_was_on_its_way_when_its_table_was_dropped_goes_too() {
    let at = Crashing::new().await;
    note_in_catalogue(&at.server, TABLE).await;
    at.gate.set(Passage::HoldWrites);
    let late = tokio::spawn({
        let server = at.server.clone();
        async move { put(&server, "p", "1", "v").await }
    });
    sleep(Duration::from_millis(10)).await;
    let dropping = tokio::spawn({
        let server = at.server.clone();
        async move { server.router().drop_table(ACCOUNT, TABLE, soon()).await }
    });
    sleep(Duration::from_secs(20)).await;
    assert!(!late.is_finished() && !dropping.is_finished());
    at.gate.set(Passage::Open);
    late.await.unwrap().unwrap();
    dropping.await.unwrap().unwrap();

    sleep(Duration::from_secs(120)).await;
    at.is_gone(0).await;
}

/// The table is dropped while a range with its rows is offline.
#[tokio::test(start_paused = true)]
async fn a_range_that_comes_online_shows_no_row_of_a_table_that_was_dropped_meanwhile() {
    let mut at = Crashing::new().await;
    put(&at.server, "p", "1", "v").await.unwrap();
    let executor = at.server.executor().clone();
    let entry = executor.maps().current().entries()[0].clone();
    let split = table_keys(TABLE).low().to_vec();
    let split = Change::Split { range: entry.id, generation: entry.generation, at: split };
    executor.carry_out(&split).await.unwrap();
    let entry = executor.maps().current().entries()[1].clone();
    let offline = Change::Offline { range: entry.id, generation: entry.generation };
    executor.carry_out(&offline).await.unwrap();
    note_in_catalogue(&at.server, TABLE).await;
    at.server.router().drop_table(ACCOUNT, TABLE, soon()).await.unwrap();

    let entry = executor.maps().current().entries()[1].clone();
    let online = Change::Online { range: entry.id, generation: entry.generation };
    let server = executor.servers()[0].clone();
    let key = partition("p").key("1");
    let coming = tokio::spawn(async move { executor.carry_out(&online).await });
    let mut answer = server.get(&key).await;
    while matches!(answer, Err(ReadError::NotOwned)) {
        tokio::task::yield_now().await;
        answer = server.get(&key).await;
    }
    assert!(matches!(answer, Err(ReadError::TableDropped)), "{answer:?}");
    coming.await.unwrap().unwrap();
    // The note is durable: the range knows of the drop also without the catalogue.
    write(&at.server, &PartitionPrefix::catalogue(ACCOUNT), vec![(dropped_key(TABLE), None)]).await.unwrap();
    at.crash().await;
    at.refuses_the_table().await;
}

/// Each opening of the range reads the note again, and its time does not begin again there.
#[tokio::test(start_paused = true)]
async fn a_dropped_table_is_forgotten_although_its_range_changes_hands_all_the_time() {
    let at = Crashing::new().await;
    put(&at.server, "p", "1", "v").await.unwrap();
    let executor = at.server.executor().clone();
    let entry = executor.maps().current().entries()[0].clone();
    let split = table_keys(TABLE).low().to_vec();
    let split = Change::Split { range: entry.id, generation: entry.generation, at: split };
    executor.carry_out(&split).await.unwrap();
    at.drop_table().await;
    for _ in 0..5 {
        sleep(Duration::from_secs(20)).await;
        for online in [false, true] {
            let entry = executor.maps().current().entries()[1].clone();
            let (range, generation) = (entry.id, entry.generation);
            let change = match online {
                true => Change::Online { range, generation },
                false => Change::Offline { range, generation },
            };
            executor.carry_out(&change).await.unwrap();
        }
    }
    let pending: Vec<u64> =
        at.server.statistics().ranges.iter().map(|(_, range)| range.dropped_tables_pending).collect();
    assert_eq!(pending, [0, 0]);
    assert_eq!(at.note().await, None);
}

/// Writes small files until compaction makes a run of them, and leaves the older runs alone.
async fn compact_new_files(at: &mut Crashing) {
    let runs = files(&at.objects).await.1;
    for _ in 0..8 {
        fill(&at.server, OTHER, 1).await;
        at.restart().await;
        sleep(Duration::from_secs(3)).await;
        if files(&at.objects).await == (0, runs + 1) {
            return;
        }
    }
    panic!("{:?} after {runs} runs", files(&at.objects).await);
}

/// The number of new files, and the number of runs, that the range has.
async fn files(objects: &Arc<dyn ObjectStore>) -> (usize, usize) {
    let admin = AdminBuilder::new("ranges/1-1-1", Arc::clone(objects)).build();
    let manifest = admin.read_manifest(None).await.unwrap().unwrap();
    (manifest.l0().len(), manifest.compacted().len())
}

async fn stored_bytes(objects: &Arc<dyn ObjectStore>) -> u64 {
    let all: Vec<_> = objects.list(Some(&Path::from("ranges"))).try_collect().await.unwrap();
    all.iter().map(|object| object.size).sum()
}
