//! The bandwidth of projects in locations: the bytes of objects that come and go. Each bucket here has a project of its own, whose
//! budget of two bytes a second any object uses up for long.

use std::time::Duration;

use rangehold_map::Timestamp;
use rangehold_server::profile::{ObjectRules, Profile};

use super::rates::counted;
use crate::support::Service;
use crate::support::wire::{Answer, Request};

/// More than fits into a row.
const SIZE: usize = 300_000;
/// The least that the server keeps of an upload that goes on.
const CHUNK: usize = 262_144;
const DAY: i64 = 24 * 3_600 * Timestamp::TICKS_PER_SECOND;

/// A service whose projects have two bytes a second.
pub(super) async fn service() -> Service {
    let cloud = ObjectRules::cloud();
    let objects = Some(ObjectRules { bytes_per_second: Some(2.0), name_every: Duration::ZERO, ..cloud });
    Service::with_profile(Profile { objects, ..Profile::cloud() }).await
}

impl Service {
    /// A bucket, and a project of the same name.
    async fn with_project(&self, name: &str) {
        let body = format!(r#"{{"name":"{name}"}}"#);
        self.object_json("POST", &format!("/storage/v1/b?project={name}"), &body).await;
    }

    /// Lets so much time pass that what one object has used is there again. A session lives for three times as long.
    pub(super) fn rest(&self) {
        self.clock.step(2 * DAY);
    }

    async fn sent(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send_object(&Request::new(method, target, headers, body)).await
    }

    async fn uploaded(&self, bucket: &str, size: usize) {
        let target = format!("/upload/storage/v1/b/{bucket}/o?uploadType=media&name=o");
        let answer = self.sent("POST", &target, &[], &vec![b'x'; size]).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// Whether the project of a bucket has used its bandwidth up, so that no request for an object is let in.
    async fn is_used_up(&self, bucket: &str) -> bool {
        let answer = self.object("GET", &format!("/storage/v1/b/{bucket}/o/none"), "").await;
        assert!([404, 429].contains(&answer.status), "{}", answer.body);
        assert_eq!(
            answer.status == 429,
            answer.body.contains("exceeded the bandwidth quota"),
            "{}",
            answer.body
        );
        answer.status == 429
    }
}

/// The path and query of an address.
fn path_of<'l>(location: &'l str, begin: &str) -> &'l str {
    &location[location.find(begin).expect("a path")..]
}

#[tokio::test]
async fn bytes_that_come_use_up_the_bandwidth_in_whatever_form() {
    let service = service().await;
    let bytes = vec![b'x'; SIZE];
    let related = [&b"--B\r\n\r\n{\"name\":\"o\"}\r\n--B\r\n\r\n"[..], &bytes, b"\r\n--B--"].concat();
    let form = b"--B\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\no\r\n--B\r\n\
                 Content-Disposition: form-data; name=\"file\"\r\n\r\n";
    let form = [&form[..], &bytes, b"\r\n--B--\r\n"].concat();
    // 300,000 bytes in one chunk, in the form of HTTP and of Amazon's clients.
    let chunked = [&b"493e0\r\n"[..], &bytes, b"\r\n0\r\n\r\n"].concat();
    let json = "/upload/storage/v1/b/BUCKET/o?name=o&uploadType";
    for (bucket, method, target, header, body) in [
        ("media", "POST", format!("{json}=media"), ("a", "b"), &bytes),
        ("without-length", "POST", format!("{json}=media"), ("Transfer-Encoding", "chunked"), &chunked),
        (
            "related",
            "POST",
            format!("{json}=multipart"),
            ("Content-Type", "multipart/related; boundary=B"),
            &related,
        ),
        ("xml", "PUT", "/BUCKET/o".to_owned(), ("a", "b"), &bytes),
        ("amazon", "PUT", "/BUCKET/o".to_owned(), ("Content-Encoding", "aws-chunked"), &chunked),
        ("form", "POST", "/BUCKET".to_owned(), ("Content-Type", "multipart/form-data; boundary=B"), &form),
    ] {
        service.with_project(bucket).await;
        assert!(!service.is_used_up(bucket).await, "{bucket}");
        let answer = service.sent(method, &target.replace("BUCKET", bucket), &[header], body).await;
        assert!([200, 204].contains(&answer.status), "{bucket}: {}", answer.body);
        assert!(service.is_used_up(bucket).await, "{bucket}");
    }
    service.with_project("another").await;
    assert!(!service.is_used_up("another").await, "projects have budgets of their own");
    assert_eq!(counted(&service, "Bandwidth").await, 6);
}

