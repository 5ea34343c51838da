//! What a durable small file of a log costs: `cargo bench -p rangehold-engine --bench log_file`.
//!
//! Each write is durable when it returns, and the write of some time before is deleted, as the files of a log are. The journal of a
//! directory is measured beside files of their own, and beside what the disk gives at best: bytes that are written over in a file that
//! has its length.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on ends")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::executor::block_on;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use rangehold_engine::store::{Store, StoreLocation, StoreOptions};
use tokio::time::Instant;

const BYTES: usize = 12_000;
/// Writes between that of a file and its deletion.
const KEPT: usize = 2_000;
/// Writes before the measurement. Then the journal has the segments that it needs, and writes them over.
const BEFORE: usize = 4 * KEPT;
const MEASURED: usize = 2_000;

fn main() {
    println!("{MEASURED} durable writes of {BYTES} bytes, each deleted {KEPT} writes later");
    println!("{:<28} {:>12} {:>10} {:>10}", "", "CPU us", "p50 us", "p99 us");
    let floor = Figures::of(|directory| {
        let file = File::create(directory.join("file")).unwrap();
        file.write_all_at(&vec![0; 16 << 20], 0).unwrap();
        file.sync_all().unwrap();
        let bytes = vec![7; BYTES];
        Box::new(move |number| {
            file.write_all_at(&bytes, (number * 12_288 % (15 << 20)) as u64).unwrap();
            file.sync_data().unwrap();
        })
    });
    floor.print("written over in a file");
    Figures::of(|directory| objects(directory, "wal")).print("in the journal");
    Figures::of(|directory| objects(directory, "files")).print("a file of its own");
}

/// Writes and deletes objects of a store. Those below `wal` are in the journal.
fn objects(directory: PathBuf, kind: &'static str) -> Box<dyn FnMut(usize)> {
    let store = Store::open(&StoreLocation::Directory(directory), StoreOptions::default()).unwrap();
    let objects = store.object_store();
    let path = move |number: usize| ObjectPath::from(format!("ranges/1/{kind}/{number:020}.sst"));
    Box::new(move |number| {
        let new = path(number);
        block_on(objects.put_opts(&new, vec![7; BYTES].into(), PutMode::Create.into())).unwrap();
        if let Some(old) = number.checked_sub(KEPT) {
            block_on(objects.delete(&path(old))).unwrap();
        }
        let _open = &store;
    })
}

struct Figures {
    cpu: Duration,
    times: Vec<Duration>,
}

impl Figures {
    fn of(make: impl FnOnce(PathBuf) -> Box<dyn FnMut(usize)>) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("log_file");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let mut write = make(directory.clone());
        (0..BEFORE).for_each(&mut write);
        let (before, mut times) = (cpu(), Vec::new());
        for number in BEFORE..BEFORE + MEASURED {
            let begin = Instant::now();
            write(number);
            times.push(begin.elapsed());
        }
        let cpu = cpu() - before;
        fs::remove_dir_all(&directory).unwrap();
        times.sort_unstable();
        Self { cpu, times }
    }

    fn print(&self, name: &str) {
        let part = |of: usize| self.times[MEASURED * of / 100].as_micros();
        let each = self.cpu.as_micros() / MEASURED as u128;
        println!("{name:<28} {each:>12} {:>10} {:>10}", part(50), part(99));
    }
}

/// Processor time of this thread, which does all the work: there is no runtime.
fn cpu() -> Duration {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(told.split(' ').next().unwrap().parse().unwrap())
}
