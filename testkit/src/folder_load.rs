//! A load of folders that knows what must be true afterwards.
//!
//! Some writers put objects into one folder, each under a name of its own, while the folder is taken away under a new name again and
//! again; the next write makes it again. After a crash:
//!
//! - an object that was acknowledged is there, and in one place;
//! - a rename without an answer is made or not: what lay in the folder before it lies together;
//! - what lay in a folder that was taken away lies there still, and nothing was added.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::http::{Connection, Request};
use crate::load::{Finding, Kind};
use crate::sign::percent_encode;

/// The bucket of all writers.
const BUCKET: &str = "crash-folders";
/// The folder into which they write.
const OPEN: &str = "open";

/// See the module.
#[derive(Default)]
pub struct FolderLoad {
    /// The number of the next object, and of the next name of the folder.
    next: u64,
    renamed: u64,
    /// Objects that were acknowledged.
    made: BTreeSet<String>,
    /// What lay in each folder that was taken away.
    taken: BTreeMap<String, BTreeSet<String>>,
    /// The rename without an answer, and the objects that were acknowledged before it began.
    pending: Option<(String, BTreeSet<String>)>,
    counts: FolderCounts,
}

/// What a load of folders did.
#[derive(Clone, Copy, Debug, Default)]
pub struct FolderCounts {
    /// Objects that were acknowledged.
    pub objects: u64,
    /// Renames that were acknowledged.
    pub renames: u64,
    /// Renames without an answer that turned out to be made.
    pub unknown_made: u64,
    /// ... and that turned out not to be made.
    pub unknown_dropped: u64,
}

impl FolderLoad {
    /// Makes the bucket.
    pub fn prepare(&self, address: SocketAddr) -> Result<()> {
        let body = format!(
            r#"{{"name":"{BUCKET}","hierarchicalNamespace":{{"enabled":true}},
                "iamConfiguration":{{"uniformBucketLevelAccess":{{"enabled":true}}}}}}"#
        );
        let headers = [("Content-Type", "application/json")];
        let request = Request::new("POST", "/storage/v1/b?project=crash", &headers, body.as_bytes());
        let answer = Connection::open(address)?.send(&request)?;
        if answer.status != 200 {
            bail!("the bucket was answered {}: {}", answer.status, answer.body);
        }
        Ok(())
    }

    /// Runs two writers and renames while `work` does something else, until it ends. Returns its result.
    pub fn run_while<T>(&mut self, address: SocketAddr, work: impl FnOnce() -> T) -> T {
        let stop = &AtomicBool::new(false);
        let made = &Mutex::new(std::mem::take(&mut self.made));
        let first = self.next;
        let result = std::thread::scope(|scope| {
            let writers =
                [0, 1].map(|writer| scope.spawn(move || write(address, stop, made, first + writer)));
            let renamer = scope.spawn(|| self.rename(address, stop, made));
            let result = work();
            stop.store(true, Ordering::Relaxed);
            let lasts = writers.map(|writer| writer.join().expect("a writer does not panic"));
            renamer.join().expect("it does not panic");
            (result, lasts)
        });
        self.next = result.1.into_iter().max().unwrap_or(first);
        self.made = std::mem::take(&mut *made.lock().expect("no writer panics"));
        result.0
    }

    /// Takes the folder away under one name after another, until it is stopped or one rename has no answer.
    fn rename(&mut self, address: SocketAddr, stop: &AtomicBool, made: &Mutex<BTreeSet<String>>) {
        let Ok(mut connection) = Connection::open(address) else { return };
        while !stop.load(Ordering::Relaxed) {
            self.renamed += 1;
            let folder = format!("taken{}", self.renamed);
            let before = made.lock().expect("no writer panics").clone();
            self.pending = Some((folder.clone(), before));
            let target = format!("/storage/v1/b/{BUCKET}/folders/{OPEN}/renameTo/folders/{folder}");
            match connection.send(&Request::new("POST", &target, &[], b"")).map(|answer| answer.status) {
                Ok(200) => {}
                // There is no folder yet.
                Ok(404) => {
                    self.pending = None;
                    continue;
                }
                _ => return,
            }
            self.pending = None;
            self.counts.renames += 1;
            let Ok(names) = names(&mut connection, &format!("{folder}/")) else { return };
            self.taken.insert(folder, names.iter().map(|(_, last)| last.clone()).collect());
        }
    }

    /// Compares what the service holds with what it has acknowledged.
    pub fn check(&mut self, address: SocketAddr) -> Result<Vec<Finding>> {
        let all = names(&mut Connection::open(address)?, "")?;
        let mut findings = Vec::new();
        let mut wrong = |kind, what: String| findings.push(Finding::new(kind, what));
        let mut places = BTreeMap::<&str, Vec<&str>>::new();
        for (folder, name) in &all {
            places.entry(name).or_default().push(folder);
        }
        for (name, folders) in places.iter().filter(|(_, folders)| folders.len() > 1) {
            wrong(Kind::Wrong, format!("the object {name} lies in {folders:?}"));
        }
        for name in self.made.iter().filter(|name| !places.contains_key(name.as_str())) {
            wrong(
                Kind::Lost,
                format!("the object {name}, which was acknowledged, in a folder that was renamed"),
            );
        }
        let lies_in = |wanted: &str| {
            let there = all.iter().filter(|(folder, _)| folder == wanted);
            there.map(|(_, name)| name.clone()).collect::<BTreeSet<String>>()
        };
        for (folder, lay) in &self.taken {
            if lies_in(folder) != *lay {
                wrong(Kind::Wrong, format!("{folder} has changed after its rename was acknowledged"));
            }
        }
        if let Some((folder, before)) = self.pending.take() {
            let (taken, left) = (lies_in(&folder), lies_in(OPEN));
            let torn = !before.is_disjoint(&taken) && !before.is_disjoint(&left);
            if torn {
                wrong(Kind::Wrong, format!("the rename to {folder} has left objects behind"));
            }
            match taken.is_empty() {
                true => self.counts.unknown_dropped += 1,
                false => self.counts.unknown_made += 1,
            }
        }
        self.counts.objects = self.made.len() as u64;
        Ok(findings)
    }

    /// What it has done.
    pub fn counts(&self) -> FolderCounts {
        self.counts
    }
}

