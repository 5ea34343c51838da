//! Retry tests: errors that clients order.

use std::time::Duration;

use rangehold_protocol::object::grpc::messages::{
    BidiWriteObjectRequest, BidiWriteObjectResponse, ListBucketsRequest, ListBucketsResponse,
    QueryWriteStatusRequest, QueryWriteStatusResponse, StartResumableWriteRequest,
    StartResumableWriteResponse, WriteObjectRequest, WriteObjectResponse, bidi_write_object_request,
    query_write_status_response, write_object_request,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tonic::Code;

use super::grpc::{Client, code, data, spec};
use crate::support::Service;
use crate::support::wire::{self, Request};

impl Service {
    /// Orders faults, and returns the id of their retry test.
    async fn retry_test(&self, order: &Value) -> String {
        let test = self.object_json("POST", "/retry_test", &order.to_string()).await;
        test["id"].as_str().expect("an id").to_owned()
    }

    /// What is left of a retry test.
    async fn left(&self, id: &str) -> Value {
        self.object_json("GET", &format!("/retry_test/{id}"), "").await
    }
}

#[tokio::test]
async fn ordered_errors_come_once_and_in_their_order() {
    let service = Service::start().await;
    let order = json!({"instructions": {"storage.buckets.list": ["return-503", "return-reset-connection"]}});
    let test = service.object_json("POST", "/retry_test", &order.to_string()).await;
    let id = test["id"].as_str().expect("an id");
    let list = Request::new("GET", "/b?project=p", &[("x-retry-test-id", id)], b"");
    assert_eq!(service.send_object(&list).await.status, 503);
    let address = service.running.object_address.expect("objects are served");
    let reset = wire::send_bytes(address, &list.head(address)).await;
    assert!(reset.is_empty(), "{}", String::from_utf8_lossy(&reset));
    assert_eq!(service.send_object(&list).await.status, 200);
    let done = service.object_json("GET", &format!("/retry_test/{id}"), "").await;
    assert_eq!(done["completed"], true);
}

#[tokio::test]
async fn requests_of_the_xml_api_meet_the_errors_of_the_operations_that_do_the_same() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let order = json!({"instructions": {
        "storage.objects.insert": ["return-503"],
        "storage.objects.get": ["return-reset-connection", "return-broken-stream-after-2B", "return-429"],
        "storage.objects.list": ["return-500"],
    }});
    let test = service.object_json("POST", "/retry_test", &order.to_string()).await;
    let named = [("x-retry-test-id", test["id"].as_str().expect("an id"))];
    let put = Request::new("PUT", "/photos/o", &named, b"hello");
    let refused = service.send_object(&put).await;
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("<Error><Code>ServiceUnavailable</Code>"), "{}", refused.body);
    assert_eq!(service.object("GET", "/photos/o", "").await.status, 404, "nothing was done");
    assert_eq!(service.send_object(&put).await.status, 200);

    let address = service.running.object_address.expect("objects are served");
    let get = Request::new("GET", "/photos/o", &named, b"");
    assert!(wire::send_bytes(address, &get.head(address)).await.is_empty());
    let broken = wire::send_bytes(address, &get.head(address)).await;
    assert!(!String::from_utf8_lossy(&broken).contains("hello"), "the body breaks off");
    assert_eq!(service.send_object(&get).await.status, 429);
    assert_eq!(service.send_object(&get).await.body, "hello");
    let list = Request::new("GET", "/photos", &named, b"");
    assert_eq!(service.send_object(&list).await.status, 500);
    assert_eq!(service.send_object(&list).await.status, 200);
}

