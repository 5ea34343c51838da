//! A crash after each step of each change of ranges, while rows are written.
//!
//! The process dies at the step: nothing that it does from then on reaches the store. Another process, with the same
//! servers, opens what is there. It must hold every row that was acknowledged. Its map must keep every rule, with no
//! change half done. The same kind of change must then succeed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{
    Gate, Passage, TABLE, get, memory, open, partition, put, rows, simulated, soon, start, table_keys,
};
use bytes::Bytes;
use object_store::ObjectStore;
use rangehold_engine::store::Store;
use rangehold_engine::{
    ChangeError, Clock, Executor, Node, Options, ReadError, Router, Step, StepHook, Trouble, WriteRequest,
};
use rangehold_map::{Change, RangeEntry, RangeMap, ServerId};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// The kind of change that is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Split,
    Merge,
    /// A merge of ranges that lie on two servers.
    MergeAcross,
    Move,
    Offline,
}

const KINDS: [Kind; 5] = [Kind::Split, Kind::Merge, Kind::MergeAcross, Kind::Move, Kind::Offline];

/// A store, and the process that serves it now.
struct World {
    objects: Arc<dyn ObjectStore>,
    gate: Arc<Gate>,
    node: Node,
    /// The step at which the process dies, once a test has set it.
    crash: Arc<Crash>,
}

#[derive(Debug, Default)]
struct Crash {
    after: Mutex<Option<Step>>,
    /// Whether databases cannot be made for a while, so that the change is undone.
    failing: AtomicBool,
    reached: AtomicBool,
    /// The first change that reaches this step stands still there, until the test lets it go.
    hold: Mutex<Option<Step>>,
    let_go: Notify,
}

impl World {
    async fn new() -> Self {
        Self::on(memory()).await
    }

    async fn on(objects: Arc<dyn ObjectStore>) -> Self {
        let gate = Gate::before(&objects);
        let crash = Arc::<Crash>::default();
        let gated: Arc<dyn ObjectStore> = gate.clone();
        let hook = {
            let (gate, crash) = (gate.clone(), crash.clone());
            StepHook::new(move |step, _| after(step, gate.clone(), crash.clone()))
        };
        let options = Options { servers: 2, after_step: hook, ..simulated(&Clock::manual(start())) };
        Self { node: open(&gated, options).await, objects, gate, crash }
    }

    /// A world that has what a change of this kind needs: rows, and for a merge two ranges.
    async fn prepared_for(kind: Kind) -> Self {
        let world = Self::new().await;
        world.prepare(kind).await;
        world
    }

    async fn crash_and_start_again(self) -> Self {
        self.gate.set(Passage::Dead);
        Self::on(self.objects).await
    }

    fn map(&self) -> Arc<RangeMap> {
        self.node.executor().maps().current()
    }

    /// The ranges that hold the partitions "0" and "9". A split at "5" makes them two.
    fn halves(&self) -> (RangeEntry, RangeEntry) {
        let map = self.map();
        let at = |key: &str| map.lookup(partition(key).as_bytes()).unwrap().clone();
        (at("0"), at("9"))
    }

    /// A change of this kind that fits the map.
    fn change(&self, kind: Kind) -> Change {
        let (left, right) = self.halves();
        let (range, generation) = (left.id, left.generation);
        match kind {
            Kind::Split => Change::Split { range, generation, at: partition("5").as_bytes().to_vec() },
            Kind::Merge | Kind::MergeAcross => Change::Merge {
                left: range,
                left_generation: generation,
                right: right.id,
                right_generation: right.generation,
            },
            Kind::Move => {
                let to = if left.place.server == ServerId(1) { ServerId(2) } else { ServerId(1) };
                Change::Move { range, generation, to: rangehold_map::Home { server: to, ..left.place } }
            }
            Kind::Offline => Change::Offline { range, generation },
        }
    }

    async fn carry_out(&self, kind: Kind) -> Result<(), String> {
        let changed = self.node.executor().carry_out(&self.change(kind)).await;
        changed.map(drop).map_err(|error| error.to_string())
    }

