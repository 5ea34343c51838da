//! Buckets, their listings and policies.

use serde_json::{Map, Value};

use super::call::{Ask, JsonCall, JsonReply, items, members, message, seen, text_of};
use super::mask::{Masked, Seen, masked};
use super::messages::{
    Bucket, CreateBucketRequest, DeleteBucketRequest, Empty, GetBucketRequest, GetIamPolicyRequest,
    ListBucketsRequest, ListBucketsResponse, LockBucketRetentionPolicyRequest, Policy, SetIamPolicyRequest,
    TestIamPermissionsRequest, TestIamPermissionsResponse, UpdateBucketRequest,
};
use super::name::{bucket_in, bucket_name, project_in, split};
use crate::object::error::ObjectError;
use crate::object::request::Operation;

/// The message of a bucket's resource.
fn bucket_of(mut resource: Value, seen: &Seen) -> Result<Bucket, ObjectError> {
    seen.prune(&mut resource);
    let project = text_of(&resource, "projectNumber");
    let mut bucket: Bucket = message(resource)?;
    if !bucket.name.is_empty() {
        bucket.bucket_id.clone_from(&bucket.name);
        bucket.name = bucket_name(&bucket.bucket_id);
    }
    if !project.is_empty() {
        bucket.project = format!("projects/{project}");
    }
    if let Some(logging) = &mut bucket.logging
        && !logging.log_bucket.is_empty()
    {
        logging.log_bucket = bucket_name(&logging.log_bucket);
    }
    Ok(bucket)
}

/// What a client may set on a bucket. Names, numbers and times in the message are the server's own. Fails if the bucket that
/// takes the logs is not named as messages name buckets.
fn settings(bucket: &Bucket) -> Result<Map<String, Value>, ObjectError> {
    let mut settings = members(bucket);
    for own in ["name", "bucketId", "project", "etag", "metageneration", "timeCreated", "updated", "owner"] {
        settings.remove(own);
    }
    let logging = settings.get_mut("logging").and_then(|logging| logging.get_mut("logBucket"));
    if let (Some(member), Some(logging)) = (logging, &bucket.logging) {
        *member = bucket_in("bucket.logging.log_bucket", &logging.log_bucket)?.into();
    }
    Ok(settings)
}

impl Ask for CreateBucketRequest {
    type Reply = Bucket;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let empty = Bucket::default();
        let bucket = self.bucket.as_ref().unwrap_or(&empty);
        // The project is in the bucket, or in the parent of older clients.
        let project = match project_in("parent", &self.parent)? {
            "_" => project_in("bucket.project", &bucket.project)?,
            project => project,
        };
        let mut body = settings(bucket)?;
        body.insert("name".to_owned(), self.bucket_id.as_str().into());
        Ok(JsonCall::new(Operation::BucketsInsert)
            .text("project", project)
            .text("predefinedAcl", &self.predefined_acl)
            .text("predefinedDefaultObjectAcl", &self.predefined_default_object_acl)
            .flag("enableObjectRetention", self.enable_object_retention)
            .with_body(body))
    }

    fn reply(&self, reply: JsonReply) -> Result<Bucket, ObjectError> {
        bucket_of(reply.body, &Seen::default())
    }
}

impl Ask for GetBucketRequest {
    type Reply = Bucket;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let call = JsonCall::on_bucket(Operation::BucketsGet, bucket_in("name", &self.name)?);
        let conditions = [None, None, self.if_metageneration_match, self.if_metageneration_not_match];
        Ok(seen(call.conditions(conditions), self.read_mask.as_ref()))
    }

    fn reply(&self, reply: JsonReply) -> Result<Bucket, ObjectError> {
        bucket_of(reply.body, &Seen::of(self.read_mask.as_ref()))
    }
}

impl Ask for ListBucketsRequest {
    type Reply = ListBucketsResponse;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let call = JsonCall::new(Operation::BucketsList)
            .text("project", project_in("parent", &self.parent)?)
            .number("maxResults", self.page_size.into())
            .text("pageToken", &self.page_token)
            .text("prefix", &self.prefix);
        Ok(seen(call, self.read_mask.as_ref()))
    }

    fn reply(&self, mut reply: JsonReply) -> Result<ListBucketsResponse, ObjectError> {
        let seen = Seen::of(self.read_mask.as_ref());
        let buckets = items(&mut reply.body, "items").into_iter().map(|one| bucket_of(one, &seen));
        Ok(ListBucketsResponse {
            buckets: buckets.collect::<Result<_, _>>()?,
            next_page_token: text_of(&reply.body, "nextPageToken"),
            unreachable: Vec::new(),
        })
    }
}

