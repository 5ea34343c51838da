//! `cargo xtask scale`: does a large service answer as fast as a small one?
//!
//! Two servers in one run, one with 1,000 entities and 10 tables, one with 1,000,000 and 10,000. The same requests go
//! to both in turn, so that other work of the machine slows both. The medians are compared. The run also measures how
//! soon the large one is ready again, and how much memory it holds.

use std::time::{Duration, Instant};

use anyhow::Result;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::bench::{Build, Missed, kill_and_start, median, mib, stop_and_start};
use rangehold_testkit::client::{
    self, ACCOUNT, Client, Credential, Request, Step, must, percent_encode, send_all,
};
use rangehold_testkit::server::{Server, Setup};

/// Clients at once while loading.
const LOADERS: usize = 8;
/// Entities in one partition: also those of one page.
const PARTITION: u64 = 1_000;
/// Entities of one batch.
const BATCH: u64 = 100;
/// Requests of one kind to each server, in turns.
const ROUNDS: usize = 400;
/// Most that a median may grow, from small to large.
const RATIO_MAX: f64 = 2.0;
/// Longest time until a large service is ready.
const READY_MAX: Duration = Duration::from_secs(2);
/// Entities and tables of the small server.
const SMALL: Size = Size { entities: 1_000, tables: 10 };

/// Compares medians, start and memory of a large service with a small one.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Entities in the large server's one big table.
    #[arg(long, default_value_t = 1_000_000)]
    entities: u64,
    /// Tables of the large server.
    #[arg(long, default_value_t = 10_000)]
    tables: u64,
    #[command(flatten)]
    build: Build,
    /// What the servers get as --memory, in MiB.
    #[arg(long, default_value_t = 512)]
    memory_mib: u64,
}

#[derive(Clone, Copy, Debug)]
struct Size {
    entities: u64,
    tables: u64,
}

/// A loaded server.
struct Loaded {
    server: Server,
    setup: Setup,
    size: Size,
}

/// The requests whose times are compared.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Get,
    Insert,
    Page,
    TableList,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Get, Self::Insert, Self::Page, Self::TableList];

    fn label(self) -> &'static str {
        match self {
            Self::Get => "point read",
            Self::Insert => "insert",
            Self::Page => "page of 1,000",
            Self::TableList => "list of 10 tables",
        }
    }
}

/// Loads both servers, measures, prints the table; an error names what is beyond its limit.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let memory = format!("{}MiB", arguments.memory_mib);
    let setup = |name| arguments.build.setup(name, &["--memory", &memory]);
    let large_size = Size { entities: arguments.entities, tables: arguments.tables };
    let small = load(setup("scale-small")?, SMALL)?;
    let mut large = load(setup("scale-large")?, large_size)?;
    let after_load = large.server.resident_bytes()?;
    let mut missed = Missed::default();
    println!("{:<20} {:>12} {:>12} {:>8}", "p50", "small", "large", "ratio");
    for kind in Kind::ALL {
        let (small_time, large_time) = compare(kind, &small, &large)?;
        let ratio = large_time.as_secs_f64() / small_time.as_secs_f64();
        println!("{:<20} {small_time:>12.1?} {large_time:>12.1?} {ratio:>8.2}", kind.label());
        missed.note(ratio > RATIO_MAX, || format!("{} takes {ratio:.2} times as long", kind.label()));
    }
    let after_reads = large.server.resident_bytes()?;
    large.server = stop_and_start(large.server, &large.setup)?;
    let after_stop = large.server.start_time;
    large.server = kill_and_start(large.server, &large.setup)?;
    missed.starts(after_stop, large.server.start_time, READY_MAX);
    let memory = [after_load, after_reads, large.server.resident_bytes()?].map(mib);
    println!(
        "memory held with --memory {} MiB: {} MiB after loading, {} MiB after reading, {} MiB after a start",
        arguments.memory_mib, memory[0], memory[1], memory[2]
    );
    missed.memory(memory.into_iter().max().unwrap_or_default(), arguments.memory_mib);
    missed.conclude("scale")
}

fn load(setup: Setup, size: Size) -> Result<Loaded> {
    let server = Server::start(&setup)?;
    let begin = Instant::now();
    let tables = (0..size.tables).map(|number| client::create_table(&table(number)));
    send_all(LOADERS, server.address, tables, 204)?;
    let batches = (0..size.entities).step_by(BATCH as usize).map(|first| {
        let inserts = (first..first + BATCH).map(|number| insert(number, number));
        client::batch(&inserts.collect::<Vec<_>>())
    });
    send_all(LOADERS, server.address, batches, 202)?;
    let took = begin.elapsed();
    println!("loaded {} entities and {} tables in {took:.1?}", size.entities, size.tables);
    Ok(Loaded { server, setup, size })
}

/// The big table is the first of them.
fn table(number: u64) -> String {
    format!("table{number:06}")
}

/// Inserts the entity of this number, under the row key of another.
fn insert(number: u64, row: u64) -> Request {
    let properties = client::row([
        ("number", number.into()),
        ("name", format!("entity number {number}").into()),
        ("price", (number as f64 / 7.0).into()),
        ("open", number.is_multiple_of(3).into()),
        ("text", "some words that stand for what people store ".repeat(4).into()),
    ]);
    let (partition, row) = (format!("p{:06}", number / PARTITION), format!("r{row:09}"));
    client::change(Step::Insert, &table(0), (&partition, &row), &properties, "*")
}

/// The medians of one kind of request, to the small and the large server in turn.
fn compare(kind: Kind, small: &Loaded, large: &Loaded) -> Result<(Duration, Duration)> {
    let mut rng = StdRng::seed_from_u64(7);
    let mut clients =
        [small, large].map(|loaded| (Client::new(loaded.server.address, Credential::SharedKey), loaded));
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (index, (client, loaded)) in clients.iter_mut().enumerate() {
            let (request, expected) = request(kind, loaded.size, round as u64, &mut rng);
            let begin = Instant::now();
            must(client, request, expected)?;
            // The first requests find cold connections and code.
            if round >= ROUNDS / 20 {
                times[index].push(begin.elapsed());
            }
        }
    }
    let [small, large] = times.map(median);
    Ok((small, large))
}

fn request(kind: Kind, size: Size, round: u64, rng: &mut StdRng) -> (Request, u16) {
    let number = rng.random_range(0..size.entities);
    let partition = format!("p{:06}", number / PARTITION);
    match kind {
        Kind::Get => (client::get(client::entity_path(&table(0), &partition, &format!("r{number:09}"))), 200),
        // Row keys above all that were loaded.
        Kind::Insert => (insert(number, 900_000_000 + round), 204),
        Kind::Page => {
            let filter = percent_encode(&format!("PartitionKey eq '{partition}'"));
            (client::get(format!("/{ACCOUNT}/{}()?$filter={filter}&$top={PARTITION}", table(0))), 200)
        }
        Kind::TableList => (client::get(format!("/{ACCOUNT}/Tables?$top=10")), 200),
    }
}
