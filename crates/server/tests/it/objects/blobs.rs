//! Blobs under the requests for objects: chunks that no row names, and blobs that are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use rangehold_engine::store::Store;
use rangehold_map::key::{BucketRow, KIND_BLOB, KIND_BUCKET, KIND_OBJECT, ObjectRow};
use rangehold_map::{PartitionPrefix, Timestamp};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::generation::Head;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::chunk_files;
use crate::support::wire::{Answer, Request, parse};
use crate::support::{Service, Wanted};

/// A part of an upload that is not its last: as many bytes as the protocol wants, and too many for a row.
const PART: usize = 256 * 1024;

impl Service {
    async fn send_part(&self, upload: &str, range: &str, bytes: &[u8]) -> Answer {
        self.send_object(&Request::new("PUT", upload, &[("Content-Range", range)], bytes)).await
    }

    /// Sends a request but for the last byte of its body.
    async fn begin_to_send(&self, request: &Request) -> Begun {
        let address = self.running.object_address.expect("objects are served");
        let mut stream = TcpStream::connect(address).await.expect("the service listens");
        let (last, begin) = request.body.split_last().expect("a body");
        stream.write_all(&[&*request.head(address), begin].concat()).await.expect("the service listens");
        Begun { stream, last: *last }
    }

    /// Loses the blob of an object: its user is removed although the object is there.
    async fn lose_blob(&self, name: &str) {
        let router = self.node.router();
        let bucket = PartitionPrefix::bucket("photos").bucket_row(&BucketRow::Bucket);
        let bucket = Bucket::decode(&router.get(&bucket).await.expect("a read").expect("a bucket"));
        let bucket = bucket.expect("a bucket").id;
        let head = PartitionPrefix::object(bucket, name).object_row(&ObjectRow::Head);
        let head = Head::decode(&router.get(&head).await.expect("a read").expect("an object"));
        for (blob, user) in head.expect("a head").live.releases(bucket, name) {
            self.node.blobs().release_one(blob, &user).await.expect("a release");
        }
    }
}

/// A request that was sent but for its last byte.
struct Begun {
    stream: TcpStream,
    last: u8,
}

impl Begun {
    async fn end(mut self) -> Answer {
        self.stream.write_all(&[self.last]).await.expect("the service listens");
        let mut reply = Vec::new();
        self.stream.read_to_end(&mut reply).await.expect("a reply");
        parse(&reply).expect("a reply")
    }
}

#[tokio::test]
async fn the_chunk_of_a_request_that_came_too_late_goes_with_the_audit_and_the_object_stays() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let wanted = Wanted { store: Store::on(Arc::clone(&objects)), ..Wanted::default() };
    let service = Service::open_with_photos(wanted).await;
    let target = "/upload/storage/v1/b/photos/o?uploadType=resumable&name=big";
    let location = service.object("POST", target, "").await.header("Location").expect("an address");
    let upload = &location[location.find("/upload/").expect("a path")..];
    let payload: Vec<u8> = (0..2 * PART).map(|at| b'a' + (at * at % 26) as u8).collect();
    let (first, last) = payload.split_at(PART);
    let range = format!("bytes 0-{}/*", PART - 1);
    assert_eq!(service.send_part(upload, &range, first).await.status, 308);
    let range = format!("bytes {PART}-{}/{}", 2 * PART - 1, 2 * PART);
    let late = Request::new("PUT", upload, &[("Content-Range", &range)], last);
    let late = service.begin_to_send(&late).await;
    // The server reads the session of the late request.
    sleep(Duration::from_millis(50)).await;
    assert_eq!(service.send_part(upload, &range, last).await.status, 200);
    assert_ne!(late.end().await.status, 308, "it was too late");
    assert_eq!(chunk_files(&objects).await, 3, "the object names two of them");
    service.node.close().await;

    let (store, audit_every) = (Store::on(Arc::clone(&objects)), Some(Duration::from_millis(5)));
    let service = Service::open(Wanted { store, audit_every, ..Wanted::default() }).await;
    while chunk_files(&objects).await > 2 {
        sleep(Duration::from_millis(5)).await;
    }
    let read = service.object("GET", "/storage/v1/b/photos/o/big?alt=media", "").await;
    assert!(read.status == 200 && read.body.as_bytes() == payload, "{}", read.status);
}

