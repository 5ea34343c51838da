//! Generations that are not live. In a bucket that keeps versions, a rule removes those that have two newer ones, so the
//! two newest of each name must be there with their bytes, and the older ones must be gone in the end. In a bucket with
//! soft deletion, a deleted object comes back.
//!
//! Each name has one writer. When the outcome of one of its writes is not known, the writer goes on with another name.

use std::time::Duration;

use rangehold_protocol::object::checksum::Crc32c;
use serde_json::json;

use super::known::bytes_of;
use crate::check::register::Value;
use crate::client::Client;
use crate::client::http::{Reply, Request};
use crate::client::objects::{
    Described, ObjectName, create_bucket_with, delete, describe_deleted, download, download_generation,
    list_beginning, page, restore, shown, upload,
};
use crate::workload::{IN_THE_END, make};
use crate::world::{World, until_some};

const VERSIONED: &str = "versioned";
const SOFT: &str = "soft";
/// The newest generations that the rule leaves alone.
const KEPT: usize = 2;
/// The bytes of an object: few, or enough for a blob.
const BYTES: [(u64, u64); 2] = [(0, 1_500), ((64 << 10) + 1, 120_000)];

/// One name of the bucket that keeps versions, and what is known of it.
#[derive(Default)]
struct History {
    number: u64,
    /// Each generation that was acknowledged, with its write and its length, from the oldest.
    made: Vec<(u64, Value, usize)>,
    is_live: bool,
}

impl History {
    fn name(&self) -> ObjectName {
        ObjectName::new(VERSIONED, &format!("v{}.", self.number))
    }

    /// The next name, of which everything is known.
    fn next(&self) -> Self {
        Self { number: self.number + 1, ..Self::default() }
    }
}

/// Writes, deletes and reads versions until `end`; then looks whether the rule was carried out.
pub async fn keep_versions(mut client: Client, end: Duration, think: (u64, u64)) {
    let settings = json!({
        "versioning": {"enabled": true},
        "softDeletePolicy": {"retentionDurationSeconds": "0"},
        "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"numNewerVersions": KEPT}}]},
    });
    make_bucket(&mut client, VERSIONED, &settings).await;
    let (mut history, mut value) = (History::default(), 0);
    while client.world().now() < end {
        client.think(think.0, think.1).await;
        let known = match client.dice().below(10) {
            0..4 => {
                value += 1;
                write(&mut client, &mut history, value).await
            }
            4 if history.is_live => {
                let answer = client.ask(delete(&history.name(), None)).await.answer;
                history.is_live = false;
                answer.is_ok_and(|reply| reply.status == 204)
            }
            5..7 => {
                list(&mut client, &history).await;
                true
            }
            _ => {
                read(&mut client, &history).await;
                true
            }
        };
        if !known {
            history = history.next();
        }
    }
    let world = client.world().clone();
    gone_in_the_end(&world, client, &history).await;
}

/// Makes a new generation. Returns whether its outcome is known.
async fn write(client: &mut Client, history: &mut History, value: Value) -> bool {
    let (request, length) = some_upload(client, &history.name(), value);
    let Ok(reply) = client.ask(request).await.answer else { return false };
    let Some(shown) = shown(&reply).filter(|_| reply.status == 200) else { return false };
    if history.made.last().is_some_and(|(last, ..)| *last >= shown.generation) {
        client.world().found(format_args!("{:?} got {shown:?} after {:?}", history.name(), history.made));
    }
    history.made.push((shown.generation, value, length));
    history.is_live = true;
    true
}

/// Reads one of the last generations.
async fn read(client: &mut Client, history: &History) {
    let Some(newer) =
        (!history.made.is_empty()).then(|| client.dice().index(history.made.len().min(KEPT + 2)))
    else {
        return;
    };
    let (generation, value, length) = history.made[history.made.len() - 1 - newer];
    let Ok(reply) = client.ask(download_generation(&history.name(), generation)).await.answer else { return };
    match reply.status {
        404 if newer >= KEPT => {}
        200 if reply.body.as_bytes() == bytes_of(&vec![(value, length)]) => {}
        408 | 429 | 500.. => {}
        status => client.world().found(format_args!(
            "generation {generation} of {:?}, with {newer} newer ones, was read with {status}, {} bytes for {length}",
            history.name(),
            reply.body.len()
        )),
    }
}

