//! The workloads: what an operation sends, and which answers are right.

use std::net::SocketAddr;

use anyhow::{Result, bail, ensure};
use rand::RngExt;
use rand::rngs::StdRng;
use rangehold_testkit::client::{
    self, ACCOUNT, Answer, Client, Credential, Request, Step, entity_path, must, page, percent_encode,
    send_all,
};
use serde_json::{Map, Value};

/// The table that is read and changed, the one that only grows, and the one with the counter.
const TABLE: &str = "bench";
const GROWING: &str = "growing";
const COUNTERS: &str = "counters";
/// Entities in one partition: also those of one page.
const PARTITION: u64 = 1_000;
/// Entities of one batch.
const BATCH: u64 = 100;
/// Clients at once while loading.
const LOADERS: usize = 8;
/// The filter finds one of so many entities.
const RARE: u64 = 100;

/// A sort of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Workload {
    /// Reads one entity at random.
    Get,
    /// Inserts an entity with a key of its own into one of many partitions.
    Insert,
    /// Inserts above all keys of one partition.
    Append,
    /// Merges into an entity at random.
    Merge,
    /// Replaces an entity at random, or inserts it.
    Upsert,
    /// Inserts 100 entities at once.
    Batch,
    /// Reads a partition of 1,000 entities.
    Page,
    /// Finds one entity of a hundred, in all of the table, and follows the tokens to the end.
    Filter,
    /// Adds one to a counter that all clients share, by its ETag, and tries until that succeeds.
    Counter,
}

/// Which operation it is.
pub(super) struct Turn {
    /// Entities that were loaded.
    pub(super) entities: u64,
    pub(super) round: u64,
    /// Its number among the operations of the run.
    pub(super) number: u64,
    /// Whether the answer comes from a table service, and has to be right.
    pub(super) is_checked: bool,
}

impl Workload {
    pub(super) const ALL: [Self; 9] = [
        Self::Get,
        Self::Insert,
        Self::Append,
        Self::Merge,
        Self::Upsert,
        Self::Batch,
        Self::Page,
        Self::Filter,
        Self::Counter,
    ];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Insert => "insert",
            Self::Append => "append",
            Self::Merge => "merge",
            Self::Upsert => "upsert",
            Self::Batch => "batch of 100",
            Self::Page => "page of 1,000",
            Self::Filter => "1 % filter",
            Self::Counter => "counter",
        }
    }

    /// Clients at once.
    pub(super) fn clients(self) -> usize {
        match self {
            Self::Get | Self::Merge | Self::Upsert => 16,
            Self::Insert | Self::Append | Self::Counter => 64,
            Self::Batch | Self::Page | Self::Filter => 4,
        }
    }

    /// Carries out one operation and checks its answer.
    pub(super) fn operate(self, client: &mut Client, turn: &Turn, rng: &mut StdRng) -> Result<()> {
        let number = rng.random_range(0..turn.entities);
        match self {
            Self::Get => get(client, number, turn),
            Self::Insert => {
                let partition = format!("q{:03}", turn.number % 256);
                put(client, Step::Insert, GROWING, (&partition, &own_row(turn)), turn.number)
            }
            Self::Append => put(client, Step::Insert, GROWING, ("one", &own_row(turn)), turn.number),
            Self::Merge => put(client, Step::Merge, TABLE, keys(number).as_refs(), number),
            Self::Upsert => put(client, Step::Upsert, TABLE, keys(number).as_refs(), number),
            Self::Batch => {
                let partition = format!("b{:03}", turn.number % 256);
                let row = |index| format!("{}-{index:03}", own_row(turn));
                let inserts = (0..BATCH).map(|index| insert(GROWING, (&partition, &row(index)), index));
                let answer = must(client, client::batch(&inserts.collect::<Vec<_>>()), 202)?;
                let made = answer.body.matches("HTTP/1.1 204").count() as u64;
                ensure!(made == BATCH, "a batch made {made} entities: {:.300}", answer.body);
                Ok(())
            }
            Self::Page => {
                let first = number / PARTITION * PARTITION;
                let wanted = PARTITION.min(turn.entities - first);
                let (found, _) = query(client, &format!("PartitionKey eq '{}'", keys(first).partition))?;
                ensure!(found as u64 == wanted, "a page has {found} entities, not {wanted}");
                Ok(())
            }
            Self::Filter => {
                let rest = turn.number % RARE;
                let (found, _) = query(client, &format!("rest eq {rest}"))?;
                let wanted = (turn.entities - rest).div_ceil(RARE);
                ensure!(found as u64 == wanted, "a filter found {found} entities, not {wanted}");
                Ok(())
            }
            Self::Counter => count(client),
        }
    }
}

