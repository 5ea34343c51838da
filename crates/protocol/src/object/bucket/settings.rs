//! What a client may set on a bucket, field by field as the JSON API has it.
//!
//! One type serves the stored row, the JSON of requests and replies, and the merge of a patch, as the settings of
//! objects do. Times in it are the server's own: [`computed`](super::computed) sets them, whatever a client sent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cors::CorsRule;
use super::lifecycle::Lifecycle;
use super::namespace::{Namespace, Switch};
use crate::object::error::ObjectError;
use crate::object::int64::Int64;
use crate::object::merge::{merge_patch, typed};
use crate::object::micros::Micros;
use crate::object::storage_class::StorageClass;

/// Moves objects between storage classes by their use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Autoclass {
    /// Whether it is on.
    pub enabled: bool,
    /// When it was last switched.
    pub toggle_time: Option<Micros>,
    /// The coldest class.
    pub terminal_storage_class: Option<StorageClass>,
    /// When the coldest class was last set.
    pub terminal_storage_class_update_time: Option<Micros>,
}

/// How requests are paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Billing {
    /// Whether the sender of a request pays for it.
    pub requester_pays: bool,
}

/// The regions of a bucket in two regions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Placement {
    /// The two regions.
    pub data_locations: Vec<String>,
}

/// Whether one sort of encryption is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Enforcement {
    /// `NotRestricted` or `FullyRestricted`.
    pub restriction_mode: Option<String>,
    /// Since when it is restricted.
    pub effective_time: Option<Micros>,
}

/// How objects are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BucketEncryption {
    /// The key of objects that name none.
    pub default_kms_key_name: Option<String>,
    /// For objects with the service's own keys.
    pub google_managed_encryption_enforcement_config: Option<Enforcement>,
    /// For objects with keys of a key service.
    pub customer_managed_encryption_enforcement_config: Option<Enforcement>,
    /// For objects with keys that clients send.
    pub customer_supplied_encryption_enforcement_config: Option<Enforcement>,
}

/// Whether access is by the bucket's policy alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UniformAccess {
    /// Whether access control lists are out of use.
    pub enabled: bool,
    /// Until when it can be switched off.
    pub locked_time: Option<Micros>,
}

/// How access is decided.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IamConfiguration {
    /// An older name of `uniform_bucket_level_access`; replies have both.
    pub bucket_policy_only: Option<UniformAccess>,
    /// Whether access is by the bucket's policy alone.
    pub uniform_bucket_level_access: Option<UniformAccess>,
    /// `inherited` or `enforced`.
    pub public_access_prevention: Option<String>,
}

/// Addresses from which requests come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkSource {
    /// The network, for a source inside of one.
    pub network: Option<String>,
    /// Ranges of addresses.
    pub allowed_ip_cidr_ranges: Vec<String>,
}

/// From where requests may come. It is stored and not enforced.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IpFilter {
    /// `Enabled` or `Disabled`.
    pub mode: Option<String>,
    /// Whether the service's own agents are let in.
    pub allow_all_service_agent_access: Option<bool>,
    /// Whether networks of other organisations may be named.
    pub allow_cross_org_vpcs: Option<bool>,
    /// Public addresses.
    pub public_network_source: Option<NetworkSource>,
    /// Networks.
    pub vpc_network_sources: Option<Vec<NetworkSource>>,
}

/// Where logs of use go. Stored only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Logging {
    /// The bucket.
    pub log_bucket: Option<String>,
    /// What the names of logs begin with.
    pub log_object_prefix: Option<String>,
}

/// Whether objects may have retentions of their own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectRetention {
    /// `Enabled`.
    pub mode: Option<String>,
}

/// How long every object is kept at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetentionPolicy {
    /// Seconds.
    pub retention_period: Option<Int64>,
    /// Since when.
    pub effective_time: Option<Micros>,
    /// Whether it can only be prolonged.
    pub is_locked: Option<bool>,
}

/// How long deleted objects can be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SoftDeletePolicy {
    /// Seconds; 0 for not at all.
    pub retention_duration_seconds: Option<Int64>,
    /// Since when.
    pub effective_time: Option<Micros>,
}

