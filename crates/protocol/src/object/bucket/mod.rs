//! The stored form of a bucket, and how requests change it.
//!
//! A bucket row has everything about a bucket: every request that touches its objects reads it. Names of buckets are
//! unique across projects; [`Bucket::id`] is one life of a name, and its objects' keys have the id instead of the
//! name. So a bucket that was deleted and created again has other objects.

mod computed;
pub mod cors;
mod json;
pub mod lifecycle;
mod look;
mod namespace;
pub mod object_policy;
pub mod policy;
mod settings;

use std::collections::BTreeMap;

use rangehold_map::key::BucketId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::acl::{Acl, Predefined};
use super::condition::Seen;
use super::error::{ErrorKind, ObjectError};
use super::micros::Micros;
use super::name::check_bucket;
use super::project::project_number;
use super::row::{append, decode_rest, decode_row, decode_row_and_rest, encode_row};
use super::storage_class::StorageClass;

pub use self::look::Look;
pub use self::namespace::{Namespace, Switch};
use self::policy::Policy;
pub use self::settings::{
    Autoclass, Billing, BucketEncryption, BucketSettings, Enforcement, IamConfiguration, IpFilter, Logging,
    NetworkSource, ObjectRetention, Placement, RetentionPolicy, SoftDeletePolicy, UniformAccess, Website,
};

/// A bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// One life of the name.
    pub id: BucketId,
    /// The name.
    pub name: String,
    /// The id of its project.
    pub project: String,
    /// The number of its project.
    pub project_number: u64,
    /// When it was made; its `generation` is the same number.
    pub created: Micros,
    /// When it was last changed.
    pub updated: Micros,
    /// How often it was written: 1 when it is new.
    pub metageneration: u64,
    /// What clients set.
    pub settings: BucketSettings,
    /// Its own access control list.
    pub acl: Acl,
    /// The list of objects that name none.
    pub default_object_acl: Acl,
    /// Its IAM policy.
    pub policy: Policy,
    /// Managed folders, by their names.
    pub managed_folders: BTreeMap<String, ManagedFolder>,
    /// When it was deleted, and when it can no longer be restored.
    pub deleted: Option<(Micros, Micros)>,
    /// IAM policies of managed folders, by the folders' names. They stand behind the other fields in the row, if there are any.
    #[serde(skip)]
    pub folder_policies: BTreeMap<String, Policy>,
    /// What the request that read it has seen of its folders. It is not stored. `None` if its names are flat, or no name
    /// was looked for yet.
    #[serde(skip)]
    pub look: Option<Look>,
    /// Whether its retention policy protects nothing from the request that read it. It is not stored.
    #[serde(skip)]
    pub ignores_retention: bool,
}

/// A folder that has a policy of its own. It is stored and shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagedFolder {
    /// When it was made.
    pub created: Micros,
    /// When it was last changed.
    pub updated: Micros,
    /// How often it was written.
    pub metageneration: u64,
}

impl ManagedFolder {
    /// What conditions on a managed folder look at. It has no generation.
    pub fn seen(&self) -> Seen {
        Seen::of_metageneration(self.metageneration)
    }
}

/// The parameters of an insert, patch or update of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BucketParameters {
    /// `predefinedAcl`.
    pub acl: Option<Predefined>,
    /// `predefinedDefaultObjectAcl`.
    pub default_object_acl: Option<Predefined>,
    /// `enableObjectRetention`; for an insert.
    pub enable_object_retention: bool,
}

/// How a body changes a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyMode<'a> {
    /// It names what changes: its members are merged into the older ones.
    Patch {
        /// Members that take the place of older ones as wholes instead.
        whole: &'a [String],
    },
    /// It is the whole; what it does not name is gone.
    Update,
}

impl BucketSettings {
    /// Whether access control lists are out of use.
    pub fn uniform_access(&self) -> bool {
        let iam = self.iam_configuration.as_ref();
        let [one, other] =
            iam.map_or([None; 2], |iam| [iam.uniform_bucket_level_access, iam.bucket_policy_only]);
        [one, other].into_iter().flatten().any(|access| access.enabled)
    }
}

