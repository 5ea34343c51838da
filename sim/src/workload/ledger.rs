//! A ledger: batches that insert rows of their own and often delete those of an earlier batch.
//!
//! No row is ever written twice, so each page of a whole partition can be judged. A batch is there whole or not at
//! all. An acknowledged batch is there until another one replaces it; then exactly one of the two is there at any
//! moment. The replacement can be replaced too. A batch that was refused is not there. At the end the same must hold
//! for the whole table.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{IN_THE_END, make_table};
use crate::client::http::{Reply, Request};
use crate::client::requests::{Entity, Name, Verb, batch, batch_statuses, change, page, query};
use crate::client::{Asked, Client, Told};
use crate::world::World;

const TABLE: &str = "ledger";
const PARTITIONS: usize = 8;
/// Rows of a batch at most.
const ROWS_MAX: u64 = 8;
/// Bytes of a row's padding at most.
const PADDING_MAX: u64 = 800;
/// How often a batch is a single insert, sent as a plain request and not as a batch.
const SINGLE_SHARE: f64 = 0.3;
/// How often a batch replaces an earlier one, if there is one.
const REPLACING_SHARE: f64 = 0.6;
/// How often a client looks at the partition that is being written, where half of a batch would be seen.
const JUST_WRITTEN_SHARE: f64 = 0.5;

/// The outcome of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It may be made at any moment, or never.
    Open,
    Written,
    NotWritten,
}

/// A batch: rows that it inserts into one partition.
#[derive(Debug, Clone)]
struct Entry {
    partition: usize,
    rows: usize,
    fate: Fate,
    /// The batch that was asked to delete its rows.
    replaced_by: Option<usize>,
    /// Whether another batch may be asked to delete its rows: it is written, and no copy of it can still arrive.
    may_be_replaced: bool,
}

/// The batches of one run, by their numbers.
#[derive(Default)]
pub struct Ledger {
    entries: Mutex<Vec<Entry>>,
}

impl Ledger {
    /// Makes its table.
    pub async fn set_up(&self, client: &mut Client) {
        make_table(client, TABLE).await;
    }