/// Writes each second object from `number` on, until it is stopped or one has no answer. Returns the next number.
fn write(address: SocketAddr, stop: &AtomicBool, made: &Mutex<BTreeSet<String>>, mut number: u64) -> u64 {
    let Ok(mut connection) = Connection::open(address) else { return number };
    while !stop.load(Ordering::Relaxed) {
        let name = format!("o{number}");
        number += 2;
        let whole = percent_encode(&format!("{OPEN}/s/{name}"));
        let target = format!("/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={whole}");
        match connection.send(&Request::new("POST", &target, &[], name.as_bytes())) {
            Ok(answer) if answer.status == 200 => drop(made.lock().expect("no writer panics").insert(name)),
            Ok(answer) if answer.status == 503 => {}
            _ => break,
        }
    }
    number
}

/// All names that begin with `prefix`: the folder at the top, and the last part.
fn names(connection: &mut Connection, prefix: &str) -> Result<Vec<(String, String)>> {
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let prefix = percent_encode(prefix);
        let target = format!("/storage/v1/b/{BUCKET}/o?prefix={prefix}&pageToken={token}");
        let answer = connection.send(&Request::new("GET", &target, &[], b""))?;
        if answer.status != 200 {
            bail!("a listing was answered {}: {}", answer.status, answer.body);
        }
        let page: Value = serde_json::from_str(&answer.body).context("a page in JSON")?;
        for item in page["items"].as_array().map_or(&[][..], Vec::as_slice) {
            let name = item["name"].as_str().context("an object has a name")?;
            let folder = name.split('/').next().unwrap_or_default();
            all.push((folder.to_owned(), name.rsplit('/').next().unwrap_or_default().to_owned()));
        }
        match page["nextPageToken"].as_str() {
            Some(next) => token = next.to_owned(),
            None => return Ok(all),
        }
    }
}