/// How a bucket behaves as a web site. Stored only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Website {
    /// What is appended to names of folders.
    pub main_page_suffix: Option<String>,
    /// What is shown for names that do not exist.
    pub not_found_page: Option<String>,
}

/// What a client may set on a bucket. The order of the fields is stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the JSON API, and their types say what they are")]
pub struct BucketSettings {
    pub autoclass: Option<Autoclass>,
    pub billing: Option<Billing>,
    pub cors: Option<Vec<CorsRule>>,
    pub custom_placement_config: Option<Placement>,
    pub default_event_based_hold: Option<bool>,
    pub encryption: Option<BucketEncryption>,
    pub hierarchical_namespace: Option<Namespace>,
    pub iam_configuration: Option<IamConfiguration>,
    pub ip_filter: Option<IpFilter>,
    pub labels: Option<BTreeMap<String, String>>,
    pub lifecycle: Option<Lifecycle>,
    pub location: Option<String>,
    pub logging: Option<Logging>,
    pub object_retention: Option<ObjectRetention>,
    pub retention_policy: Option<RetentionPolicy>,
    pub rpo: Option<String>,
    pub soft_delete_policy: Option<SoftDeletePolicy>,
    pub storage_class: Option<StorageClass>,
    pub versioning: Option<Switch>,
    pub website: Option<Website>,
}

/// Fields that only the insert of a bucket sets.
const FIXED: [&str; 4] = ["customPlacementConfig", "hierarchicalNamespace", "location", "objectRetention"];
/// Fields that a patch or update sets too.
const FIELDS: [&str; 16] = [
    "autoclass",
    "billing",
    "cors",
    "defaultEventBasedHold",
    "encryption",
    "iamConfiguration",
    "ipFilter",
    "labels",
    "lifecycle",
    "logging",
    "retentionPolicy",
    "rpo",
    "softDeletePolicy",
    "storageClass",
    "versioning",
    "website",
];

impl BucketSettings {
    /// The settings of an insert.
    pub(super) fn from_body(body: &Map<String, Value>) -> Result<Self, ObjectError> {
        let fields = || FIELDS.into_iter().chain(FIXED);
        typed(fields().filter_map(|field| Some((field.to_owned(), body.get(field)?.clone()))).collect())
    }

    /// These settings after the patch `body`, as the client wants them. The members `whole` are replaced and not merged.
    pub(super) fn merged(&self, body: &Map<String, Value>, whole: &[String]) -> Result<Self, ObjectError> {
        let mut members = self.json();
        for field in FIELDS {
            match body.get(field) {
                Some(Value::Null) => {
                    members.remove(field);
                }
                Some(value) if whole.iter().any(|name| name == field) => {
                    members.insert(field.to_owned(), value.clone());
                }
                Some(patch) => merge_patch(members.entry(field).or_insert(Value::Null), patch),
                None => {}
            }
        }
        typed(members)
    }

    /// These settings after an update with `body`: what the body does not name is gone, except what only an insert
    /// sets.
    pub(super) fn replaced(&self, body: &Map<String, Value>) -> Result<Self, ObjectError> {
        let mut kept = Self::default();
        kept.custom_placement_config.clone_from(&self.custom_placement_config);
        kept.hierarchical_namespace = self.hierarchical_namespace;
        kept.location.clone_from(&self.location);
        kept.object_retention.clone_from(&self.object_retention);
        kept.merged(body, &[])
    }

    /// The members of the JSON form. Members without a value are left out, on all levels, and so are labels and CORS
    /// rules if there are none, as in the real service.
    pub(super) fn json(&self) -> Map<String, Value> {
        let mut value = serde_json::to_value(self).expect("settings can be written as JSON");
        drop_nulls(&mut value);
        let Value::Object(mut members) = value else { unreachable!("settings are an object in JSON") };
        let rules = members.get_mut("cors").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
            rule.retain(|_, member| !is_empty(member));
        }
        members.retain(|name, member| !(matches!(name.as_str(), "cors" | "labels") && is_empty(member)));
        members
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
