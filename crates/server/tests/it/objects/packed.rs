//! Uploads that their clients compressed or encoded on the way.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rangehold_testkit::gzip;
use serde_json::{Value, json};

use crate::support::Service;
use crate::support::wire::{Answer, Request};

const MEDIA: &str = "/upload/storage/v1/b/photos/o?uploadType=media&name=n";
const MULTIPART: &str = "/upload/storage/v1/b/photos/o?uploadType=multipart";
const GZIP: (&str, &str) = ("Content-Encoding", "gzip");
const RELATED: (&str, &str) = ("Content-Type", "multipart/related; boundary=b");

/// The body of an upload in two parts.
fn related(resource: &Value, head: &str, media: &[u8]) -> Vec<u8> {
    let begin = format!("--b\r\nContent-Type: application/json\r\n\r\n{resource}\r\n--b\r\n{head}\r\n");
    [begin.as_bytes(), media, b"\r\n--b--\r\n"].concat()
}

impl Service {
    async fn send_upload(&self, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send_object(&Request::new("POST", target, headers, body)).await
    }

    async fn bytes_of(&self, name: &str) -> String {
        let answer = self.object("GET", &format!("/storage/v1/b/photos/o/{name}?alt=media"), "").await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }
}

fn resource(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

#[tokio::test]
async fn a_body_in_gzip_is_stored_as_it_was_before() {
    let service = Service::with_photos().await;
    let text = "some text. ".repeat(40_000);
    let members = [gzip(&text.as_bytes()[..1000]), gzip(&text.as_bytes()[1000..])].concat();
    let made = resource(&service.send_upload(MEDIA, &[GZIP, ("Content-Type", "text/x")], &members).await);
    assert_eq!((&made["size"], &made["contentEncoding"]), (&json!(text.len().to_string()), &Value::Null));
    assert!(service.bytes_of("n").await == text, "other bytes");

    let body = related(&json!({"name": "m"}), "Content-Type: text/y\r\n", text.as_bytes());
    let made = resource(&service.send_upload(MULTIPART, &[GZIP, RELATED], &gzip(&body)).await);
    assert_eq!((&made["size"], &made["contentType"]), (&json!(text.len().to_string()), &json!("text/y")));
    assert!(service.bytes_of("m").await == text, "other bytes");

    // The encoding of the object is another matter.
    let stored = gzip(b"hello");
    let body = related(&json!({"name": "twice", "contentEncoding": "gzip"}), "", &stored);
    let made = resource(&service.send_upload(MULTIPART, &[GZIP, RELATED], &gzip(&body)).await);
    assert_eq!(made["size"], json!(stored.len().to_string()));
    let read = service.bytes_of("twice").await;
    assert!(
        read.contains("\r\nhello\r\n"),
        "{read:?}: the length of what is decompressed is not known before"
    );
}

#[tokio::test]
async fn a_download_says_whether_it_was_decompressed_on_its_way() {
    let service = Service::with_photos().await;
    let body = related(&json!({"name": "n", "contentEncoding": "gzip"}), "", &gzip(b"hello"));
    resource(&service.send_upload(MULTIPART, &[RELATED], &body).await);
    let nothing: &[(&str, &str)] = &[];
    for target in
        ["/storage/v1/b/photos/o/n?alt=media", "/download/storage/v1/b/photos/o/n?alt=media", "/photos/n"]
    {
        for (headers, expected) in [(nothing, Some("gunzipped")), (&[("Accept-Encoding", "gzip")], None)] {
            let read = service.send_object(&Request::new("GET", target, headers, b"")).await;
            assert_eq!(read.status, 200, "{}", read.body);
            let said = read.header("x-guploader-response-body-transformations");
            assert_eq!(said.as_deref(), expected, "{target}");
        }
    }
}

#[tokio::test]
async fn chunks_of_a_resumable_upload_may_be_in_gzip() {
    let service = Service::with_photos().await;
    let text = "x".repeat(300_000);
    let target = "/upload/storage/v1/b/photos/o?uploadType=resumable&name=n";
    let begun = service.send_upload(target, &[], b"").await;
    let location = begun.header("Location").expect("the address of the upload");
    let upload = &location[location.find("/upload/").expect("a path")..];
    let put = async |range: &str, body: &[u8]| {
        let headers = [GZIP, ("Content-Range", range)];
        service.send_object(&Request::new("PUT", upload, &headers, body)).await
    };
    let half = 256 * 1024;
    let first = put("bytes 0-262143/*", &gzip(&text.as_bytes()[..half])).await;
    assert_eq!(
        (first.status, first.header("Range").as_deref()),
        (308, Some("bytes=0-262143")),
        "{}",
        first.body
    );
    let range = format!("bytes {half}-299999/300000");
    assert_eq!(put(&range, b"not gzip").await.status, 400);
    // A wrong checksum is seen at the end, when two pieces have come out.
    let mut damaged = gzip(&vec![b'y'; 300_000]);
    let sum = damaged.len() - 6;
    damaged[sum] ^= 1;
    assert_eq!(put("bytes 262144-562143/*", &damaged).await.status, 400);
    let asked = [("Content-Range", "bytes */*")];
    let kept = service.send_object(&Request::new("PUT", upload, &asked, b"")).await;
    assert_eq!((kept.status, kept.header("Range").as_deref()), (308, Some("bytes=0-262143")));
    let made = resource(&put(&range, &gzip(&text.as_bytes()[half..])).await);
    assert_eq!(made["size"], json!("300000"));
    assert!(service.bytes_of("n").await == text, "other bytes");

    let begun = service.send_upload(&target.replace("name=n", "name=whole"), &[], b"").await;
    let id = begun.header("X-GUploader-UploadID").expect("the id of the upload");
    let whole = format!("/upload/storage/v1/b/photos/o?uploadType=resumable&upload_id={id}");
    let request = Request::new("PUT", &whole, &[GZIP], &gzip(text.as_bytes()));
    assert_eq!(resource(&service.send_object(&request).await)["size"], json!("300000"));
}

#[tokio::test]
async fn a_multipart_upload_has_two_parts() {
    let service = Service::with_photos().await;
    for third in ["", "more"] {
        let media = format!("bytes\r\n--b\r\n\r\n{third}");
        let body = related(&json!({"name": "n"}), "", media.as_bytes());
        let answer = service.send_upload(MULTIPART, &[RELATED], &body).await;
        assert_eq!(answer.status, 400, "{third:?}: {}", answer.body);
        assert!(answer.body.contains("has two parts, and this one has more"), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_body_that_is_not_whole_gzip_makes_no_object() {
    let service = Service::with_photos().await;
    let whole = gzip(&related(&json!({"name": "n"}), "", &[b'x'; 200_000]));
    for body in [b"plain".as_slice(), &whole[..whole.len() - 5], &[&whole, b"more".as_slice()].concat()] {
        for (target, headers) in [(MEDIA, &[GZIP][..]), (MULTIPART, &[GZIP, RELATED])] {
            let refused = service.send_upload(target, headers, body).await;
            assert_eq!(refused.status, 400, "{}", refused.body);
            assert!(refused.body.contains("gzip"), "{}", refused.body);
        }
    }
    assert_eq!(service.object("GET", "/storage/v1/b/photos/o/n", "").await.status, 404);
}

/// The room of all bodies is 16 MiB here.
#[tokio::test]
async fn uploads_that_grow_beyond_the_room_of_bodies_all_end() {
    let service = Service::with_photos().await;
    let body = gzip(&vec![0; 24 << 20]);
    assert!(body.len() < 64 << 10);
    let upload = async |name: &str| {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=media&name={name}");
        resource(&service.send_upload(&target, &[GZIP], &body).await)
    };
    let (first, second, third) = tokio::join!(upload("a"), upload("b"), upload("c"));
    for made in [first, second, third] {
        assert_eq!(made["size"], json!((24 << 20).to_string()));
    }
}

#[tokio::test]
async fn a_part_in_base64_is_decoded_and_other_encodings_are_named() {
    let service = Service::with_photos().await;
    let text = "some text. ".repeat(40_000);
    let encoded = STANDARD.encode(&text);
    let lines: Vec<&[u8]> = encoded.as_bytes().chunks(76).collect();
    let lines = lines.join(&b"\r\n"[..]);
    let head = "Content-Type: text/x\r\nContent-Transfer-Encoding: base64\r\n";
    let body = |media: &[u8], head: &str| related(&json!({"name": "n"}), head, media);
    let made = resource(&service.send_upload(MULTIPART, &[RELATED], &body(&lines, head)).await);
    assert_eq!((&made["size"], &made["contentType"]), (&json!(text.len().to_string()), &json!("text/x")));
    assert!(service.bytes_of("n").await == text, "other bytes");

    let refused = service.send_upload(MULTIPART, &[RELATED], &body(b"aGVsbG8", head)).await;
    assert!(refused.status == 400 && refused.body.contains("base64"), "{}", refused.body);
    let head = "Content-Transfer-Encoding: quoted-printable\r\n";
    let refused = service.send_upload(MULTIPART, &[RELATED], &body(b"=20", head)).await;
    assert!(refused.status == 501 && refused.body.contains("quoted-printable"), "{}", refused.body);
    let binary = body(b"aGVsbG8=", "Content-Transfer-Encoding: binary\r\n");
    resource(&service.send_upload(MULTIPART, &[RELATED], &binary).await);
    assert_eq!(service.bytes_of("n").await, "aGVsbG8=");
}

#[tokio::test]
async fn a_request_without_a_body_may_say_how_it_would_be_compressed() {
    let service = Service::with_photos().await;
    resource(&service.send_upload(MEDIA, &[], b"hello").await);
    let copied = service.send_upload("/b/photos/o/n/copyTo/b/photos/o/copy", &[GZIP], b"").await;
    assert_eq!(resource(&copied)["size"], "5");
    let other = service.send_upload("/b/photos/o/n/copyTo/b/photos/o/copy", &[GZIP], b"{}").await;
    assert_eq!(other.status, 400, "this one is not gzip: {}", other.body);
}
