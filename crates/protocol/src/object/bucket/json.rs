//! A bucket as a JSON resource.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{Bucket, ManagedFolder, computed};
use crate::object::acl::{AclEntry, AclParent};
use crate::object::generation::{ObjectAddress, Projection};
use crate::object::link::{bucket_link, segment};

impl Bucket {
    /// The entity tag of the bucket: it changes with the metageneration.
    pub fn etag(&self) -> String {
        STANDARD.encode([&b"\x08"[..], &self.metageneration.to_be_bytes()].concat())
    }

    /// The resource. `base` is the address of the server as the client knows it, without a slash at its end:
    /// `http://127.0.0.1:4443`.
    pub fn json(&self, base: &str, projection: Projection) -> Value {
        let mut out = self.settings.json();
        let mut put = |name: &str, value: Value| {
            out.insert(name.to_owned(), value);
        };
        put("kind", json!("storage#bucket"));
        put("id", json!(self.name));
        put("selfLink", json!(bucket_link(base, &self.name)));
        put("name", json!(self.name));
        put("projectNumber", json!(self.project_number.to_string()));
        put("generation", json!(self.created.get().to_string()));
        put("metageneration", json!(self.metageneration.to_string()));
        put("locationType", json!(computed::location_type(&self.settings)));
        put("timeCreated", json!(self.created));
        put("updated", json!(self.updated));
        put("etag", json!(self.etag()));
        if let Some((at, hard_delete)) = self.deleted {
            put("softDeleteTime", json!(at));
            put("hardDeleteTime", json!(hard_delete));
        }
        if projection == Projection::Full {
            put("owner", json!({ "entity": self.owner() }));
            if !self.settings.uniform_access() {
                let (own, etag) = (AclParent::Bucket { bucket: &self.name }, self.etag());
                put("acl", own.lines(base, &etag, &self.acl_entries()).into());
                let defaults = AclParent::Defaults { bucket: &self.name };
                let lines = defaults.lines(base, &etag, &self.default_acl_entries());
                put("defaultObjectAcl", lines.into());
            }
        }
        Value::Object(out)
    }

    /// What the resource of an object in this bucket needs to know. `base` is the address of the server.
    pub fn address<'a>(&'a self, base: &'a str, name: &'a str) -> ObjectAddress<'a> {
        ObjectAddress {
            base,
            bucket: &self.name,
            name: self.shown(name),
            project_number: self.project_number,
            retention_seconds: self.retention_seconds(),
            is_uniform: self.settings.uniform_access(),
            is_hierarchical: self.has_folders(),
        }
    }

    /// The lines of the bucket's own list.
    pub fn acl_entries(&self) -> Vec<AclEntry> {
        self.acl.entries(self.project_number, Some(&self.owner()))
    }

    /// The lines of its list for new objects.
    pub fn default_acl_entries(&self) -> Vec<AclEntry> {
        self.default_object_acl.entries(self.project_number, None)
    }

    /// The reply of `storageLayout`.
    pub fn layout_json(&self) -> Value {
        let enabled = self.has_folders();
        let mut out = Map::new();
        out.insert("kind".to_owned(), json!("storage#storageLayout"));
        out.insert("bucket".to_owned(), json!(self.name));
        out.insert("location".to_owned(), json!(self.settings.location));
        out.insert("locationType".to_owned(), json!(computed::location_type(&self.settings)));
        out.insert("hierarchicalNamespace".to_owned(), json!({ "enabled": enabled }));
        if let Some(placement) = &self.settings.custom_placement_config {
            out.insert("customPlacementConfig".to_owned(), json!(placement));
        }
        Value::Object(out)
    }

    /// The resource of a managed folder.
    pub fn managed_folder_json(&self, base: &str, name: &str, folder: &ManagedFolder) -> Value {
        let link = format!("{}/managedFolders/{}", bucket_link(base, &self.name), segment(name));
        json!({
            "kind": "storage#managedFolder",
            "id": format!("{}/{name}", self.name),
            "selfLink": link,
            "bucket": self.name,
            "name": name,
            "metageneration": folder.metageneration.to_string(),
            "createTime": folder.created,
            "updateTime": folder.updated,
        })
    }
}
