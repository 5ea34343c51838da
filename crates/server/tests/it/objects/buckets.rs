//! Buckets over HTTP.

use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use rangehold_engine::Visit;
use rangehold_engine::store::Store;
use rangehold_map::key::{BucketRow, KIND_BUCKET};
use rangehold_map::{Key, KeyRange};
use rangehold_protocol::object::bucket::Bucket;
use serde_json::json;

use crate::support::{Service, Wanted};

#[tokio::test]
async fn a_bucket_is_made_changed_on_conditions_deleted_and_restored() {
    let service = Service::start().await;
    let made = service.create_bucket("photos").await;
    assert_eq!((&made["name"], &made["metageneration"]), (&json!("photos"), &json!("1")));
    let twice = service.object("POST", "/storage/v1/b?project=p", r#"{"name":"photos"}"#).await;
    assert_eq!(twice.status, 409, "{}", twice.body);

    let labels = r#"{"labels":{"team":"red"}}"#;
    let stale = service.object("PATCH", "/storage/v1/b/photos?ifMetagenerationMatch=2", labels).await;
    assert_eq!(stale.status, 412, "{}", stale.body);
    let changed = service.object_json("PATCH", "/storage/v1/b/photos?ifMetagenerationMatch=1", labels).await;
    assert_eq!((&changed["metageneration"], &changed["labels"]["team"]), (&json!("2"), &json!("red")));
    let unchanged = service.object("GET", "/b/photos?ifMetagenerationNotMatch=2", "").await;
    assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""));

    assert_eq!(service.object("DELETE", "/storage/v1/b/photos", "").await.status, 204);
    assert_eq!(service.object("GET", "/storage/v1/b/photos", "").await.status, 404);
    let generation = made["generation"].as_str().expect("a generation");
    let target = format!("/storage/v1/b/photos/restore?generation={generation}");
    let restored = service.object_json("POST", &target, "").await;
    assert_eq!(restored["labels"]["team"], "red");
}

#[tokio::test]
async fn each_life_of_a_bucket_has_a_greater_generation_also_after_a_crash() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let on = |objects: &Arc<dyn ObjectStore>| Wanted {
        store: Store::on(Arc::clone(objects)),
        ..Wanted::default()
    };
    Service::open(on(&objects)).await.create_bucket("photos").await;
    // Its ranges go on from times that the clock has not reached, with the smallest steps.
    let service = Service::open(on(&objects)).await;
    let mut greatest = 0;
    for _ in 0..10 {
        let made = service.create_bucket("lives").await;
        let generation: u64 = made["generation"].as_str().expect("a generation").parse().expect("a number");
        assert!(generation > greatest, "{generation} after {greatest}");
        greatest = generation;
        assert_eq!(service.object("DELETE", "/storage/v1/b/lives", "").await.status, 204);
    }
}

#[tokio::test]
async fn a_listing_has_the_buckets_of_one_project_in_pages() {
    let service = Service::start().await;
    for name in ["bbb", "aaa", "abc"] {
        service.create_bucket(name).await;
    }
    service.object_json("POST", "/storage/v1/b?project=other", r#"{"name":"aab"}"#).await;
    let names = |page: &serde_json::Value| -> Vec<String> {
        let items = page["items"].as_array().expect("items");
        items.iter().map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
    };
    let first = service.object_json("GET", "/b?project=test-project&maxResults=2", "").await;
    assert_eq!(names(&first), ["aaa", "abc"]);
    let token = first["nextPageToken"].as_str().expect("there are more");
    let target = format!("/b?project=test-project&maxResults=2&pageToken={token}");
    let second = service.object_json("GET", &target, "").await;
    assert_eq!((names(&second), &second["nextPageToken"]), (vec!["bbb".to_owned()], &json!(null)));
    let prefixed =
        service.object_json("GET", "/b?project=test-project&prefix=ab&fields=items/name", "").await;
    assert_eq!(prefixed, json!({"items": [{"name": "abc"}]}));
}

#[tokio::test]
async fn policies_and_lists_are_set_and_a_stale_policy_is_refused() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let policy = service.object_json("GET", "/b/photos/iam", "").await;
    let binding = json!({"role": "roles/storage.objectViewer", "members": ["allUsers"]});
    let body = json!({"etag": policy["etag"], "bindings": [binding]}).to_string();
    assert_eq!(service.object_json("PUT", "/b/photos/iam", &body).await["bindings"][0], binding);
    assert_eq!(service.object("PUT", "/b/photos/iam", &body).await.status, 412);

    let line = r#"{"entity":"allUsers","role":"READER"}"#;
    let made = service.object_json("POST", "/b/photos/defaultObjectAcl", line).await;
    assert_eq!(made["role"], "READER");
    assert_eq!(service.object("DELETE", "/b/photos/defaultObjectAcl/allUsers", "").await.status, 204);
    assert_eq!(service.object("GET", "/b/photos/defaultObjectAcl/allUsers", "").await.status, 404);
}

#[tokio::test]
async fn the_calls_of_a_batch_are_answered_one_by_one() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let call =
        |head: &str| format!("--b\r\nContent-Type: application/http\r\n\r\n{head} HTTP/1.1\r\n\r\n\r\n");
    let body = format!("{}{}--b--", call("GET /storage/v1/b/photos"), call("DELETE /storage/v1/b/none"));
    let headers = [("Content-Type", "multipart/mixed; boundary=b")];
    let request = crate::support::wire::Request::new("POST", "/batch/storage/v1", &headers, body.as_bytes());
    let answer = service.send_object(&request).await;
    assert_eq!(answer.status, 200);
    let at = |text: &str| answer.body.find(text).unwrap_or_else(|| panic!("no {text} in {}", answer.body));
    assert!(at("HTTP/1.1 200 OK") < at("HTTP/1.1 404 Not Found"));
}

