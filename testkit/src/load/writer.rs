//! One writer: draws operations, sends them, and keeps what the service promised.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::judge::{Finding, Kind, judge};
use super::ledger::Ledger;
use super::op::{Change, Generator, Key, Op, Row, Shape, State};
use super::{Counts, TABLE, TALLY, Tally};
use crate::client::{self, Answer, Client, Credential, Failure, Request, Step};

/// Pause after an answer 503, as a polite client makes it.
const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// How many unexpected answers a writer keeps the text of.
const REFUSALS_KEPT_MAX: usize = 3;

/// An answer that promised something, in the order of the writer's requests.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The id that the request carried and that its answer repeats.
    pub id: String,
    /// What is known of the request.
    pub what: What,
}

/// What an answer promised.
#[derive(Clone, Debug)]
pub enum What {
    /// The operation is done.
    Done(Op),
    /// The tally has at least this value.
    Tally(u64),
}

/// One request and its answer, as a client sees it.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// Whether it changes anything.
    pub writes: bool,
    /// Before its first byte is sent.
    pub from: Instant,
    /// After the last byte of its answer.
    pub to: Instant,
}

/// An answer of 500 or more.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The status; of a batch, that of the part that was refused.
    pub status: u16,
    /// The request line, and what was answered.
    pub what: String,
    /// Before the first byte of the request was sent.
    pub from: Instant,
    /// After the last byte of the answer.
    pub to: Instant,
}

/// A writer and everything it knows.
pub struct Writer {
    /// Its number; it owns the row keys that carry it.
    pub index: usize,
    generator: Generator,
    /// After all acknowledged operations.
    pub state: State,
    /// The operation whose outcome is unknown.
    pending: Option<Op>,
    /// The last time seen in an ETag of each entity; kept when the entity is deleted.
    times: BTreeMap<Key, String>,
    requests: u64,
    /// What answers promised, in order, when it is to be kept.
    pub log: Option<Vec<Entry>>,
    /// How often what happened.
    pub counts: Counts,
    /// Answers of the running service that contradict what it acknowledged.
    pub findings: Vec<Finding>,
    /// Every request, if that is wanted.
    pub timed: Option<Vec<Timed>>,
    /// Learns what is certainly there.
    pub ledger: Option<Arc<Ledger>>,
    /// The first answers 503 and 500, in words.
    pub refusals: Vec<String>,
    /// Every answer of 500 or more with its time, if that is wanted. The caller takes them out now and then.
    pub refused: Option<Vec<Refused>>,
}

/// The outcome of an operation.
enum Outcome {
    Done {
        id: String,
        answer: Answer,
    },
    /// Refused before it was carried out.
    Busy,
    Unknown,
    /// Never sent: no process listens.
    Unsent,
    Wrong(String),
}

impl Writer {
    /// A writer whose operations follow from `seed`; `keep_log` keeps what each request led to.
    pub fn new(index: usize, seed: u64, shape: Shape, keep_log: bool) -> Self {
        Self {
            index,
            generator: Generator::new(index, seed, shape),
            state: State::default(),
            pending: None,
            times: BTreeMap::new(),
            requests: 0,
            log: keep_log.then(Vec::new),
            counts: Counts::default(),
            findings: Vec::new(),
            timed: None,
            ledger: None,
            refusals: Vec::new(),
            refused: None,
        }
    }

    /// Works until `stop`, until the server is gone, or until something is wrong; rests for `pace` after
    /// each operation.
    pub fn run(
        &mut self,
        address: SocketAddr,
        credential: Credential,
        stop: &AtomicBool,
        (operations_max, pace): (u64, Duration),
        tally: &Tally,
    ) {
        let mut client = Client::new(address, credential);
        // An operation without an answer must be settled before the next can be drawn.
        for _ in 0..operations_max {
            if self.pending.is_some() || stop.load(Ordering::Relaxed) {
                return;
            }
            let op = self.generator.next(&self.state);
            if !self.carry_out(&mut client, op, stop, tally) {
                return;
            }
            if !pace.is_zero() {
                thread::sleep(pace);
            }
        }
    }