/// Lists the generations of the name. Returns how many there are, if one page shows them all.
async fn list(client: &mut Client, history: &History) -> Option<usize> {
    let reply = client.ask(list_beginning(VERSIONED, &history.name().name, true)).await.answer.ok()?;
    let page = page(&reply).filter(|page| reply.status == 200 && page.next.is_none())?;
    let shown: Vec<u64> = page.items.iter().map(|item| item.generation).collect();
    let stranger = page.items.iter().find(|item| {
        let fits = |(generation, value, length): &(u64, Value, usize)| {
            let sum = Crc32c::of(&bytes_of(&vec![(*value, *length)])).text();
            *generation == item.generation && *value == item.value && sum == item.crc32c
        };
        !history.made.iter().any(fits)
    });
    let missing = history.made.iter().rev().take(KEPT).find(|(generation, ..)| !shown.contains(generation));
    if stranger.is_some() || missing.is_some() {
        client.world().found(format_args!(
            "the generations of {:?} were shown as {shown:?}, after {:?}: {stranger:?}, {missing:?}",
            history.name(),
            history.made
        ));
    }
    Some(shown.len())
}

/// The rule has left no more than it may.
async fn gone_in_the_end(world: &World, client: Client, history: &History) {
    let client = tokio::sync::Mutex::new(client);
    let gone = until_some(IN_THE_END, || async {
        world.process(0)?.tidy_objects().await.ok()?.ok()?;
        let listed = list(&mut *client.lock().await, history).await?;
        (listed <= KEPT).then_some(())
    });
    if gone.await.is_none() {
        world.found(format_args!("the rule of {VERSIONED} was not carried out for {:?}", history.made));
    }
}

/// Deletes objects and has them restored, until `end`.
pub async fn bring_back(mut client: Client, end: Duration, think: (u64, u64)) {
    make_bucket(&mut client, SOFT, &json!({"softDeletePolicy": {"retentionDurationSeconds": "604800"}}))
        .await;
    let mut value = 0;
    while client.world().now() < end {
        value += 1;
        let name = ObjectName::new(SOFT, &format!("s{value}"));
        // Something whose outcome is not known ends the round.
        let _ = bring_back_one(&mut client, &name, value, think).await;
        client.think(think.0, think.1).await;
    }
}

async fn bring_back_one(
    client: &mut Client,
    name: &ObjectName,
    value: Value,
    think: (u64, u64),
) -> Option<()> {
    let (request, length) = some_upload(client, name, value);
    let bytes = bytes_of(&vec![(value, length)]);
    let made = shown(&answered(client, name, request, 200).await?)?;
    answered(client, name, delete(name, None), 204).await?;
    client.think(think.0, think.1 * 3).await;
    // A request that has no answer is sent once more: it changes nothing.
    for _ in 0..2 {
        answered(client, name, describe_deleted(name, made.generation), 200).await;
    }
    let back = shown(&answered(client, name, restore(name, made.generation), 200).await?)?;
    if back.generation <= made.generation || back.crc32c != made.crc32c {
        client.world().found(format_args!("{name:?} was {made:?} and came back as {back:?}"));
    }
    client.think(think.0, think.1).await;
    let read = answered(client, name, download(name, None), 200).await?;
    if read.body.as_bytes() != bytes {
        client.world().found(format_args!("{name:?} came back with {} bytes for {length}", read.body.len()));
    }
    Some(())
}

/// The answer to a request, which must have this status; `None` if its outcome is not known.
async fn answered(client: &mut Client, name: &ObjectName, request: Request, status: u16) -> Option<Reply> {
    let shown = format!("{} {}", request.method, request.target);
    let reply = client.ask(request).await.answer.ok()?;
    match reply.status {
        408 | 429 | 500.. => None,
        told if told == status => Some(reply),
        told => {
            client
                .world()
                .found(format_args!("{name:?}, which has one writer, was answered {told} to {shown}"));
            None
        }
    }
}

/// An upload of few or many bytes, and how many.
fn some_upload(client: &mut Client, name: &ObjectName, value: Value) -> (Request, usize) {
    let (least, most) = *client.dice().pick(&BYTES);
    let length = usize::try_from(client.dice().between(least, most)).unwrap_or(0);
    let bytes = bytes_of(&vec![(value, length)]);
    let described = Described { to: name, value, if_generation: None };
    (upload(described, &bytes, &Crc32c::of(&bytes).text()), length)
}

async fn make_bucket(client: &mut Client, bucket: &str, settings: &serde_json::Value) {
    let made = |reply: &Reply| matches!(reply.status, 200 | 409);
    make(client, format!("bucket {bucket}"), &create_bucket_with(bucket, settings), made).await;
}
