//! Requests for buckets with settings, and for generations that are not live.

use serde_json::{Value as Json, json};

use super::{ObjectName, request, with_json};
use crate::client::http::Request;
use crate::client::sas::percent_encoded;

/// Creates a bucket with these settings, as the fields of its resource.
pub fn create_bucket_with(bucket: &str, settings: &Json) -> Request {
    let mut body = json!({"name": bucket});
    for (name, value) in settings.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    with_json("POST", "/storage/v1/b?project=sim".to_owned(), &body)
}

/// Downloads this generation of an object.
pub fn download_generation(name: &ObjectName, generation: u64) -> Request {
    request("GET", format!("{}?alt=media&generation={generation}", name.target()))
}

/// Reads what is known of a generation that was soft-deleted.
pub fn describe_deleted(name: &ObjectName, generation: u64) -> Request {
    request("GET", format!("{}?softDeleted=true&generation={generation}", name.target()))
}

/// Makes a soft-deleted generation live again, as a new generation.
pub fn restore(name: &ObjectName, generation: u64) -> Request {
    request("POST", format!("{}/restore?generation={generation}", name.target()))
}

/// Asks for all objects whose names begin so, and for the generations that are not live too if `versions`.
pub fn list_beginning(bucket: &str, prefix: &str, versions: bool) -> Request {
    let prefix = percent_encoded(prefix);
    request("GET", format!("/storage/v1/b/{bucket}/o?prefix={prefix}&versions={versions}"))
}
