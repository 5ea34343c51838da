//! A load of objects that knows what must be true afterwards.
//!
//! Some writers upload, overwrite, copy, compose, move and delete objects of one bucket at once. Each owns its names and
//! has one request under way at a time. So after a crash its names must hold what its acknowledged operations left, or
//! that with its one unanswered operation, whole. Besides:
//!
//! - bytes are those that were written, and have the checksum that the service tells;
//! - generations of a name grow, also after it was deleted, and none is used twice;
//! - an upload by a session has at least what the service told of it, and goes on from there.
//!
//! Besides, each writer makes and deletes a bucket of its own, with one object in it.
//!
//! `model` has the operations and what they lead to; `writer` carries them out. `journal` remembers which answer told
//! what, so that what was promised at any moment of a run (`past`) can be compared with what is found.

mod journal;
mod left;
mod model;
mod past;
mod session;
mod writer;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};

use self::journal::Journal;
pub use self::left::left_over;
pub use self::writer::ObjectCounts;
use self::writer::ObjectWriter;
use crate::http::{Connection, Request};
use crate::load::{Finding, Kind};

/// The bucket of all writers.
const BUCKET: &str = "crash";
/// Settings of a bucket that keeps versions until the next walk.
const VERSIONS_GO: &str = r#","versioning":{"enabled":true},"lifecycle":{"rule":[{"action":{"type":"Delete"},"condition":{"isLive":false}}]}"#;
/// The name of [`churn`].
const CHURNED: &str = "churned";

/// Writers of objects, from one seed.
pub struct ObjectLoad(Vec<ObjectWriter>);

impl ObjectLoad {
    /// So many writers that have done nothing yet.
    pub fn new(writers: usize, seed: u64) -> Self {
        Self((0..writers).map(|index| ObjectWriter::new(index, seed)).collect())
    }

    /// Makes the bucket. It keeps older versions, and a rule removes them, so the walk over the buckets always has something
    /// to do.
    pub fn prepare(&self, address: SocketAddr) -> Result<()> {
        let answer = Connection::open(address)?.send(&make_bucket(BUCKET, VERSIONS_GO))?;
        if answer.status != 200 {
            bail!("the bucket was answered {}: {}", answer.status, answer.body);
        }
        Ok(())
    }

    /// Runs all writers while `work` does something else, until it ends. Returns its result.
    pub fn run_while<T>(&mut self, address: SocketAddr, work: impl FnOnce() -> T) -> T {
        let stop = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in &mut self.0 {
                scope.spawn(move || writer.run(address, u64::MAX, stop));
            }
            let result = work();
            stop.store(true, Ordering::Relaxed);
            result
        })
    }

    /// How many writers there are.
    pub fn writers(&self) -> usize {
        self.0.len()
    }

    /// Remembers from now on what each answer told.
    pub fn keep_journal(&mut self) {
        self.0.iter_mut().for_each(|writer| writer.journal = Some(Journal::default()));
    }

    /// Runs all writers until each has made so many operations.
    pub fn run(&mut self, address: SocketAddr, times: u64) {
        let stop = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in &mut self.0 {
                scope.spawn(move || writer.run(address, times, stop));
            }
        });
    }

    /// Each answer in the journals, with the writer that got it: the id that the service gave it, and how many answers of
    /// this writer had that id before. All answers to one upload have the same id.
    pub fn answers(&self) -> HashMap<(&str, usize), usize> {
        let mut answers = HashMap::new();
        for (at, writer) in self.0.iter().enumerate() {
            let journal = writer.journal.iter().flat_map(Journal::answers);
            answers.extend(journal.map(|answer| (answer, at)));
        }
        answers
    }

    /// The writers as they were when each of them had so many of the answers in its journal. The operation that comes next
    /// counts as one without an answer.
    pub fn as_of(&self, answered: &[usize]) -> Self {
        Self(self.0.iter().zip(answered).map(|(writer, answered)| writer.as_of(*answered)).collect())
    }

    /// Compares what the service holds with what it has acknowledged, and notes what came of requests without an answer.
    pub fn check(&mut self, address: SocketAddr) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        for writer in &mut self.0 {
            findings.extend(writer.settle(address)?);
        }
        Ok(findings)
    }

    /// Deletes all objects.
    pub fn remove_all(&mut self, address: SocketAddr) -> Result<()> {
        self.0.iter_mut().try_for_each(|writer| writer.remove_all(address))
    }

    /// Sums over all writers.
    pub fn counts(&self) -> ObjectCounts {
        self.0.iter().fold(ObjectCounts::default(), |sum, writer| sum.plus(&writer.counts))
    }
}

/// Creates a bucket without soft deletion, and with these further settings.
fn make_bucket(bucket: &str, settings: &str) -> Request {
    let body =
        format!(r#"{{"name":"{bucket}","softDeletePolicy":{{"retentionDurationSeconds":"0"}}{settings}}}"#);
    let headers = [("Content-Type", "application/json")];
    Request::new("POST", "/storage/v1/b?project=crash", &headers, body.as_bytes())
}

/// Creates and deletes one name `times` times. Returns the greatest generation, and what was wrong: each must be greater
/// than the one before, and the first greater than `after`.
pub fn churn(address: SocketAddr, times: u32, after: u64) -> Result<(u64, Vec<Finding>)> {
    let mut connection = Connection::open(address)?;
    let (mut greatest, mut findings) = (after, Vec::new());
    let upload = format!("/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={CHURNED}");
    let object = format!("/storage/v1/b/{BUCKET}/o/{CHURNED}");
    for _ in 0..times {
        let made = connection.send(&Request::new("POST", &upload, &[], b"x"))?;
        let deleted = connection.send(&Request::new("DELETE", &object, &[], b""))?;
        if (made.status, deleted.status) != (200, 204) {
            bail!("{CHURNED} was answered {} and {}: {}", made.status, deleted.status, made.body);
        }
        let generation = writer::generation_in(&made.body).unwrap_or(0);
        if generation <= greatest {
            let what = format!("{CHURNED} got the generation {generation} after {greatest}");
            findings.push(Finding::new(Kind::Wrong, what));
        }
        greatest = greatest.max(generation);
    }
    Ok((greatest, findings))
}