    /// Takes one operation to its end; false if the writer cannot go on.
    fn carry_out(&mut self, client: &mut Client, op: Op, stop: &AtomicBool, tally: &Tally) -> bool {
        loop {
            if let Some(ledger) = &self.ledger {
                ledger.begin(&op);
            }
            let outcome = match &op {
                Op::Tally => self.count_up(client, tally),
                Op::Read(key) => self.read(client, key),
                _ => self.exchange(client, request(&op), &expected(&op)),
            };
            match outcome {
                Outcome::Done { id, answer } => {
                    self.acknowledge(op, id, &answer);
                    return true;
                }
                Outcome::Busy if stop.load(Ordering::Relaxed) => return false,
                Outcome::Busy => thread::sleep(BUSY_PAUSE),
                Outcome::Unknown => {
                    if matches!(op, Op::Tally) {
                        tally.unknown.fetch_add(1, Ordering::SeqCst);
                    }
                    self.pending = Some(op);
                    return false;
                }
                Outcome::Unsent => return false,
                Outcome::Wrong(what) => {
                    self.findings.push(Finding::new(Kind::Wrong, format!("writer {}: {what}", self.index)));
                    // Later comparisons would only repeat this finding, no matter what the operation did.
                    self.pending = Some(op);
                    return false;
                }
            }
        }
    }

    fn exchange(&mut self, client: &mut Client, request: Request, expected: &[u16]) -> Outcome {
        self.requests += 1;
        let id = format!("w{}-{}", self.index, self.requests);
        let line = format!("{} {}", request.method, request.target);
        let writes = request.method != "GET";
        let from = Instant::now();
        let sent = client.send(request, &id);
        let to = Instant::now();
        if let Some(timed) = &mut self.timed {
            timed.push(Timed { writes, from, to });
        }
        match sent {
            Ok(answer) => match status(&answer) {
                status if expected.contains(&status) => Outcome::Done { id, answer },
                503 => {
                    self.counts.busy += 1;
                    self.refused(503, &line, &answer, (from, to));
                    Outcome::Busy
                }
                status @ 500.. => {
                    self.counts.failed += 1;
                    self.refused(status, &line, &answer, (from, to));
                    Outcome::Unknown
                }
                _ => {
                    let text = &answer.body;
                    let text: String = text.chars().take(600).collect();
                    Outcome::Wrong(format!("{line} was answered {}: {text}", answer.status))
                }
            },
            Err(failure) => {
                self.counts.broken += 1;
                match failure {
                    Failure::Unsent(_) => Outcome::Unsent,
                    Failure::Unknown(_) => Outcome::Unknown,
                }
            }
        }
    }

    fn refused(&mut self, status: u16, line: &str, answer: &Answer, (from, to): (Instant, Instant)) {
        let what = || format!("{line} was answered {}: {}", answer.status, answer.body);
        if self.refusals.len() < REFUSALS_KEPT_MAX {
            self.refusals.push(what());
        }
        if let Some(refused) = &mut self.refused {
            refused.push(Refused { status, what: what(), from, to });
        }
    }

    /// Reads one of its own rows, which no other writer changes: it must be as this writer left it.
    fn read(&mut self, client: &mut Client, key: &Key) -> Outcome {
        let path = client::entity_path(&key.table, &key.partition, &key.row);
        let expected = self.state.rows.get(key).cloned();
        let (id, answer) = match self.exchange(client, client::get(path), &[200, 404]) {
            Outcome::Done { id, answer } => (id, answer),
            // A read has no outcome to be unsure of.
            Outcome::Unknown => return Outcome::Unsent,
            other => return other,
        };
        if properties(&answer) != expected {
            return Outcome::Wrong(format!("{key} was read as {}: {}", answer.status, answer.body));
        }
        Outcome::Done { id, answer }
    }

    /// Reads the tally and writes it back plus one, until no other writer came in between.
    fn count_up(&mut self, client: &mut Client, tally: &Tally) -> Outcome {
        loop {
            let read = client::get(client::entity_path(TABLE, TALLY.0, TALLY.1));
            let (id, answer) = match self.exchange(client, read, &[200]) {
                Outcome::Done { id, answer } => (id, answer),
                // A read has no outcome to be unsure of.
                Outcome::Unknown => return Outcome::Unsent,
                other => return other,
            };
            let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
            let (Some(value), Some(etag)) = (body["n"].as_u64(), answer.header("etag")) else {
                return Outcome::Wrong(format!("the tally was read as {}", answer.body));
            };
            self.promise(id, What::Tally(value));
            tally.seen.fetch_max(value, Ordering::SeqCst);
            let next = client::row([("n", (value + 1).into())]);
            let write = client::change(Step::Replace, TABLE, TALLY, &next, &etag);
            match self.exchange(client, write, &[204, 412]) {
                Outcome::Done { answer, .. } if answer.status == 412 => {}
                Outcome::Done { id, answer } => {
                    tally.acknowledged.fetch_add(1, Ordering::SeqCst);
                    tally.seen.fetch_max(value + 1, Ordering::SeqCst);
                    self.promise(id.clone(), What::Tally(value + 1));
                    return Outcome::Done { id, answer };
                }
                other => return other,
            }
        }
    }