impl Ask for UpdateBucketRequest {
    type Reply = Bucket;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let bucket = self.bucket.as_ref().ok_or_else(|| ObjectError::required("bucket"))?;
        let name = bucket_in("bucket.name", &bucket.name)?;
        let conditions = [None, None, self.if_metageneration_match, self.if_metageneration_not_match];
        let settings = settings(bucket)?;
        let (operation, body, whole) = match masked(self.update_mask.as_ref(), &settings)? {
            Masked::All => (Operation::BucketsUpdate, settings, Vec::new()),
            Masked::Some(patch, whole) => (Operation::BucketsPatch, patch, whole),
        };
        let call = JsonCall::on_bucket(operation, name)
            .conditions(conditions)
            .text("predefinedAcl", &self.predefined_acl)
            .text("predefinedDefaultObjectAcl", &self.predefined_default_object_acl)
            .text("projection", "noAcl")
            .with_body(body);
        Ok(JsonCall { whole, ..call })
    }

    fn reply(&self, reply: JsonReply) -> Result<Bucket, ObjectError> {
        bucket_of(reply.body, &Seen::default())
    }
}

impl Ask for DeleteBucketRequest {
    type Reply = Empty;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let conditions = [None, None, self.if_metageneration_match, self.if_metageneration_not_match];
        let name = bucket_in("name", &self.name)?;
        Ok(JsonCall::on_bucket(Operation::BucketsDelete, name).conditions(conditions))
    }

    fn reply(&self, _: JsonReply) -> Result<Empty, ObjectError> {
        Ok(Empty::default())
    }
}

impl Ask for LockBucketRetentionPolicyRequest {
    type Reply = Bucket;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let name = bucket_in("bucket", &self.bucket)?;
        Ok(JsonCall::on_bucket(Operation::BucketsLockRetentionPolicy, name)
            .maybe("ifMetagenerationMatch", Some(self.if_metageneration_match)))
    }

    fn reply(&self, reply: JsonReply) -> Result<Bucket, ObjectError> {
        bucket_of(reply.body, &Seen::default())
    }
}

/// A call about a policy: one operation each for that of a bucket, of an object and of a managed folder.
fn on_policy(operations: [Operation; 3], resource: &str) -> Result<JsonCall, ObjectError> {
    let [of_bucket, of_object, of_folder] = operations;
    let wrong = || {
        let hint = "Write projects/_/buckets/BUCKET, or that with /objects/OBJECT or /managedFolders/FOLDER.";
        ObjectError::invalid("resource", resource, hint)
    };
    let (bucket, rest) = split(resource).ok_or_else(wrong)?;
    match (rest.strip_prefix("objects/"), rest.strip_prefix("managedFolders/")) {
        (Some(object), _) => JsonCall::on_object(of_object, bucket, object),
        (_, Some(folder)) if !folder.is_empty() => {
            let mut call = JsonCall::on_bucket(of_folder, bucket);
            folder.clone_into(&mut call.call.id);
            Ok(call)
        }
        _ if rest.is_empty() => Ok(JsonCall::on_bucket(of_bucket, bucket)),
        _ => Err(wrong()),
    }
}

const GET_POLICY: [Operation; 3] =
    [Operation::BucketsGetIamPolicy, Operation::ObjectsGetIamPolicy, Operation::ManagedFoldersGetIamPolicy];
const SET_POLICY: [Operation; 3] =
    [Operation::BucketsSetIamPolicy, Operation::ObjectsSetIamPolicy, Operation::ManagedFoldersSetIamPolicy];
const TEST_PERMISSIONS: [Operation; 3] = [
    Operation::BucketsTestIamPermissions,
    Operation::ObjectsTestIamPermissions,
    Operation::ManagedFoldersTestIamPermissions,
];

impl Ask for GetIamPolicyRequest {
    type Reply = Policy;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let version = self.options.as_ref().map_or(0, |options| options.requested_policy_version);
        Ok(on_policy(GET_POLICY, &self.resource)?.number("optionsRequestedPolicyVersion", version.into()))
    }

    fn reply(&self, reply: JsonReply) -> Result<Policy, ObjectError> {
        message(reply.body)
    }
}

impl Ask for SetIamPolicyRequest {
    type Reply = Policy;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let policy = self.policy.as_ref().ok_or_else(|| ObjectError::required("policy"))?;
        Ok(on_policy(SET_POLICY, &self.resource)?.with_body(members(policy)))
    }

    fn reply(&self, reply: JsonReply) -> Result<Policy, ObjectError> {
        message(reply.body)
    }
}

impl Ask for TestIamPermissionsRequest {
    type Reply = TestIamPermissionsResponse;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let call = on_policy(TEST_PERMISSIONS, &self.resource)?;
        Ok(self.permissions.iter().fold(call, |call, permission| call.text("permissions", permission)))
    }

    fn reply(&self, mut reply: JsonReply) -> Result<TestIamPermissionsResponse, ObjectError> {
        let held = items(&mut reply.body, "permissions");
        let permissions = held.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Ok(TestIamPermissionsResponse { permissions })
    }
}