#[tokio::test]
async fn a_retry_test_of_grpc_is_met_by_calls_alone() {
    let service = Service::start().await;
    for (transport, method, status) in [
        ("GRPC", "storage.hmacKey.list", 501),
        ("GRPC", "storage.default_object_acl.get", 501),
        ("HTTP", "storage.hmacKey.list", 200),
        ("QUIC", "storage.buckets.list", 400),
    ] {
        let order = json!({"transport": transport, "instructions": {method: ["return-503"]}});
        let answer = service.object("POST", "/retry_test", &order.to_string()).await;
        assert_eq!(answer.status, status, "{order}: {}", answer.body);
    }
    let order = json!({"transport": "GRPC", "instructions": {"storage.buckets.list": ["return-503"]}});
    let id = service.retry_test(&order).await;
    let list = Request::new("GET", "/b?project=p", &[("x-retry-test-id", &id)], b"");
    assert_eq!(service.send_object(&list).await.status, 200);
    let mut client = Client::under_test(&service, &id).await;
    let list = ListBucketsRequest { parent: "projects/p".to_owned(), ..Default::default() };
    let refused = client.ask::<_, ListBucketsResponse>("ListBuckets", list.clone()).await;
    assert_eq!(code(refused), Code::Unavailable);
    let _: ListBucketsResponse = client.ask("ListBuckets", list).await.expect("the fault came once");
    assert_eq!(service.left(&id).await["completed"], true);
}

#[tokio::test]
async fn an_upload_stands_still_at_its_bytes_and_a_download_before_its_head() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let second = Duration::from_secs(1);
    let order = json!({"instructions": {
        "storage.objects.insert": ["stall-for-1s-after-2B", "return-503-after-4B"],
        "storage.objects.get": ["stall-for-1s-after-0K"],
    }});
    let id = service.retry_test(&order).await;
    let named = [("x-retry-test-id", id.as_str())];
    let target = "/upload/storage/v1/b/photos/o?uploadType=resumable";
    let begun = service.send_object(&Request::new("POST", &format!("{target}&name=o"), &named, b"")).await;
    assert_eq!(begun.status, 200, "{}", begun.body);
    let left = service.left(&id).await;
    assert_eq!(left["instructions"]["storage.objects.insert"].as_array().map(Vec::len), Some(2));

    let upload = begun.header("X-GUploader-UploadID").expect("the id of the upload");
    let put = Request::new("PUT", &format!("{target}&upload_id={upload}"), &named, b"hello");
    let at = Instant::now();
    assert_eq!(service.send_object(&put).await.status, 200, "a request meets one fault at most");
    assert!(at.elapsed() >= second);
    let target = "/upload/storage/v1/b/photos/o?uploadType=media&name=two";
    assert_eq!(service.send_object(&Request::new("POST", target, &named, b"hello")).await.status, 503);
    assert_eq!(service.send_object(&Request::new("POST", target, &named, b"hello")).await.status, 200);

    let address = service.running.object_address.expect("objects are served");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let get = Request::new("GET", "/storage/v1/b/photos/o/o?alt=media", &named, b"");
    stream.write_all(&get.head(address)).await.expect("it is sent");
    let (at, mut reply) = (Instant::now(), Vec::<u8>::new());
    let head = timeout(second / 2, stream.read_buf(&mut reply)).await;
    assert!(head.is_err() && reply.is_empty(), "the head has come: {}", String::from_utf8_lossy(&reply));
    stream.read_to_end(&mut reply).await.expect("the reply");
    assert!(at.elapsed() >= second * 9 / 10);
    assert!(String::from_utf8_lossy(&reply).ends_with("hello"), "{}", String::from_utf8_lossy(&reply));
    assert_eq!(service.left(&id).await["completed"], true);
}

