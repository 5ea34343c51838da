//! The requests of the object service that the workloads send, and what replies to them mean.
//!
//! Each object that is written carries the number of its write in its metadata, as `v`. So a reader knows which write
//! it sees, whatever the bytes are.

mod moves;
mod versions;

pub use moves::{compose_away, move_to};
pub use versions::{create_bucket_with, describe_deleted, download_generation, list_beginning, restore};

use serde_json::{Value as Json, json};

use super::http::{Reply, Request};
use super::sas::percent_encoded;
use crate::check::register::Value;
use crate::faults::{Fault, Weather};

const JSON: &str = "application/json";

/// Names one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    /// The bucket.
    pub bucket: String,
    /// The name in it.
    pub name: String,
}

/// A new object as a client describes it.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    /// Its name.
    pub to: &'a ObjectName,
    /// The number of the write.
    pub value: Value,
    /// `ifGenerationMatch`.
    pub if_generation: Option<u64>,
}

impl ObjectName {
    /// A name.
    pub fn new(bucket: &str, name: &str) -> Self {
        Self { bucket: bucket.to_owned(), name: name.to_owned() }
    }

    fn target(&self) -> String {
        format!("/storage/v1/b/{}/o/{}", self.bucket, percent_encoded(&self.name))
    }
}

impl Described<'_> {
    fn condition(&self) -> String {
        self.if_generation.map(|generation| format!("ifGenerationMatch={generation}&")).unwrap_or_default()
    }

    fn resource(&self) -> Json {
        json!({"contentType": "text/plain", "metadata": {"v": self.value.to_string()}})
    }

    fn named(&self) -> String {
        format!("name={}&{}", percent_encoded(&self.to.name), self.condition())
    }
}

fn request(method: &'static str, target: String) -> Request {
    Request {
        method,
        target: target.trim_end_matches(['?', '&']).to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
    }
}

fn with_json(method: &'static str, target: String, body: &Json) -> Request {
    let headers = vec![("Content-Type", JSON.to_owned())];
    Request { headers, body: body.to_string().into_bytes(), ..request(method, target) }
}

/// Creates a bucket whose objects are gone as soon as they are deleted.
pub fn create_bucket(bucket: &str) -> Request {
    let body = json!({"name": bucket, "softDeletePolicy": {"retentionDurationSeconds": "0"}});
    with_json("POST", "/storage/v1/b?project=sim".to_owned(), &body)
}

/// Creates a bucket with folders.
pub fn create_tree(bucket: &str) -> Request {
    let body = json!({
        "name": bucket,
        "hierarchicalNamespace": {"enabled": true},
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": true}},
        "softDeletePolicy": {"retentionDurationSeconds": "0"},
    });
    with_json("POST", "/storage/v1/b?project=sim".to_owned(), &body)
}

/// Uploads an object of which nothing but its bytes is told.
pub fn put(bucket: &str, name: &str, bytes: &[u8]) -> Request {
    let name = percent_encoded(name);
    let target = format!("/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}");
    Request { body: bytes.to_vec(), ..request("POST", target) }
}

/// Renames a folder.
pub fn rename_folder(bucket: &str, from: &str, to: &str) -> Request {
    let (from, to) = (percent_encoded(from), percent_encoded(to));
    request("POST", format!("/storage/v1/b/{bucket}/folders/{from}/renameTo/folders/{to}"))
}

/// Deletes a folder, which must be empty.
pub fn delete_folder(bucket: &str, name: &str) -> Request {
    request("DELETE", format!("/storage/v1/b/{bucket}/folders/{}", percent_encoded(name)))
}

/// Asks for a page of names that begin with `prefix`, up to 1,000.
pub fn list_names(bucket: &str, prefix: &str, token: Option<&str>) -> Request {
    let prefix = percent_encoded(prefix);
    let token = token.map(|token| format!("&pageToken={}", percent_encoded(token))).unwrap_or_default();
    let target = format!("/storage/v1/b/{bucket}/o?fields=items/name,nextPageToken&prefix={prefix}{token}");
    request("GET", target)
}

