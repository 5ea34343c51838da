//! Lines of access control lists as JSON resources.

use serde_json::{Map, Value, json};

use super::AclEntry;
use crate::object::link::{bucket_link, object_link, segment};

/// Where a list belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AclParent<'a> {
    /// A bucket's own list.
    Bucket {
        /// The bucket.
        bucket: &'a str,
    },
    /// A bucket's list for new objects.
    Defaults {
        /// The bucket.
        bucket: &'a str,
    },
    /// An object's list.
    Object {
        /// The bucket.
        bucket: &'a str,
        /// The object.
        name: &'a str,
        /// The generation.
        generation: u64,
    },
}

impl AclParent<'_> {
    /// The `kind` of a line, and of a list of lines is this with an `s` at its end.
    fn kind(&self) -> &'static str {
        match self {
            Self::Bucket { .. } => "storage#bucketAccessControl",
            Self::Defaults { .. } | Self::Object { .. } => "storage#objectAccessControl",
        }
    }

    /// One line. `base` is the address of the server, and `etag` that of the bucket or object.
    pub fn line(&self, base: &str, etag: &str, entry: &AclEntry) -> Value {
        let AclEntry { entity, role } = entry;
        let mut out = Map::new();
        let mut put = |name: &str, value: Value| {
            out.insert(name.to_owned(), value);
        };
        put("kind", json!(self.kind()));
        put("entity", json!(entity));
        put("role", json!(role.name()));
        put("etag", json!(etag));
        match *self {
            Self::Bucket { bucket } => {
                put("id", json!(format!("{bucket}/{entity}")));
                put("selfLink", json!(format!("{}/acl/{}", bucket_link(base, bucket), segment(entity))));
                put("bucket", json!(bucket));
            }
            Self::Defaults { .. } => {}
            Self::Object { bucket, name, generation } => {
                put("id", json!(format!("{bucket}/{name}/{generation}/{entity}")));
                let link = object_link(base, bucket, name);
                put("selfLink", json!(format!("{link}/acl/{}", segment(entity))));
                put("bucket", json!(bucket));
                put("object", json!(name));
                put("generation", json!(generation.to_string()));
            }
        }
        match entity.split_once('-') {
            Some(("user" | "group", email)) if email.contains('@') => put("email", json!(email)),
            Some(("domain", domain)) => put("domain", json!(domain)),
            Some(("project", rest)) => {
                if let Some((team, number)) = rest.split_once('-') {
                    put("projectTeam", json!({"projectNumber": number, "team": team}));
                }
            }
            _ => {}
        }
        Value::Object(out)
    }

    /// All lines, as the member `acl` of a bucket or object has them.
    pub fn lines(&self, base: &str, etag: &str, entries: &[AclEntry]) -> Vec<Value> {
        entries.iter().map(|entry| self.line(base, etag, entry)).collect()
    }

    /// All lines as the reply of a request for the list.
    pub fn list(&self, base: &str, etag: &str, entries: &[AclEntry]) -> Value {
        json!({"kind": format!("{}s", self.kind()), "items": self.lines(base, etag, entries)})
    }
}