#[tokio::test]
async fn a_session_goes_on_when_its_project_has_bandwidth_again() {
    let service = service().await;
    service.with_project("photos").await;
    let begin = "/upload/storage/v1/b/photos/o?uploadType=resumable&name=o";
    let begun = service.object("POST", begin, "").await;
    let location = begun.header("Location").expect("an address");
    let (bytes, total) = (vec![b'x'; 2 * CHUNK + SIZE], 2 * CHUNK + SIZE);
    let send = async |from: usize, to: usize| {
        let range = format!("bytes {from}-{}/{total}", to - 1);
        let headers = [("Content-Range", range.as_str())];
        service.sent("PUT", path_of(&location, "/upload/"), &headers, &bytes[from..to]).await
    };
    let ends = [(0, CHUNK), (CHUNK, 2 * CHUNK), (2 * CHUNK, total)];
    for (part, (from, to)) in ends.into_iter().enumerate() {
        if part > 0 {
            let refused = send(from, to).await;
            assert_eq!(refused.status, 429, "{part}");
            assert!(refused.body.contains("exceeded the bandwidth quota"), "{}", refused.body);
            let headers = [("Content-Range", "bytes */*")];
            let told = service.sent("PUT", path_of(&location, "/upload/"), &headers, b"").await;
            assert_eq!((told.status, told.header("Range")), (308, Some(format!("bytes=0-{}", from - 1))));
            service.rest();
        }
        assert_eq!(send(from, to).await.status, if to == total { 200 } else { 308 }, "{part}");
        assert!(service.is_used_up("photos").await, "{part}");
    }
}

#[tokio::test]
async fn bytes_that_are_sent_again_have_come_twice() {
    let service = service().await;
    service.with_project("photos").await;
    let begin = "/upload/storage/v1/b/photos/o?uploadType=resumable&name=o";
    let location = service.object("POST", begin, "").await.header("Location").expect("an address");
    let headers = [("Content-Range", "bytes 0-262143/*")];
    for _ in 0..2 {
        service.rest();
        let sent = service.sent("PUT", path_of(&location, "/upload/"), &headers, &[b'x'; CHUNK]).await;
        assert_eq!(sent.status, 308, "{}", sent.body);
        assert!(service.is_used_up("photos").await);
    }
}

#[tokio::test]
async fn a_part_of_a_multipart_upload_waits_until_its_project_has_bandwidth_again() {
    let service = service().await;
    service.with_project("photos").await;
    let begun = service.sent("POST", "/photos/o?uploads", &[], b"").await.body;
    let id = begun.split_once("<UploadId>").and_then(|(_, rest)| rest.split_once('<')).expect("an id").0;
    let put = async |number: u32| {
        let target = format!("/photos/o?partNumber={number}&uploadId={id}");
        service.sent("PUT", &target, &[], &[b'x'; SIZE]).await
    };
    assert_eq!(put(1).await.status, 200);
    let refused = put(2).await;
    assert_eq!(
        (refused.status, refused.body.contains("<Code>SlowDown</Code>")),
        (429, true),
        "{}",
        refused.body
    );
    service.rest();
    assert_eq!(put(2).await.status, 200);
}

#[tokio::test]
async fn bytes_that_leave_use_up_the_bandwidth_and_a_download_comes_whole() {
    let service = service().await;
    for (bucket, size) in [("small", 1_000), ("large", SIZE)] {
        service.with_project(bucket).await;
        service.uploaded(bucket, size).await;
        let json = format!("/storage/v1/b/{bucket}/o/o?alt=media");
        for target in [json.clone(), format!("/{bucket}/o")] {
            service.rest();
            let answer = service.sent("GET", &target, &[], b"").await;
            assert_eq!((answer.status, answer.body.len()), (200, size), "{target}");
            assert!(service.is_used_up(bucket).await, "{target}");
        }
        service.rest();
        let head = service.sent("HEAD", &format!("/{bucket}/o"), &[], b"").await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert!(!service.is_used_up(bucket).await, "no byte of it has left");
        let part = service.sent("GET", &json, &[("Range", "bytes=0-0")], b"").await;
        assert_eq!((part.status, part.body.len()), (206, 1));
    }
}