    fn acknowledge(&mut self, op: Op, id: String, answer: &Answer) {
        match &op {
            Op::Tally => self.counts.changes += 1,
            Op::Read(_) => self.counts.reads += 1,
            Op::Change(change) => {
                self.counts.changes += 1;
                self.counts.deletes += u64::from(change.step == Step::Delete);
                self.check_times(
                    std::slice::from_ref(change),
                    answer.header("etag").as_deref().into_iter().collect(),
                );
            }
            Op::Batch(changes) => {
                self.counts.batches += 1;
                let text = &answer.body;
                let parts = text.lines().filter(|line| line.starts_with("HTTP/1.1 204")).count();
                if parts != changes.len() {
                    let what = format!("a batch of {} has {parts} answers 204: {text}", changes.len());
                    self.findings.push(Finding::new(Kind::Wrong, what));
                }
                self.check_times(changes, etag_lines(text));
            }
            Op::CreateTable(_) | Op::DeleteTable(_) => self.counts.tables += 1,
        }
        self.state.apply(&op);
        if let Some(ledger) = &self.ledger {
            ledger.done(&op);
        }
        if !matches!(op, Op::Tally | Op::Read(_)) {
            self.promise(id, What::Done(op));
        }
    }

    fn promise(&mut self, id: String, what: What) {
        if let Some(log) = &mut self.log {
            log.push(Entry { id, what });
        }
    }

    /// The ETags of an entity only grow, across deletes, crashes and clocks that step back.
    fn check_times(&mut self, changes: &[Change], etags: Vec<&str>) {
        let written: Vec<&Change> = changes.iter().filter(|change| change.step != Step::Delete).collect();
        if written.len() != etags.len() {
            let what = format!("{} changes were answered with {} ETags", written.len(), etags.len());
            self.findings.push(Finding::new(Kind::Wrong, what));
            return;
        }
        for (change, etag) in written.into_iter().zip(etags) {
            let Some(time) = client::etag_time(etag) else {
                self.findings.push(Finding::new(Kind::Wrong, format!("{etag:?} is not an ETag")));
                continue;
            };
            let last = self.times.insert(change.key.clone(), time.clone());
            if let Some(last) = last.filter(|last| *last >= time) {
                let what = format!("the ETag of {} went from {last} to {time}", change.key);
                self.findings.push(Finding::new(Kind::Wrong, what));
            }
        }
    }

    /// Compares with what the service holds, and takes that over.
    pub fn settle(&mut self, found: &State) -> Vec<Finding> {
        let (applied, mut findings) = judge(&self.state, self.pending.as_ref(), found);
        if self.pending.take().is_some() {
            self.counts.unknown_applied += u64::from(applied);
            self.counts.unknown_dropped += u64::from(!applied);
        }
        self.state = found.clone();
        for finding in &mut findings {
            finding.what = format!("writer {}: {}", self.index, finding.what);
        }
        findings.append(&mut self.findings);
        findings
    }
}

/// The request of an operation other than the tally.
fn request(op: &Op) -> Request {
    let one = |change: &Change| {
        let Key { table, partition, row } = &change.key;
        client::change(change.step, table, (partition, row), &change.properties, "*")
    };
    match op {
        Op::Change(change) => one(change),
        Op::Batch(changes) => client::batch(&changes.iter().map(one).collect::<Vec<_>>()),
        Op::CreateTable(name) => client::create_table(name),
        Op::DeleteTable(name) => client::delete_table(name),
        Op::Read(_) => unreachable!("a read is compared, and has no outcome to be settled"),
        Op::Tally => unreachable!("the tally is counted up by two requests"),
    }
}

/// The properties of an entity that was read, without those that the service adds; `None` for an
/// answer 404.
pub fn properties(answer: &Answer) -> Option<Row> {
    if answer.status == 404 {
        return None;
    }
    let mut row: Row = serde_json::from_str(&answer.body).unwrap_or_default();
    for name in ["PartitionKey", "RowKey", "Timestamp"] {
        row.remove(name);
    }
    Some(row)
}

/// The status that says that an operation was carried out.
fn expected(op: &Op) -> [u16; 1] {
    match op {
        Op::Batch(_) => [202],
        _ => [204],
    }
}

/// The status of an answer. A refused batch is answered 202, with the refusal as its only part.
fn status(answer: &Answer) -> u16 {
    if answer.status != 202 {
        return answer.status;
    }
    let text = &answer.body;
    let parts = text.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 "));
    let refusal = parts.filter_map(|line| line.get(..3)?.parse().ok()).find(|status: &u16| *status >= 400);
    refusal.unwrap_or(answer.status)
}

/// The ETags in the body of a batch's answer, in order.
fn etag_lines(body: &str) -> Vec<&str> {
    body.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("etag"))
        .map(|(_, value)| value.trim())
        .collect()
}
