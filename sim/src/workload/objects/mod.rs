//! Objects: a few names of one bucket that all clients read, write, copy, compose, list and delete, with and without
//! conditions.
//!
//! Each name is a linearizable register, whatever way a write takes: in one request, by a session, as a copy or as a
//! composition. A page of a listing is a read of every name that lies in it. Generations of a name only grow, and each
//! stands for one write. The bytes are those of the write, whether they lie in a row or in chunks of a blob. At the end
//! an audit must leave each chunk that is needed, and no other (`tidy.rs`).
//!
//! Some names last: nobody writes them after the beginning, so each walk through the bucket must show each of them once.

mod folders;
mod known;
mod listing;
pub mod lives;
mod overwritten;
mod session;
mod several;
mod tidy;
pub mod tokens;
pub mod versions;

pub use self::folders::Folders;
pub use self::tidy::{again_and_again, at_last};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rangehold_protocol::object::checksum::Crc32c;

use self::known::{Content, Known, Seen, bytes_of};
use super::{IN_THE_END, make};
use crate::chance::Dice;
use crate::check::etags::{self, Sight};
use crate::check::register::{self, Call, Expected, Return, Value, Verdict};
use crate::client::http::{Reply, Request};
use crate::client::objects::{
    Described, ObjectName, Shown, compose, copy, create_bucket, delete, describe, download, downloaded,
    shown, upload,
};
use crate::client::{Asked, Client, NoAnswer};
use crate::world::{World, until_some};

const BUCKET: &str = "objects";
/// Names that change. Some of them have a part in front of a slash in common. The last one is overwritten more often than
/// the others (`overwritten.rs`).
const CHANGING: [&str; 6] = ["a/1", "a/2", "b", "b/1", "c", "b/2"];
/// Names that last, between the others.
const LASTING: [&str; 5] = ["a/0", "a/11", "b/0", "bb", "d/0"];
/// The most bytes of a small object, which lies in its row.
const SMALL_BYTES_MAX: u64 = 2_000;
/// The bytes of a large object, which lies in a blob.
const LARGE_BYTES: (u64, u64) = ((64 << 10) + 1, 150_000);
/// Objects that one composition joins.
const SOURCES_MAX: u64 = 3;

/// The objects of one run, and all that happened to them.
pub struct Objects {
    names: Vec<ObjectName>,
    next_value: AtomicU64,
    known: Mutex<Known>,
}

/// What the answer to a request says about a name.
enum Heard {
    /// What the name did.
    Told(Return),
    /// Nothing was done.
    Nothing,
}

impl Objects {
    /// Makes the bucket and the names that last.
    pub async fn set_up(world: &World) -> Arc<Self> {
        let names = CHANGING.iter().chain(&LASTING).map(|name| ObjectName::new(BUCKET, name)).collect();
        let objects = Arc::new(Self { names, next_value: AtomicU64::new(1), known: Mutex::default() });
        let mut client = Client::of_objects(world, "objects").only_once();
        let made = |reply: &Reply| matches!(reply.status, 200 | 409);
        make(&mut client, format_args!("bucket {BUCKET}"), &create_bucket(BUCKET), made).await;
        for name in CHANGING.len()..objects.names.len() {
            let size = objects.some_size(client.dice(), name % 2 == 0);
            let Written { value, request } = objects.written(name, None, |value| vec![(value, size)]);
            let begun = world.now();
            let known = |reply: &Reply| reply.status == 200;
            make(&mut client, format_args!("object {:?}", objects.names[name]), &request, known).await;
            // It may have been made several times, if an answer was lost.
            let mut known = objects.known();
            known.doubled.insert(value);
            known.note(&client, name, Call::Upsert(value), begun, Return::Done);
        }
        objects
    }

