//! What many ranges in one process cost: time to open, memory, and CPU while nobody asks.
//!
//! ```text
//! cargo run --release -p rangehold-engine --example many_ranges -- DIR [ranges] [rows each] [idle seconds]
//! ```
//!
//! Makes a data directory with that many ranges (1,000), writes rows of 300 bytes to each (100), and
//! waits (60 s). A directory that is there already is opened as it is. The figures that count are
//! those of the second opening of the same directory, and of a process that did not make it.

#![allow(clippy::unwrap_used, reason = "a program for measuring; it may stop anywhere")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt};
use rangehold_engine::store::{Store, StoreLocation, StoreOptions};
use rangehold_engine::{Clock, MAP_PREFIX, Node, Options, WriteRequest};
use rangehold_map::{PartitionPrefix, TableId};
use slatedb::Db;
use slatedb::config::Settings;
use tokio::time::{Instant, sleep};

const MEMORY_BYTES: u64 = 512 << 20;
const ROW_BYTES: usize = 300;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = arguments.first().expect("the first argument is a directory");
    let number = |at: usize, otherwise: u64| arguments.get(at).map_or(otherwise, |n| n.parse().unwrap());
    let (ranges, rows, idle) = (number(1, 1_000), number(2, 100), number(3, 60));

    let made = Path::new(directory).join("cluster").exists();
    if !made {
        make(&open_store(directory).object_store(), ranges).await;
        report("made", &Figures::now(), &Figures::default());
    }
    let before = Figures::now();
    let node = open(directory).await;
    report("opened", &Figures::now(), &before);

    let before = Figures::now();
    stream::iter(0..ranges).for_each_concurrent(64, |range| write(&node, range, rows)).await;
    report("written", &Figures::now(), &before);

    for _ in 0..3 {
        let before = Figures::now();
        sleep(Duration::from_secs(idle / 3)).await;
        report("idle", &Figures::now(), &before);
    }

    let before = Figures::now();
    node.close().await;
    report("closed", &Figures::now(), &before);
    let before = Figures::now();
    let node = open(directory).await;
    report("opened again", &Figures::now(), &before);
    node.close().await;
}

fn open_store(directory: &str) -> Store {
    Store::open(&StoreLocation::parse(directory).unwrap(), StoreOptions::default()).unwrap()
}

async fn open(directory: &str) -> Node {
    let options = Options::new(MEMORY_BYTES, Clock::system(), 1);
    Node::open(open_store(directory), options).await.unwrap()
}

fn partition(range: u64) -> PartitionPrefix {
    PartitionPrefix::entity("account", TableId(7), &format!("{range:06}"))
}

/// Empty databases, and a map that names them.
async fn make(objects: &Arc<dyn ObjectStore>, ranges: u64) {
    let settings =
        Settings { compactor_options: None, garbage_collector_options: None, ..Settings::default() };
    stream::iter(0..ranges)
        .for_each_concurrent(16, |range| {
            let path = format!("ranges/{}-1-1", range + 1);
            let builder = Db::builder(path, Arc::clone(objects)).with_settings(settings.clone());
            async move { builder.build().await.unwrap().close().await.unwrap() }
        })
        .await;
    let low = |range: u64| match range {
        0 => "10".to_owned(),
        _ => partition(range).as_bytes().iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        }),
    };
    let entries: Vec<String> = (0..ranges)
        .map(|range| {
            let high = if range + 1 < ranges { format!("\"{}\"", low(range + 1)) } else { "null".to_owned() };
            let (id, low) = (range + 1, low(range));
            format!(r#"{{"id":{id},"low":"{low}","high":{high},"generation":1,"attempt":1,"server":1}}"#)
        })
        .collect();
    let map = format!(r#"{{"format":1,"version":1,"ranges":[{}]}}"#, entries.join(","));
    let path = object_store::path::Path::from(format!("{MAP_PREFIX}/{:020}.json", 1));
    objects.put(&path, map.into()).await.unwrap();
}

async fn write(node: &Node, range: u64, rows: u64) {
    let partition = partition(range);
    for row in 0..rows {
        let key = partition.key(&format!("{row:06}"));
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut change = vec![(key, Some(vec![b'x'; ROW_BYTES]))];
        let request = WriteRequest::new(&partition, &[], deadline);
        node.router().write::<()>(&request, |_, _| Ok(std::mem::take(&mut change))).await.unwrap();
    }
}

/// Where the process stands.
struct Figures {
    at: Instant,
    cpu: Duration,
    resident_bytes: u64,
}

impl Default for Figures {
    fn default() -> Self {
        Self { at: Instant::now(), cpu: Duration::ZERO, resident_bytes: 0 }
    }
}

impl Figures {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/stat").unwrap();
        let after_name = status.rsplit(')').next().unwrap();
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        // User and system time, in hundredths of a second; resident pages.
        let field = |at: usize| fields[at].parse::<u64>().unwrap();
        Self {
            at: Instant::now(),
            cpu: Duration::from_millis((field(11) + field(12)) * 10),
            resident_bytes: field(21) * 4_096,
        }
    }
}

fn report(what: &str, now: &Figures, before: &Figures) {
    let (time, cpu) = (now.at - before.at, now.cpu.saturating_sub(before.cpu));
    println!(
        "{what:>12}: {:7.2} s, CPU {:6.2} s ({:5.1} % of a core), resident {:5} MiB",
        time.as_secs_f64(),
        cpu.as_secs_f64(),
        cpu.as_secs_f64() / time.as_secs_f64().max(1e-9) * 100.0,
        now.resident_bytes >> 20,
    );
}