    /// Begins a split that stands still after the step until the test lets it go. Its task returns whether it failed.
    async fn split_held_after(&self, step: Step) -> JoinHandle<bool> {
        self.held_after(Kind::Split, step).await
    }

    /// The same for another kind of change.
    async fn held_after(&self, kind: Kind, step: Step) -> JoinHandle<bool> {
        *self.crash.hold.lock().unwrap() = Some(step);
        let (node, change) = (self.node.clone(), self.change(kind));
        let changing = tokio::spawn(async move { node.executor().carry_out(&change).await.is_err() });
        sleep(Duration::from_secs(1)).await;
        changing
    }

    /// A second manager of the same servers. It takes each change under way for one that was broken off.
    async fn another_manager(&self) -> Executor {
        let here = self.node.executor();
        let other = Executor::new(here.maps().clone(), self.node.router().clone(), here.servers());
        other.open_all().await.unwrap();
        other
    }

    async fn prepare(&self, kind: Kind) {
        for key in 0..10 {
            put(&self.node, &key.to_string(), "first", "v").await.unwrap();
        }
        if matches!(kind, Kind::Merge | Kind::MergeAcross) {
            self.carry_out(Kind::Split).await.unwrap();
        }
        if kind == Kind::MergeAcross {
            self.carry_out(Kind::Move).await.unwrap();
        }
    }

    /// Makes the change, and writes rows until the process dies or the change is over. Returns the rows that were
    /// acknowledged.
    async fn change_under_load(&self, kind: Kind) -> BTreeSet<(String, String)> {
        let acknowledged = Mutex::new(BTreeSet::new());
        let writing = async {
            for number in 0_u64.. {
                let (key, row) = ((number % 10).to_string(), format!("row {number}"));
                if put(&self.node, &key, &row, "v").await.is_ok() {
                    acknowledged.lock().unwrap().insert((key, row));
                }
                sleep(Duration::from_millis(3)).await;
            }
        };
        let changing = async {
            let _ = self.carry_out(kind).await;
            sleep(Duration::from_millis(50)).await;
        };
        tokio::select! {
            () = writing => {}
            over = timeout(Duration::from_secs(90), changing) => drop(over),
        }
        acknowledged.into_inner().unwrap()
    }

    /// Writes a row of this name in every partition.
    async fn put_in_each_partition(&self, row: &str) -> BTreeSet<(String, String)> {
        let rows = row_in_each_partition(row);
        for (key, row) in &rows {
            put(&self.node, key, row, "v").await.unwrap();
        }
        rows
    }

    async fn check_before_and_after_a_crash(self, acknowledged: &BTreeSet<(String, String)>, what: &str) {
        self.check(acknowledged, what).await;
        self.crash_and_start_again().await.check(acknowledged, what).await;
    }

    /// Checks that every acknowledged row is there, and that nothing of the change is half done.
    async fn check(&self, acknowledged: &BTreeSet<(String, String)>, what: &str) {
        let map = self.map();
        assert_eq!(map.check_homes(), [], "{what}");
        assert!(map.entries().iter().all(|entry| entry.intent.is_none()), "{what}: {map:?}");
        for entry in map.entries().iter().filter(|entry| !entry.online) {
            let online = Change::Online { range: entry.id, generation: entry.generation };
            self.node.executor().carry_out(&online).await.unwrap();
        }
        for key in 0..10 {
            assert!(get(&self.node, &key.to_string(), "first").await.unwrap().is_some(), "{what}: {key}");
        }
        for (key, row) in acknowledged {
            assert!(get(&self.node, key, row).await.unwrap().is_some(), "{what}: {key} {row} is lost");
        }
        let all = rows(&self.node, &table_keys(TABLE)).await.unwrap();
        let distinct: BTreeMap<_, _> = all.iter().cloned().collect();
        assert_eq!(all.len(), distinct.len(), "{what}: a row is there twice");
        for key in 0..10 {
            put(&self.node, &key.to_string(), "afterwards", "v").await.unwrap();
        }
    }
}

/// A row of this name in every partition.
fn row_in_each_partition(row: &str) -> BTreeSet<(String, String)> {
    (0..10).map(|key| (key.to_string(), row.to_owned())).collect()
}

