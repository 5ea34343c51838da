//! Payloads of every size, in every form in which they are sent and read.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::support::Service;
use crate::support::wire::{Answer, Request, parse};

/// More than fits into a row, and no multiple of anything.
const LARGE: usize = 600_001;

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * at % 251) as u8).collect()
}

impl Service {
    async fn put(&self, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send_object(&Request::new("PUT", target, headers, body)).await
    }

    /// Begins a resumable upload, and returns the path and query of its address.
    async fn begin(&self, query: &str, resource: &str) -> String {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=resumable{query}");
        let answer = self.object("POST", &target, resource).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let location = answer.header("Location").expect("the address of the upload");
        let id = answer.header("X-GUploader-UploadID").expect("the id of the upload");
        assert!(location.ends_with(&format!("upload_id={id}")), "{location}");
        location[location.find("/upload/").expect("a path")..].to_owned()
    }
}

fn parsed(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

#[tokio::test]
async fn small_and_large_objects_come_back_whole_and_in_parts() {
    let service = Service::with_photos().await;
    for size in [0, 1, 65_536, 65_537, LARGE] {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=media&name=a%2F{size}");
        let payload: String = bytes(size).into_iter().map(|byte| char::from(byte % 26 + b'a')).collect();
        let headers = [("Content-Type", "text/x")];
        let request = Request::new("POST", &target, &headers, payload.as_bytes());
        let made = parsed(&service.send_object(&request).await);
        assert_eq!((&made["size"], &made["contentType"]), (&json!(size.to_string()), &json!("text/x")));
        let target = format!("/storage/v1/b/photos/o/a%2F{size}?alt=media");
        let answer = service.object("GET", &target, "").await;
        assert!(answer.status == 200 && answer.body == payload, "{size}");
        let hash = answer.header("x-goog-hash").expect("checksums");
        assert!(hash.contains(made["crc32c"].as_str().expect("a checksum")), "{hash}");
        assert_eq!(answer.header("x-goog-generation").as_deref(), made["generation"].as_str());
        if size > 10 {
            let part = Request::new("GET", &target, &[("Range", "bytes=3-6")], b"");
            let part = service.send_object(&part).await;
            assert_eq!((part.status, part.body.as_str()), (206, &payload[3..7]));
            assert_eq!(part.header("Content-Range").as_deref(), Some(&*format!("bytes 3-6/{size}")));
        }
    }
    let missing = service.object("GET", "/storage/v1/b/photos/o/none?alt=media", "").await;
    assert_eq!((missing.status, missing.body.as_str()), (404, "No such object: photos/none"));
}

#[tokio::test]
async fn a_range_beyond_the_end_is_refused_with_the_size_of_the_object() {
    let service = Service::with_photos().await;
    for (name, body) in [("empty", &b""[..]), ("five", b"hello")] {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=media&name={name}");
        parsed(&service.send_object(&Request::new("POST", &target, &[], body)).await);
        for target in [
            format!("/storage/v1/b/photos/o/{name}?alt=media"),
            format!("/download/storage/v1/b/photos/o/{name}?alt=media"),
            format!("/photos/{name}"),
        ] {
            let request = Request::new("GET", &target, &[("Range", "bytes=5-")], b"");
            let beyond = service.send_object(&request).await;
            assert!(
                beyond.status == 416 && beyond.body.contains("Request range not satisfiable"),
                "{target}"
            );
            let size = format!("bytes */{}", body.len());
            assert_eq!(beyond.header("Content-Range"), Some(size), "{target}");
        }
    }
}

#[tokio::test]
async fn the_json_api_gives_an_object_as_an_attachment_if_its_owner_said_nothing_else() {
    let service = Service::with_photos().await;
    let nothing: &[(&str, &str)] = &[];
    for (name, headers) in [("plain", nothing), ("said", &[("Content-Disposition", "inline")])] {
        assert_eq!(service.put(&format!("/photos/{name}"), headers, b"hello").await.status, 200);
    }
    for (target, expected) in [
        ("/storage/v1/b/photos/o/plain?alt=media", Some("attachment")),
        ("/download/storage/v1/b/photos/o/plain?alt=media", Some("attachment")),
        ("/photos/plain", None),
        ("/storage/v1/b/photos/o/said?alt=media", Some("inline")),
        ("/photos/said", Some("inline")),
    ] {
        let read = service.object("GET", target, "").await;
        assert_eq!((read.status, read.header("Content-Disposition").as_deref()), (200, expected), "{target}");
    }
}

/// The room of all bodies is 16 MiB here.
#[tokio::test]
async fn uploads_that_are_larger_together_than_the_room_of_bodies_all_end() {
    let service = Service::with_photos().await;
    let payload = bytes(15 << 20);
    let upload = async |name: &str| {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=media&name={name}");
        parsed(&service.send_object(&Request::new("POST", &target, &[], &payload)).await)
    };
    let (first, second, third) = tokio::join!(upload("a"), upload("b"), upload("c"));
    assert_eq!(first["size"], json!((15 << 20).to_string()));
    assert!(
        first["md5Hash"] == second["md5Hash"] && second["md5Hash"] == third["md5Hash"],
        "{second} {third}"
    );
}

#[tokio::test]
async fn a_resumable_upload_tells_what_it_has_and_repeats_its_answer() {
    let service = Service::with_photos().await;
    let upload = service.begin("&name=big&ifGenerationMatch=0", r#"{"metadata":{"a":"b"}}"#).await;
    let payload = bytes(LARGE);
    let asked = service.put(&upload, &[("Content-Range", "bytes */*")], b"").await;
    assert_eq!((asked.status, asked.header("Range")), (308, None));
    let odd = service.put(&upload, &[("Content-Range", "bytes 0-9/*")], &payload[..10]).await;
    assert_eq!(odd.status, 400, "a chunk that is not the last has a multiple of 256 KiB");
    let half = 256 * 1024;
    let range = format!("bytes 0-{}/*", half - 1);
    let first = service.put(&upload, &[("Content-Range", &range)], &payload[..half]).await;
    assert_eq!((first.status, first.header("Range").as_deref()), (308, Some("bytes=0-262143")));
    let again = service.put(&upload, &[("Content-Range", &range)], &payload[..half]).await;
    assert_eq!((again.status, again.header("Range").as_deref()), (308, Some("bytes=0-262143")));
    let range = format!("bytes {half}-{}/{LARGE}", LARGE - 1);
    let last = parsed(&service.put(&upload, &[("Content-Range", &range)], &payload[half..]).await);
    assert_eq!((&last["size"], &last["metadata"]["a"]), (&json!(LARGE.to_string()), &json!("b")));
    service.object("DELETE", "/storage/v1/b/photos/o/big", "").await;
    let repeated = parsed(&service.put(&upload, &[("Content-Range", "bytes */*")], b"").await);
    assert_eq!(repeated["generation"], last["generation"]);
}

#[tokio::test]
async fn an_upload_that_is_cancelled_or_has_wrong_bytes_makes_no_object() {
    let service = Service::with_photos().await;
    let upload = service.begin("&name=never", "").await;
    assert_eq!(service.object("DELETE", &upload, "").await.status, 499);
    assert_eq!(service.put(&upload, &[("Content-Range", "bytes */*")], b"").await.status, 499);
    let wrong = service.begin("", r#"{"name":"never","crc32c":"AAAAAA=="}"#).await;
    let refused = service.put(&wrong, &[], b"other bytes").await;
    assert!(refused.status == 400 && refused.body.contains("CRC32C"), "{}", refused.body);
    assert_eq!(service.object("GET", "/storage/v1/b/photos/o/never", "").await.status, 404);
}

#[tokio::test]
async fn a_second_sender_with_wrong_bytes_leaves_the_object_of_the_first_whole() {
    let service = Service::with_photos().await;
    let payload = vec![b'p'; LARGE];
    let upload = service.begin("&name=big", "").await;
    let half = 256 * 1024;
    let range = format!("bytes 0-{}/*", half - 1);
    assert_eq!(service.put(&upload, &[("Content-Range", &range)], &payload[..half]).await.status, 308);
    let range = format!("bytes {half}-{}/{LARGE}", LARGE - 1);
    let headers = [("Content-Range", range.as_str()), ("x-goog-hash", "crc32c=AAAAAA==")];
    let second = Request::new("PUT", &upload, &headers, &payload[half..]);
    let address = service.running.object_address.expect("objects are served");
    let mut stream = TcpStream::connect(address).await.expect("the service listens");
    let (begin, end) = second.body.split_at(100);
    stream.write_all(&[&*second.head(address), begin].concat()).await.expect("the service listens");
    // The server reads the session of the second sender.
    sleep(Duration::from_millis(50)).await;
    parsed(&service.put(&upload, &[("Content-Range", &range)], &payload[half..]).await);
    stream.write_all(end).await.expect("the service listens");
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.expect("a reply");
    assert_eq!(parse(&reply).expect("a reply").status, 404);
    let text = service.object("GET", "/storage/v1/b/photos/o/big?alt=media", "").await;
    assert!(text.status == 200 && text.body.as_bytes() == payload, "{}", text.status);
}

#[tokio::test]
async fn objects_are_composed_rewritten_moved_and_listed() {
    let service = Service::with_photos().await;
    for (name, size) in [("small", 5), ("large", LARGE)] {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=media&name={name}");
        parsed(&service.send_object(&Request::new("POST", &target, &[], &vec![b'x'; size])).await);
    }
    let body = r#"{"sourceObjects":[{"name":"small"},{"name":"large"},{"name":"small"}]}"#;
    let whole = service.object_json("POST", "/storage/v1/b/photos/o/whole/compose", body).await;
    assert_eq!((&whole["size"], &whole["componentCount"]), (&json!((LARGE + 10).to_string()), &json!(3)));
    assert_eq!(whole["md5Hash"], Value::Null);
    let target = "/storage/v1/b/photos/o/whole/rewriteTo/b/photos/o/copy";
    let rewritten = service.object_json("POST", target, "").await;
    assert_eq!((&rewritten["done"], &rewritten["resource"]["crc32c"]), (&json!(true), &whole["crc32c"]));
    service.object_json("POST", "/storage/v1/b/photos/o/whole/moveTo/o/moved", "").await;
    for name in ["small", "large"] {
        assert_eq!(service.object("DELETE", &format!("/storage/v1/b/photos/o/{name}"), "").await.status, 204);
    }
    let text = service.object("GET", "/storage/v1/b/photos/o/moved?alt=media", "").await;
    assert_eq!(text.body, "x".repeat(LARGE + 10), "the chunks outlive the objects that they came from");
    let page = service.object_json("GET", "/storage/v1/b/photos/o?fields=items/name", "").await;
    assert_eq!(page, json!({"items": [{"name": "copy"}, {"name": "moved"}]}));
}

#[tokio::test]
async fn a_wrong_condition_of_an_upload_is_told_before_its_bytes_come() {
    let service = Service::with_photos().await;
    let address = service.running.object_address.expect("objects are served");
    for (line, header) in [
        ("POST /upload/storage/v1/b/photos/o?uploadType=media&name=a&ifGenerationMatch=x", "A: b"),
        ("PUT /photos/a", "x-goog-if-generation-match: x"),
    ] {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let head =
            format!("{line} HTTP/1.1\r\nHost: localhost\r\n{header}\r\nContent-Length: 1000000\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("it reads");
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).await.expect("it answers");
        assert_eq!(&begin, b"HTTP/1.1 400", "{line}");
    }
}

#[tokio::test]
async fn the_end_of_a_resumable_upload_has_the_form_that_its_beginning_asked_for() {
    let service = Service::with_photos().await;
    let upload = service.begin("&name=n&projection=full&fields=name,acl/role", "").await;
    let made = service.object_json("PUT", &upload, "bytes").await;
    assert_eq!(made["name"], "n");
    assert!(made["acl"].is_array() && made.get("size").is_none(), "{made}");
    for wrong in ["&name=n&projection=some", "&name=n&fields=("] {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=resumable{wrong}");
        assert_eq!(service.object("POST", &target, "").await.status, 400, "{wrong}");
    }
}
