//! One writer of objects: it has one request under way at a time, and remembers what was acknowledged.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::journal::{Heard, Journal};
use super::model::{Objects, Op, crc32c, differences};
use super::session::{Session, place};
use super::{BUCKET, make_bucket};
use crate::http::{Answer, Connection, Request};
use crate::load::{Finding, Kind};
use crate::sign::percent_encode;

/// Names of each writer.
const NAMES: u32 = 4;
/// All pieces of an upload but the last have a multiple of so many bytes.
const UNIT: usize = 256 << 10;
/// A composition has at most so many bytes.
const COMPOSED_BYTES_MAX: usize = 4 << 20;

/// What writers of objects did.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObjectCounts {
    /// Operations that were acknowledged.
    pub acknowledged: u64,
    /// Uploads by a session among them.
    pub sessions: u64,
    /// Answers 503.
    pub busy: u64,
    /// Operations without an answer that turned out to be made, or were gone on with.
    pub unknown_applied: u64,
    /// ... and that turned out not to be made.
    pub unknown_dropped: u64,
}

impl ObjectCounts {
    /// The sum of both.
    pub fn plus(mut self, other: &Self) -> Self {
        self.acknowledged += other.acknowledged;
        self.sessions += other.sessions;
        self.busy += other.busy;
        self.unknown_applied += other.unknown_applied;
        self.unknown_dropped += other.unknown_dropped;
        self
    }
}

/// See the module.
pub(super) struct ObjectWriter {
    pub(super) index: usize,
    rng: StdRng,
    objects: Objects,
    /// The generations of the objects that are there, as far as an answer told them.
    live: BTreeMap<String, u64>,
    /// The greatest generation that each name had.
    greatest: BTreeMap<String, u64>,
    /// The operation without an answer.
    pub(super) pending: Option<Op>,
    pub(super) session: Option<Session>,
    drawn: u64,
    found: Vec<Finding>,
    pub(super) counts: ObjectCounts,
    /// What each answer told, if that is noted.
    pub(super) journal: Option<Journal>,
}

/// How an operation ended.
enum End {
    Done(Answer),
    /// Its outcome is not known.
    Unknown,
}

impl ObjectWriter {
    pub(super) fn new(index: usize, seed: u64) -> Self {
        Self {
            index,
            rng: StdRng::seed_from_u64(seed ^ (index as u64) << 32),
            objects: Objects::new(),
            live: BTreeMap::new(),
            greatest: BTreeMap::new(),
            pending: None,
            session: None,
            drawn: 0,
            found: Vec::new(),
            counts: ObjectCounts::default(),
            journal: None,
        }
    }

    /// Makes one operation after another, `times` at most, until it is stopped, or one has no answer.
    pub(super) fn run(&mut self, address: SocketAddr, times: u64, stop: &AtomicBool) {
        let Ok(mut connection) = Connection::open(address) else { return };
        for _ in 0..times {
            if stop.load(Ordering::Relaxed) || self.pending.is_some() || self.session.is_some() {
                return;
            }
            let op = self.draw();
            self.pending = Some(op.clone());
            let end = match &op {
                Op::Put(name, bytes) if self.rng.random_bool(0.4) => {
                    self.begin(&mut connection, name, bytes).and_then(|()| self.go_on(&mut connection))
                }
                op => connection.send(&request(op)).map(|answer| self.judged(op, answer)),
            };
            match end {
                Ok(End::Done(answer)) => self.acknowledge(&op, &answer),
                // What is known is compared after the next start.
                Ok(End::Unknown) | Err(_) => return,
            }
        }
    }

    /// Whether an answer says that an operation was made.
    fn judged(&mut self, op: &Op, answer: Answer) -> End {
        match (op, answer.status) {
            (Op::Delete(_) | Op::DropBucket(_), 204) | (Op::Nothing, 409) => End::Done(answer),
            (Op::Delete(_) | Op::DropBucket(_) | Op::Nothing, 200) => self.wrong(op, &answer),
            (_, 200) => End::Done(answer),
            (_, 503) => {
                self.counts.busy += 1;
                End::Unknown
            }
            _ => self.wrong(op, &answer),
        }
    }

    fn wrong(&mut self, op: &Op, answer: &Answer) -> End {
        let names = op.names();
        let what = format!("a change of {names:?} was answered {}: {}", answer.status, answer.body);
        self.found.push(Finding::new(Kind::Wrong, what));
        End::Unknown
    }

