//! A ledger: rows that are only ever inserted. What was acknowledged must be there at the end, and
//! what was refused must not: each write went to the one owner of its key, or nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{IN_THE_END, make_table};
use crate::client::requests::{Name, Verb, change, page, query};
use crate::client::{Client, Told};
use crate::world::World;

const TABLE: &str = "ledger";
const PARTITIONS: u64 = 8;

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Written,
    NotWritten,
    Unknown,
}

/// The rows of one run.
#[derive(Default)]
pub struct Ledger {
    rows: Mutex<BTreeMap<(String, String), Fate>>,
}

impl Ledger {
    /// Makes its table.
    pub async fn set_up(&self, client: &mut Client) {
        make_table(client, TABLE).await;
    }

    /// Inserts until `end`.
    pub async fn run(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        let mut number = 0;
        while client.world().now() < end {
            number += 1;
            let partition = format!("p{}", client.dice().below(PARTITIONS));
            let row = format!("{}-{number:04}", client.name());
            let padding = usize::try_from(client.dice().below(2_000)).unwrap_or(0);
            let request = change(Verb::Insert, &Name::new(TABLE, &partition, &row), number, padding, None);
            let asked = client.ask(request).await;
            let twice = asked.twice;
            let fate = match asked.told() {
                Told::Answer(reply) if matches!(reply.status, 201 | 204) => Fate::Written,
                // Its second arrival was faster.
                Told::Answer(reply) if reply.status == 409 && twice => Fate::Written,
                Told::Answer(reply) => {
                    client.world().found(format_args!(
                        "the insert of {partition}/{row} was answered {} {}",
                        reply.status,
                        reply.code()
                    ));
                    Fate::Unknown
                }
                Told::NotDone if !twice => Fate::NotWritten,
                Told::NotDone | Told::Unknown => Fate::Unknown,
            };
            self.rows().insert((partition, row), fate);
            client.think(think.0, think.1).await;
        }
    }

    /// Reads all of it, however long it takes, and compares.
    pub async fn read_all(&self, client: &mut Client) {
        let until = client.world().now() + IN_THE_END;
        let (mut found, mut token) = (BTreeSet::new(), None::<String>);
        loop {
            if let Told::Answer(reply) = client.ask(query(TABLE, None, None, token.as_deref())).await.told()
                && let Some(page) = page(&reply)
            {
                for entity in page.entities {
                    if !found.insert((entity.partition, entity.row)) {
                        client.world().found("the ledger shows a row twice");
                    }
                }
                token = page.next;
                if token.is_none() {
                    return self.compare(client.world(), &found);
                }
            }
            if client.world().now() > until {
                return client.world().found("the ledger cannot be read when all is calm");
            }
            client.think(5, 50).await;
        }
    }

    fn compare(&self, world: &World, found: &BTreeSet<(String, String)>) {
        let rows = self.rows();
        for ((partition, row), fate) in rows.iter() {
            match (fate, found.contains(&(partition.clone(), row.clone()))) {
                (Fate::Written, false) => {
                    world.found(format_args!(
                        "{partition}/{row} of the ledger was acknowledged and is not there"
                    ));
                }
                (Fate::NotWritten, true) => {
                    world.found(format_args!("{partition}/{row} of the ledger was refused and is there"));
                }
                _ => {}
            }
        }
        for (partition, row) in found.iter().filter(|name| !rows.contains_key(*name)) {
            world.found(format_args!("{partition}/{row} of the ledger was never written"));
        }
    }

    fn rows(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, String), Fate>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
