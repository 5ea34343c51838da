//! Folders: a folder into which clients write is taken away under a new name, again and again, and the next write makes it
//! again.
//!
//! * A write that was acknowledged lies, at the end, under one name: its own, or in the first folder that was taken away
//!   after it. It is not left behind by a rename that began later.
//! * What lies in a folder that was taken away is what lay in it then: no write lands in it afterwards.
//! * A page shows a rename whole or not at all, so nothing is in it twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::super::{IN_THE_END, make};
use crate::client::http::Reply;
use crate::client::objects::{create_tree, delete_folder, list_names, names_in, put, rename_folder};
use crate::client::{Client, NoAnswer};
use crate::world::{World, until_some};

const BUCKET: &str = "folders";
/// The folder into which clients write, and the one below it in which the objects lie.
const OPEN: &str = "open/";
const BELOW: &str = "open/s/";

/// The folders of one run, and all that happened to them.
#[derive(Default)]
pub struct Folders {
    next: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Objects whose writes were acknowledged, and when.
    made: BTreeMap<String, Duration>,
    /// Objects whose writes were refused for good, or never sent.
    refused: BTreeSet<String>,
    /// The folders that were taken away: when the rename began, and what lay in each afterwards.
    taken: BTreeMap<String, (Duration, BTreeSet<String>)>,
}

impl Folders {
    /// Makes the bucket.
    pub async fn set_up(world: &World) -> Arc<Self> {
        let mut client = Client::of_objects(world, "folders").only_once();
        let made = |reply: &Reply| matches!(reply.status, 200 | 409);
        make(&mut client, format_args!("bucket {BUCKET}"), &create_tree(BUCKET), made).await;
        Arc::default()
    }

    /// Writes objects, each under a name of its own, until `end`.
    pub async fn write(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            let name = format!("{}-{}", client.name(), self.next.fetch_add(1, Ordering::Relaxed));
            let asked = client.ask(put(BUCKET, &format!("{BELOW}{name}"), name.as_bytes())).await;
            let ended = client.world().now();
            match asked.answer {
                Ok(reply) if reply.status == 200 && !asked.twice => {
                    self.known().made.insert(name, ended);
                }
                Ok(reply) if reply.status == 200 || reply.status == 408 || reply.status >= 500 => {}
                Ok(reply) => found(&client, "a write into a folder", &reply),
                Err(NoAnswer::Unsent) => drop(self.known().refused.insert(name)),
                Err(NoAnswer::Unknown) => {}
            }
            client.think(think.0, think.1).await;
        }
    }

    /// Takes the folder away again and again until `end`, and tries to delete the one below it.
    pub async fn take_away(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        for number in 0.. {
            if client.world().now() >= end {
                return;
            }
            client.think(think.0, think.1).await;
            if client.dice().happens(0.3) {
                // It is refused if an object lies there. If not, no write may be acknowledged into it any more.
                if let Ok(reply) = client.ask(delete_folder(BUCKET, BELOW)).await.answer
                    && !matches!(reply.status, 204 | 404 | 408 | 412 | 500..)
                {
                    found(&client, "the deletion of a folder", &reply);
                }
                continue;
            }
            let to = format!("taken{number}/");
            let begun = client.world().now();
            match client.ask(rename_folder(BUCKET, OPEN, &to)).await.answer {
                Ok(reply) if reply.status == 200 => self.look_into(&mut client, &to, begun).await,
                Ok(reply) if matches!(reply.status, 404 | 408 | 409 | 500..) => {}
                Ok(reply) => found(&client, "the rename of a folder", &reply),
                Err(_) => {}
            }
        }
    }

    /// Notes what lies in a folder that was taken away by a rename which began then.
    async fn look_into(&self, client: &mut Client, folder: &str, begun: Duration) {
        if let Some(names) = all_names(client, folder).await {
            let lay = names.iter().map(|name| last(name).to_owned()).collect();
            self.known().taken.insert(folder.to_owned(), (begun, lay));
        }
    }

    /// Lists all names again and again until `end`: a rename that is under way is shown whole or not at all.
    pub async fn watch(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            if let Ok(reply) = client.ask(list_names(BUCKET, "", None)).await.answer
                && let Some((names, _)) = names_in(&reply)
            {
                let different: BTreeSet<&str> = names.iter().map(|name| last(name)).collect();
                if different.len() < names.len() {
                    client.world().found(format_args!("a page shows an object twice: {names:?}"));
                }
            }
            client.think(think.0, think.1).await;
        }
    }

    /// Lists the bucket once more, however long it takes, and reports what was wrong.
    pub async fn check(&self, client: &mut Client) {
        let world = client.world().clone();
        let cell = tokio::sync::Mutex::new(&mut *client);
        let names = until_some(IN_THE_END, || async { all_names(*cell.lock().await, "").await });
        let Some(names) = names.await else {
            return world.found(format_args!("the bucket {BUCKET} cannot be listed when all is calm"));
        };
        let mut places = BTreeMap::<&str, Vec<&str>>::new();
        for name in &names {
            let folder = name.split_inclusive('/').next().unwrap_or_default();
            places.entry(last(name)).or_default().push(folder);
        }
        let known = self.known();
        for (name, ended) in &known.made {
            let wrong = match places.get(name.as_str()).map(Vec::as_slice) {
                None => Some("is lost".to_owned()),
                Some([OPEN]) => {
                    let after = known.taken.values().any(|(rename, _)| rename > ended);
                    after.then(|| "was left behind by a rename that came after it".to_owned())
                }
                Some([folder]) => known.taken.get(*folder).and_then(|(rename, _)| {
                    let earlier = known.taken.values().any(|(other, _)| other > ended && other < rename);
                    earlier.then(|| format!("was taken away late, by {folder}"))
                }),
                Some(several) => Some(format!("lies in {several:?}")),
            };
            if let Some(wrong) = wrong {
                world.found(format_args!("the object {name}, which was acknowledged, {wrong}"));
            }
        }
        for name in known.refused.iter().filter(|name| places.contains_key(name.as_str())) {
            world.found(format_args!("the object {name} was never sent, and is there"));
        }
        for (folder, (_, lay)) in &known.taken {
            let lies: BTreeSet<String> = names
                .iter()
                .filter(|name| name.starts_with(folder.as_str()))
                .map(|name| last(name).to_owned())
                .collect();
            if lies != *lay {
                let different: Vec<_> = lies.symmetric_difference(lay).collect();
                world.found(format_args!(
                    "{folder} has changed after its rename was acknowledged: {different:?}"
                ));
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The names that begin with `prefix`, page by page; `None` if a page was not told, or was the same again. Call it when nothing that it shows is
/// renamed any more.
async fn all_names(client: &mut Client, prefix: &str) -> Option<Vec<String>> {
    let (mut all, mut token) = (Vec::new(), None::<String>);
    loop {
        let answer = client.ask(list_names(BUCKET, prefix, token.as_deref())).await.answer;
        let (names, next) = names_in(&answer.ok()?)?;
        all.extend(names);
        if next.is_some() && next == token {
            client.world().found(format_args!("a page of {BUCKET} has the token by which it was asked for"));
            return None;
        }
        token = next;
        if token.is_none() {
            return Some(all);
        }
    }
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

fn found(client: &Client, what: &str, reply: &Reply) {
    let line = reply.body.replace('\n', " ");
    client.world().found(format_args!("{what} was answered {}: {line}", reply.status));
}