    fn acknowledge(&mut self, op: &Op, answer: &Answer) {
        let generation = generation_in(&answer.body);
        self.note(answer, || Heard::Ended(op.clone(), generation));
        self.counts.acknowledged += 1;
        self.took(op, generation);
    }

    /// Notes that an operation was made.
    pub(super) fn took(&mut self, op: &Op, generation: Option<u64>) {
        self.pending = None;
        op.apply(&mut self.objects);
        match (op, op.names().last()) {
            (Op::Delete(name) | Op::DropBucket(name), _) => drop(self.live.remove(name)),
            (_, Some(name)) => self.made((*name).to_owned(), generation),
            (_, None) => {}
        }
        if let Op::Move(from, _) = op {
            self.live.remove(from);
        }
    }

    /// A name got a new generation.
    fn made(&mut self, name: String, generation: Option<u64>) {
        let (generation, greatest) =
            (generation.unwrap_or(0), self.greatest.entry(name.clone()).or_default());
        if generation <= *greatest {
            let what = format!("{name} got the generation {generation} after {greatest}");
            self.found.push(Finding::new(Kind::Wrong, what));
        }
        *greatest = generation.max(*greatest);
        self.live.insert(name, generation);
    }

    fn begin(&mut self, connection: &mut Connection, name: &str, bytes: &str) -> io::Result<()> {
        let (bucket, object) = place(name);
        let target =
            format!("/upload/storage/v1/b/{bucket}/o?uploadType=resumable&name={}", percent_encode(object));
        let answer = connection.send(&Request::new("POST", &target, &[], b""))?;
        let upload = answer.header("x-guploader-uploadid").filter(|_| answer.status == 200);
        let session =
            upload.map(|upload| Session { upload, name: name.to_owned(), bytes: bytes.to_owned(), told: 0 });
        if let Some(session) = &session {
            self.note(&answer, || Heard::Began(session.clone()));
        }
        self.session = session;
        Ok(())
    }

    /// Sends what is left of the upload that is under way.
    fn go_on(&mut self, connection: &mut Connection) -> io::Result<End> {
        loop {
            let Some(session) = &mut self.session else { return Ok(End::Unknown) };
            let (at, all) = (session.told, session.bytes.len());
            let end = if all - at <= 2 * UNIT { all } else { at + 2 * UNIT };
            let range = match (at == end, end == all) {
                (true, _) => format!("bytes */{all}"),
                (_, true) => format!("bytes {at}-{}/{all}", end - 1),
                (_, false) => format!("bytes {at}-{}/*", end - 1),
            };
            let answer = connection.send(&session.request(&range, &session.bytes[at..end]))?;
            match answer.status {
                308 => match session.told_by(&answer) {
                    Some(told) if told > at && told <= end => {
                        session.told = told;
                        self.note(&answer, || Heard::Told(told));
                    }
                    told => {
                        let what =
                            format!("an upload that had {at} bytes has {told:?} after {end} were sent");
                        self.found.push(Finding::new(Kind::Wrong, what));
                        return Ok(End::Unknown);
                    }
                },
                200 => {
                    self.session = None;
                    self.counts.sessions += 1;
                    return Ok(End::Done(answer));
                }
                _ => {
                    self.counts.busy += u64::from(answer.status == 503);
                    return Ok(End::Unknown);
                }
            }
        }
    }

    /// Compares what its names hold with what was acknowledged.
    pub(super) fn settle(&mut self, address: SocketAddr) -> Result<Vec<Finding>> {
        let mut connection = Connection::open(address)?;
        self.settle_session(&mut connection)?;
        let mut found = Objects::new();
        let mut generations = BTreeMap::new();
        for name in self.names() {
            if let Some((bytes, generation)) = self.read(&mut connection, &name)? {
                generations.insert(name.clone(), generation);
                found.insert(name, bytes);
            }
        }
        let pending = self.pending.take();
        let outcomes = pending
            .as_ref()
            .map_or_else(|| vec![self.objects.clone()], |op| op.outcomes(&self.objects).into());
        match outcomes.iter().position(|outcome| *outcome == found) {
            Some(at) if pending.is_some() => {
                let counted =
                    if at == 1 { &mut self.counts.unknown_dropped } else { &mut self.counts.unknown_applied };
                *counted += 1;
            }
            Some(_) => {}
            None => {
                let what = differences(&self.objects, &found).into_iter();
                let told = |what| {
                    format!(
                        "writer {}: {what}; unanswered was {:?}",
                        self.index,
                        pending.as_ref().map(Op::names)
                    )
                };
                self.found.extend(what.map(|what| Finding::new(Kind::Lost, told(what))));
            }
        }
        self.objects = found;
        self.settle_generations(&generations, pending.as_ref());
        Ok(std::mem::take(&mut self.found))
    }

