//! Registers: a few entities that all clients read, insert, replace and delete, with and without conditions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{IN_THE_END, make_table};
use crate::check::etags::{self, Sight};
use crate::check::register::{self, Call, Expected, Operation, Return, Value, Verdict};
use crate::client::http::Reply;
use crate::client::requests::{Name, Verb, change, entity, etag_time, get};
use crate::client::{Asked, Client, Told};
use crate::faults::Fault;
use crate::world::{World, until_some};

const TABLE: &str = "registers";
/// If a process takes longer than this to answer a client that watches it, it stands still.
const PAUSED_BEYOND: Duration = Duration::from_millis(900);
/// Requests of each client of a crowd: a history of more than some hundred operations cannot be decided.
const CROWD_REQUESTS_MAX: usize = 20;

/// The registers of one run, and all that happened to them.
pub struct Registers {
    names: Vec<Name>,
    next_value: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By the register's number.
    operations: BTreeMap<usize, Vec<Operation>>,
    sights: BTreeMap<usize, Vec<Sight>>,
    /// The ETag of each value that a client saw.
    tags: BTreeMap<Value, String>,
    /// Values whose write may have been made twice.
    doubled: BTreeSet<Value>,
}

impl Registers {
    /// Registers in `partitions` partitions, `rows` in each.
    pub fn new(partitions: usize, rows: usize) -> Arc<Self> {
        let names = (0..partitions).flat_map(|partition| {
            (0..rows).map(move |row| Name::new(TABLE, &format!("p{partition}"), &format!("r{row}")))
        });
        Arc::new(Self { names: names.collect(), next_value: AtomicU64::new(1), known: Mutex::default() })
    }

    /// Makes their table.
    pub async fn set_up(&self, client: &mut Client) {
        make_table(client, TABLE).await;
    }