    /// Writes batches until `end`.
    pub async fn run(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            let (number, replaced, request) = self.next(&mut client);
            let asked = client.ask(request).await;
            let twice = asked.twice;
            let fate = fate(&client, number, asked);
            self.note(number, replaced, fate, twice);
            client.think(think.0, think.1).await;
        }
    }

    /// Notes the outcome of a batch, and so that of the batch that it replaces.
    fn note(&self, number: usize, replaced: Option<usize>, fate: Fate, twice: bool) {
        let mut entries = self.entries();
        entries[number].fate = fate;
        entries[number].may_be_replaced = fate == Fate::Written && !twice;
        if fate == Fate::NotWritten
            && let Some(replaced) = replaced
        {
            entries[replaced].replaced_by = None;
            entries[replaced].may_be_replaced = true;
        }
    }

    /// The next batch: its number, the number of the batch that it replaces, and its request.
    fn next(&self, client: &mut Client) -> (usize, Option<usize>, Request) {
        let mut entries = self.entries();
        let number = entries.len();
        let dice = client.dice();
        let partition = dice.index(PARTITIONS);
        let replaced = dice.happens(REPLACING_SHARE).then(|| {
            let there = |entry: &Entry| entry.partition == partition && entry.may_be_replaced;
            entries.iter().position(there)
        });
        let replaced = replaced.flatten();
        let single = replaced.is_none() && dice.happens(SINGLE_SHARE);
        let rows = if single { 1 } else { usize::try_from(dice.between(2, ROWS_MAX)).unwrap_or(2) };
        let padding = usize::try_from(dice.below(PADDING_MAX)).unwrap_or(0);
        let insert = |row| change(Verb::Insert, &name(partition, number, row), number as u64, padding, None);
        let mut changes: Vec<Request> = (0..rows).map(insert).collect();
        if let Some(replaced) = replaced {
            let delete = |row| change(Verb::Delete, &name(partition, replaced, row), 0, 0, Some("*"));
            changes.extend((0..entries[replaced].rows).map(delete));
            entries[replaced].replaced_by = Some(number);
            entries[replaced].may_be_replaced = false;
        }
        let entry = Entry { partition, rows, fate: Fate::Open, replaced_by: None, may_be_replaced: false };
        entries.push(entry);
        let request = if single { changes.remove(0) } else { batch(&changes) };
        (number, replaced, request)
    }

    /// Looks at partitions until `end`.
    pub async fn watch(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            let before = self.entries().clone();
            let mut partition = client.dice().index(PARTITIONS);
            if client.dice().happens(JUST_WRITTEN_SHARE) {
                partition = before.last().map_or(partition, |entry| entry.partition);
            }
            let asked = client.ask(query(TABLE, Some(&partition_key(partition)), None, None)).await;
            if let Told::Answer(reply) = asked.told()
                && let Some(page) = page(&reply)
                && page.next.is_none()
            {
                self.judge(client.world(), &before, Some(partition), &page.entities);
            }
            client.think(think.0, think.1).await;
        }
    }

    /// Reads all of it, however long it takes, and judges it.
    pub async fn read_all(&self, client: &mut Client) {
        let until = client.world().now() + IN_THE_END;
        let (mut found, mut token) = (Vec::new(), None::<String>);
        let before = self.entries().clone();
        loop {
            if let Told::Answer(reply) = client.ask(query(TABLE, None, None, token.as_deref())).await.told()
                && let Some(page) = page(&reply)
            {
                found.extend(page.entities);
                token = page.next;
                if token.is_none() {
                    return self.judge(client.world(), &before, None, &found);
                }
            }
            if client.world().now() > until {
                return client.world().found("the ledger cannot be read when all is calm");
            }
            client.think(5, 50).await;
        }
    }

    /// Judges a page of a whole partition, or of the whole table. `before` is what was known when the page was asked
    /// for.
    fn judge(&self, world: &World, before: &[Entry], partition: Option<usize>, found: &[Entity]) {
        let entries = self.entries();
        let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
        for entity in found {
            let number = usize::try_from(entity.value).unwrap_or(usize::MAX);
            *rows.entry(number).or_default() += 1;
            let is_known = entries.get(number).is_some_and(|entry| {
                (0..entry.rows).any(|row| name(entry.partition, number, row).row == entity.row)
                    && entity.partition == partition_key(entry.partition)
            });
            if !is_known {
                world.found(format_args!(
                    "{}/{} of the ledger was never written",
                    entity.partition, entity.row
                ));
            }
        }
        let count = |number: usize| rows.get(&number).copied().unwrap_or(0);
        let is_seen = |entry: &Entry| partition.is_none_or(|partition| entry.partition == partition);
        for (number, entry) in entries.iter().enumerate().filter(|(_, entry)| is_seen(entry)) {
            let is_there = count(number) > 0;
            if is_there && count(number) != entry.rows {
                let (some, all) = (count(number), entry.rows);
                world.found(format_args!("batch {number} of the ledger shows {some} of its {all} rows"));
            }
            if is_there && entry.fate == Fate::NotWritten {
                world.found(format_args!("batch {number} of the ledger was refused and is there"));
            }
            // A batch that was not acknowledged when the page was asked for may have come after it.
            if before.get(number).is_none_or(|known| known.fate != Fate::Written) {
                continue;
            }
            let there: Vec<usize> =
                replacements(&entries, number).filter(|number| count(*number) > 0).collect();
            match there[..] {
                [_] => {}
                [] if entry.replaced_by.is_none() => {
                    world.found(format_args!("batch {number} of the ledger was acknowledged and is not there"));
                }
                [] => world.found(format_args!(
                    "batch {number} of the ledger was acknowledged, and neither it nor what replaces it is there"
                )),
                _ => world.found(format_args!("batches {there:?} of the ledger replace each other, and all are there")),
            }
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch, the one that replaces it, the one that replaces that, and so on. Once the first is written, one of them is
/// there at any moment.
fn replacements(entries: &[Entry], first: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |number| entries[*number].replaced_by)
}

/// The outcome of a batch, as its answer tells it.
fn fate(client: &Client, number: usize, asked: Asked) -> Fate {
    let twice = asked.twice;
    let reply = match asked.told() {
        Told::Answer(reply) => reply,
        Told::NotDone if !twice => return Fate::NotWritten,
        Told::NotDone | Told::Unknown => return Fate::Open,
    };
    match statuses(&reply)[..] {
        // The second copy of the batch came first, and was carried out.
        [409] | [404] if twice => Fate::Written,
        [503] if !twice => Fate::NotWritten,
        [500 | 503 | 504] => Fate::Open,
        ref all if !all.is_empty() && all.iter().all(|status| matches!(status, 201 | 204)) => Fate::Written,
        ref other => {
            client.world().found(format_args!("batch {number} of the ledger was answered {other:?}"));
            Fate::Open
        }
    }
}

/// The statuses in the reply to a batch, or the one status of the reply to a single insert.
fn statuses(reply: &Reply) -> Vec<u16> {
    if reply.status == 202 { batch_statuses(reply) } else { vec![reply.status] }
}

fn name(partition: usize, number: usize, row: usize) -> Name {
    Name::new(TABLE, &partition_key(partition), &format!("{number:05}-{row}"))
}

fn partition_key(partition: usize) -> String {
    format!("p{partition}")
}