async fn after(step: Step, gate: Arc<Gate>, crash: Arc<Crash>) {
    let held = crash.hold.lock().unwrap().take_if(|hold| *hold == step);
    if held.is_some() {
        crash.let_go.notified().await;
    }
    let target = *crash.after.lock().unwrap();
    if target == Some(step) {
        gate.set(Passage::Dead);
        crash.reached.store(true, Ordering::SeqCst);
        std::future::pending::<()>().await;
    }
    if !crash.failing.load(Ordering::SeqCst) {
        return;
    }
    match step {
        Step::Retired => gate.set(Passage::FailFirstManifests),
        Step::UndoDecided => gate.set(Passage::Open),
        // The target cannot open the database. After that the source can open it again.
        Step::Saved => gate.set(Passage::FailOneManifest),
        _ => {}
    }
}

/// The steps of a change that succeeds, or that is undone, in their order.
fn steps(kind: Kind, undone: bool) -> &'static [Step] {
    use Step::{
        Begun, Cloned, Frozen, HeirsOpen, Inherited, LetGo, Published, Recorded, Restored, Retired, Saved,
        Served, Taken, UndoDecided, UndoPublished,
    };
    match (kind, undone) {
        (Kind::Split | Kind::Merge, false) => {
            &[Begun, Frozen, Retired, Cloned, Recorded, HeirsOpen, Served, Inherited, Published]
        }
        // The move that brings the ranges together is a change of its own, which comes before this one.
        (Kind::MergeAcross, false) => &[
            Begun, Frozen, Saved, Taken, LetGo, Served, Published, Retired, Cloned, Recorded, HeirsOpen,
            Inherited,
        ],
        (Kind::Move, false) => &[Begun, Frozen, Saved, Taken, LetGo, Served, Published],
        (Kind::Split | Kind::Merge, true) => &[UndoDecided, Restored, UndoPublished],
        (Kind::Move, true) => &[Restored, UndoPublished],
        (Kind::MergeAcross, true) => &[],
        (Kind::Offline, _) => &[],
    }
}