    /// An object that was not changed has the generation that was told, and one that was changed has a greater one.
    fn settle_generations(&mut self, found: &BTreeMap<String, u64>, pending: Option<&Op>) {
        let before = std::mem::take(&mut self.live);
        for (name, generation) in found {
            let is_open = pending.is_some_and(|op| op.names().contains(&name.as_str()));
            match before.get(name) {
                Some(known) if known == generation => drop(self.live.insert(name.clone(), *generation)),
                Some(known) if !is_open => {
                    let what = format!("{name} had the generation {known} and has {generation}");
                    self.found.push(Finding::new(Kind::Wrong, what));
                }
                _ => self.made(name.clone(), Some(*generation)),
            }
        }
    }

    /// Goes on with an upload that was under way: it must have what was told of it.
    fn settle_session(&mut self, connection: &mut Connection) -> Result<()> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let answer = connection.send(&session.request("bytes */*", ""))?;
        let (name, told) = (session.name.clone(), session.told);
        let stored = session.told_by(&answer);
        match (answer.status, stored) {
            (308, Some(stored)) if stored >= told => session.told = stored,
            // It was finished, and the answer is told again.
            (200, _) => session.told = session.bytes.len(),
            _ => {
                let what =
                    format!("an upload of {name} had {told} bytes, and now {}: {stored:?}", answer.status);
                self.found.push(Finding::new(Kind::Lost, what));
                self.session = None;
                return Ok(());
            }
        }
        if answer.status == 200 {
            self.session = None;
            return Ok(());
        }
        let op = self.pending.clone().context("an upload without its operation")?;
        if let End::Done(answer) = self.go_on(connection)? {
            self.counts.unknown_applied += 1;
            self.acknowledge(&op, &answer);
        }
        // If it did not end, what it sent last may still make the object: it is not followed further.
        self.session = None;
        Ok(())
    }

    /// The bytes and the generation of an object; a bucket has none of the first.
    fn read(&mut self, connection: &mut Connection, name: &str) -> Result<Option<(String, u64)>> {
        if place(name).1.is_empty() {
            let answer = connection.send(&Request::new("GET", &bucket_of(name), &[], b""))?;
            return match answer.status {
                404 => Ok(None),
                200 => Ok(Some((
                    String::new(),
                    generation_in(&answer.body).context("a bucket without a generation")?,
                ))),
                status => bail!("{name} was answered {status}: {}", answer.body),
            };
        }
        let target = format!("{}?alt=media", target_of(name));
        let answer = connection.send(&Request::new("GET", &target, &[], b""));
        let answer = answer.with_context(|| format!("{name} cannot be read"))?;
        match answer.status {
            404 => return Ok(None),
            200 => {}
            status => bail!("{name} was answered {status}: {}", answer.body),
        }
        let hash = answer.header("x-goog-hash").unwrap_or_default();
        let sum = crc32c(answer.body.as_bytes());
        if !hash.contains(&format!("crc32c={sum}")) {
            let what = format!("{name} has the checksum {sum}, and the service tells {hash}");
            self.found.push(Finding::new(Kind::Wrong, what));
        }
        let generation = answer.header("x-goog-generation").and_then(|text| text.parse().ok());
        Ok(Some((answer.body, generation.context("a download without its generation")?)))
    }

    pub(super) fn remove_all(&mut self, address: SocketAddr) -> Result<()> {
        let mut connection = Connection::open(address)?;
        // What lies in a bucket comes after the bucket.
        for name in std::mem::take(&mut self.objects).into_keys().rev() {
            let op = if place(&name).1.is_empty() { Op::DropBucket } else { Op::Delete };
            let answer = connection.send(&request(&op(name.clone())))?;
            if answer.status != 204 {
                bail!("the deletion of {name} was answered {}: {}", answer.status, answer.body);
            }
        }
        Ok(())
    }

    fn name(&self, number: u32) -> String {
        format!("w{}/{number}", self.index)
    }

    /// The bucket that nobody else uses, and the one object in it.
    fn own_bucket(&self) -> [String; 2] {
        [format!("{BUCKET}-{}/", self.index), format!("{BUCKET}-{}/inside", self.index)]
    }

    /// All names that it may have used.
    fn names(&self) -> Vec<String> {
        (0..NAMES).map(|number| self.name(number)).chain(self.own_bucket()).collect()
    }

    /// The next step in the life of its own bucket.
    fn draw_of_bucket(&mut self) -> Op {
        let [bucket, inside] = self.own_bucket();
        match (self.objects.contains_key(&bucket), self.objects.contains_key(&inside)) {
            (false, _) => Op::MakeBucket(bucket),
            (true, false) if self.rng.random_bool(0.5) => Op::DropBucket(bucket),
            (true, false) => self.put(inside),
            (true, true) => Op::Delete(inside),
        }
    }

    /// Notes what an answer told.
    fn note(&mut self, answer: &Answer, heard: impl FnOnce() -> Heard) {
        if let Some(journal) = &mut self.journal {
            journal.note(answer, heard());
        }
    }

    /// The next operation: always one that the service must make, except that a bucket with objects cannot be deleted.
    fn draw(&mut self) -> Op {
        self.drawn += 1;
        let number = self.rng.random_range(0..NAMES);
        let name = self.name(number);
        let in_common = |name: &&String| place(name).0 == BUCKET;
        let there: Vec<String> = self.objects.keys().filter(in_common).cloned().collect();
        if self.rng.random_bool(0.15) {
            return self.draw_of_bucket();
        }
        if there.is_empty() {
            return self.put(name);
        }
        let from = there[self.rng.random_range(0..there.len())].clone();
        match self.rng.random_range(0..20) {
            0..9 => self.put(name),
            9..12 => Op::Delete(from),
            12..14 => Op::Copy(from, name),
            14..17 => {
                let more = there[self.rng.random_range(0..there.len())].clone();
                match self.objects[&from].len() + self.objects[&more].len() {
                    0..COMPOSED_BYTES_MAX => Op::Compose(vec![from, more], name),
                    _ => Op::Delete(from),
                }
            }
            17..19 if from != name => Op::Move(from, name),
            _ => Op::Nothing,
        }
    }

    /// New bytes, few or many, which differ from all others.
    fn put(&mut self, name: String) -> Op {
        let size = match self.rng.random_range(0..4) {
            0..2 => self.rng.random_range(0..2_000),
            2 => self.rng.random_range(64 << 10..200_000),
            _ => self.rng.random_range(200_000..3 * UNIT),
        };
        let word = format!("{}:{}.", self.index, self.drawn);
        Op::Put(name, word.chars().cycle().take(size).collect())
    }
}

