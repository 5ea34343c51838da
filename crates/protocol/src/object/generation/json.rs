//! A generation as a JSON resource.
//!
//! A listing writes a thousand of them, so they are written straight into the reply, without a tree of values in
//! between. Members that a request did not select are not even computed.

use std::ops::Range;

use super::{Encryption, Generation, KMS_VERSIONS, State};
use crate::json::{put_number, put_text_open};
use crate::member;
use crate::object::acl::AclParent;
use crate::object::fields::{Fields, Member, Members};
use crate::object::link::put_segment;
use crate::object::micros::Micros;
use crate::time::put_iso;

/// How much of a resource is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Projection {
    /// Without the owner and access control lists.
    #[default]
    NoAcl,
    /// Everything.
    Full,
}

/// What the resource of an object needs to know of its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct ObjectAddress<'a> {
    /// The address of the server as the client knows it, without a slash at its end.
    pub base: &'a str,
    /// The bucket's name.
    pub bucket: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// The number of the bucket's project, for named access control lists.
    pub project_number: u64,
    /// The retention period of the bucket, in seconds.
    pub retention_seconds: Option<u64>,
    /// Whether access control lists are out of use in the bucket.
    pub is_uniform: bool,
    /// Whether the bucket has a hierarchical namespace. Its soft-deleted objects have restore tokens.
    pub is_hierarchical: bool,
}

impl Generation {
    /// Appends the resource to `out`: the members that `fields` selects. `shows_checksums` is false for an object that
    /// is encrypted with the client's key if the request did not bring that key.
    pub fn put_json(
        &self,
        out: &mut Vec<u8>,
        at: &ObjectAddress<'_>,
        projection: Projection,
        fields: &Fields,
        shows_checksums: bool,
    ) {
        let mut to = Members::begin(out, fields);
        self.put_identity(&mut to, at);
        self.put_content(&mut to, shows_checksums);
        self.put_settings(&mut to);
        self.put_times(&mut to, at);
        if projection == Projection::Full {
            self.put_access(&mut to, at);
        }
        to.end();
    }

    /// The resource with all of its members but the access control list.
    pub fn json(&self, at: &ObjectAddress<'_>, projection: Projection) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        self.put_json(&mut out, at, projection, &Fields::ALL, true);
        out
    }

    fn put_identity(&self, to: &mut Members<'_>, at: &ObjectAddress<'_>) {
        to.text_of(member!("kind"), |out| out.extend_from_slice(b"storage#object"));
        to.text_of(member!("id"), |out| {
            put_text_open(out, at.bucket);
            out.push(b'/');
            put_text_open(out, at.name);
            out.push(b'/');
            put_number(out, self.id.0);
        });
        let mut path = Written::default();
        to.text_of(member!("selfLink"), |out| {
            out.extend_from_slice(at.base.as_bytes());
            out.extend_from_slice(b"/storage/v1/b/");
            path.put(out, (), |out| put_path(out, at));
        });
        to.text_of(member!("mediaLink"), |out| {
            out.extend_from_slice(at.base.as_bytes());
            out.extend_from_slice(b"/download/storage/v1/b/");
            path.put(out, (), |out| put_path(out, at));
            out.extend_from_slice(b"?generation=");
            put_number(out, self.id.0);
            out.extend_from_slice(b"&alt=media");
        });
        to.text(member!("name"), at.name);
        to.text(member!("bucket"), at.bucket);
        to.text_of(member!("generation"), |out| put_number(out, self.id.0));
        to.text_of(member!("metageneration"), |out| put_number(out, self.metageneration));
        to.text_of(member!("etag"), |out| self.put_etag(out));
    }

    fn put_content(&self, to: &mut Members<'_>, shows_checksums: bool) {
        to.text_of(member!("size"), |out| put_number(out, self.size));
        to.text_of(member!("storageClass"), |out| {
            out.extend_from_slice(self.storage_class.name().as_bytes())
        });
        if shows_checksums {
            to.text_of(member!("crc32c"), |out| self.crc32c.put(out));
            if let Some(md5) = self.md5 {
                to.text_of(member!("md5Hash"), |out| md5.put(out));
            }
        }
        if let Some(count) = self.component_count {
            to.value(member!("componentCount"), &count);
        }
        match &self.encryption {
            Encryption::Default => {}
            // A row of an earlier build may have the version that its client named.
            Encryption::Kms(key) if key.contains(KMS_VERSIONS) => to.text(member!("kmsKeyName"), key),
            // The name of an object's key says its version. There is no key service here, so all keys have their first one.
            Encryption::Kms(key) => {
                to.text_with(member!("kmsKeyName"), || format!("{key}{KMS_VERSIONS}1"));
            }
            Encryption::Customer(sha256) => {
                use base64::Engine as _;
                let sha256 = base64::engine::general_purpose::STANDARD.encode(sha256);
                let key = serde_json::json!({"encryptionAlgorithm": "AES256", "keySha256": sha256});
                to.value(member!("customerEncryption"), &key);
            }
        }
    }

