//! Tables that are made, filled, deleted and made again, through any front end.
//!
//! One client, the *owner*, makes and deletes a table. Another one, the *meddler*, inserts into the table that has the
//! name at the moment. When a DELETE is acknowledged, no front end may find the table any more, and its rows must not
//! be in the next table of the same name. If the outcome of a creation or a deletion is unknown, it may still happen
//! at any later time, so the owner goes on with another name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client::http::{Reply, Request};
use crate::client::requests::{Name, Verb, change, create_table, delete_table, page, query};
use crate::client::{Client, Told};

const PARTITIONS: usize = 3;
/// The owner's rows have values below this, the meddler's above.
const MEDDLED: u64 = 1_000_000;
const ROWS_OF_A_LIFE: u64 = 5;

/// What owner and meddler know of each other.
#[derive(Default)]
pub struct Tables {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The table's current name.
    name: String,
    /// When the meddler was told that a value is written.
    meddled: BTreeMap<u64, Duration>,
}

/// The owner's table could not be followed any further.
struct LostTrack;

impl Tables {
    /// The meddler, until `end`.
    pub async fn meddle(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        let mut value = MEDDLED;
        while client.world().now() < end {
            value += 1;
            let table = self.known().name.clone();
            if !table.is_empty() {
                let partition = format!("p{}", client.dice().index(PARTITIONS));
                let name = Name::new(&table, &partition, &format!("m{value}"));
                let asked = client.ask(change(Verb::Insert, &name, value, 0, None)).await;
                let twice = asked.twice;
                match asked.told() {
                    Told::Answer(reply) if matches!(reply.status, 201 | 204) && !twice => {
                        let now = client.world().now();
                        self.known().meddled.insert(value, now);
                    }
                    Told::Answer(reply) if !matches!(reply.status, 201 | 204 | 404 | 409) => {
                        client.world().found(format_args!(
                            "{name:?} was answered {} {}",
                            reply.status,
                            reply.code()
                        ));
                    }
                    _ => {}
                }
            }
            client.think(think.0, think.1).await;
        }
    }

    /// The owner, until `end`.
    pub async fn own(self: Arc<Self>, client: Client, end: Duration, think: (u64, u64)) {
        let mut owner =
            Owner { tables: self, client: client.only_once(), end, think, value: 0, loose: BTreeSet::new() };
        for number in 0.. {
            let table = format!("table{number}");
            owner.tables.known().name = table.clone();
            owner.loose.clear();
            if owner.live(&table).await.is_ok() {
                return;
            }
            // A damaged catalogue answers at once, until it is opened again: without a pause no time would pass.
            owner.client.think(think.0.max(1), think.1).await;
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Owner {
    tables: Arc<Tables>,
    client: Client,
    end: Duration,
    think: (u64, u64),
    value: u64,
    /// Values whose insert may still happen later, in the table that has the name then.
    loose: BTreeSet<u64>,
}

impl Owner {
    /// The lives of tables of one name, until the end or until an outcome is unknown.
    async fn live(&mut self, table: &str) -> Result<(), LostTrack> {
        let mut deleted_at = None;
        while self.client.world().now() < self.end {
            self.until_answered(create_table(table), &[201, 204]).await?;
            let mine = self.fill(table).await;
            self.look(table, &mine, deleted_at).await;
            self.client.think(self.think.0, self.think.1).await;
            deleted_at = Some(self.client.world().now());
            self.until_answered(delete_table(table), &[204]).await?;
            self.must_be_gone(table).await;
        }
        Ok(())
    }

    /// Asks until it is done; gives the name up if the outcome is unknown.
    async fn until_answered(&mut self, request: Request, done: &[u16]) -> Result<(), LostTrack> {
        loop {
            match self.client.ask(request.clone()).await.told() {
                Told::Answer(reply) if done.contains(&reply.status) => return Ok(()),
                Told::Answer(reply) => {
                    self.found(&request, &reply);
                    return Err(LostTrack);
                }
                Told::Unknown => return Err(LostTrack),
                Told::NotDone if self.client.world().now() > self.end => return Err(LostTrack),
                Told::NotDone => self.client.think(100, 800).await,
            }
        }
    }

    /// Inserts some rows; returns the values that were acknowledged.
    async fn fill(&mut self, table: &str) -> BTreeSet<u64> {
        let mut acknowledged = BTreeSet::new();
        for _ in 0..ROWS_OF_A_LIFE {
            self.value += 1;
            let request = self.insert(table);
            match self.client.ask(request.clone()).await.told() {
                Told::Answer(reply) if matches!(reply.status, 201 | 204) => {
                    acknowledged.insert(self.value);
                }
                Told::Answer(reply) => self.found(&request, &reply),
                Told::Unknown => {
                    self.loose.insert(self.value);
                }
                Told::NotDone => {}
            }
        }
        acknowledged
    }

    fn insert(&mut self, table: &str) -> Request {
        let partition = format!("p{}", self.client.dice().index(PARTITIONS));
        change(Verb::Insert, &Name::new(table, &partition, &format!("o{}", self.value)), self.value, 0, None)
    }

    /// The table shows what was written into it, and nothing of the tables before it.
    async fn look(&mut self, table: &str, mine: &BTreeSet<u64>, deleted_at: Option<Duration>) {
        let Told::Answer(reply) = self.client.ask(query(table, None, None, None)).await.told() else {
            return;
        };
        let Some(page) = page(&reply) else { return self.found(&query(table, None, None, None), &reply) };
        let values: BTreeSet<u64> = page.entities.iter().map(|entity| entity.value).collect();
        let world = self.client.world();
        if page.next.is_none() {
            for value in mine.difference(&values) {
                world.found(format_args!("{table} lacks {value}, which was acknowledged"));
            }
        }
        let known = self.tables.known();
        for value in &values {
            let old = match deleted_at {
                Some(at) if *value > MEDDLED => known.meddled.get(value).is_some_and(|written| *written < at),
                _ if *value > MEDDLED => false,
                _ => !mine.contains(value) && !self.loose.contains(value),
            };
            if old {
                world
                    .found(format_args!("{table} shows {value}, which was in an earlier table of that name"));
            }
        }
    }

    /// No front end finds the table.
    async fn must_be_gone(&mut self, table: &str) {
        for _ in 0..3 {
            self.value += 1;
            for request in [self.insert(table), query(table, None, None, None)] {
                match self.client.ask(request.clone()).await.told() {
                    Told::Answer(reply) if reply.status == 404 && reply.code() == "TableNotFound" => {}
                    Told::Answer(reply) => self.found(&request, &reply),
                    Told::Unknown => {
                        self.loose.insert(self.value);
                    }
                    Told::NotDone => {}
                }
            }
        }
    }

    fn found(&self, request: &Request, reply: &Reply) {
        let (method, target) = (request.method, &request.target);
        self.client.world().found(format_args!(
            "{method} {target} was answered {} {}",
            reply.status,
            reply.code()
        ));
    }
}