fn target_of(name: &str) -> String {
    let (bucket, object) = place(name);
    format!("/storage/v1/b/{bucket}/o/{}", percent_encode(object))
}

fn bucket_of(name: &str) -> String {
    format!("/storage/v1/b/{}", place(name).0)
}

fn request(op: &Op) -> Request {
    let json = |target: String, body: &Value| {
        Request::new("POST", &target, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    };
    match op {
        Op::Put(name, bytes) => {
            let (bucket, object) = place(name);
            let target =
                format!("/upload/storage/v1/b/{bucket}/o?uploadType=media&name={}", percent_encode(object));
            Request::new("POST", &target, &[("Content-Type", "text/plain")], bytes.as_bytes())
        }
        Op::Delete(name) => Request::new("DELETE", &target_of(name), &[], b""),
        Op::Copy(from, to) => {
            json(format!("{}/copyTo/b/{BUCKET}/o/{}", target_of(from), percent_encode(to)), &json!({}))
        }
        Op::Compose(from, to) => {
            let sources: Vec<Value> = from.iter().map(|name| json!({"name": name})).collect();
            json(format!("{}/compose", target_of(to)), &json!({"sourceObjects": sources}))
        }
        Op::Move(from, to) => {
            json(format!("{}/moveTo/o/{}", target_of(from), percent_encode(to)), &json!({}))
        }
        Op::MakeBucket(name) => make_bucket(place(name).0, ""),
        Op::DropBucket(name) => Request::new("DELETE", &bucket_of(name), &[], b""),
        Op::Nothing => Request::new("DELETE", &bucket_of(BUCKET), &[], b""),
    }
}

/// The generation in the resource of an object.
pub(super) fn generation_in(body: &str) -> Option<u64> {
    serde_json::from_str::<Value>(body).ok()?["generation"].as_str()?.parse().ok()
}