#[tokio::test]
async fn the_resource_of_a_call_in_a_batch_is_as_small_as_that_of_a_call_alone() {
    let service = Service::with_photos().await;
    let resource = format!(r#"{{"labels": {{"a": "{}"}}}}"#, "x".repeat(1 << 20));
    let body = format!(
        "--b\r\nContent-Type: application/http\r\n\r\nPATCH /storage/v1/b/photos HTTP/1.1\r\n\r\n{resource}\r\n--b--"
    );
    let headers = [("Content-Type", "multipart/mixed; boundary=b")];
    let request = crate::support::wire::Request::new("POST", "/batch/storage/v1", &headers, body.as_bytes());
    let answer = service.send_object(&request).await;
    assert!(answer.body.contains("HTTP/1.1 413 "), "{:.500}", answer.body);
    assert_eq!(service.object("PATCH", "/storage/v1/b/photos", &resource).await.status, 413);
}

#[tokio::test]
async fn calls_of_one_batch_that_write_the_same_name_use_its_bytes_each_for_itself() {
    let service = Service::start().await;
    let body = r#"{"name":"photos","softDeletePolicy":{"retentionDurationSeconds":"0"}}"#;
    service.object_json("POST", "/storage/v1/b?project=test-project", body).await;
    let bytes = vec![b'x'; 100_000];
    let target = "/upload/storage/v1/b/photos/o?uploadType=media&name=from";
    let upload = crate::support::wire::Request::new("POST", target, &[], &bytes);
    assert_eq!(service.send_object(&upload).await.status, 200);
    let rewrite = |conditions: &str| {
        format!(
            "--b\r\nContent-Type: application/http\r\n\r\nPOST /storage/v1/b/photos/o/from/rewriteTo/b/photos/o/to\
             {conditions} HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{{}}\r\n"
        )
    };
    let body = format!("{}{}{}--b--", rewrite(""), rewrite(""), rewrite("?ifGenerationMatch=0"));
    let headers = [("Content-Type", "multipart/mixed; boundary=b")];
    let request = crate::support::wire::Request::new("POST", "/batch/storage/v1", &headers, body.as_bytes());
    let answer = service.send_object(&request).await;
    let count = |status: &str| answer.body.matches(status).count();
    let (made, refused) = (count("HTTP/1.1 200 OK"), count("HTTP/1.1 412 Precondition Failed"));
    assert!(made >= 2 && made + refused == 3, "{}", answer.body);
    assert_eq!(service.object("DELETE", "/storage/v1/b/photos/o/from", "").await.status, 204);
    let read = service.object("GET", "/storage/v1/b/photos/o/to?alt=media", "").await;
    assert_eq!((read.status, read.body.len()), (200, bytes.len()), "{:.200}", read.body);
}

#[tokio::test]
async fn buckets_have_ids_that_no_bucket_had_and_an_older_life_of_a_name_is_found_by_its_creation() {
    let service = Service::start().await;
    let first = service.create_bucket("photos").await;
    assert_eq!(service.object("DELETE", "/storage/v1/b/photos", "").await.status, 204);
    let second = service.create_bucket("photos").await;
    assert_eq!(service.object("DELETE", "/storage/v1/b/photos", "").await.status, 204);
    for name in ["crash-0", "crash-1"] {
        service.create_bucket(name).await;
    }
    let keep = |ids: &mut Vec<_>, key: &[u8], row: &Bytes| {
        if let Ok(Key::Bucket { name, row: BucketRow::Bucket | BucketRow::Deleted(_) }) = Key::decode(key) {
            ids.push((Bucket::decode(row).expect("a bucket").id.0, name));
        }
        Visit::Next
    };
    let mut ids =
        service.node.router().scan(&KeyRange::prefix(&[KIND_BUCKET]), Vec::new, keep).await.expect("rows");
    ids.sort();
    let names = ["photos", "photos", "crash-0", "crash-1"];
    assert_eq!(ids, (1..).zip(names.map(str::to_owned)).collect::<Vec<_>>());

    for life in [&second, &first] {
        let generation = life["generation"].as_str().expect("a generation");
        let target = format!("/storage/v1/b/photos?softDeleted=true&generation={generation}");
        assert_eq!(service.object_json("GET", &target, "").await["timeCreated"], life["timeCreated"]);
    }
    let never = service.object("GET", "/storage/v1/b/photos?softDeleted=true&generation=5", "").await;
    assert_eq!(never.status, 404, "{}", never.body);
}

#[tokio::test]
async fn a_topic_of_notifications_has_its_service_in_front_of_it_however_it_comes() {
    let service = Service::with_photos().await;
    for topic in ["projects/p/topics/t", "//pubsub.googleapis.com/projects/p/topics/t"] {
        let body = json!({ "topic": topic }).to_string();
        let made = service.object_json("POST", "/b/photos/notificationConfigs", &body).await;
        assert_eq!(made["topic"], "//pubsub.googleapis.com/projects/p/topics/t", "{topic}");
    }
    for topic in ["t", "projects/p", "projects//topics/t", "//pubsub.googleapis.com/projects/p/topics/"] {
        let body = json!({ "topic": topic }).to_string();
        let refused = service.object("POST", "/storage/v1/b/photos/notificationConfigs", &body).await;
        assert_eq!(refused.status, 400, "{topic}: {}", refused.body);
    }
}
