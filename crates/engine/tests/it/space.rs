//! A crash after each step that gives space back, and after any object that is written or deleted on the way.
//!
//! Ranges are split and merged, and then left to the housekeeper. The process dies: nothing that it does from then on
//! reaches the store. Another process opens what is there. It must serve every row. Within some minutes, nothing may
//! be left of ranges that are no longer in the map.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Gate, Passage, get, memory, partition, put, simulated};
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use rangehold_engine::store::Store;
use rangehold_engine::{CHANGES_PREFIX, Clock, Node, Options, SpaceHook, SpaceStep};
use rangehold_map::{Change, RangeEntry};
use slatedb::admin::AdminBuilder;
use tokio::time::sleep;

const KEYS: u64 = 10;
/// More than twice the time that it takes without a crash.
const SECONDS_MAX: u64 = 900;

/// The steps after which a process dies, and the steps that it has reached.
#[derive(Debug, Default)]
struct Crash {
    after: Mutex<BTreeSet<SpaceStep>>,
    reached: Mutex<BTreeSet<SpaceStep>>,
}

/// A store, and the process that serves it now.
struct World {
    objects: Arc<dyn ObjectStore>,
    clock: Clock,
    gate: Arc<Gate>,
    crash: Arc<Crash>,
    node: Node,
}

impl World {
    /// Makes rows in ranges that were split and merged. Four ranges are dead, and two live on the files of these.
    async fn new(die_after: &[SpaceStep]) -> Self {
        // Objects get real times, so the clock begins with the real time. After that it follows tokio's time.
        let clock = Clock::manual(Clock::system().wall());
        let world = Self::on(memory(), clock, die_after).await;
        for key in 0..KEYS {
            put(&world.node, &key.to_string(), "row", "first").await.unwrap();
        }
        world.split("5").await;
        for key in 0..KEYS {
            put(&world.node, &key.to_string(), "row", "second").await.unwrap();
        }
        world.split("8").await;
        world.merge().await;
        world
    }

    async fn on(objects: Arc<dyn ObjectStore>, clock: Clock, die_after: &[SpaceStep]) -> Self {
        let gate = Gate::before(&objects);
        gate.list_backwards();
        let crash = Arc::<Crash>::default();
        let after_space_step = {
            let (gate, crash) = (gate.clone(), crash.clone());
            SpaceHook::new(move |step, _| after(step, gate.clone(), crash.clone()))
        };
        let gated: Arc<dyn ObjectStore> = gate.clone();
        let options = Options { after_space_step, ..simulated(&clock) };
        let node = Node::open(Store::on(gated), options).await.unwrap();
        *crash.after.lock().unwrap() = die_after.iter().copied().collect();
        Self { objects, clock, gate, crash, node }
    }

    async fn start_again(self, die_after: &[SpaceStep]) -> Self {
        self.gate.set(Passage::Dead);
        Self::on(self.objects, self.clock, die_after).await
    }

    fn entry(&self, key: &str) -> RangeEntry {
        self.node.executor().maps().current().lookup(partition(key).as_bytes()).unwrap().clone()
    }

    async fn split(&self, at: &str) {
        let (entry, at) = (self.entry(at), partition(at).as_bytes().to_vec());
        let split = Change::Split { range: entry.id, generation: entry.generation, at };
        self.node.executor().carry_out(&split).await.unwrap();
    }

    /// Merges the two ranges on the left.
    async fn merge(&self) {
        let (left, right) = (self.entry("0"), self.entry("6"));
        let merge = Change::Merge {
            left: left.id,
            left_generation: left.generation,
            right: right.id,
            right_generation: right.generation,
        };
        self.node.executor().carry_out(&merge).await.unwrap();
    }

    /// Checks that every row is served.
    async fn check(&self, what: &str) {
        for key in 0..KEYS {
            let row = get(&self.node, &key.to_string(), "row").await.unwrap();
            assert_eq!(row.as_deref(), Some("second".as_bytes()), "{what}: {key}");
        }
    }