async fn crash_at(kind: Kind, undone: bool, step: Step) {
    let what = format!("{kind:?}, {}, crash after {step:?}", if undone { "undone" } else { "done" });
    let world = World::prepared_for(kind).await;
    *world.crash.after.lock().unwrap() = Some(step);
    world.crash.failing.store(undone, Ordering::SeqCst);
    let acknowledged = world.change_under_load(kind).await;
    assert!(world.crash.reached.load(Ordering::SeqCst), "{what}: the step was not reached");

    let world = world.crash_and_start_again().await;
    world.check(&acknowledged, &what).await;
    // The change was finished or undone. Either way, a change can be made now.
    let (left, right) = world.halves();
    let again = match kind {
        Kind::Split if left.id != right.id => Kind::Merge,
        Kind::Merge | Kind::MergeAcross if left.id == right.id => Kind::Split,
        other => other,
    };
    world.carry_out(again).await.unwrap_or_else(|why| panic!("{what}: then {again:?}: {why}"));
    let world = world.crash_and_start_again().await;
    world.check(&acknowledged, &what).await;
    world.node.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_step_of_a_change_is_finished_or_undone_by_the_next_process() {
    for kind in KINDS {
        for step in steps(kind, false) {
            crash_at(kind, false, *step).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_a_change_is_undone_is_finished_or_undone_by_the_next_process() {
    for kind in KINDS {
        for step in steps(kind, true) {
            crash_at(kind, true, *step).await;
        }
    }
}

/// Together the lists above have every step. A new step that is in none of them would not be tested.
#[test]
fn every_step_is_crashed_after() {
    let tested: BTreeSet<Step> =
        KINDS.iter().flat_map(|kind| steps(*kind, false).iter().chain(steps(*kind, true))).copied().collect();
    assert_eq!(tested, Step::ALL.into());
}

/// A range that is split because it is busy must not be slow just then.
#[tokio::test(start_paused = true)]
async fn what_was_in_memory_before_a_change_is_in_memory_after_it() {
    for kind in [Kind::Split, Kind::Merge, Kind::MergeAcross, Kind::Move] {
        let world = World::prepared_for(kind).await;
        world.carry_out(kind).await.unwrap();
        world.gate.set(Passage::Dead);
        let read = async {
            for key in 0..10 {
                let row = get(&world.node, &key.to_string(), "first").await;
                assert!(row.is_ok_and(|row| row.is_some()), "{kind:?}: {key}");
            }
            let all = rows(&world.node, &table_keys(TABLE)).await;
            assert_eq!(all.map(|rows| rows.len()).ok(), Some(10), "{kind:?}");
        };
        assert!(timeout(Duration::from_secs(10), read).await.is_ok(), "{kind:?}: a read asks the store");
    }
}

/// A front end that is not told of new maps reads them itself, as soon as an owner is not where it should be.
#[tokio::test(start_paused = true)]
async fn a_front_end_that_hears_of_no_maps_serves_at_once_all_the_same() {
    for kind in KINDS {
        let world = World::prepared_for(kind).await;
        let known = world.node.executor().maps().apart();
        let front_end = Router::new(known.clone(), world.node.executor().servers());
        world.carry_out(kind).await.unwrap();
        assert!(known.current().version() < world.map().version(), "{kind:?}");
        if kind == Kind::Offline {
            let read = front_end.get(&partition("1").key("first")).await;
            assert!(matches!(read, Err(ReadError::Offline(_))), "{read:?}");
            let (left, _) = world.halves();
            let online = Change::Online { range: left.id, generation: left.generation };
            world.node.executor().carry_out(&online).await.unwrap();
            // The router does not read the map at each request for a range that is offline.
            sleep(Duration::from_secs(1)).await;
        }
        let began = Instant::now();
        for key in ["1", "9"].map(|key| partition(key).key("first")) {
            assert!(front_end.get(&key).await.unwrap().is_some(), "{kind:?}");
        }
        assert_eq!(began.elapsed(), Duration::ZERO, "{kind:?}: it waited for somebody to tell it");
        let partition = partition("9");
        let keys = [partition.key("second")];
        let change = vec![(keys[0].clone(), Some("v".into()))];
        let write = WriteRequest::new(&partition, &keys, soon());
        front_end.write(&write, |_, _| Ok::<_, ()>(change.clone())).await.unwrap();
        let count = |seen: &mut usize, _: &[u8], _: &Bytes| {
            *seen += 1;
            ControlFlow::Continue(())
        };
        let seen = front_end.scan(&table_keys(TABLE), || 0, count).await.unwrap();
        assert_eq!(seen, 11, "{kind:?}");
        world.node.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_range_stays_offline_through_a_crash() {
    let world = World::prepared_for(Kind::Offline).await;
    world.carry_out(Kind::Offline).await.unwrap();
    let world = world.crash_and_start_again().await;
    let read = get(&world.node, "1", "first").await;
    assert!(matches!(read, Err(ReadError::Offline(_))), "{read:?}");
    assert!(matches!(world.node.statistics().troubles[..], [Trouble::AllOffline]), "it was the only range");
    world.check(&BTreeSet::new(), "offline").await;
}

/// A process is slow to open the heirs. Before it does, another process finishes the change, and one of the heirs is
/// split again. (The simulation once lost acknowledged rows in this way.)
#[tokio::test(start_paused = true)]
async fn a_process_that_comes_late_to_the_heirs_does_not_serve_them() {
    let world = World::prepared_for(Kind::Split).await;
    let late = world.split_held_after(Step::Cloned).await;
    world.gate.set(Passage::HoldManifests);
    world.crash.let_go.notify_one();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(world.gate.held(), 2, "both heirs are being opened");
    world.gate.set(Passage::Open);
    let other = world.another_manager().await;
    let (_, right) = world.halves();
    let at = partition("7").as_bytes().to_vec();
    let again = Change::Split { range: right.id, generation: right.generation, at };
    other.carry_out(&again).await.unwrap();

    // If the late process served the heirs, it would serve them long enough for rows to be written to them.
    *world.crash.hold.lock().unwrap() = Some(Step::Served);
    world.gate.release();
    sleep(Duration::from_secs(1)).await;
    let acknowledged = row_in_each_partition("late");
    for (key, row) in &acknowledged {
        // If the late process has fenced the one that serves the range, the other manager opens the range again.
        if put(&world.node, key, row, "v").await.is_err() {
            other.open_all().await.unwrap();
            put(&world.node, key, row, "v").await.unwrap();
        }
    }
    world.crash.let_go.notify_one();
    assert!(late.await.unwrap(), "the late one fails");
    world.check_before_and_after_a_crash(&acknowledged, "late").await;
}

/// Another process reads the map when a split is begun. It tries to finish the split when the map says that it is
/// done.
#[tokio::test(start_paused = true)]
async fn a_late_finisher_leaves_heirs_alone_that_the_map_names() {
    let world = World::prepared_for(Kind::Split).await;
    let split = world.split_held_after(Step::Begun).await;
    let here = world.node.executor();
    let options = Options { first_server: ServerId(3), ..simulated(&Clock::manual(start())) };
    let process = Node::join(Store::on(Arc::clone(&world.objects)), options).await.unwrap();
    let its_maps = process.executor().maps().clone();
    let late = Executor::new(its_maps, world.node.router().clone(), here.servers());
    world.crash.let_go.notify_one();
    assert!(!split.await.unwrap(), "the split succeeds");
    let refused = late.open_all().await.unwrap_err();
    assert!(matches!(refused, ChangeError::Overtaken { .. }), "{refused}");
    // Neither heir was opened again, so both still answer.
    let acknowledged = world.put_in_each_partition("late").await;
    world.check_before_and_after_a_crash(&acknowledged, "late finisher").await;
}

/// Another manager finds a split whose heirs are served but not yet in the map. It writes the map, and does not open
/// the heirs.
#[tokio::test(start_paused = true)]
async fn a_finisher_goes_on_with_heirs_that_are_served_already() {
    for step in [Step::Served, Step::Inherited] {
        let world = World::prepared_for(Kind::Split).await;
        let split = world.split_held_after(step).await;
        world.another_manager().await;
        assert_eq!(world.map().entries().len(), 2, "after {step:?}: the map says that it is done");
        let acknowledged = world.put_in_each_partition("served").await;
        world.crash.let_go.notify_one();
        assert!(!split.await.unwrap(), "after {step:?}: the split succeeds");
        world.check_before_and_after_a_crash(&acknowledged, "served already").await;
    }
}

/// Another manager undoes a change just before its heirs are opened. They are not served, and the range goes on.
#[tokio::test(start_paused = true)]
async fn heirs_of_a_change_that_another_has_undone_are_given_up() {
    let world = World::prepared_for(Kind::Split).await;
    let late = world.split_held_after(Step::Cloned).await;
    world.another_manager().await;
    world.crash.let_go.notify_one();
    assert!(late.await.unwrap(), "the late one fails");
    let (left, right) = world.halves();
    assert_eq!(left.id, right.id, "the split was undone");
    let acknowledged = world.put_in_each_partition("late").await;
    world.check_before_and_after_a_crash(&acknowledged, "undone by another").await;
}

/// A process is about to undo a change. Before it reaches the range, another process undoes the change, and the range
/// is retired again, for a change that is done. (The simulation once lost an acknowledged row in this way.)
#[tokio::test(start_paused = true)]
async fn a_late_undo_leaves_the_next_change_alone() {
    let world = World::prepared_for(Kind::Split).await;
    let first = world.split_held_after(Step::Begun).await;
    let here = world.node.executor();
    let late = Executor::new(here.maps().apart(), world.node.router().clone(), here.servers());
    world.another_manager().await;
    world.crash.let_go.notify_one();
    assert!(first.await.unwrap(), "the first split was undone");

    let second = world.split_held_after(Step::Inherited).await;
    let acknowledged = world.put_in_each_partition("late").await;
    let refused = late.open_all().await.unwrap_err();
    assert!(matches!(refused, ChangeError::Overtaken { .. }), "{refused}");
    let world = world.crash_and_start_again().await;
    assert_eq!(world.map().entries().len(), 2, "the second split counts");
    world.check(&acknowledged, "late to undo").await;
    second.abort();
}

/// A move may wait for a target that has died, and is undone meanwhile. Its range must not wait with it.
#[tokio::test(start_paused = true)]
async fn a_move_that_is_undone_while_it_waits_does_not_hold_its_range() {
    for (step, is_sealed) in
        [(Step::Begun, false), (Step::Frozen, false), (Step::Saved, true), (Step::Taken, true)]
    {
        let world = World::prepared_for(Kind::Move).await;
        let moving = world.held_after(Kind::Move, step).await;
        world.another_manager().await;
        if !is_sealed {
            world.crash.let_go.notify_one();
        }
        let mut acknowledged = world.put_in_each_partition("while it waits").await;
        if is_sealed {
            world.crash.let_go.notify_one();
        }
        assert!(moving.await.unwrap(), "{step:?}: the move was undone");
        acknowledged.extend(world.put_in_each_partition("after it").await);
        world.carry_out(Kind::Move).await.unwrap_or_else(|why| panic!("{step:?}: then a move: {why}"));
        world.check_before_and_after_a_crash(&acknowledged, &format!("{step:?}")).await;
    }
}

/// This also holds if a merge had to move a range first, which holds writes twice.
#[tokio::test(start_paused = true)]
async fn a_change_tells_how_long_writes_were_held() {
    let held = [
        (Kind::Split, Step::Retired),
        (Kind::Merge, Step::Recorded),
        (Kind::MergeAcross, Step::Saved),
        (Kind::MergeAcross, Step::Cloned),
        (Kind::Move, Step::Taken),
    ];
    for (kind, step) in held {
        let world = World::prepared_for(kind).await;
        *world.crash.hold.lock().unwrap() = Some(step);
        let change = world.change(kind);
        let let_go = async {
            sleep(Duration::from_secs(10)).await;
            world.crash.let_go.notify_one();
        };
        let (changed, ()) = tokio::join!(world.node.executor().carry_out(&change), let_go);
        let held_for = changed.unwrap().held_for.as_secs_f64();
        assert!((9.0..11.0).contains(&held_for), "{kind:?}, held after {step:?}: {held_for} s");
    }
}

/// With many ranges it takes long to read a map, and writes are held meanwhile.
#[tokio::test(start_paused = true)]
async fn a_change_reads_no_map_that_the_process_knows() {
    for kind in KINDS {
        let world = World::prepared_for(kind).await;
        let before = world.gate.gets().len();
        world.carry_out(kind).await.unwrap();
        let read = world.gate.gets().split_off(before);
        assert!(read.iter().any(|name| name.contains("/manifest/")), "{kind:?}: {read:?}");
        assert!(!read.iter().any(|name| name.starts_with("cluster/map/")), "{kind:?}: {read:?}");
    }
}

/// The disk is full, so nothing can be saved.
#[tokio::test(start_paused = true)]
async fn a_change_on_a_full_disk_ends_and_writes_go_on_afterwards() {
    for kind in [Kind::Split, Kind::Merge, Kind::Move] {
        let world = World::new().await;
        world.prepare(kind).await;
        for key in 0..10 {
            // More than a range may hold in memory when it changes hands.
            put(&world.node, &key.to_string(), "large", &"v".repeat(100_000)).await.unwrap();
        }
        world.gate.set(Passage::HoldWrites);
        let change = world.change(kind);
        let changed = timeout(Duration::from_secs(180), world.node.executor().carry_out(&change)).await;
        assert!(changed.expect("it ends").is_err(), "{kind:?}");
        world.gate.set(Passage::Open);
        sleep(Duration::from_secs(20)).await;
        put(&world.node, "1", "after", "v").await.unwrap();
    }
}

/// An empty range has no file to clone.
#[tokio::test(start_paused = true)]
async fn empty_ranges_are_split_and_merged_again_and_again() {
    let mut world = World::new().await;
    for round in 0..6 {
        world.carry_out(Kind::Split).await.unwrap();
        if round % 2 == 1 {
            world = world.crash_and_start_again().await;
        }
        world.carry_out(Kind::Merge).await.unwrap();
    }
    world.prepare(Kind::Split).await;
    world.check(&BTreeSet::new(), "empty").await;
}