    /// What one client does until `end`; it waits between `think` milliseconds before each request.
    pub async fn run(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            let register = client.dice().index(self.names.len());
            let call = self.choose(&mut client, register);
            self.make(&mut client, register, call).await;
            client.think(think.0, think.1).await;
        }
    }

    /// Reads until `end`, and writes nothing. The client is bound to one process and has little patience, so it asks a
    /// process that stands still again and again, also just before the process goes on. At that moment other processes
    /// may have its ranges, and it must not answer with what it remembers of them.
    pub async fn watch(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            let register = client.dice().index(self.names.len());
            let begun = client.world().now();
            self.make(&mut client, register, Call::Read).await;
            // A process that does not answer within the client's patience is asked again at once.
            if client.world().now() < begun + PAUSED_BEYOND {
                client.think(think.0, think.1).await;
            }
        }
    }

    /// One client of a crowd: while the crowd rages it sends requests to the first partition as fast as it can, until
    /// `end` or until it has sent `CROWD_REQUESTS_MAX`.
    pub async fn crowd(self: Arc<Self>, mut client: Client, end: Duration) {
        let mut left = CROWD_REQUESTS_MAX;
        while left > 0 && client.world().now() < end {
            if !client.world().weather().rages(Fault::FlashCrowd) {
                client.think(100, 300).await;
                continue;
            }
            left -= 1;
            let register = client.dice().index(2);
            let call = self.choose(&mut client, register);
            self.make(&mut client, register, call).await;
            client.think(1, 40).await;
        }
    }

    fn choose(&self, client: &mut Client, register: usize) -> Call {
        let last = self.last_seen(register);
        let value = self.next_value.fetch_add(1, Ordering::Relaxed);
        let dice = client.dice();
        let expected = match last {
            Some(last) if dice.happens(0.6) => Expected::Is(last),
            _ => Expected::Any,
        };
        match dice.below(10) {
            0..4 => Call::Read,
            4..6 => Call::Insert(value),
            6 => Call::Upsert(value),
            7..9 => Call::Replace(value, expected),
            _ => Call::Delete(expected),
        }
    }

    /// The value that a client saw last. A value that may have been written twice is left out: it has two tags, so a
    /// condition on one of them says nothing about the value.
    fn last_seen(&self, register: usize) -> Option<Value> {
        let known = self.known();
        let last = known.sights.get(&register)?.last()?.value;
        (!known.doubled.contains(&last)).then_some(last)
    }

    async fn make(&self, client: &mut Client, register: usize, call: Call) {
        let name = &self.names[register];
        let if_match = |expected: Expected| match expected {
            Expected::Any => "*".to_owned(),
            Expected::Is(value) => self.known().tags.get(&value).cloned().unwrap_or_else(|| "*".to_owned()),
        };
        let request = match call {
            Call::Read => get(name),
            Call::Insert(value) => change(Verb::Insert, name, value, 0, None),
            Call::Upsert(value) => change(Verb::Upsert, name, value, 0, None),
            Call::Replace(value, expected) => {
                change(Verb::Replace, name, value, 0, Some(&if_match(expected)))
            }
            Call::Delete(expected) => change(Verb::Delete, name, 0, 0, Some(&if_match(expected))),
        };
        let begun = client.world().now();
        let asked = client.ask(request).await;
        self.note(client, register, call, begun, asked);
    }

    fn note(&self, client: &Client, register: usize, call: Call, begun: Duration, asked: Asked) {
        let ended = client.world().now();
        let operation = |told| Operation { who: client.name().to_owned(), call, begun, told, ended };
        let twice = asked.twice && call != Call::Read;
        let told = asked.told();
        let mut known = self.known();
        if twice {
            known.doubled.extend(written(call));
            known.operations.entry(register).or_default().push(operation(Return::Unknown));
        }
        let reply = match told {
            Told::Answer(reply) => reply,
            Told::Unknown if call != Call::Read => {
                known.operations.entry(register).or_default().push(operation(Return::Unknown));
                return;
            }
            _ => return,
        };
        let Some(told) = meaning(call, &reply) else {
            drop(known);
            return client.world().found(format_args!(
                "{call:?} was answered {} {}",
                reply.status,
                reply.code()
            ));
        };
        known.operations.entry(register).or_default().push(operation(told));
        let seen = match (told, call) {
            (Return::Value(Some(value)), _) => entity(&reply).map(|entity| (value, entity.etag)),
            (Return::Done, call) => written(call).zip(reply.header("etag").map(str::to_owned)),
            _ => None,
        };
        if let Some((value, etag)) = seen
            && let Some(tag) = etag_time(&etag)
        {
            known.tags.insert(value, etag);
            known.sights.entry(register).or_default().push(Sight { begun, ended, tag, value });
        }
    }

    /// Reads each register once more, however long it takes: the cluster must serve again.
    pub async fn read_all(&self, client: &mut Client) {
        for register in 0..self.names.len() {
            let world = client.world().clone();
            let cell = tokio::sync::Mutex::new(&mut *client);
            let read = until_some(IN_THE_END, || async {
                let mut client = cell.lock().await;
                let before = self.reads_of(register);
                self.make(&mut client, register, Call::Read).await;
                (self.reads_of(register) > before).then_some(())
            });
            if read.await.is_none() {
                world.found(format_args!("{:?} cannot be read when all is calm", self.names[register]));
            }
        }
    }

    fn reads_of(&self, register: usize) -> usize {
        let known = self.known();
        let all = known.operations.get(&register);
        all.map_or(0, |all| all.iter().filter(|operation| operation.call == Call::Read).count())
    }

    /// Reports what was wrong. Histories that could not be decided are counted separately.
    pub fn check(&self, world: &World) -> usize {
        let known = self.known();
        let mut undecided = 0;
        for (register, operations) in &known.operations {
            match register::check(operations) {
                Verdict::Linearizable => {}
                Verdict::Undecided => undecided += 1,
                Verdict::Not(why) => {
                    world.found(format_args!("{:?} is not linearizable: {why}", self.names[*register]));
                }
            }
        }
        for (register, sights) in &known.sights {
            let once: Vec<Sight> =
                sights.iter().filter(|sight| !known.doubled.contains(&sight.value)).cloned().collect();
            for finding in etags::check(&once) {
                world.found(format_args!("{:?}: {finding}", self.names[*register]));
            }
        }
        undecided
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn written(call: Call) -> Option<Value> {
    match call {
        Call::Insert(value) | Call::Upsert(value) | Call::Replace(value, _) => Some(value),
        Call::Read | Call::Delete(_) => None,
    }
}

/// What a reply says about the register; `None` if the service may not give such a reply.
fn meaning(call: Call, reply: &Reply) -> Option<Return> {
    let missing = matches!(reply.code(), "ResourceNotFound" | "EntityNotFound");
    match (call, reply.status) {
        (Call::Read, 200) => Some(Return::Value(Some(entity(reply)?.value))),
        (Call::Read, 404) if missing => Some(Return::Value(None)),
        (Call::Insert(_) | Call::Upsert(_) | Call::Replace(..) | Call::Delete(_), 201 | 204) => {
            Some(Return::Done)
        }
        (Call::Insert(_), 409) => Some(Return::Exists),
        (Call::Replace(..) | Call::Delete(_), 404) if missing => Some(Return::Missing),
        (Call::Replace(..) | Call::Delete(_), 412) => Some(Return::Mismatch),
        _ => None,
    }
}
