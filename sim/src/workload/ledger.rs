//! A ledger: batches that insert rows of their own and often delete those of an earlier batch. Clients write them, and
//! look at whole partitions meanwhile and at the whole table in the end; [`crate::check::ledger`] judges what they see.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{IN_THE_END, make_table};
use crate::check::ledger::{Batch, Fate, Row, check};
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

/// The batches of one run, by their numbers.
#[derive(Default)]
pub struct Ledger {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    batches: Vec<Batch>,
    /// Those whose rows another batch may be asked to delete: they are written, and no copy of them can still arrive.
    replaceable: BTreeSet<usize>,
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
        let mut known = self.known();
        known.batches[number].fate = fate;
        if fate == Fate::Written && !twice {
            known.replaceable.insert(number);
        }
        if fate == Fate::NotWritten
            && let Some(replaced) = replaced
        {
            known.batches[replaced].replaced_by = None;
            known.replaceable.insert(replaced);
        }
    }

    /// The next batch: its number, the number of the batch that it replaces, and its request.
    fn next(&self, client: &mut Client) -> (usize, Option<usize>, Request) {
        let mut known = self.known();
        let number = known.batches.len();
        let dice = client.dice();
        let partition = dice.index(PARTITIONS);
        let replaced = dice.happens(REPLACING_SHARE).then(|| {
            let is_here = |number: &&usize| known.batches[**number].partition == partition;
            known.replaceable.iter().find(is_here).copied()
        });
        let replaced = replaced.flatten();
        let single = replaced.is_none() && dice.happens(SINGLE_SHARE);
        let rows = if single { 1 } else { usize::try_from(dice.between(2, ROWS_MAX)).unwrap_or(2) };
        let padding = usize::try_from(dice.below(PADDING_MAX)).unwrap_or(0);
        let insert = |row| change(Verb::Insert, &name(partition, number, row), number as u64, padding, None);
        let mut changes: Vec<Request> = (0..rows).map(insert).collect();
        if let Some(replaced) = replaced {
            let delete = |row| change(Verb::Delete, &name(partition, replaced, row), 0, 0, Some("*"));
            changes.extend((0..known.batches[replaced].rows).map(delete));
            known.batches[replaced].replaced_by = Some(number);
            known.replaceable.remove(&replaced);
        }
        known.batches.push(Batch { partition, rows, fate: Fate::Open, replaced_by: None });
        let request = if single { changes.remove(0) } else { batch(&changes) };
        (number, replaced, request)
    }

    /// Looks at partitions until `end`.
    pub async fn watch(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            let before = self.known().batches.clone();
            let mut partition = client.dice().index(PARTITIONS);
            if client.dice().happens(JUST_WRITTEN_SHARE) {
                partition = before.last().map_or(partition, |batch| batch.partition);
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

    /// Reads all of it, as long as pages come, and judges it. With the budgets of the cloud each page has few rows, so a
    /// large ledger takes minutes.
    pub async fn read_all(&self, client: &mut Client) {
        let mut until = client.world().now() + IN_THE_END;
        let (mut found, mut token) = (Vec::new(), None::<String>);
        let before = self.known().batches.clone();
        loop {
            if let Told::Answer(reply) = client.ask(query(TABLE, None, None, token.as_deref())).await.told()
                && let Some(page) = page(&reply)
            {
                found.extend(page.entities);
                if page.next.is_some() && page.next == token {
                    return client
                        .world()
                        .found("a page of the ledger has the token by which it was asked for");
                }
                token = page.next;
                until = client.world().now() + IN_THE_END;
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

    /// Judges the rows of a whole partition, or of the whole table. `before` is what was known when the first page was
    /// asked for.
    fn judge(&self, world: &World, before: &[Batch], partition: Option<usize>, found: &[Entity]) {
        let rows: Option<Vec<Row>> = found.iter().map(row).collect();
        let Some(rows) = rows else {
            return world.found(format_args!("the ledger shows a row that was never written: {found:?}"));
        };
        for finding in check(before, &self.known().batches, partition, &rows) {
            world.found(finding);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// The row of a batch that an entity is; `None` if it is none.
fn row(entity: &Entity) -> Option<Row> {
    let (batch, number) = entity.row.split_once('-')?;
    let (batch, number) = (batch.parse().ok()?, number.parse().ok()?);
    let row = Row { partition: entity.partition.strip_prefix('p')?.parse().ok()?, batch, number };
    (usize::try_from(entity.value) == Ok(batch)).then_some(row)
}
