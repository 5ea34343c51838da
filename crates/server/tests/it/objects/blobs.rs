//! Blobs under the requests for objects: chunks that no row names, and blobs that are lost.

use std::sync::Arc;
use std::time::Duration;

use futures::{TryStreamExt, future};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::path::Path;
use rangehold_engine::store::Store;
use rangehold_map::PartitionPrefix;
use rangehold_map::key::{BucketRow, ObjectRow};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::generation::Head;
use tokio::time::sleep;

use crate::support::wire::{Answer, Request};
use crate::support::{Service, Wanted};

/// A part of an upload that is not its last: as many bytes as the protocol wants, and too many for a row.
const PART: usize = 256 * 1024;

async fn with_photos(wanted: Wanted) -> Service {
    let service = Service::open(wanted).await;
    service.create_bucket("photos").await;
    service
}

/// How many chunk files there are.
async fn files(objects: &Arc<dyn ObjectStore>) -> usize {
    objects.list(Some(&Path::from("blobs"))).try_collect::<Vec<_>>().await.expect("a list").len()
}

impl Service {
    async fn send_part(&self, upload: &str, range: &str, bytes: &[u8]) -> Answer {
        self.send_object(&Request::new("PUT", upload, &[("Content-Range", range)], bytes)).await
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

#[tokio::test]
async fn chunks_of_requests_that_came_too_late_go_with_the_audit_and_the_object_stays() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (store, audit_every) = (Store::on(Arc::clone(&objects)), Some(Duration::from_millis(5)));
    let service = with_photos(Wanted { store, audit_every, ..Wanted::default() }).await;
    let target = "/upload/storage/v1/b/photos/o?uploadType=resumable&name=big";
    let location = service.object("POST", target, "").await.header("Location").expect("an address");
    let upload = &location[location.find("/upload/").expect("a path")..];
    let payload: Vec<u8> = (0..2 * PART).map(|at| (at * at % 251) as u8).collect();
    let (first, last) = payload.split_at(PART);
    let range = format!("bytes 0-{}/*", PART - 1);
    assert_eq!(service.send_part(upload, &range, first).await.status, 308);
    let range = format!("bytes {PART}-{}/{}", 2 * PART - 1, 2 * PART);
    let answers = future::join_all((0..8).map(|_| service.send_part(upload, &range, last))).await;
    assert!(answers.iter().any(|answer| answer.status == 200), "{answers:?}");
    // The object names two chunks. Each other request has written one, if it came early enough.
    while files(&objects).await > 2 {
        sleep(Duration::from_millis(5)).await;
    }
    let read = service.object("GET", "/storage/v1/b/photos/o/big?alt=media", "").await;
    assert!(read.status == 200 && read.body == String::from_utf8_lossy(&payload), "{}", read.status);
}

/// A client that is told to try again would do so for ever.
#[tokio::test]
async fn an_object_whose_blob_is_lost_is_told_to_be_damaged() {
    let service = with_photos(Wanted::default()).await;
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