/// Each overwrite removes the bytes that a read may be about to open.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_object_is_read_at_every_moment_while_it_is_overwritten() {
    let service = Service::start().await;
    let bucket = r#"{"name":"photos","softDeletePolicy":{"retentionDurationSeconds":"0"}}"#;
    service.object_json("POST", "/storage/v1/b?project=p", bucket).await;
    let target = "/upload/storage/v1/b/photos/o?uploadType=media&name=big";
    let put = async || service.send_object(&Request::new("POST", target, &[], &[b'x'; PART])).await;
    assert_eq!(put().await.status, 200);
    let ended = AtomicBool::new(false);
    let writing = async {
        for _ in 0..200 {
            assert_eq!(put().await.status, 200);
        }
        ended.store(true, Ordering::Relaxed);
    };
    let read = async || {
        while !ended.load(Ordering::Relaxed) {
            let read = service.object("GET", "/storage/v1/b/photos/o/big?alt=media", "").await;
            assert!(read.status == 200 && read.body.len() == PART, "{} {:.200}", read.status, read.body);
        }
    };
    tokio::join!(writing, future::join_all((0..6).map(|_| read())));
}

/// A client that is told to try again would try without end.
#[tokio::test]
async fn an_object_whose_blob_is_lost_is_told_to_be_damaged() {
    let service = Service::with_photos().await;
    let target = "/upload/storage/v1/b/photos/o?uploadType=media&name=big";
    let made = service.send_object(&Request::new("POST", target, &[], &[b'x'; PART])).await;
    assert_eq!(made.status, 200, "{}", made.body);
    service.lose_blob("big").await;
    let compose = r#"{"sourceObjects":[{"name":"big"}]}"#;
    for (method, target, body) in [
        ("GET", "/storage/v1/b/photos/o/big?alt=media", ""),
        ("POST", "/storage/v1/b/photos/o/big/copyTo/b/photos/o/copy", ""),
        ("POST", "/storage/v1/b/photos/o/big/moveTo/o/moved", ""),
        ("POST", "/storage/v1/b/photos/o/whole/compose", compose),
    ] {
        let answer = service.object(method, target, body).await;
        assert!(answer.status == 500 && answer.body.contains("damaged"), "{target}: {answer:?}");
    }
    let listed = service.object_json("GET", "/storage/v1/b/photos/o?fields=items/name", "").await;
    assert_eq!(listed, serde_json::json!({"items": [{"name": "big"}]}));
    assert_eq!(service.object("DELETE", "/storage/v1/b/photos/o/big", "").await.status, 204);
}

/// A deleted bucket refuses writes for a day. Then nothing is known of it any more.
#[tokio::test]
async fn an_upload_that_lasts_longer_than_its_deleted_bucket_is_remembered_makes_no_object() {
    let service = Service::open(Wanted { ageing_every: Duration::from_millis(5), ..Wanted::default() }).await;
    let bucket = r#"{"name":"photos","softDeletePolicy":{"retentionDurationSeconds":"0"}}"#;
    service.object_json("POST", "/storage/v1/b?project=p", bucket).await;
    let target = "/upload/storage/v1/b/photos/o?uploadType=media&name=late";
    let late = service.begin_to_send(&Request::new("POST", target, &[], &[b'x'; PART])).await;
    // The server has read the bucket when it begins a blob.
    while service.stored(KIND_BLOB).await.is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(service.object("DELETE", "/storage/v1/b/photos", "").await.status, 204);
    service.clock.step(25 * 3_600 * Timestamp::TICKS_PER_SECOND);
    // The row that counts the ids of buckets stays.
    while service.stored(KIND_BUCKET).await.len() > 1 {
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(late.end().await.status, 404);
    assert_eq!((service.stored(KIND_OBJECT).await.len(), service.stored(KIND_BLOB).await.len()), (0, 0));
}
