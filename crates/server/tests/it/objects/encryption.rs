//! Objects that are encrypted with keys of their clients.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::Service;
use crate::support::wire::{Answer, Request};

const UPLOAD: &str = "/upload/storage/v1/b/photos/o?uploadType=media&name=o";
const MEDIA: &str = "/storage/v1/b/photos/o/o?alt=media";

/// The headers of a key: its algorithm, the key itself and its hash.
fn key(byte: u8) -> [(&'static str, String); 3] {
    let key = [byte; 32];
    [
        ("x-goog-encryption-algorithm", "AES256".to_owned()),
        ("x-goog-encryption-key", STANDARD.encode(key)),
        ("x-goog-encryption-key-sha256", STANDARD.encode(Sha256::digest(key))),
    ]
}

impl Service {
    async fn with_headers(&self, method: &str, target: &str, headers: &[(&str, String)]) -> Answer {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let body: &[u8] = if matches!(method, "POST" | "PUT") { b"hello" } else { b"" };
        self.send_object(&Request::new(method, target, &headers, body)).await
    }
}

fn reason(answer: &Answer) -> Value {
    let body: Value = serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{}", answer.body));
    json!([answer.status, body["error"]["errors"][0]["reason"]])
}

#[tokio::test]
async fn a_key_comes_with_its_algorithm_and_its_hash() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let [algorithm, right, hash] = key(7);
    let other = |of: &(&'static str, String), value: &str| (of.0, value.to_owned());
    let short = STANDARD.encode([7; 16]);
    for (headers, expected) in [
        (vec![right.clone()], "customerEncryptionAlgorithmIsInvalid"),
        (vec![right.clone(), hash.clone()], "customerEncryptionAlgorithmIsInvalid"),
        (
            vec![other(&algorithm, "AES128"), right.clone(), hash.clone()],
            "customerEncryptionAlgorithmIsInvalid",
        ),
        (vec![algorithm.clone(), right.clone()], "customerEncryptionKeySha256IsInvalid"),
        (vec![algorithm.clone(), right.clone(), key(8)[2].clone()], "customerEncryptionKeySha256IsInvalid"),
        (vec![algorithm.clone(), hash.clone()], "customerEncryptionKeyFormatIsInvalid"),
        (
            vec![algorithm.clone(), other(&right, &short), hash.clone()],
            "customerEncryptionKeyFormatIsInvalid",
        ),
        (vec![algorithm, other(&right, "!"), hash], "customerEncryptionKeyFormatIsInvalid"),
    ] {
        let refused = service.with_headers("POST", UPLOAD, &headers).await;
        assert_eq!(reason(&refused), json!([400, expected]), "{headers:?}");
        let refused = service.with_headers("PUT", "/photos/o", &headers).await;
        let code = format!("<Code>C{}</Code>", &expected[1..]);
        assert!(refused.status == 400 && refused.body.contains(&code), "{headers:?}: {}", refused.body);
    }
    assert_eq!(service.object("GET", "/storage/v1/b/photos/o/o", "").await.status, 404);
}

#[tokio::test]
async fn an_object_is_read_with_its_key_alone_and_names_the_hash() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    assert_eq!(service.with_headers("POST", UPLOAD, &key(7)).await.status, 200);
    let hash = key(7)[2].1.clone();
    for (method, target) in [("GET", MEDIA), ("GET", "/photos/o"), ("HEAD", "/photos/o")] {
        let read = service.with_headers(method, target, &key(7)).await;
        assert_eq!(read.status, 200, "{method} {target}: {}", read.body);
        assert_eq!(read.header("x-goog-encryption-algorithm").as_deref(), Some("AES256"));
        assert_eq!(read.header("x-goog-encryption-key-sha256").as_ref(), Some(&hash));
    }
    let missing = service.with_headers("GET", MEDIA, &[]).await;
    let text = "The target object is encrypted by a customer-supplied encryption key.";
    assert_eq!((missing.status, missing.body.as_str()), (400, text));
    for (headers, code) in [
        (&[][..], "ResourceIsEncryptedWithCustomerEncryptionKey"),
        (&key(8), "CustomerEncryptionKeyIsIncorrect"),
    ] {
        let refused = service.with_headers("GET", "/photos/o", headers).await;
        assert!(refused.status == 400 && refused.body.contains(code), "{}", refused.body);
    }

    assert_eq!(service.with_headers("PUT", "/photos/plain", &[]).await.status, 200);
    let refused = service.with_headers("GET", "/photos/plain", &key(7)).await;
    let code = "ResourceNotEncryptedWithCustomerEncryptionKey";
    assert!(refused.status == 400 && refused.body.contains(code), "{}", refused.body);
    let plain = service.with_headers("GET", "/photos/plain", &[]).await;
    assert_eq!((plain.status, plain.header("x-goog-encryption-algorithm")), (200, None));
}

#[tokio::test]
async fn a_form_encrypts_its_file_with_the_key_in_its_fields() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let post = async |fields: &[(&str, String)]| {
        let mut form = String::new();
        for (name, value) in [("key", "form".to_owned())].iter().chain(fields) {
            form += &format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        }
        form +=
            "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nhello\r\n--B--\r\n";
        let headers = [("Content-Type", "multipart/form-data; boundary=B")];
        service.send_object(&Request::new("POST", "/photos", &headers, form.as_bytes())).await
    };
    let refused = post(&key(7)[..2]).await;
    let code = "<Code>CustomerEncryptionKeySha256IsInvalid</Code>";
    assert!(refused.status == 400 && refused.body.contains(code), "{}", refused.body);
    assert_eq!(service.object("GET", "/storage/v1/b/photos/o/form", "").await.status, 404);

    let posted = post(&key(7)).await;
    assert_eq!(posted.status, 204, "{}", posted.body);
    assert_eq!(posted.header("x-goog-encryption-key-sha256").as_ref(), Some(&key(7)[2].1));
    assert_eq!(service.with_headers("GET", "/photos/form", &[]).await.status, 400);
    let read = service.with_headers("GET", "/photos/form", &key(7)).await;
    assert_eq!((read.status, read.body.as_str()), (200, "hello"));
}

#[tokio::test]
async fn the_name_of_a_key_of_a_key_service_is_shown_with_its_version_and_may_come_back_with_it() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let name = "projects/p/locations/us/keyRings/r/cryptoKeys/k";
    let shown = format!("{name}/cryptoKeyVersions/1");
    let made = service.object_json("POST", &format!("{UPLOAD}&kmsKeyName={name}"), "{}").await;
    assert_eq!(made["kmsKeyName"], json!(shown));
    let body = json!({"kmsKeyName": shown, "contentType": "text/plain"}).to_string();
    for target in ["/b/photos/o/o/copyTo/b/photos/o/copy", "/b/photos/o/copy/copyTo/b/photos/o/again"] {
        let copied = service.object_json("POST", target, &body).await;
        assert_eq!(copied["kmsKeyName"], json!(shown), "{target}");
    }
    let copied = service.object_json("POST", "/b/photos/o/again/copyTo/b/photos/o/last", "").await;
    assert_eq!(copied["kmsKeyName"], json!(shown), "a copy has the key of its source");
    let nothing =
        service.object_json("POST", &format!("{UPLOAD}&kmsKeyName=/cryptoKeyVersions/1"), "{}").await;
    assert_eq!(nothing["kmsKeyName"], json!(null), "an empty name is none");
}