/// The names in a reply to [`list_names`], and the token of the next page.
pub fn names_in(reply: &Reply) -> Option<(Vec<String>, Option<String>)> {
    let json: Json = serde_json::from_str(&reply.body).ok().filter(|_| reply.status == 200)?;
    let items = json["items"].as_array().map_or(&[][..], Vec::as_slice);
    let names = items.iter().map(|item| item["name"].as_str().map(str::to_owned)).collect::<Option<_>>()?;
    Some((names, json["nextPageToken"].as_str().map(str::to_owned)))
}

/// Deletes a bucket, which must be empty.
pub fn delete_bucket(bucket: &str) -> Request {
    request("DELETE", format!("/storage/v1/b/{bucket}"))
}

/// Uploads an object in one request, with the checksum of its bytes.
pub fn upload(described: Described<'_>, bytes: &[u8], crc32c: &str) -> Request {
    let mut resource = described.resource();
    resource["crc32c"] = crc32c.into();
    let head =
        format!("--b\r\nContent-Type: {JSON}\r\n\r\n{resource}\r\n--b\r\nContent-Type: text/plain\r\n\r\n");
    let target =
        format!("/upload/storage/v1/b/{}/o?uploadType=multipart&{}", described.to.bucket, described.named());
    Request {
        headers: vec![("Content-Type", "multipart/related; boundary=b".to_owned())],
        body: [head.as_bytes(), bytes, b"\r\n--b--\r\n"].concat(),
        ..request("POST", target)
    }
}

/// Begins a resumable upload.
pub fn begin(described: Described<'_>) -> Request {
    let bucket = &described.to.bucket;
    let target = format!("/upload/storage/v1/b/{bucket}/o?uploadType=resumable&{}", described.named());
    with_json("POST", target, &described.resource())
}

/// Sends bytes to a resumable upload; `range` is the `Content-Range` without its first word.
pub fn send_bytes(bucket: &str, upload: &str, range: &str, bytes: &[u8]) -> Request {
    let target = format!("/upload/storage/v1/b/{bucket}/o?uploadType=resumable&upload_id={upload}");
    Request {
        headers: vec![("Content-Range", format!("bytes {range}"))],
        body: bytes.to_vec(),
        ..request("PUT", target)
    }
}

/// Cancels a resumable upload.
pub fn cancel(bucket: &str, upload: &str) -> Request {
    request("DELETE", format!("/upload/storage/v1/b/{bucket}/o?uploadType=resumable&upload_id={upload}"))
}

/// How many bytes of an upload a reply with 308 tells of.
pub fn told_bytes(reply: &Reply) -> Option<u64> {
    match reply.header("range") {
        None => Some(0),
        Some(range) => range.strip_prefix("bytes=0-")?.parse::<u64>().ok().map(|last| last + 1),
    }
}

/// Copies the generation `source` of `from`.
pub fn copy(from: &ObjectName, source: u64, described: Described<'_>) -> Request {
    let to = described.to.target().replacen("/storage/v1", "", 1);
    let (from, condition) = (from.target(), described.condition());
    with_json(
        "POST",
        format!("{from}/copyTo{to}?sourceGeneration={source}&{condition}"),
        &described.resource(),
    )
}

/// Composes generations of objects of the same bucket.
pub fn compose(sources: &[(&str, u64)], described: Described<'_>) -> Request {
    let sources: Vec<Json> = sources
        .iter()
        .map(|(name, generation)| json!({"name": name, "generation": generation.to_string()}))
        .collect();
    let body = json!({"sourceObjects": sources, "destination": described.resource()});
    let (to, condition) = (described.to.target(), described.condition());
    with_json("POST", format!("{to}/compose?{condition}"), &body)
}

/// Deletes an object.
pub fn delete(name: &ObjectName, if_generation: Option<u64>) -> Request {
    let condition = if_generation.map(|generation| format!("ifGenerationMatch={generation}"));
    request("DELETE", format!("{}?{}", name.target(), condition.unwrap_or_default()))
}