    /// What one client does until `end`; it waits between `think` milliseconds before each request.
    pub async fn run(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            let name = client.dice().index(CHANGING.len());
            match client.dice().below(24) {
                0..6 => {
                    let any = client.dice().index(self.names.len());
                    self.read(&mut client, any).await;
                }
                6..11 => self.upload(&mut client, name).await,
                11..13 => self.copy(&mut client, name).await,
                13..15 => self.compose(&mut client, name).await,
                15..17 => self.session(&mut client, name, end).await,
                17..20 => self.move_one(&mut client, name).await,
                20 => self.compose_away(&mut client, name).await,
                _ => self.delete(&mut client, name).await,
            }
            client.think(think.0, think.1).await;
        }
    }

    async fn upload(&self, client: &mut Client, name: usize) {
        let call = self.some_write(client.dice(), name);
        let large = client.dice().happens(0.5);
        let size = self.some_size(client.dice(), large);
        let Written { value, request } =
            self.written(name, self.condition(name, call), |value| vec![(value, size)]);
        self.send_write(client, name, with_value(call, value), request, false).await;
    }

    async fn copy(&self, client: &mut Client, name: usize) {
        let from = client.dice().index(self.names.len());
        let Some(source) = self.known().last_seen(from) else { return };
        let call = self.some_write(client.dice(), name);
        let value = self.next_value();
        let Some(content) = self.known().content(source.value).cloned() else { return };
        self.known().brings(name, value, content);
        let described = Described { to: &self.names[name], value, if_generation: self.condition(name, call) };
        let request = copy(&self.names[from], source.generation, described);
        self.send_write(client, name, with_value(call, value), request, true).await;
    }

    async fn compose(&self, client: &mut Client, name: usize) {
        let count = client.dice().between(1, SOURCES_MAX);
        let names: Vec<usize> = (0..count).map(|_| client.dice().index(self.names.len())).collect();
        let call = self.some_write(client.dice(), name);
        let sources: Vec<(usize, Seen)> =
            names.iter().filter_map(|from| Some((*from, self.known().last_seen(*from)?))).collect();
        if sources.is_empty() {
            return;
        }
        let value = self.next_value();
        let contents = sources.iter().filter_map(|(_, seen)| self.known().content(seen.value).cloned());
        let content = contents.flatten().collect();
        self.known().brings(name, value, content);
        let sources: Vec<(&str, u64)> =
            sources.iter().map(|(from, seen)| (self.names[*from].name.as_str(), seen.generation)).collect();
        let described = Described { to: &self.names[name], value, if_generation: self.condition(name, call) };
        self.send_write(client, name, with_value(call, value), compose(&sources, described), true).await;
    }

    async fn delete(&self, client: &mut Client, name: usize) {
        let seen = self.known().last_seen(name).filter(|_| client.dice().happens(0.5));
        let seen = seen.filter(|seen| !self.known().doubled.contains(&seen.value));
        let request = delete(&self.names[name], seen.map(|seen| seen.generation));
        let expected = seen.map_or(Expected::Any, |seen| Expected::Is(seen.value));
        self.send_write(client, name, Call::Delete(expected), request, false).await;
    }

    /// Sends a write, and notes what became of it. `has_source` if it may fail because a source is gone.
    async fn send_write(
        &self,
        client: &mut Client,
        name: usize,
        call: Call,
        request: Request,
        has_source: bool,
    ) {
        let begun = client.world().now();
        let Asked { answer, twice } = client.ask(request).await;
        if twice {
            let mut known = self.known();
            known.doubled.extend(written_by(call));
            known.note(client, name, call, begun, Return::Unknown);
        }
        let heard = match &answer {
            Err(NoAnswer::Unsent) => Heard::Nothing,
            Err(NoAnswer::Unknown) => Heard::Told(Return::Unknown),
            Ok(reply) => match heard(call, reply, has_source) {
                Some(heard) => heard,
                None => return self.found_answer(client, call, reply),
            },
        };
        let Heard::Told(told) = heard else { return };
        self.known().note(client, name, call, begun, told);
        if let (Ok(reply), Return::Done, Some(_)) = (&answer, told, written_by(call)) {
            self.saw(client, name, begun, shown(reply));
        }
    }

    /// Reads an object: its bytes, some of its bytes, or what is known of it.
    async fn read(&self, client: &mut Client, name: usize) {
        let range = client.dice().happens(0.2).then(|| {
            let first = client.dice().below(SMALL_BYTES_MAX) as usize;
            (first, first + client.dice().below(100_000) as usize)
        });
        let whole = client.dice().happens(0.75);
        let request = if whole { download(&self.names[name], range) } else { describe(&self.names[name]) };
        let begun = client.world().now();
        let Ok(reply) = client.ask(request).await.answer else { return };
        let seen = match reply.status {
            404 => return self.known().note(client, name, Call::Read, begun, Return::Value(None)),
            // It has too few bytes.
            416 => return,
            200 | 206 if whole => downloaded(&reply),
            200 => shown(&reply),
            500.. | 408 => return,
            _ => return self.found_answer(client, Call::Read, &reply),
        };
        if let Some(seen) = &seen {
            self.known().note(client, name, Call::Read, begun, Return::Value(Some(seen.value)));
            if whole {
                self.check_bytes(client, name, seen, range.filter(|_| reply.status == 206), &reply);
            }
        }
        self.saw(client, name, begun, seen);
    }

    /// Reports bytes that are not those of their write.
    fn check_bytes(
        &self,
        client: &Client,
        name: usize,
        seen: &Shown,
        range: Option<(usize, usize)>,
        reply: &Reply,
    ) {
        let Some(bytes) = self.known().content(seen.value).map(bytes_of) else { return };
        let end = range.map_or(bytes.len(), |(_, last)| bytes.len().min(last + 1));
        let wanted = &bytes[range.map_or(0, |(first, _)| first.min(end))..end];
        if reply.body.as_bytes() != wanted {
            let (name, got, want) = (&self.names[name], reply.body.len(), wanted.len());
            client.world().found(format_args!(
                "{name:?} was read with {got} bytes that are not the {want} of its write {}",
                seen.value
            ));
        }
    }

    /// Notes an object that a reply shows.
    fn saw(&self, client: &Client, name: usize, begun: Duration, seen: Option<Shown>) {
        let wrong = match &seen {
            Some(seen) => self.known().saw(client, name, begun, seen).err(),
            None => Some("a reply does not show the object".to_owned()),
        };
        if let Some(wrong) = wrong {
            client.world().found(format_args!("{:?}: {wrong}", self.names[name]));
        }
    }

    fn found_answer(&self, client: &Client, call: Call, reply: &Reply) {
        let line = reply.body.replace('\n', " ");
        client.world().found(format_args!("{call:?} of an object was answered {}: {line}", reply.status));
    }

    /// Reads each name once more, however long it takes: the cluster must serve again.
    pub async fn read_all(&self, client: &mut Client) {
        for name in 0..self.names.len() {
            let world = client.world().clone();
            let cell = tokio::sync::Mutex::new(&mut *client);
            let read = until_some(IN_THE_END, || async {
                let mut client = cell.lock().await;
                let before = self.operations_of(name);
                self.read(&mut client, name).await;
                (self.operations_of(name) > before).then_some(())
            });
            if read.await.is_none() {
                world.found(format_args!("{:?} cannot be read when all is calm", self.names[name]));
            }
        }
    }

    fn operations_of(&self, name: usize) -> usize {
        self.known().operations.get(&name).map_or(0, Vec::len)
    }

    /// Reports what was wrong. Returns how many histories could not be decided.
    pub fn check(&self, world: &World) -> usize {
        let known = self.known();
        let mut undecided = 0;
        for (name, operations) in &known.operations {
            match register::check(operations) {
                Verdict::Linearizable => {}
                Verdict::Undecided => undecided += 1,
                Verdict::Not(why) => {
                    world.found(format_args!("{:?} is not linearizable: {why}", self.names[*name]));
                }
            }
        }
        for (name, sights) in &known.sights {
            let once: Vec<Sight> =
                sights.iter().filter(|sight| !known.doubled.contains(&sight.value)).cloned().collect();
            for finding in etags::check(&once) {
                world.found(format_args!("the generations of {:?}: {finding}", self.names[*name]));
            }
        }
        undecided
    }

    /// A way to write: in any case, if there is none, or in place of the object that was seen last.
    fn some_write(&self, dice: &mut Dice, name: usize) -> Call {
        let last = self.known().last_seen(name);
        let last = last.filter(|last| !self.known().doubled.contains(&last.value));
        match (dice.below(10), last) {
            (0..2, _) => Call::Insert(0),
            (2..6, Some(last)) => Call::Replace(0, Expected::Is(last.value)),
            _ => Call::Upsert(0),
        }
    }

    /// `ifGenerationMatch` of a write of a name.
    fn condition(&self, name: usize, call: Call) -> Option<u64> {
        match call {
            Call::Insert(_) => Some(0),
            Call::Replace(_, Expected::Is(value)) => {
                let known = self.known();
                let sights = known.sights.get(&name)?;
                sights.iter().filter(|sight| sight.value == value).map(|sight| sight.tag).next()
            }
            _ => None,
        }
    }

    fn some_size(&self, dice: &mut Dice, large: bool) -> usize {
        let size =
            if large { dice.between(LARGE_BYTES.0, LARGE_BYTES.1) } else { dice.below(SMALL_BYTES_MAX) };
        usize::try_from(size).unwrap_or(0)
    }

    /// A new upload in one request. `content` says which bytes it has.
    fn written(
        &self,
        name: usize,
        if_generation: Option<u64>,
        content: impl FnOnce(Value) -> Content,
    ) -> Written {
        let value = self.next_value();
        let content = content(value);
        let bytes = bytes_of(&content);
        self.known().brings(name, value, content);
        let described = Described { to: &self.names[name], value, if_generation };
        Written { value, request: upload(described, &bytes, &Crc32c::of(&bytes).text()) }
    }

    fn next_value(&self) -> Value {
        self.next_value.fetch_add(1, Ordering::Relaxed)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new write, and the request that asks for it.
struct Written {
    value: Value,
    request: Request,
}

fn with_value(call: Call, value: Value) -> Call {
    match call {
        Call::Insert(_) => Call::Insert(value),
        Call::Replace(_, expected) => Call::Replace(value, expected),
        _ => Call::Upsert(value),
    }
}

fn written_by(call: Call) -> Option<Value> {
    match call {
        Call::Insert(value) | Call::Upsert(value) | Call::Replace(value, _) => Some(value),
        Call::Read | Call::Delete(_) => None,
    }
}

/// What the answer to a write says; `None` if the service may not give such an answer.
fn heard(call: Call, reply: &Reply, has_source: bool) -> Option<Heard> {
    let told = match (call, reply.status) {
        // A write whose outcome is unknown is answered 503 too.
        (_, 408 | 429 | 500..) => Return::Unknown,
        (Call::Delete(_), 204) => Return::Done,
        (Call::Delete(_), 404) => Return::Missing,
        (Call::Delete(_), 412) => Return::Mismatch,
        (Call::Insert(_), 412) => Return::Exists,
        (Call::Replace(..), 412) => Return::NotMet,
        (Call::Insert(_) | Call::Upsert(_) | Call::Replace(..), 200) => Return::Done,
        (Call::Insert(_) | Call::Upsert(_) | Call::Replace(..), 404) if has_source => {
            return Some(Heard::Nothing);
        }
        _ => return None,
    };
    Some(Heard::Told(told))
}
