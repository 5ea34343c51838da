//! Requests for objects that come too fast, in the profile `cloud`. The rates are so low that time adds nothing.

use std::time::Duration;

use rangehold_server::profile::{ObjectRules, Profile};

use crate::support::Service;
use crate::support::wire::{Answer, Request};

const SLOW: f64 = 0.000_000_1;
const HOUR: Duration = Duration::from_secs(3_600);
const UPLOADS: &str = "/upload/storage/v1/b/photos/o?uploadType=";

async fn service(rates_scale: f64, name_every: Duration) -> Service {
    let cloud = ObjectRules::cloud();
    let rates = cloud.rates.clone().scaled(rates_scale);
    let objects = Some(ObjectRules { rates, name_every, ..cloud });
    let service = Service::with_profile(Profile { objects, ..Profile::cloud() }).await;
    service.create_bucket("photos").await;
    service
}

async fn insert(service: &Service, name: &str) -> Answer {
    service.object("POST", &format!("{UPLOADS}media&name={name}"), "{}").await
}

async fn counted(service: &Service, cause: &str) -> u64 {
    let metrics = service.send_admin("GET", "/metrics", &[]).await.body;
    let line = format!("rangehold_throttled_total{{cause=\"{cause}\"}} ");
    metrics.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn a_bucket_that_is_too_busy_answers_in_the_words_of_the_real_service() {
    // One write and one read, and then none for hours.
    let service = service(SLOW, Duration::ZERO).await;
    assert_eq!(insert(&service, "a").await.status, 200);
    let limited = insert(&service, "b").await;
    assert_eq!(limited.status, 429, "{}", limited.body);
    assert!(
        limited.body.contains(r#""domain":"usageLimits","reason":"rateLimitExceeded""#),
        "{}",
        limited.body
    );
    assert_eq!(limited.header("Retry-After"), None);
    let xml = service.send_object(&Request::new("PUT", "/photos/c", &[], b"x")).await;
    assert_eq!(xml.status, 429);
    assert!(
        xml.body.contains("<Code>SlowDown</Code><Message>Please reduce your request rate.</Message>"),
        "{}",
        xml.body
    );
    // The name of a multipart upload comes in its body.
    let parts = "--x\r\nContent-Type: application/json\r\n\r\n{\"name\":\"d\"}\r\n--x\r\nContent-Type: text/plain\r\n\r\nbytes\r\n--x--";
    let form = [("Content-Type", "multipart/related; boundary=x")];
    let target = format!("{UPLOADS}multipart");
    assert_eq!(
        service.send_object(&Request::new("POST", &target, &form, parts.as_bytes())).await.status,
        429
    );
    let backend = service.object("DELETE", "/storage/v1/b/photos/o/a", "").await;
    assert_eq!(backend.status, 503);
    assert!(backend.body.contains(r#""reason":"backendError""#), "{}", backend.body);
    // Reads have a budget of their own. The settings of a bucket have none.
    assert_eq!(service.object("GET", "/storage/v1/b/photos/o/a", "").await.status, 200);
    assert_eq!(service.object("GET", "/storage/v1/b/photos/o?prefix=a", "").await.status, 429);
    assert_eq!(service.object("GET", "/storage/v1/b/photos", "").await.status, 200);
    assert_eq!(counted(&service, "BucketRate").await, 5);
}

#[tokio::test]
async fn a_name_that_is_written_again_at_once_is_refused_and_other_names_are_not() {
    let service = service(1.0, HOUR).await;
    assert_eq!(insert(&service, "a").await.status, 200);
    let again = insert(&service, "a").await;
    assert_eq!(again.status, 429);
    let told = "The object photos/a exceeded the rate limit for object mutation operations";
    assert!(again.body.contains(told), "{}", again.body);
    let xml = service.send_object(&Request::new("DELETE", "/photos/a", &[], b"")).await;
    assert!(
        xml.body.contains("<Details>Changing object photos/a too quickly, please slow down</Details>"),
        "{}",
        xml.body
    );
    assert_eq!(insert(&service, "b").await.status, 200);
    assert_eq!(service.object("GET", "/storage/v1/b/photos/o/a?alt=media", "").await.body, "{}");
    assert_eq!(counted(&service, "ObjectName").await, 2);
}

/// A bucket with folders.
async fn tree(service: &Service) {
    let body = r#"{"name":"tree","hierarchicalNamespace":{"enabled":true},
        "iamConfiguration":{"uniformBucketLevelAccess":{"enabled":true}}}"#;
    service.object_json("POST", "/storage/v1/b?project=p", body).await;
}

#[tokio::test]
async fn calls_about_folders_are_counted() {
    let service = service(SLOW, Duration::ZERO).await;
    tree(&service).await;
    let status = async |method: &str, target: &str, body: &str| {
        service.object(method, &format!("/storage/v1/b/tree/folders{target}"), body).await.status
    };
    assert_eq!(status("POST", "", r#"{"name":"a"}"#).await, 200);
    assert_eq!(status("POST", "", r#"{"name":"b"}"#).await, 429);
    assert_eq!(status("POST", "/a/renameTo/folders/c", "").await, 429);
    assert_eq!(status("DELETE", "/a", "").await, 429);
    assert_eq!(status("POST", "/a/deleteRecursive", "").await, 503);
    assert_eq!(status("GET", "", "").await, 200);
    assert_eq!(status("GET", "/a", "").await, 429);
    assert_eq!(counted(&service, "BucketRate").await, 5);
}

#[tokio::test]
async fn a_folder_is_made_renamed_and_deleted_within_a_second() {
    let service = service(1.0, HOUR).await;
    tree(&service).await;
    service.object_json("POST", "/storage/v1/b/tree/folders", r#"{"name":"a"}"#).await;
    service.object_json("POST", "/storage/v1/b/tree/folders/a/renameTo/folders/b", "").await;
    assert_eq!(service.object("DELETE", "/storage/v1/b/tree/folders/b", "").await.status, 204);
}