/// The keys of a loaded entity.
struct Keys {
    partition: String,
    row: String,
}

impl Keys {
    fn as_refs(&self) -> (&str, &str) {
        (&self.partition, &self.row)
    }
}

fn keys(number: u64) -> Keys {
    Keys { partition: format!("p{:06}", number / PARTITION), row: format!("r{number:09}") }
}

/// A row key that no other operation has, above those of earlier operations.
fn own_row(turn: &Turn) -> String {
    format!("r{:03}-{:09}", turn.round, turn.number)
}

/// Makes the tables, the entities and the counter.
pub(super) fn load(address: SocketAddr, entities: u64) -> Result<()> {
    let tables = [TABLE, GROWING, COUNTERS].map(client::create_table);
    send_all(1, address, tables.into_iter(), 204)?;
    let batches = (0..entities).step_by(BATCH as usize).map(|first| {
        let inserts =
            (first..entities.min(first + BATCH)).map(|number| insert(TABLE, keys(number).as_refs(), number));
        client::batch(&inserts.collect::<Vec<_>>())
    });
    send_all(LOADERS, address, batches, 202)?;
    let counter = Map::from_iter([("count".to_owned(), 0.into())]);
    let counter = client::change(Step::Insert, COUNTERS, ("p", "r"), &counter, "*");
    must(&mut Client::new(address, Credential::SharedKey), counter, 204).map(drop)
}

fn properties(number: u64) -> Map<String, Value> {
    client::row([
        ("number", number.into()),
        ("rest", (number % RARE).into()),
        ("name", format!("entity number {number}").into()),
        ("price", (number as f64 / 7.0).into()),
        ("open", number.is_multiple_of(3).into()),
        ("text", "some words that stand for what people store ".repeat(4).into()),
    ])
}

fn insert(table: &str, keys: (&str, &str), number: u64) -> Request {
    client::change(Step::Insert, table, keys, &properties(number), "*")
}

fn get(client: &mut Client, number: u64, turn: &Turn) -> Result<()> {
    let keys = keys(number);
    let answer = must(client, client::get(entity_path(TABLE, &keys.partition, &keys.row)), 200)?;
    if turn.is_checked {
        let name = format!("entity number {number}\"");
        ensure!(answer.body.contains(&name), "another entity than {number}: {}", answer.body);
    }
    Ok(())
}

fn put(client: &mut Client, step: Step, table: &str, keys: (&str, &str), number: u64) -> Result<()> {
    must(client, client::change(step, table, keys, &properties(number), "*"), 204).map(drop)
}

/// All entities that a filter finds, and in how many pages.
fn query(client: &mut Client, filter: &str) -> Result<(usize, usize)> {
    let target = format!("/{ACCOUNT}/{TABLE}()?$filter={}", percent_encode(filter));
    let (mut found, mut pages, mut next) = (0, 0, None);
    loop {
        let target = next.map_or_else(|| target.clone(), |next: String| format!("{target}&{next}"));
        let answer = must(client, client::get(target), 200)?;
        let page = match page(answer) {
            Ok(page) => page,
            Err(Answer { body, .. }) => bail!("not a page: {body:.300}"),
        };
        (found, pages) = (found + page.items.len(), pages + 1);
        match page.next {
            Some(token) => next = Some(token),
            None => return Ok((found, pages)),
        }
    }
}

/// Adds one to the counter.
fn count(client: &mut Client) -> Result<()> {
    loop {
        let read = must(client, client::get(entity_path(COUNTERS, "p", "r")), 200)?;
        let etag = read.header("etag").unwrap_or_default();
        let entity: Value = serde_json::from_str(&read.body)?;
        let count = entity["count"].as_i64().unwrap_or_default() + 1;
        let counter = Map::from_iter([("count".to_owned(), count.into())]);
        let change = client::change(Step::Replace, COUNTERS, ("p", "r"), &counter, &etag);
        let answer = client.send(change, "count")?;
        match answer.status {
            204 => return Ok(()),
            412 => {}
            other => bail!("the counter's change was answered {other}: {}", answer.body),
        }
    }
}
