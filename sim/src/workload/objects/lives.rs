//! Lives of a bucket: some clients make a bucket again and again and put objects into it, and another one deletes it
//! whenever it can. An object whose upload was acknowledged keeps its bucket: until somebody deletes the object, it is read
//! with its bytes.

use std::time::Duration;

use rangehold_protocol::object::checksum::Crc32c;

use super::known::bytes_of;
use crate::check::register::Value;
use crate::client::Client;
use crate::client::http::Reply;
use crate::client::objects::{
    Described, ObjectName, begin, create_bucket, delete, delete_bucket, download, send_bytes, upload,
};

const BUCKET: &str = "lives";
/// The bytes of a small object, and of a large one.
const BYTES: [u64; 2] = [1_500, 100_000];
/// How often an object is read before it is deleted.
const READS_MAX: u64 = 4;
/// The bytes of an upload that is begun and left alone.
const LEFT_BYTES: usize = 256 << 10;

/// Makes the bucket and puts an object into it, again and again until `end`. `number` tells clients of this kind apart.
pub async fn fill(mut client: Client, number: u64, end: Duration, think: (u64, u64)) {
    let mut life = 0;
    while client.world().now() < end {
        client.think(think.0, think.1).await;
        life += 1;
        let value = number * 1_000_000 + life;
        let name = ObjectName::new(BUCKET, &format!("{number}/{life}"));
        let may_be_there = fill_once(&mut client, &name, value, think).await;
        if may_be_there {
            remove(&mut client, &name, end).await;
        }
    }
}

/// One round, up to the deletion of the object. Returns whether the object may be there.
async fn fill_once(client: &mut Client, name: &ObjectName, value: Value, think: (u64, u64)) -> bool {
    if !told(client.ask(create_bucket(BUCKET)).await.answer, &[200, 409]) {
        return false;
    }
    client.think(0, think.1).await;
    let length = *client.dice().pick(&BYTES);
    let bytes = bytes_of(&vec![(value, usize::try_from(length).unwrap_or(0))]);
    let described = Described { to: name, value, if_generation: Some(0) };
    if client.dice().happens(0.3) {
        leave_upload(client, described).await;
    }
    let put = client.ask(upload(described, &bytes, &Crc32c::of(&bytes).text())).await.answer;
    match put {
        Ok(reply) if reply.status == 200 => {}
        Ok(reply) if reply.status == 404 => return false,
        _ => return true,
    }
    for _ in 0..client.dice().between(1, READS_MAX) {
        client.think(think.0, think.1).await;
        let Ok(reply) = client.ask(download(name, None)).await.answer else { continue };
        match reply.status {
            200 if reply.body.as_bytes() == bytes => {}
            408 | 429 | 500.. => {}
            status => {
                let got = reply.body.len();
                client.world().found(format_args!(
                    "{name:?} was acknowledged, and while its bucket was to be deleted it was read with {status}, {got} bytes"
                ));
            }
        }
    }
    true
}

/// Begins an upload and leaves it: the bucket may be deleted with it.
async fn leave_upload(client: &mut Client, described: Described<'_>) {
    let Ok(reply) = client.ask(begin(described)).await.answer else { return };
    if let Some(upload) = reply.header("x-guploader-uploadid").filter(|_| reply.status == 200) {
        let bytes = vec![b'l'; LEFT_BYTES];
        let range = format!("0-{}/*", LEFT_BYTES - 1);
        // Whether the bytes come is for the sessions' own workload to check.
        let _ = client.ask(send_bytes(BUCKET, upload, &range, &bytes)).await;
    }
}

/// Deletes an object that may be there, until an answer says that it is gone.
async fn remove(client: &mut Client, name: &ObjectName, end: Duration) {
    while client.world().now() < end {
        if told(client.ask(delete(name, None)).await.answer, &[204, 404]) {
            return;
        }
        client.think(50, 500).await;
    }
}

/// Deletes the bucket again and again until `end`.
pub async fn end_bucket(mut client: Client, end: Duration, think: (u64, u64)) {
    while client.world().now() < end {
        client.think(think.0, think.1).await;
        let answer = client.ask(delete_bucket(BUCKET)).await.answer;
        if let Ok(reply) = answer
            && !matches!(reply.status, 204 | 404 | 408 | 409 | 429 | 500..)
        {
            client.world().found(format_args!("the deletion of {BUCKET} was answered {}", reply.status));
        }
    }
}

fn told<E>(answer: Result<Reply, E>, statuses: &[u16]) -> bool {
    answer.is_ok_and(|reply| statuses.contains(&reply.status))
}
