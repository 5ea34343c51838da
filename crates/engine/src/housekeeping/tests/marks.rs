//! Marks in the log go when the openings that they shut out are certainly over, and not before.

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, PutMode};
use tokio::runtime::Handle;

use super::world::{World, key, place, value};
use crate::database::{self, Databases, Marks, Shares};
use crate::housekeeping::keep_house;
use crate::limits::MEMORY_BYTES_MIN;
use crate::tasks::Tasks;

impl World {
    /// Opens all databases again, in this process.
    async fn reopen(&mut self) {
        for range in &mut self.ranges {
            self.databases.housekeeper.leave(&range.path).await;
            range.db.close().await.unwrap();
            range.db = database::open(&self.databases, &place(&range.path), None).await.unwrap();
        }
    }

    /// Ends the process and starts another one.
    async fn start_again(&mut self, others_are_over: bool) {
        for range in &self.ranges {
            self.databases.housekeeper.leave(&range.path).await;
            range.db.close().await.unwrap();
        }
        let (objects, shares) = (self.store.object_store(), Shares::of(MEMORY_BYTES_MIN).unwrap());
        let clock = self.databases.clock.clone();
        self.databases = Databases {
            marks: Marks::new(others_are_over),
            ..Databases::new(objects, shares, clock, 1, Handle::current())
        };
        self._tasks = Tasks::default();
        self._tasks.spawn("the housekeeper".to_owned(), keep_house(self.databases.clone()));
        for range in &mut self.ranges {
            range.db = database::open(&self.databases, &place(&range.path), None).await.unwrap();
        }
    }

    /// The numbers of the marks in the log of the only database.
    async fn marks(&self) -> Vec<u64> {
        let log = Path::from(format!("{}/wal", self.ranges[0].path));
        let files: Vec<_> = self.databases.objects.list(Some(&log)).try_collect().await.unwrap();
        let marks = files.iter().filter(|file| file.size == 0);
        let number = |path: &Path| path.filename().unwrap().strip_suffix(".sst").unwrap().parse().unwrap();
        let mut marks: Vec<u64> = marks.map(|file| number(&file.location)).collect();
        marks.sort_unstable();
        marks
    }
}

#[tokio::test(start_paused = true)]
async fn marks_of_ended_processes_go_and_those_of_this_one_stay() {
    let mut world = World::new().await;
    for number in 0..30 {
        world.start_again(true).await;
        world.put(key(number), value(number)).await;
        world.flush_all().await;
    }
    world.reopen().await;
    world.put(key(77), value(77)).await;
    world.flush_all().await;
    assert!(world.marks().await.len() > 30);
    let own = world.marks().await.split_off(30);
    world.pass(600).await;
    let left = world.marks().await;
    assert!(own.iter().all(|mark| left.contains(mark)), "{own:?} of {left:?}");
    assert!(left.len() <= own.len() + 1, "{left:?}");
    world.check().await;
    world.start_again(true).await;
    world.check().await;
}

#[tokio::test(start_paused = true)]
async fn no_mark_goes_while_an_earlier_process_may_still_run() {
    let mut world = World::new().await;
    for number in 0..10 {
        world.start_again(false).await;
        world.put(key(number), value(number)).await;
        world.flush_all().await;
    }
    let marks = world.marks().await;
    assert!(marks.len() >= 10);
    world.pass(600).await;
    assert_eq!(world.marks().await, marks);
    // A process that stood still just before it made a file of its log, and goes on now.
    for mark in marks {
        let file = Path::from(format!("{}/wal/{mark:020}.sst", world.ranges[0].path));
        let late = world.databases.objects.put_opts(&file, "rows".into(), PutMode::Create.into()).await;
        assert!(matches!(late, Err(object_store::Error::AlreadyExists { .. })), "{late:?}");
    }
}

/// Each opening reads the log from the last sorted file on, and this database makes none.
#[tokio::test(start_paused = true)]
async fn a_database_without_writes_does_not_pile_up_marks() {
    let mut world = World::new().await;
    world.put(key(1), value(1)).await;
    for _ in 0..60 {
        world.start_again(true).await;
        world.pass(200).await;
    }
    assert!(world.marks().await.len() < 30, "{:?}", world.marks().await);
    world.check().await;
}
