//! What a request of the JSON API asks for: from its method, path and query to an [`Operation`] and the names in its
//! path.
//!
//! | path | what it is |
//! |---|---|
//! | `/storage/v1/b...`, `/storage/v1/projects...` | the JSON API |
//! | `/b...`, `/projects/P/hmacKeys...`, `/projects/P/serviceAccount` | the same: the Node client drops the prefix for emulators |
//! | `/upload/storage/v1/b/B/o`, `/resumable/upload/storage/v1/b/B/o` | uploads |
//! | `/download/storage/v1/b/B/o/O` | downloads |
//! | `/batch/storage/v1`, `/batch` | several calls in one body |
//! | anything else | the XML API, where the path is the bucket and the object |
//!
//! A name is one segment of the path, percent-encoded. So the path is split first and decoded afterwards: names with
//! `/acl` or `//` in them are names. A slash at the end of the path is ignored; no other segment may be empty.

mod operation;
mod query;

pub use self::operation::{Call, Operation};
pub use self::query::{Query, page_size};

use super::error::{ErrorKind, ObjectError};

/// Which of the APIs a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// The JSON API: resources.
    Json,
    /// The JSON API: bodies of objects on their way in.
    Upload,
    /// The JSON API: bodies of objects on their way out.
    Download,
    /// Several calls of the JSON API in one body.
    Batch,
    /// The XML API.
    Xml,
}

/// Prefixes of the paths of the JSON API; the rest of the path begins with `b` or `projects`.
const PREFIXES: [(&str, Api); 5] = [
    ("/storage/v1/", Api::Json),
    ("/upload/storage/v1/", Api::Upload),
    ("/resumable/upload/storage/v1/", Api::Upload),
    ("/download/storage/v1/", Api::Download),
    ("/", Api::Json),
];

/// Splits a path, still percent-encoded, into its API and the rest.
fn split(path: &str) -> (Api, &str) {
    let path = path.strip_suffix('/').unwrap_or(path);
    if matches!(path, "/batch/storage/v1" | "/batch") {
        return (Api::Batch, "");
    }
    for (prefix, api) in PREFIXES {
        let Some(rest) = path.strip_prefix(prefix) else { continue };
        if rest == "b" || rest.starts_with("b/") || (api == Api::Json && is_project(rest, prefix)) {
            return (api, rest);
        }
        if prefix.len() > 1 {
            return (api, rest);
        }
    }
    (Api::Xml, path)
}

/// Whether the rest of a path is of a project. Without a prefix, a bucket with the name `projects` keeps its paths.
fn is_project(rest: &str, prefix: &str) -> bool {
    let mut segments = rest.split('/');
    segments.next() == Some("projects")
        && (prefix.len() > 1 || matches!(segments.nth(1), Some("hmacKeys" | "serviceAccount")))
}

/// The API to which a path belongs.
pub fn api_of(path: &str) -> Api {
    split(path).0
}