impl Bucket {
    /// The bucket that the JSON of an insert describes. `id` is from [`next_id`], and `now` is the time of the write.
    pub fn insert(
        id: BucketId,
        project: &str,
        body: &Map<String, Value>,
        parameters: BucketParameters,
        now: Micros,
    ) -> Result<Self, ObjectError> {
        let name = body.get("name").and_then(Value::as_str).ok_or_else(|| ObjectError::required("name"))?;
        check_bucket(name)?;
        let mut settings = BucketSettings::from_body(body)?;
        computed::finish_new(&mut settings, parameters.enable_object_retention, now)?;
        let mut bucket = Self {
            id,
            name: name.to_owned(),
            project: project.to_owned(),
            project_number: project_number(project),
            created: now,
            updated: now,
            metageneration: 1,
            settings,
            acl: Acl::default(),
            default_object_acl: Acl::default(),
            policy: Policy::of_project(project),
            managed_folders: BTreeMap::new(),
            deleted: None,
            folder_policies: BTreeMap::new(),
            look: None,
            ignores_retention: false,
        };
        bucket.take_lists(body, parameters)?;
        Ok(bucket)
    }

    /// The bucket after a patch or an update at `now`.
    pub fn changed(
        &self,
        body: &Map<String, Value>,
        mode: BodyMode<'_>,
        parameters: BucketParameters,
        now: Micros,
    ) -> Result<Self, ObjectError> {
        let mut settings = match mode {
            BodyMode::Patch { whole } => self.settings.merged(body, whole)?,
            BodyMode::Update => self.settings.replaced(body)?,
        };
        // It has been through JSON, which does not tell the two sorts apart that are called "enabled".
        settings.hierarchical_namespace = self.settings.hierarchical_namespace;
        computed::finish(&self.settings, &mut settings, now)?;
        let mut bucket = Self { settings, ..self.clone() };
        bucket.take_lists(body, parameters)?;
        bucket.touch(now);
        Ok(bucket)
    }

    /// The bucket with its retention policy locked, at `now`.
    pub fn locked(&self, now: Micros) -> Result<Self, ObjectError> {
        let mut bucket = self.clone();
        let Some(policy) = &mut bucket.settings.retention_policy else {
            let message = format!("Bucket {} has no retention policy to lock; set one first.", self.name);
            return Err(ObjectError::new(ErrorKind::Invalid, message));
        };
        policy.is_locked = Some(true);
        bucket.touch(now);
        Ok(bucket)
    }

    /// Counts a change at `now`.
    pub fn touch(&mut self, now: Micros) {
        self.metageneration += 1;
        self.updated = now;
    }

    /// Takes the lists that a request spelled out or chose by their names.
    fn take_lists(
        &mut self,
        body: &Map<String, Value>,
        parameters: BucketParameters,
    ) -> Result<(), ObjectError> {
        let listed = |field: &str, for_bucket| {
            let list = body.get(field).filter(|value| !value.is_null());
            list.map(|list| Acl::from_json(list, for_bucket)).transpose()
        };
        let acl = parameters.acl.map(Acl::Predefined).or(listed("acl", true)?);
        let default_object_acl = parameters.default_object_acl.map(Acl::Predefined);
        let default_object_acl = default_object_acl.or(listed("defaultObjectAcl", false)?);
        let (acl, default_object_acl) = (self.settable(acl)?, self.settable(default_object_acl)?);
        self.acl = acl.unwrap_or_else(|| self.acl.clone());
        self.default_object_acl = default_object_acl.unwrap_or_else(|| self.default_object_acl.clone());
        Ok(())
    }

    /// The list that a request sets, if it sets one. With uniform access an empty list sets nothing, because clients send empty
    /// lists when they switch that on, and any other list is refused.
    pub fn settable(&self, list: Option<Acl>) -> Result<Option<Acl>, ObjectError> {
        let is_empty = matches!(&list, Some(Acl::Listed(lines)) if lines.is_empty());
        let Some(list) = list.filter(|_| !(is_empty && self.settings.uniform_access())) else {
            return Ok(None);
        };
        self.check_lists_in_use()?;
        self.check_public(&list)?;
        Ok(Some(list))
    }