#[tokio::test]
async fn a_fault_after_so_many_bytes_ends_a_grpc_write() {
    use query_write_status_response::WriteStatus;
    let service = Service::start().await;
    Client::of(&service).await.make_bucket().await;
    let faults = ["return-503-after-4B", "return-429-after-8B", "return-503-after-2B"];
    let order = json!({"transport": "GRPC", "instructions": {"storage.objects.insert": faults}});
    let id = service.retry_test(&order).await;
    let mut client = Client::under_test(&service, &id).await;
    let begin = StartResumableWriteRequest { write_object_spec: Some(spec("o")), ..Default::default() };
    let begun: StartResumableWriteResponse =
        client.ask("StartResumableWrite", begin).await.expect("an upload");
    let query = QueryWriteStatusRequest { upload_id: begun.upload_id.clone(), ..Default::default() };
    let whole = WriteObjectRequest {
        first_message: Some(write_object_request::FirstMessage::UploadId(begun.upload_id.clone())),
        data: Some(write_object_request::Data::ChecksummedData(data("hello world"))),
        finish_write: true,
        ..Default::default()
    };
    let broken = client.stream::<_, WriteObjectResponse>("WriteObject", vec![whole.clone()]).await;
    assert_eq!(code(broken), Code::Unavailable);
    let status: QueryWriteStatusResponse = client.ask("QueryWriteStatus", query.clone()).await.expect("some");
    assert_eq!(status.write_status, Some(WriteStatus::PersistedSize(4)));

    let rest = BidiWriteObjectRequest {
        first_message: Some(bidi_write_object_request::FirstMessage::UploadId(begun.upload_id)),
        data: Some(bidi_write_object_request::Data::ChecksummedData(data("o world"))),
        write_offset: 4,
        finish_write: true,
        ..Default::default()
    };
    let broken = client.stream::<_, BidiWriteObjectResponse>("BidiWriteObject", vec![rest]).await;
    assert_eq!(code(broken), Code::ResourceExhausted);
    let status: QueryWriteStatusResponse = client.ask("QueryWriteStatus", query).await.expect("some");
    assert_eq!(status.write_status, Some(WriteStatus::PersistedSize(8)));

    assert_eq!(code(client.write("in one stream", "hello").await), Code::Unavailable);
    assert_eq!(code(client.read("in one stream", 0, 0).await), Code::NotFound);
    assert_eq!(service.left(&id).await["completed"], true);
    client.stream::<_, WriteObjectResponse>("WriteObject", vec![whole]).await.expect("the object");
    assert_eq!(client.read("o", 0, 0).await.as_deref().ok(), Some("hello world"));
}

#[tokio::test]
async fn an_upload_in_one_request_ends_with_exactly_the_ordered_status() {
    let service = Service::with_photos().await;
    let faults = ["return-502-after-2B", "return-504-after-2B", "return-502-after-2B", "return-504-after-2B"];
    let id = service.retry_test(&json!({"instructions": {"storage.objects.insert": faults}})).await;
    let begun = service.send_object(&Request::new("POST", "/photos/parts?uploads", &[], b"")).await;
    let upload = begun.body.split_once("<UploadId>").and_then(|(_, rest)| rest.split_once('<'));
    let part = format!("/photos/parts?partNumber=1&uploadId={}", upload.expect("an id").0);
    let form = "--B\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nform\r\n--B\r\n\
                Content-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nhello\r\n--B--\r\n";
    let named = ("x-retry-test-id", id.as_str());
    let in_form = ("Content-Type", "multipart/form-data; boundary=B");
    let media = "/upload/storage/v1/b/photos/o?uploadType=media&name=media";
    for (method, target, headers, body, ordered, expected) in [
        ("POST", media, vec![named], "hello", 502, 200),
        ("PUT", "/photos/put", vec![named], "hello", 504, 200),
        ("POST", "/photos", vec![named, in_form], form, 502, 204),
        ("PUT", part.as_str(), vec![named], "hello", 504, 200),
    ] {
        let request = Request::new(method, target, &headers, body.as_bytes());
        let refused = service.send_object(&request).await;
        assert_eq!(refused.status, ordered, "{target}: {}", refused.body);
        assert_eq!(refused.body.contains("<Error><Code>"), target != media, "{}", refused.body);
        // The next request with the id of the test would meet the next fault.
        let plain: Vec<_> = headers.iter().copied().filter(|header| *header != named).collect();
        let request = Request::new(method, target, &plain, body.as_bytes());
        assert_eq!(service.send_object(&request).await.status, expected, "{target}");
    }
    assert_eq!(service.left(&id).await["completed"], true);
}