    fn put_settings(&self, to: &mut Members<'_>) {
        let settings = &self.settings;
        for (name, value) in [
            (member!("contentType"), &settings.content_type),
            (member!("contentEncoding"), &settings.content_encoding),
            (member!("contentDisposition"), &settings.content_disposition),
            (member!("contentLanguage"), &settings.content_language),
            (member!("cacheControl"), &settings.cache_control),
        ] {
            if let Some(value) = value {
                to.text(name, value);
            }
        }
        if !settings.metadata.is_empty() {
            to.value(member!("metadata"), &settings.metadata);
        }
        if !settings.contexts.custom.is_empty() {
            to.value(member!("contexts"), &settings.contexts);
        }
        for (name, hold) in [
            (member!("temporaryHold"), settings.temporary_hold),
            (member!("eventBasedHold"), settings.event_based_hold),
        ] {
            if let Some(hold) = hold {
                to.value(name, &hold);
            }
        }
        if let Some(retention) = &settings.retention {
            to.value(member!("retention"), retention);
        }
        if let Some(time) = settings.custom_time {
            to.text_of(member!("customTime"), |out| put_iso(out, time.timestamp()));
        }
    }

    fn put_times(&self, to: &mut Members<'_>, at: &ObjectAddress<'_>) {
        let mut written = Written::default();
        let mut put_time = |to: &mut Members<'_>, name: Member, time: Micros| {
            to.text_of(name, |out| written.put(out, time, |out| put_iso(out, time.timestamp())));
        };
        put_time(to, member!("timeCreated"), self.created);
        put_time(to, member!("updated"), self.updated);
        put_time(to, member!("timeStorageClassUpdated"), self.class_updated);
        put_time(to, member!("timeFinalized"), self.created);
        match self.state {
            State::Live => {}
            State::Noncurrent(time) => put_time(to, member!("timeDeleted"), time),
            State::SoftDeleted { at, hard_delete, noncurrent } => {
                put_time(to, member!("timeDeleted"), noncurrent.unwrap_or(at));
                put_time(to, member!("softDeleteTime"), at);
                put_time(to, member!("hardDeleteTime"), hard_delete);
            }
        }
        if at.is_hierarchical && matches!(self.state, State::SoftDeleted { .. }) {
            to.text(member!("restoreToken"), &self.restore_token());
        }
        if let Some(time) = self.retention_expiration(at.retention_seconds) {
            put_time(to, member!("retentionExpirationTime"), time);
        }
    }

    fn put_access(&self, to: &mut Members<'_>, at: &ObjectAddress<'_>) {
        if at.is_uniform {
            return;
        }
        to.value(member!("owner"), &serde_json::json!({ "entity": self.owner }));
        let parent = AclParent::Object { bucket: at.bucket, name: at.name, generation: self.id.0 };
        let entries = self.acl.entries(at.project_number, Some(&self.owner));
        to.value(member!("acl"), &parent.lines(at.base, &self.etag(), &entries));
    }
}

/// What was written last, and where it lies in the reply. Most times of an object are the same, and so is most of its links:
/// to copy such a text costs less than to write it again.
struct Written<T> {
    last: Option<(T, Range<usize>)>,
}

impl<T> Default for Written<T> {
    fn default() -> Self {
        Self { last: None }
    }
}

impl<T: PartialEq> Written<T> {
    /// Appends the text of `value`, which `put` writes if it is another one than the last time.
    fn put(&mut self, out: &mut Vec<u8>, value: T, put: impl FnOnce(&mut Vec<u8>)) {
        match &self.last {
            Some((last, place)) if *last == value => out.extend_from_within(place.clone()),
            _ => {
                let begin = out.len();
                put(out);
                self.last = Some((value, begin..out.len()));
            }
        }
    }
}

/// The part of a link that all links of an object have.
fn put_path(out: &mut Vec<u8>, at: &ObjectAddress<'_>) {
    put_segment(out, at.bucket);
    out.extend_from_slice(b"/o/");
    put_segment(out, at.name);
}