/// Downloads an object, or these bytes of it.
pub fn download(name: &ObjectName, range: Option<(usize, usize)>) -> Request {
    let mut request = request("GET", format!("{}?alt=media", name.target()));
    if let Some((first, last)) = range {
        request.headers.push(("Range", format!("bytes={first}-{last}")));
    }
    request
}

/// Reads what is known of an object.
pub fn describe(name: &ObjectName) -> Request {
    request("GET", name.target())
}

/// Asks for a page of a bucket.
pub fn list(bucket: &str, delimiter: Option<&str>, most: usize, token: Option<&str>) -> Request {
    let delimiter = delimiter.map(|delimiter| format!("delimiter={}&", percent_encoded(delimiter)));
    let token = token.map(|token| format!("pageToken={}", percent_encoded(token)));
    let (delimiter, token) = (delimiter.unwrap_or_default(), token.unwrap_or_default());
    request("GET", format!("/storage/v1/b/{bucket}/o?maxResults={most}&{delimiter}{token}"))
}

/// An object as a reply shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its name; empty in a download.
    pub name: String,
    /// The number of its write.
    pub value: Value,
    /// Its generation.
    pub generation: u64,
    /// Its CRC32C.
    pub crc32c: String,
}

/// The object in a reply that has its resource.
pub fn shown(reply: &Reply) -> Option<Shown> {
    shown_in(&serde_json::from_str(&reply.body).ok()?)
}

fn shown_in(json: &Json) -> Option<Shown> {
    Some(Shown {
        name: json["name"].as_str()?.to_owned(),
        value: json["metadata"]["v"].as_str()?.parse().ok()?,
        generation: json["generation"].as_str()?.parse().ok()?,
        crc32c: json["crc32c"].as_str()?.to_owned(),
    })
}

/// The object whose bytes a reply has.
pub fn downloaded(reply: &Reply) -> Option<Shown> {
    let crc32c = reply.header("x-goog-hash")?.split(',').find_map(|hash| hash.strip_prefix("crc32c="))?;
    Some(Shown {
        name: String::new(),
        value: reply.header("x-goog-meta-v")?.parse().ok()?,
        generation: reply.header("x-goog-generation")?.parse().ok()?,
        crc32c: crc32c.to_owned(),
    })
}

/// A page of a bucket.
#[derive(Debug, Default)]
pub struct ObjectPage {
    /// Its objects in their order.
    pub items: Vec<Shown>,
    /// Its prefixes in their order.
    pub prefixes: Vec<String>,
    /// The token of the next page; `None` at the end.
    pub next: Option<String>,
}

/// The page in a reply to [`list`]; `None` if the reply is not a page.
pub fn page(reply: &Reply) -> Option<ObjectPage> {
    let json: Json = serde_json::from_str(&reply.body).ok()?;
    let all = |name: &str| json[name].as_array().map_or(&[][..], Vec::as_slice);
    Some(ObjectPage {
        items: all("items").iter().map(shown_in).collect::<Option<_>>()?,
        prefixes: all("prefixes")
            .iter()
            .map(|prefix| prefix.as_str().map(str::to_owned))
            .collect::<Option<_>>()?,
        next: json["nextPageToken"].as_str().map(str::to_owned),
    })
}

/// Whether the service may not answer with this status.
pub(super) fn is_wrong(reply: &Reply, weather: &Weather, is_cloud: bool) -> bool {
    // What a request looked for was renamed at the same time.
    if reply.status == 503 && reply.body.contains("renamed or deleted") {
        return false;
    }
    let spoilt = weather.is_on(Fault::FlippedBit) || weather.is_on(Fault::MisdirectedRead);
    match reply.status {
        500 => !spoilt,
        // No fault that a client may notice is on, so no error may be seen either.
        408 | 429 | 502.. => weather.is_harmless() && !is_cloud,
        404 | 409 | 410 | 412 | 416 | 499 => false,
        400.. => true,
        _ => false,
    }
}
