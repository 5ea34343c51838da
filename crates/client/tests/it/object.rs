//! The client of objects at a real server, with faults on the way there.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use rangehold_client::object::{
    Bucket, Condition, Content, Crc32c, Error, Found, Listing, Object, Session, Source,
};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::support::way::{Fate, bucket};

async fn names(bucket: &Bucket, listing: Listing) -> Vec<String> {
    let listed: Vec<Object> = bucket.list(listing).try_collect().await.expect("it can be listed");
    listed.into_iter().map(|object| object.name).collect()
}

#[tokio::test]
async fn each_operation_on_objects_does_what_its_name_says() {
    let Some((_home, _way, storage, bucket)) = bucket("each").await else { return };
    let content = Content::from("hello").of_type("text/plain");
    let made = bucket.upload("a/it's ü//b", content.clone(), Condition::Absent).await.expect("it is new");
    assert_eq!((made.size, made.crc32c), (5, Some(Crc32c::of(b"hello"))));
    let again = bucket.upload(&made.name, content, Condition::Absent).await;
    assert!(again.expect_err("it exists").has_status(412));
    let second = bucket.upload(&made.name, Content::from("world!"), Condition::Is(made.generation)).await;
    let second = second.expect("the generation is right");
    assert_eq!(bucket.read(&made.name, None).await.expect("it is there"), "world!");
    let mut part = bucket.download(&made.name, None).expect("it is a name").part(1..3);
    assert_eq!(part.next().await.expect("there are such bytes").as_deref(), Some(&b"or"[..]));
    assert_eq!(part.next().await.expect("it has ended"), None);

    let source = Source { name: second.name.clone(), generation: Some(second.generation) };
    let copied = bucket.copy(&bucket, &source, "copy", Condition::Absent).await.expect("the source exists");
    bucket.upload("empty", Content::from(""), Condition::Any).await.expect("there is no condition");
    assert_eq!(bucket.read("empty", None).await.expect("it is there"), "");
    let both = [source.clone(), Source { name: "copy".to_owned(), generation: None }];
    let whole =
        bucket.compose(&both, "whole", Some("text/plain"), Condition::Absent).await.expect("they exist");
    assert_eq!(bucket.read("whole", Some(whole.generation)).await.expect("it is there"), "world!world!");
    let source = Source { name: "copy".to_owned(), generation: Some(copied.generation) };
    bucket.rename(&source, "z/moved", Condition::Absent).await.expect("the source exists");

    assert_eq!(names(&bucket, Listing::under("")).await, ["a/it's ü//b", "empty", "whole", "z/moved"]);
    let pages: Vec<_> = bucket.pages(Listing::folder("")).collect().await;
    let folders =
        pages.into_iter().flat_map(|page| page.expect("it can be listed").prefixes).collect::<Vec<_>>();
    assert_eq!(folders, ["a/", "z/"]);

    let seen = bucket.stat("whole", None).await.expect("it can be read").expect("it is there");
    assert_eq!(seen.content_type.as_deref(), Some("text/plain"));
    let changes = json!({ "metadata": { "k": "v" } });
    let changed = bucket.update("whole", &changes, Condition::Any, Some(seen.metageneration)).await;
    assert_eq!(changed.expect("the version is right").metadata["k"], "v");
    assert!(
        bucket
            .delete("whole", Condition::Is(made.generation))
            .await
            .expect_err("another one")
            .has_status(412)
    );
    bucket.delete("whole", Condition::Is(whole.generation)).await.expect("it is there");
    assert_eq!(bucket.stat("whole", None).await.expect("it can be read"), None);
    assert!(bucket.upload("..", Content::from(""), Condition::Any).await.is_err(), "it is not a name");

    let info = storage.describe_bucket("each").await.expect("it exists");
    assert_eq!(info.json["location"], "EU");
    let changes = json!({ "versioning": { "enabled": true } });
    let info =
        storage.update_bucket("each", &changes, Some(info.metageneration)).await.expect("nobody changed it");
    assert_eq!(info.json["versioning"]["enabled"], true);
    assert!(storage.delete_bucket("each").await.expect_err("it is not empty").has_status(409));
    let buckets: Vec<_> = storage.buckets("p", "e").try_collect().await.expect("they can be listed");
    assert_eq!(buckets.into_iter().map(|bucket| bucket.name).collect::<Vec<_>>(), ["each"]);
}

