//! The walk over the buckets: what lifecycle rules and the passing of time do to objects.

use std::time::Duration;

use rangehold_map::key::{BucketId, KIND_BLOB, KIND_BUCKET, KIND_OBJECT};
use rangehold_map::{KeyRange, Timestamp};
use serde_json::{Value, json};

use crate::support::wire::Request;
use crate::support::{Service, Wanted};

/// The row that counts the ids of buckets. It is always there once there was a bucket.
const COUNT: usize = 1;
const DAY: i64 = 24 * 3600 * Timestamp::TICKS_PER_SECOND;
/// Too large for a row, so its bytes are in a blob.
const LARGE: usize = 100_000;

impl Service {
    /// A service that walks over its buckets all the time.
    async fn that_ages() -> Self {
        Self::open(Wanted { ageing_every: Duration::from_millis(5), ..Wanted::default() }).await
    }

    /// The same, with a bucket that is closed as if a deletion of it had been broken off.
    async fn start_closed() -> Self {
        let service = Self::that_ages().await;
        service.create_bucket("photos").await;
        let soon = tokio::time::Instant::now() + Duration::from_secs(30);
        let first = BucketId(1);
        service.node.router().close_bucket(first, soon, ()).await.expect("it can be closed");
        service
    }

    async fn insert(&self, name: &str, bytes: usize) {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=media&name={name}");
        let payload = vec![b'x'; bytes];
        let request = Request::new("POST", &target, &[("Content-Type", "text/plain")], &payload);
        let answer = self.send_object(&request).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    async fn set_rules(&self, rules: Value) {
        let body = json!({"lifecycle": {"rule": rules}}).to_string();
        self.object_json("PATCH", "/storage/v1/b/photos", &body).await;
    }

    /// The rows of this kind. While a range has no owner for a moment, there is no answer.
    async fn rows(&self, kind: u8) -> Option<usize> {
        let count = |rows: &mut usize, _: &[u8], _: &bytes::Bytes| {
            *rows += 1;
            rangehold_engine::Visit::Next
        };
        self.node.router().scan(&KeyRange::prefix(&[kind]), || 0, count).await.ok()
    }

    async fn wait_until_there_are(&self, rows: usize, kind: u8) {
        while self.rows(kind).await != Some(rows) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the resource at `target` has this value. Null stands for an object that is not there.
    async fn wait_for(&self, target: &str, member: &str, value: Value) {
        loop {
            let answer = self.object("GET", target, "").await;
            let seen = match answer.status {
                200 => serde_json::from_str::<Value>(&answer.body).expect("JSON")[member].clone(),
                404 => Value::Null,
                status => panic!("{status}: {}", answer.body),
            };
            if seen == value {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn lifecycle_rules_delete_and_change_the_class_and_a_hold_stops_them() {
    let service = Service::that_ages().await;
    service.create_bucket("photos").await;
    for name in ["logs-a", "logs-held", "kept"] {
        service.insert(name, 5).await;
    }
    let hold = r#"{"temporaryHold":true}"#;
    service.object_json("PATCH", "/storage/v1/b/photos/o/logs-held", hold).await;
    let colder = json!({"type": "SetStorageClass", "storageClass": "COLDLINE"});
    service
        .set_rules(json!([
            {"action": {"type": "Delete"}, "condition": {"age": 0, "matchesPrefix": ["logs-"]}},
            {"action": colder, "condition": {"age": 0, "matchesSuffix": ["kept"]}},
        ]))
        .await;
    service.wait_for("/storage/v1/b/photos/o/logs-a", "name", Value::Null).await;
    service.wait_for("/storage/v1/b/photos/o/kept", "storageClass", json!("COLDLINE")).await;
    let held = service.object_json("GET", "/storage/v1/b/photos/o/logs-held", "").await;
    assert_eq!(held["storageClass"], "STANDARD");
    // What a rule deletes can be restored, as if a client had deleted it.
    let deleted = service.object_json("GET", "/storage/v1/b/photos/o?softDeleted=true", "").await;
    assert_eq!(deleted["items"][0]["name"], "logs-a");

    let free = r#"{"temporaryHold":false}"#;
    service.object_json("PATCH", "/storage/v1/b/photos/o/logs-held", free).await;
    service.wait_for("/storage/v1/b/photos/o/logs-held", "name", Value::Null).await;
}

#[tokio::test]
async fn rules_are_about_the_whole_names_of_objects_in_folders() {
    let service = Service::that_ages().await;
    let tree = json!({
        "name": "photos",
        "hierarchicalNamespace": {"enabled": true},
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": true}},
    });
    service.object_json("POST", "/storage/v1/b?project=p", &tree.to_string()).await;
    for name in ["tmp%2Fa", "old%2Ftmp%2Fb", "old%2Ftmp", "keep%2Fc"] {
        service.insert(name, 5).await;
    }
    let condition = json!({"age": 0, "matchesPrefix": ["tmp/", "new/tmp/"]});
    service.set_rules(json!([{"action": {"type": "Delete"}, "condition": condition}])).await;
    service.wait_for("/storage/v1/b/photos/o/tmp%2Fa", "name", Value::Null).await;
    let left = service.object_json("GET", "/storage/v1/b/photos/o/old%2Ftmp%2Fb", "").await;
    assert_eq!(left["name"], "old/tmp/b");
    service.object_json("POST", "/storage/v1/b/photos/folders/old/renameTo/folders/new", "").await;
    service.wait_for("/storage/v1/b/photos/o/new%2Ftmp%2Fb", "name", Value::Null).await;
    for (query, expected) in [("", ["keep/c", "new/tmp"]), ("?softDeleted=true", ["new/tmp/b", "tmp/a"])] {
        let page = service.object_json("GET", &format!("/storage/v1/b/photos/o{query}"), "").await;
        let names: Vec<&Value> =
            page["items"].as_array().expect("items").iter().map(|item| &item["name"]).collect();
        assert_eq!(names, expected, "{query}");
    }
}

#[tokio::test]
async fn soft_deleted_objects_uploads_and_buckets_are_removed_with_their_bytes_when_their_time_is_over() {
    let service = Service::that_ages().await;
    service.create_bucket("photos").await;
    service.insert("a", LARGE).await;
    let begun = service.object("POST", "/upload/storage/v1/b/photos/o?uploadType=resumable&name=b", "").await;
    assert_eq!(begun.status, 200, "{}", begun.body);
    assert_eq!(service.object("DELETE", "/storage/v1/b/photos/o/a", "").await.status, 204);
    assert_eq!(service.object("DELETE", "/storage/v1/b/photos", "").await.status, 204);
    assert!(service.rows(KIND_BLOB).await.expect("the rows are served") > 0);
    assert_eq!(service.rows(KIND_OBJECT).await, Some(3));

    service.clock.step(8 * DAY);
    service.wait_until_there_are(0, KIND_OBJECT).await;
    service.wait_until_there_are(0, KIND_BLOB).await;
    service.wait_until_there_are(COUNT, KIND_BUCKET).await;
}

#[tokio::test]
async fn a_bucket_without_soft_delete_leaves_nothing_of_its_uploads_behind() {
    let service = Service::that_ages().await;
    let body = r#"{"name":"photos","softDeletePolicy":{"retentionDurationSeconds":"0"}}"#;
    service.object_json("POST", "/storage/v1/b?project=test-project", body).await;
    let begun = service.send_object(&Request::new("POST", "/photos/a?uploads", &[], b"")).await;
    let id = begun.body.split("<UploadId>").nth(1).and_then(|rest| rest.split('<').next()).expect("an id");
    let target = format!("/photos/a?partNumber=1&uploadId={id}");
    let part = service.send_object(&Request::new("PUT", &target, &[], &vec![b'x'; LARGE])).await;
    assert_eq!(part.status, 200, "{}", part.body);
    assert_eq!(service.object("DELETE", "/storage/v1/b/photos", "").await.status, 204);
    service.wait_until_there_are(0, KIND_OBJECT).await;
    service.wait_until_there_are(0, KIND_BLOB).await;
    // It cannot be restored and is not shown, and its name is free.
    let listed = service.object_json("GET", "/b?project=test-project&softDeleted=true", "").await;
    assert_eq!(listed["items"], Value::Null, "{listed}");
    service.create_bucket("photos").await;
    // A request that knew the old bucket is refused for a day. Then the last trace goes.
    let closed = || service.node.router().closed_buckets().len();
    assert_eq!((service.rows(KIND_BUCKET).await, closed()), (Some(COUNT + 2), 1));
    service.clock.step(DAY + 1);
    service.wait_until_there_are(COUNT + 1, KIND_BUCKET).await;
    assert_eq!(closed(), 0);
}

#[tokio::test]
async fn the_walk_opens_a_bucket_that_a_deletion_of_unknown_outcome_left_closed() {
    let service = Service::start_closed().await;
    while !service.node.router().closed_buckets().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    service.insert("a", 5).await;
}

#[tokio::test]
async fn a_rule_gives_up_an_upload_in_parts_and_its_parts_go_with_it() {
    let service = Service::that_ages().await;
    service.create_bucket("photos").await;
    let begun = service.send_object(&Request::new("POST", "/photos/a?uploads", &[], b"")).await;
    assert_eq!(begun.status, 200, "{}", begun.body);
    let id = begun.body.split("<UploadId>").nth(1).and_then(|rest| rest.split('<').next()).expect("an id");
    let target = format!("/photos/a?partNumber=1&uploadId={id}");
    let part = service.send_object(&Request::new("PUT", &target, &[], &vec![b'x'; LARGE])).await;
    assert_eq!(part.status, 200, "{}", part.body);
    assert_eq!(service.rows(KIND_OBJECT).await, Some(2));

    let abort = json!({"type": "AbortIncompleteMultipartUpload"});
    service.set_rules(json!([{"action": abort, "condition": {"age": 0}}])).await;
    service.wait_until_there_are(0, KIND_OBJECT).await;
    service.wait_until_there_are(0, KIND_BLOB).await;
}
