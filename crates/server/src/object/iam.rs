//! IAM policies of buckets, of managed folders, and of objects. That of an object is its access control list in other words.

use rangehold_protocol::object::bucket::object_policy::{acl_of_bindings, bindings_of_acl};
use rangehold_protocol::object::bucket::policy::Policy;
use rangehold_protocol::object::bucket::{BodyMode, Bucket};
use rangehold_protocol::object::condition::{Conditions, Tags};
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::folder::with_slash;
use rangehold_protocol::object::generation::Generation;
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::write::{Change, Edit, Name};
use serde_json::{Map, Value, json};

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::grants::Place;
use super::json::resource;
use super::managed_folders::missing;
use super::reply::Reply;

impl ObjectService {
    pub(super) async fn get_bucket_policy(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket(name).await?;
        check_version(exchange)?;
        resource(exchange, bucket.policy.json(&policy_name(name)))
    }

    /// Of the permissions asked for, those that the caller has.
    pub(super) async fn test_permissions(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
        place: Place<'_>,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket(name).await?;
        self.check_payer(exchange, &bucket)?;
        let mut held = Vec::new();
        for permission in exchange.query.all("permissions") {
            if permission.contains('*') {
                let hint = "Name each permission: wildcards are not allowed.";
                return Err(ObjectError::invalid("permissions", permission, hint).into());
            }
            let object = if let Place::Object(name) = place { Some(name) } else { None };
            let is_held = match object {
                Some(_) => self.permit(exchange, permission, &bucket, object).await.is_ok(),
                None => self.holds(exchange, permission, &bucket, place),
            };
            held.extend(is_held.then_some(permission));
        }
        resource(exchange, json!({ "kind": "storage#testIamPermissionsResponse", "permissions": held }))
    }

    pub(super) async fn set_bucket_policy(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let body = self.body_object(exchange, body).await?;
        let change = |bucket: &Bucket, now: Micros| {
            let (uniform, forbids_public) =
                (bucket.settings.uniform_access(), bucket.prevents_public_access());
            let policy = bucket.policy.replaced(body.clone(), uniform, forbids_public)?;
            let mut changed = Bucket { policy, ..bucket.clone() };
            changed.touch(now);
            Ok(changed)
        };
        let changed = self.change_bucket(name, &Conditions::default(), exchange.deadline(), change).await?;
        resource(exchange, changed.policy.json(&policy_name(name)))
    }

    pub(super) async fn get_folder_policy(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
        folder: &str,
    ) -> Result<Reply, Failure> {
        let (bucket, folder) = (self.bucket(name).await?, with_slash(folder));
        check_version(exchange)?;
        if !bucket.managed_folders.contains_key(&folder) {
            return Err(missing(&folder).into());
        }
        let policy = bucket.folder_policies.get(&folder).cloned().unwrap_or_else(Policy::empty);
        resource(exchange, policy.json(&folder_name(name, &folder)))
    }

    /// Replaces the policy of a managed folder. It counts for the names below the folder.
    pub(super) async fn set_folder_policy(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
        folder: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let body = self.body_object(exchange, body).await?;
        let folder = with_slash(folder);
        let change = |bucket: &Bucket, now: Micros| {
            let (uniform, forbids_public) =
                (bucket.settings.uniform_access(), bucket.prevents_public_access());
            let old = bucket.folder_policies.get(&folder).cloned().unwrap_or_else(Policy::empty);
            let policy = old.replaced(body.clone(), uniform, forbids_public)?;
            let mut changed = bucket.clone();
            let of = changed.managed_folders.get_mut(&folder).ok_or_else(|| missing(&folder))?;
            (of.updated, of.metageneration) = (now, of.metageneration + 1);
            changed.folder_policies.insert(folder.clone(), policy);
            Ok(changed)
        };
        let changed = self.change_bucket(name, &Conditions::default(), exchange.deadline(), change).await?;
        resource(exchange, changed.folder_policies[&folder].json(&folder_name(name, &folder)))
    }

    pub(super) async fn get_object_policy(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let (bucket, stored) = self.place_with_list(exchange, bucket, name).await?;
        let generation = self.generation(&bucket, &stored, exchange.generation()?).await?;
        resource(exchange, object_policy(&bucket, name, &generation))
    }

    /// Replaces the policy of an object, which is its access control list: it has the two roles that a list can give.
    pub(super) async fn set_object_policy(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let body = self.body_object(exchange, body).await?;
        let (bucket, stored) = self.place_with_list(exchange, bucket, name).await?;
        let etag = body.get("etag").and_then(Value::as_str).filter(|etag| !etag.is_empty());
        let conditions = Conditions { tag_match: etag.map(Tags::parse), ..Conditions::default() };
        let lines = acl_of_bindings(body, &bucket)?;
        let patch: Map<String, Value> = Map::from_iter([("acl".to_owned(), lines)]);
        let mode = BodyMode::Patch { whole: &[] };
        let edit = Edit::Body { body: &patch, mode, acl: None, may_override: false };
        let of = Name { bucket: &bucket, name: &stored };
        let change = Change { of, generation: exchange.generation()?, conditions: &conditions, edit };
        let changed = self.change_object(&change, exchange.deadline()).await?;
        resource(exchange, object_policy(&bucket, name, &changed))
    }
}

fn object_policy(bucket: &Bucket, name: &str, generation: &Generation) -> Value {
    let entries = generation.acl.entries(bucket.project_number, Some(&generation.owner));
    json!({
        "kind": "storage#policy",
        "resourceId": format!("projects/_/buckets/{}/objects/{name}#{}", bucket.name, generation.id.0),
        "version": 1,
        "etag": generation.etag(),
        "bindings": bindings_of_acl(&entries, bucket),
    })
}

/// Checks the version of policies that the client can read.
fn check_version(exchange: &Exchange<'_>) -> Result<(), ObjectError> {
    match exchange.query.number("optionsRequestedPolicyVersion")? {
        Some(version) if !matches!(version, 1..=3) => {
            let hint = "Policies have the versions 1 and 3.";
            Err(ObjectError::invalid("optionsRequestedPolicyVersion", version, hint))
        }
        _ => Ok(()),
    }
}

fn policy_name(bucket: &str) -> String {
    format!("projects/_/buckets/{bucket}")
}

fn folder_name(bucket: &str, folder: &str) -> String {
    format!("projects/_/buckets/{bucket}/managedFolders/{folder}")
}