    /// Fails if the bucket has uniform access: access control lists can neither be read nor written then.
    pub fn check_lists_in_use(&self) -> Result<(), ObjectError> {
        match self.settings.uniform_access() {
            false => Ok(()),
            true => Err(ObjectError::new(
                ErrorKind::Invalid,
                "Cannot use ACL API to update bucket policy when uniform bucket-level access is enabled. Read \
                 more at https://cloud.google.com/storage/docs/uniform-bucket-level-access",
            )),
        }
    }

    /// Fails if the list lets everybody in and the bucket prevents that.
    pub fn check_public(&self, acl: &Acl) -> Result<(), ObjectError> {
        match self.prevents_public_access() && acl.is_public() {
            false => Ok(()),
            true => Err(ObjectError::new(
                ErrorKind::BucketRule,
                "The member bindings allUsers and allAuthenticatedUsers are not allowed since public access \
                 prevention is enforced.",
            )),
        }
    }

    /// Whether nobody without an account may be let in.
    pub fn prevents_public_access(&self) -> bool {
        let iam = self.settings.iam_configuration.as_ref();
        iam.and_then(|iam| iam.public_access_prevention.as_deref()) == Some("enforced")
    }

    /// Whether a replaced or deleted generation is kept as an older version.
    pub fn keeps_versions(&self) -> bool {
        self.settings.versioning.is_some_and(|versioning| versioning.enabled)
    }

    /// Whether it has a hierarchical namespace: its objects lie in folders.
    pub fn has_folders(&self) -> bool {
        matches!(self.settings.hierarchical_namespace, Some(Namespace::Folders))
    }

    /// How long a deleted generation can be restored, in seconds; `None` if not at all.
    pub fn soft_delete_seconds(&self) -> Option<u64> {
        let seconds = self.settings.soft_delete_policy?.retention_duration_seconds?.0;
        Some(seconds).filter(|seconds| *seconds > 0)
    }

    /// Whether it was deleted and can no longer be restored at `now`.
    pub fn is_over(&self, now: Micros) -> bool {
        self.deleted.is_some_and(|(_, end)| end <= now)
    }

    /// How long an object is kept at least, in seconds.
    pub fn retention_seconds(&self) -> Option<u64> {
        Some(self.settings.retention_policy?.retention_period?.0)
    }

    /// For how many seconds its retention policy protects an object from the request that read it.
    pub fn protected_seconds(&self) -> Option<u64> {
        self.retention_seconds().filter(|_| !self.ignores_retention)
    }

    /// Whether objects may have retentions of their own.
    pub fn has_object_retention(&self) -> bool {
        self.settings.object_retention.is_some()
    }

    /// The class of objects that name none.
    pub fn storage_class(&self) -> StorageClass {
        self.settings.storage_class.unwrap_or_default()
    }

    /// The bucket's entity that owns it.
    pub fn owner(&self) -> String {
        format!("project-owners-{}", self.project_number)
    }

    /// The stored row.
    pub fn encode(&self) -> Vec<u8> {
        let row = encode_row(self);
        if self.folder_policies.is_empty() { row } else { append(row, &self.folder_policies) }
    }

    /// Reads a bucket row.
    pub fn decode(row: &[u8]) -> Result<Self, ObjectError> {
        let (mut bucket, rest): (Self, _) = decode_row_and_rest("a bucket", row)?;
        if !rest.is_empty() {
            bucket.folder_policies = decode_rest("the policies of managed folders", rest)?;
        }
        Ok(bucket)
    }
}

/// The id of the next bucket, and the row that remembers it. `last` is that row as it is; before the first bucket there is
/// none. Ids count from 1. Directories of older versions also have ids that were made of a time, all above 2^50, which the
/// count does not reach.
pub fn next_id(last: Option<&[u8]>) -> Result<(BucketId, Vec<u8>), ObjectError> {
    let last: u64 = last.map_or(Ok(0), |row| decode_row("the id of the last bucket", row))?;
    Ok((BucketId(last + 1), encode_row(&(last + 1))))
}

#[cfg(test)]
mod tests;