#[cfg(test)]
mod tests {
    use super::super::tests::generation;
    use super::*;
    use crate::object::checksum::Md5;

    const AT: ObjectAddress<'_> = ObjectAddress {
        base: "http://localhost:4443",
        bucket: "b",
        name: "a \"b\"/c",
        project_number: 7,
        retention_seconds: None,
        is_uniform: false,
        is_hierarchical: true,
    };

    fn text(generation: &Generation, fields: &str, projection: Projection) -> String {
        let mut out = Vec::new();
        let fields = Fields::parse(fields).expect("good fields");
        generation.put_json(&mut out, &AT, projection, &fields, true);
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    #[test]
    fn a_resource_has_all_members_of_the_api() {
        let mut generation = generation(1_700_000_000_123_456);
        generation.settings.metadata.insert("k".to_owned(), "v".to_owned());
        generation.md5 = Md5::parse("XUFAKrxLKna5cZ2REBfFkg==");
        let json = text(&generation, "", Projection::NoAcl).replace(",\"", ",\n\"");
        let expected = r#"{"kind":"storage#object",
"id":"b/a \"b\"/c/1700000000123456",
"selfLink":"http://localhost:4443/storage/v1/b/b/o/a%20%22b%22%2Fc",
"mediaLink":"http://localhost:4443/download/storage/v1/b/b/o/a%20%22b%22%2Fc?generation=1700000000123456&alt=media",
"name":"a \"b\"/c",
"bucket":"b",
"generation":"1700000000123456",
"metageneration":"1",
"etag":"CMDEgMHBxIIDEAE=",
"size":"5",
"storageClass":"STANDARD",
"crc32c":"mnG7TA==",
"md5Hash":"XUFAKrxLKna5cZ2REBfFkg==",
"contentType":"text/plain",
"metadata":{"k":"v"},
"timeCreated":"2023-11-14T22:13:20.123456Z",
"updated":"2023-11-14T22:13:20.123456Z",
"timeStorageClassUpdated":"2023-11-14T22:13:20.123456Z",
"timeFinalized":"2023-11-14T22:13:20.123456Z"}"#;
        assert_eq!(json, expected);
        let _: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    }

    #[test]
    fn the_name_of_a_key_has_its_version() {
        let mut generation = generation(1_700_000_000_123_456);
        let key = "projects/p/locations/us/keyRings/r/cryptoKeys/k";
        generation.encryption = Encryption::Kms(key.to_owned());
        let expected = format!(r#"{{"kmsKeyName":"{key}/cryptoKeyVersions/1"}}"#);
        assert_eq!(text(&generation, "kmsKeyName", Projection::NoAcl), expected);
    }

    #[test]
    fn lists_and_owner_are_shown_in_full_only() {
        let generation = generation(1_700_000_000_123_456);
        let full: serde_json::Value =
            serde_json::from_str(&text(&generation, "", Projection::Full)).expect("it is JSON");
        assert_eq!(full["owner"]["entity"], "user-a@example.com");
        assert_eq!(full["acl"].as_array().map(Vec::len), Some(4));
        assert_eq!(full["acl"][3]["email"], "a@example.com");
        assert_eq!(full["acl"][0]["projectTeam"]["team"], "owners");
    }

    #[test]
    fn only_selected_members_are_written() {
        let mut generation = generation(1_700_000_000_123_456);
        generation.settings.metadata.insert("k".to_owned(), "v".to_owned());
        generation.settings.metadata.insert("l".to_owned(), "w".to_owned());
        assert_eq!(
            text(&generation, "size,metadata/l", Projection::Full),
            r#"{"size":"5","metadata":{"l":"w"}}"#
        );
    }

    #[test]
    fn states_have_their_times() {
        let mut generation = generation(1_700_000_000_000_000);
        let (at, hard_delete) = (Micros::new(2_000_000), Micros::new(3_000_000));
        generation.state = State::SoftDeleted { at, hard_delete, noncurrent: None };
        assert_eq!(
            text(&generation, "timeDeleted,softDeleteTime,hardDeleteTime,restoreToken", Projection::NoAcl),
            r#"{"timeDeleted":"1970-01-01T00:00:02Z","softDeleteTime":"1970-01-01T00:00:02Z","hardDeleteTime":"1970-01-01T00:00:03Z","restoreToken":"00060a24181e4000"}"#
        );
    }
}