#[tokio::test]
async fn a_lost_answer_is_not_an_unknown_outcome_where_a_condition_a_token_or_a_session_decides() {
    let Some((_home, way, _storage, bucket)) = bucket("doubt").await else { return };
    // Without a condition a call in doubt is not repeated, and one that was certainly not carried out is.
    way.next(&[Fate::AnswerLost]);
    let lost = bucket.upload("any", Content::from("1"), Condition::Any).await;
    let Err(Error::OutcomeUnknown(unknown)) = lost else { panic!("{lost:?}") };
    assert!(matches!(&unknown.found, Found::Object(object) if object.size == 1), "{unknown}");
    assert_eq!((unknown.attempts, way.sent()), (1, 2), "one attempt and one look");
    way.next(&[Fate::Refused(429), Fate::Refused(429)]);
    bucket.upload("any", Content::from("2"), Condition::Any).await.expect("429 says that nothing was done");

    // With a condition it is repeated, and a token tells whose object is there.
    way.next(&[Fate::Refused(503), Fate::AnswerLost]);
    let lost = bucket.upload("mine", Content::from("1"), Condition::Absent).await;
    assert!(matches!(lost, Err(Error::OutcomeUnknown(_))), "equal bytes may be another client's");
    let marked = bucket.clone().with_token("write");
    way.next(&[Fate::AnswerLost]);
    let mine =
        marked.upload("marked", Content::from("1"), Condition::Absent).await.expect("the token is there");
    assert!(mine.metadata.contains_key("write"));

    // A session asks what the service has, and its last request may be repeated.
    let chunk = Bytes::from(vec![7; 256 << 10]);
    let mut session = bucket.begin("large", &Content::from(""), Condition::Absent).await.expect("a session");
    way.next(&[Fate::AnswerLost]);
    session.send(chunk.clone()).await.expect("the service has it");
    way.next(&[Fate::Refused(500)]);
    session.send(chunk.clone()).await.expect("it was sent again");
    assert_eq!(session.saved(), 512 << 10);
    let url = session.url().to_owned();
    drop(session);
    let mut session = bucket.resume("large", &url).await.expect("it is known").expect("it is not complete");
    assert_eq!(session.saved(), 512 << 10);
    session.set_sum(Crc32c::of(&[&chunk[..], &chunk[..]].concat()));
    way.next(&[Fate::AnswerLost]);
    let large = session.finish(Bytes::from("end")).await.expect("the object is remembered");
    assert_eq!(large.size, (512 << 10) + 3);
    let done = bucket.resume("large", &url).await.expect("it is known");
    assert_eq!(done.err().map(|object| object.generation), Some(large.generation));
    way.next(&[Fate::Refused(503), Fate::AnswerLost]);
    assert_eq!(bucket.read("large", None).await.expect("reads are repeated").len(), (512 << 10) + 3);
}

const CHUNK: usize = 256 << 10;

/// A request that broke off may have brought any number of bytes; the service tells of a multiple of 256 KiB.
#[tokio::test]
async fn a_session_goes_on_from_any_place_to_which_bytes_came() {
    let Some((_home, way, _storage, bucket)) = bucket("killed").await else { return };
    let bytes: Vec<u8> = (0..(1_u32 << 20) + 5).map(|at| (at % 251) as u8).collect();
    let part = |from: usize, chunks: usize| Bytes::copy_from_slice(&bytes[from..from + chunks * CHUNK]);
    let mut session = bucket.begin("any", &Content::from(""), Condition::Absent).await.expect("a session");
    let url = session.url().to_owned();
    break_off(&url, &part(0, 2), 448 << 10).await;
    assert_eq!(resumed(&bucket, &url).await.saved(), CHUNK as u64, "a multiple of 256 KiB");
    way.next(&[Fate::Refused(503)]);
    session.send(part(0, 2)).await.expect("what is left of the chunk is taken");
    session.send(part(2 * CHUNK, 1)).await.expect("it goes on");
    let mut session = resumed(&bucket, &url).await;
    let came = session.saved() as usize;
    assert_eq!(came, 3 * CHUNK);
    session.set_sum(Crc32c::of(&bytes[..came]));
    let made = session.finish(Bytes::copy_from_slice(&bytes[came..])).await.expect("all bytes came");
    assert_eq!((made.size, made.crc32c), (bytes.len() as u64, Some(Crc32c::of(&bytes))));
    assert!(bucket.read("any", None).await.expect("it is there") == bytes);
}

/// The session at `url`, as soon as the service has any of its bytes: it must first see that no more will come.
async fn resumed(bucket: &Bucket, url: &str) -> Session {
    for _ in 0..1_000 {
        let session = bucket.resume("any", url).await.expect("it is known").expect("it is not complete");
        if session.saved() > 0 {
            return session;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("nothing is saved of what came");
}

/// Announces the first chunk for the session at `url`, sends its first `came` bytes, and hangs up.
async fn break_off(url: &str, chunk: &[u8], came: usize) {
    let (host, target) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a URL");
    let mut stream = TcpStream::connect(host).await.expect("the server listens");
    let head = format!(
        "PUT /{target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\nContent-Range: bytes 0-{}/*\r\n\r\n",
        chunk.len(),
        chunk.len() - 1
    );
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    stream.write_all(&chunk[..came]).await.expect("it is sent");
}