/// Finds the operation of a request to the JSON API. `method` is the HTTP method, or what `X-HTTP-Method-Override` says
/// of a POST. `path` is still percent-encoded, and has no query.
///
/// A path that nobody knows is a 404, a method that a path does not have a 405. Operations that this server does not
/// have are found as all others; its handlers answer them with 501 and their names.
pub fn parse(method: &str, path: &str) -> Result<Call, ObjectError> {
    let (api, rest) = split(path);
    let segments: Vec<&str> = rest.split('/').collect();
    let mut known_path = false;
    for (verb, pattern, operation) in operation::routes(api) {
        let Some(call) = operation::matched(operation, pattern, &segments)? else { continue };
        if verb == method {
            return Ok(call);
        }
        known_path = true;
    }
    match known_path {
        true => {
            let message = format!("The path {path} does not have the method {method}.");
            Err(ObjectError::new(ErrorKind::MethodNotAllowed, message))
        }
        false => Err(ObjectError::new(ErrorKind::NotFound, format!("There is nothing at the path {path}."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &str, path: &str) -> String {
        match parse(method, path) {
            Ok(call) => {
                let mut out = call.operation.name().to_owned();
                let names = [&call.bucket, &call.object, &call.to_bucket, &call.to_object, &call.id];
                for name in names.into_iter().filter(|name| !name.is_empty()) {
                    out.push_str(" <");
                    out.push_str(name);
                    out.push('>');
                }
                out
            }
            Err(error) => error.kind.status().to_string(),
        }
    }

    #[test]
    fn operations_are_found_by_method_and_path() {
        for (request, expected) in [
            ("GET /storage/v1/b", "storage.buckets.list"),
            ("GET /storage/v1/b/", "storage.buckets.list"),
            ("POST /b", "storage.buckets.insert"),
            ("GET /b/my-bucket", "storage.buckets.get <my-bucket>"),
            ("GET /storage/v1/b/objstore%2Dlist", "storage.buckets.get <objstore-list>"),
            ("GET /storage/v1/b/x/o", "storage.objects.list <x>"),
            ("GET /storage/v1/b/x/o/a%2F%2Fb%2F..%2Fc", "storage.objects.get <x> <a//b/../c>"),
            ("GET /storage/v1/b/x/o/a%2Facl", "storage.objects.get <x> <a/acl>"),
            ("GET /storage/v1/b/x/o/..", "storage.objects.get <x> <..>"),
            ("GET /storage/v1/b/x/o/a/acl/user-a%40b.c", "storage.object_acl.get <x> <a> <user-a@b.c>"),
            (
                "PATCH /storage/v1/b/x/defaultObjectAcl/allUsers",
                "storage.default_object_acl.patch <x> <allUsers>",
            ),
            ("POST /storage/v1/b/x/o/a/copyTo/b/y/o/c%20d", "storage.objects.copy <x> <a> <y> <c d>"),
            ("POST /storage/v1/b/x/o/a/rewriteTo/b/y/o/c", "storage.objects.rewrite <x> <a> <y> <c>"),
            ("POST /storage/v1/b/x/o/a/moveTo/o/c", "storage.objects.move <x> <a> <c>"),
            ("POST /storage/v1/b/x/o/a/compose", "storage.objects.compose <x> <a>"),
            ("POST /upload/storage/v1/b/x/o", "storage.objects.insert <x>"),
            ("PUT /resumable/upload/storage/v1/b/x/o", "storage.objects.insert <x>"),
            ("DELETE /upload/storage/v1/b/x/o", "storage.objects.insert <x>"),
            ("GET /download/storage/v1/b/x/o/a%2Fb", "storage.objects.get <x> <a/b>"),
            ("GET /storage/v1/projects/p/serviceAccount", "storage.serviceaccount.get <p>"),
            ("DELETE /projects/p/hmacKeys/GOOG1", "storage.hmacKey.delete <p> <GOOG1>"),
            ("POST /storage/v1/b/x/folders", "storage.folders.insert <x>"),
            ("DELETE /storage/v1/b/x/folders/a%2Fb%2F", "storage.folders.delete <x> <a/b/>"),
            ("POST /storage/v1/b/x/folders/a/renameTo/folders/b%2F", "storage.folders.rename <x> <b/> <a>"),
            ("DELETE /storage/v1/b", "405"),
            ("PUT /storage/v1/b/x/o/a/compose", "405"),
            ("GET /storage/v1/c", "404"),
            ("GET /storage/v1/b/x/o/a/b", "404"),
            ("GET /storage/v1/b//o", "404"),
            ("POST /download/storage/v1/b/x/o/a", "405"),
        ] {
            let (method, path) = request.split_once(' ').expect("a method and a path");
            assert_eq!(found(method, path), expected, "{request}");
        }
    }

    #[test]
    fn paths_of_the_xml_api_are_left_to_it() {
        for (path, api) in [
            ("/bucket", Api::Xml),
            ("/bucket/b/o", Api::Xml),
            ("/projects/hmac", Api::Xml),
            ("/projects/a/b", Api::Xml),
            ("/projects/a/hmacKeys", Api::Json),
            ("/b/x", Api::Json),
            ("/storage/v1/anything", Api::Json),
            ("/batch/storage/v1", Api::Batch),
            ("/batch", Api::Batch),
            ("/upload/storage/v1/b/x/o", Api::Upload),
            ("/", Api::Xml),
        ] {
            assert_eq!(api_of(path), api, "{path}");
        }
    }

    #[test]
    fn every_operation_has_a_path_of_its_own() {
        use strum::IntoEnumIterator as _;
        for operation in Operation::iter() {
            let apis = [Api::Json, Api::Upload, Api::Download];
            let routes = apis.into_iter().flat_map(operation::routes);
            assert!(routes.into_iter().any(|(_, _, one)| one == operation), "{operation:?}");
        }
    }
}