    /// What is left of ranges that are not in the map: their objects, records, and pins.
    async fn leftovers(&self) -> BTreeSet<String> {
        let map = self.node.executor().maps().current();
        let living: Vec<String> =
            map.entries().iter().map(|entry| format!("ranges/{}", entry.place.database)).collect();
        let mut left = BTreeSet::new();
        for prefix in ["ranges", CHANGES_PREFIX] {
            let objects: Vec<_> = self.objects.list(Some(&Path::from(prefix))).try_collect().await.unwrap();
            let paths = objects.iter().map(|object| object.location.to_string());
            let is_living = |path: &str| living.iter().any(|living| path.starts_with(&format!("{living}/")));
            left.extend(paths.filter(|path| !is_living(path)));
        }
        for path in living {
            let admin = AdminBuilder::new(path.as_str(), self.objects.clone()).build();
            let manifest = admin.read_manifest(None).await.unwrap().unwrap();
            left.extend(manifest.external_dbs().iter().map(|lender| format!("{path} pins {}", lender.path)));
            left.extend(manifest.checkpoints().iter().map(|held| format!("{path} keeps {}", held.id)));
        }
        left
    }

    /// Lets time pass until nothing is left, or until the process has died. Returns false if it has died.
    async fn settle(&self, what: &str) -> bool {
        for _ in 0..SECONDS_MAX / 5 {
            sleep(Duration::from_secs(5)).await;
            if self.gate.has_died() {
                return false;
            }
            if self.leftovers().await.is_empty() {
                return true;
            }
        }
        panic!("{what}: left forever: {:#?}", self.leftovers().await);
    }

    /// The next process serves every row, and gives all space back.
    async fn finish(self, what: &str) {
        let world = self.start_again(&[]).await;
        world.check(what).await;
        assert!(world.settle(what).await);
        world.check(what).await;
        // The rows must be in the store, and not only in memory.
        let world = world.start_again(&[]).await;
        world.check(what).await;
        world.node.close().await;
    }
}

async fn after(step: SpaceStep, gate: Arc<Gate>, crash: Arc<Crash>) {
    crash.reached.lock().unwrap().insert(step);
    if crash.after.lock().unwrap().contains(&step) {
        gate.set(Passage::Dead);
        std::future::pending::<()>().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_step_of_the_return_of_space_is_made_good_by_the_next_process() {
    for step in SpaceStep::ALL {
        let what = format!("crash after {step:?}");
        let world = World::new(&[step]).await;
        // The wait ends when nothing is left in the store. The last steps come after that, so wait a little longer.
        if world.settle(&what).await {
            sleep(Duration::from_secs(60)).await;
        }
        assert!(world.gate.has_died(), "{what}: the step was not reached");
        world.finish(&what).await;
    }
}

/// Without a crash, every step is taken. A step that is not taken would not be tested.
#[tokio::test(start_paused = true)]
async fn every_step_is_taken_on_the_way() {
    let world = World::new(&[]).await;
    assert!(world.settle("no crash").await);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(*world.crash.reached.lock().unwrap(), SpaceStep::ALL.into());
    world.finish("no crash").await;
}

/// Each process dies after the first step after which no earlier process died, until there is no such step.
#[tokio::test(start_paused = true)]
async fn processes_that_die_one_after_another_get_there() {
    let mut steps = SpaceStep::ALL.to_vec();
    let mut world = World::new(&steps).await;
    let mut crashes = 0;
    while !world.settle("one after another").await {
        let reached = world.crash.reached.lock().unwrap().clone();
        steps.retain(|step| !reached.contains(step));
        crashes += 1;
        world = world.start_again(&steps).await;
    }
    assert!(crashes >= 4, "{crashes}");
    world.finish("one after another").await;
}

/// Between two steps there are many objects. A crash between any two of them does no more harm.
#[tokio::test(start_paused = true)]
async fn a_crash_between_any_two_objects_is_made_good() {
    let mut crashes = 0;
    for objects in 0.. {
        let what = format!("crash after {objects} objects");
        let world = World::new(&[]).await;
        world.gate.die_after(objects);
        let settled = world.settle(&what).await;
        world.finish(&what).await;
        if settled {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 80, "{crashes}");
}