#[tokio::test]
async fn in_a_retry_test_a_bucket_without_a_policy_can_be_locked_and_stays_as_it_is() {
    let service = Service::with_photos().await;
    let order = json!({"instructions": {"storage.buckets.lockRetentionPolicy": ["return-503"]}});
    let id = service.retry_test(&order).await;
    let named = [("x-retry-test-id", id.as_str())];
    let lock = |metageneration: u32, headers: &[(&str, &str)]| {
        let target = format!("/b/photos/lockRetentionPolicy?ifMetagenerationMatch={metageneration}");
        Request::new("POST", &target, headers, b"")
    };
    for (request, status) in [
        (lock(1, &[]), 400),
        (lock(1, &named), 503),
        (lock(7, &named), 412),
        (lock(1, &named), 200),
        (lock(1, &named), 200),
    ] {
        let answer = service.send_object(&request).await;
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    assert_eq!(service.object_json("GET", "/b/photos", "").await["metageneration"], "1");
    let policy = r#"{"retentionPolicy": {"retentionPeriod": "10"}}"#;
    service.object_json("PATCH", "/b/photos", policy).await;
    assert_eq!(service.send_object(&lock(2, &named)).await.status, 200);
    let bucket = service.object_json("GET", "/b/photos", "").await;
    assert_eq!(bucket["retentionPolicy"]["isLocked"], true);
}

#[tokio::test]
async fn in_a_retry_test_no_retention_policy_protects_the_objects_of_a_bucket() {
    let service = Service::with_photos().await;
    let policy = r#"{"retentionPolicy": {"retentionPeriod": "600"}}"#;
    service.object_json("PATCH", "/b/photos", policy).await;
    let order = json!({"instructions": {"storage.objects.delete": ["return-503"]}});
    let id = service.retry_test(&order).await;
    let upload = "/upload/storage/v1/b/photos/o?uploadType=media&name=a";
    let compose = br#"{"sourceObjects": [{"name": "b"}, {"name": "b"}]}"#;
    let requests: [(&str, &str, &[u8]); 6] = [
        ("POST", upload, b"new"),
        ("PUT", "/photos/a", b"newer"),
        ("POST", "/storage/v1/b/photos/o/b/rewriteTo/b/photos/o/a", b""),
        ("POST", "/storage/v1/b/photos/o/a/compose", compose),
        ("POST", "/storage/v1/b/photos/o/a/moveTo/o/c", b""),
        ("DELETE", "/storage/v1/b/photos/o/c", b""),
    ];
    for name in ["a", "b", "c"] {
        let put = Request::new("PUT", &format!("/photos/{name}"), &[], b"old");
        assert_eq!(service.send_object(&put).await.status, 200);
    }
    let unknown = [("x-retry-test-id", "no-such-test")];
    for (method, target, body) in requests {
        for headers in [&[][..], &unknown[..]] {
            let answer = service.send_object(&Request::new(method, target, headers, body)).await;
            assert_eq!(answer.status, 403, "{method} {target}: {}", answer.body);
        }
    }
    let named = [("x-retry-test-id", id.as_str())];
    for (method, target, body) in requests {
        let mut answer = service.send_object(&Request::new(method, target, &named, body)).await;
        if method == "DELETE" {
            assert_eq!(answer.status, 503, "the test orders it");
            answer = service.send_object(&Request::new(method, target, &named, body)).await;
        }
        assert!(answer.status < 300, "{method} {target}: {} {}", answer.status, answer.body);
    }
    let many = b"<Delete><Object><Key>b</Key></Object></Delete>";
    for (headers, refused) in [(&[][..], true), (&named[..], false)] {
        let answer = service.send_object(&Request::new("POST", "/photos?delete", headers, many)).await;
        assert_eq!((answer.status, answer.body.contains("<Error>")), (200, refused), "{}", answer.body);
    }
    let bucket = service.send_object(&Request::new("GET", "/b/photos", &named, b"")).await;
    for unchanged in [r#""retentionPeriod":"600""#, r#""metageneration":"2""#] {
        assert!(bucket.body.contains(unchanged), "{}", bucket.body);
    }
}

#[tokio::test]
async fn in_a_retry_test_a_folder_is_deleted_whose_objects_a_retention_policy_protects() {
    let service = Service::start().await;
    let tree = json!({
        "name": "tree",
        "hierarchicalNamespace": {"enabled": true},
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": true}},
        "retentionPolicy": {"retentionPeriod": "600"},
    });
    service.object_json("POST", "/b?project=p", &tree.to_string()).await;
    let put = Request::new("PUT", "/tree/d/a", &[], b"bytes");
    assert_eq!(service.send_object(&put).await.status, 200);
    let id = service.retry_test(&json!({"instructions": {"storage.buckets.list": ["return-503"]}})).await;
    let named = [("x-retry-test-id", id.as_str())];
    let told = service.send_object(&Request::new("GET", "/b/tree/o/d%2Fa", &named, b"")).await;
    assert!(told.body.contains("retentionExpirationTime"), "the policy is shown: {}", told.body);
    let target = "/storage/v1/b/tree/folders/d/deleteRecursive";
    for (headers, folder) in [(&[][..], 200), (&named[..], 404)] {
        let deleted = service.send_object(&Request::new("POST", target, headers, b"")).await;
        let left = service.object("GET", "/storage/v1/b/tree/folders/d%2F", "").await;
        assert_eq!(left.status, folder, "{} {}", deleted.status, deleted.body);
    }
}

#[tokio::test]
async fn a_download_can_order_a_fault_for_itself() {
    let service = Service::with_photos().await;
    let bytes = vec![b'A'; 300 << 10];
    for (name, bytes) in [("short", &b"Apples"[..]), ("long", &bytes[..])] {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=media&name={name}");
        assert_eq!(service.send_object(&Request::new("POST", &target, &[], bytes)).await.status, 200);
    }
    for header in ["x-goog-emulator-instructions", "x-goog-testbench-instructions"] {
        let named = [(header, "return-corrupted-data")];
        for target in ["/storage/v1/b/photos/o/short?alt=media", "/photos/short"] {
            let read = service.send_object(&Request::new("GET", target, &named, b"")).await;
            assert_eq!((read.status, read.body.as_str()), (200, "Bpples"), "{target}");
        }
        let resource = Request::new("GET", "/storage/v1/b/photos/o/short", &named, b"");
        assert!(service.send_object(&resource).await.body.contains("\"size\":\"6\""));
    }
    let get = async |name: &str, instruction: &str, range: &str| {
        let headers = [("x-goog-emulator-instructions", instruction), ("Range", range)];
        let target = format!("/storage/v1/b/photos/o/{name}?alt=media");
        let answer = service.send_object(&Request::new("GET", &target, &headers, b"")).await;
        (answer.status, answer.body.len())
    };
    for (name, instruction, range, expected) in [
        ("short", "return-503-after-256K/retry-1", "bytes=0-", (206, 6)),
        ("long", "return-503-after-256K/retry-3", "bytes=262144-", (206, 44 << 10)),
        ("long", "return-broken-stream", "bytes=0-", (206, 300 << 10)),
        ("long", "return-nothing-known", "bytes=0-", (206, 300 << 10)),
    ] {
        assert_eq!(get(name, instruction, range).await, expected, "{name} {instruction} {range}");
    }
    let (status, _) = get("long", "return-503-after-256K/retry-2", "bytes=262144-").await;
    assert_eq!(status, 503);
    let address = service.running.object_address.expect("objects are served");
    let headers = [("x-goog-emulator-instructions", "return-503-after-256K")];
    let get = Request::new("GET", "/photos/long", &headers, b"");
    let broken = wire::send_bytes(address, &get.head(address)).await;
    assert!(broken.len() < 300 << 10, "the body breaks off, after {} bytes of the reply", broken.len());
}
