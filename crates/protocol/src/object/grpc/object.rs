//! Objects: their resources, and how they are listed, changed, copied and removed.

use serde_json::{Map, Value};

use super::call::{Ask, JsonCall, JsonReply, items, members, message, seen, text_of};
use super::mask::{Masked, Seen, masked};
use super::messages::{
    ComposeObjectRequest, DeleteObjectRequest, Empty, GetObjectRequest, ListObjectsRequest,
    ListObjectsResponse, MoveObjectRequest, Object, RestoreObjectRequest, RewriteObjectRequest,
    RewriteResponse, UpdateObjectRequest,
};
use super::name::{bucket_in, bucket_name};
use crate::object::error::ObjectError;
use crate::object::limits::COMPOSE_SOURCES_MAX;
use crate::object::request::Operation;

/// The members of a resource that a client may set. All others are the server's own.
const SETTABLE: [&str; 16] = [
    "acl",
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "contentType",
    "contexts",
    "crc32c",
    "customTime",
    "eventBasedHold",
    "kmsKeyName",
    "md5Hash",
    "metadata",
    "retention",
    "storageClass",
    "temporaryHold",
];

/// The message of an object's resource.
pub fn object_of(resource: Value) -> Result<Object, ObjectError> {
    seen_object(resource, &Seen::default())
}

fn seen_object(mut resource: Value, seen: &Seen) -> Result<Object, ObjectError> {
    seen.prune(&mut resource);
    let mut object: Object = message(resource)?;
    // The JSON API leaves out a hold that nobody has set, and gRPC does not.
    if seen.has("eventBasedHold") {
        object.event_based_hold.get_or_insert(false);
    }
    if !object.bucket.is_empty() {
        object.bucket = bucket_name(&object.bucket);
    }
    Ok(object)
}

/// What a message says of an object that is written or changed.
pub(super) fn settings(object: &Object) -> Map<String, Value> {
    let mut settings = members(object);
    settings.retain(|name, _| SETTABLE.contains(&name.as_str()));
    settings
}

impl Ask for GetObjectRequest {
    type Reply = Object;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let bucket = bucket_in("bucket", &self.bucket)?;
        let call = JsonCall::on_object(Operation::ObjectsGet, bucket, &self.object)?
            .number("generation", self.generation)
            .flag("softDeleted", self.soft_deleted == Some(true))
            .text("restoreToken", &self.restore_token)
            .conditions([
                self.if_generation_match,
                self.if_generation_not_match,
                self.if_metageneration_match,
                self.if_metageneration_not_match,
            ])
            .key(self.common_object_request_params.as_ref());
        Ok(seen(call, self.read_mask.as_ref()))
    }

    fn reply(&self, reply: JsonReply) -> Result<Object, ObjectError> {
        seen_object(reply.body, &Seen::of(self.read_mask.as_ref()))
    }
}

impl Ask for ListObjectsRequest {
    type Reply = ListObjectsResponse;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let call = JsonCall::on_bucket(Operation::ObjectsList, bucket_in("parent", &self.parent)?)
            .number("maxResults", self.page_size.into())
            .text("pageToken", &self.page_token)
            .text("delimiter", &self.delimiter)
            .flag("includeTrailingDelimiter", self.include_trailing_delimiter)
            .text("prefix", &self.prefix)
            .flag("versions", self.versions)
            .text("startOffset", &self.lexicographic_start)
            .text("endOffset", &self.lexicographic_end)
            .flag("softDeleted", self.soft_deleted)
            .flag("includeFoldersAsPrefixes", self.include_folders_as_prefixes)
            .text("matchGlob", &self.match_glob)
            .text("filter", &self.filter);
        Ok(seen(call, self.read_mask.as_ref()))
    }

    fn reply(&self, mut reply: JsonReply) -> Result<ListObjectsResponse, ObjectError> {
        let seen = Seen::of(self.read_mask.as_ref());
        let objects = items(&mut reply.body, "items").into_iter().map(|one| seen_object(one, &seen));
        let objects = objects.collect::<Result<_, _>>()?;
        let prefixes = items(&mut reply.body, "prefixes");
        Ok(ListObjectsResponse {
            objects,
            prefixes: prefixes.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            next_page_token: text_of(&reply.body, "nextPageToken"),
        })
    }
}

impl Ask for UpdateObjectRequest {
    type Reply = Object;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let object = self.object.as_ref().ok_or_else(|| ObjectError::required("object"))?;
        let (operation, body, whole) = match masked(self.update_mask.as_ref(), &settings(object))? {
            Masked::All => (Operation::ObjectsUpdate, settings(object), Vec::new()),
            Masked::Some(patch, whole) => (Operation::ObjectsPatch, patch, whole),
        };
        let bucket = bucket_in("object.bucket", &object.bucket)?;
        let call = JsonCall::on_object(operation, bucket, &object.name)?
            .number("generation", object.generation)
            .conditions([
                self.if_generation_match,
                self.if_generation_not_match,
                self.if_metageneration_match,
                self.if_metageneration_not_match,
            ])
            .text("predefinedAcl", &self.predefined_acl)
            .flag("overrideUnlockedRetention", self.override_unlocked_retention)
            .text("projection", "noAcl")
            .key(self.common_object_request_params.as_ref())
            .with_body(body);
        Ok(JsonCall { whole, ..call })
    }

    fn reply(&self, reply: JsonReply) -> Result<Object, ObjectError> {
        object_of(reply.body)
    }
}

impl Ask for DeleteObjectRequest {
    type Reply = Empty;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let bucket = bucket_in("bucket", &self.bucket)?;
        Ok(JsonCall::on_object(Operation::ObjectsDelete, bucket, &self.object)?
            .number("generation", self.generation)
            .conditions([
                self.if_generation_match,
                self.if_generation_not_match,
                self.if_metageneration_match,
                self.if_metageneration_not_match,
            ]))
    }

    fn reply(&self, _: JsonReply) -> Result<Empty, ObjectError> {
        Ok(Empty::default())
    }
}

impl Ask for RestoreObjectRequest {
    type Reply = Object;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let bucket = bucket_in("bucket", &self.bucket)?;
        Ok(JsonCall::on_object(Operation::ObjectsRestore, bucket, &self.object)?
            .number("generation", self.generation)
            .text("restoreToken", &self.restore_token)
            .flag("copySourceAcl", self.copy_source_acl == Some(true))
            .conditions([
                self.if_generation_match,
                self.if_generation_not_match,
                self.if_metageneration_match,
                self.if_metageneration_not_match,
            ])
            .key(self.common_object_request_params.as_ref()))
    }

    fn reply(&self, reply: JsonReply) -> Result<Object, ObjectError> {
        object_of(reply.body)
    }
}

impl Ask for ComposeObjectRequest {
    type Reply = Object;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let target = self.destination.as_ref().ok_or_else(|| ObjectError::required("destination"))?;
        let bucket = bucket_in("destination.bucket", &target.bucket)?;
        if self.source_objects.len() > COMPOSE_SOURCES_MAX {
            let hint = format!("Give 1 to {COMPOSE_SOURCES_MAX} source objects.");
            return Err(ObjectError::invalid("source_objects", self.source_objects.len(), &hint));
        }
        let sources = self.source_objects.iter().map(|source| Value::Object(members(source)));
        let mut body = Map::from_iter([
            ("sourceObjects".to_owned(), sources.collect()),
            ("destination".to_owned(), settings(target).into()),
        ]);
        if let Some(delete) = self.delete_source_objects {
            body.insert("deleteSourceObjects".to_owned(), delete.into());
        }
        Ok(JsonCall::on_object(Operation::ObjectsCompose, bucket, &target.name)?
            .conditions([self.if_generation_match, None, self.if_metageneration_match, None])
            .text("destinationPredefinedAcl", &self.destination_predefined_acl)
            .text("projection", "noAcl")
            .text("kmsKeyName", &self.kms_key)
            .key(self.common_object_request_params.as_ref())
            .with_body(body))
    }

    fn reply(&self, reply: JsonReply) -> Result<Object, ObjectError> {
        object_of(reply.body)
    }
}

impl Ask for RewriteObjectRequest {
    type Reply = RewriteResponse;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let from = bucket_in("source_bucket", &self.source_bucket)?;
        let mut call = JsonCall::on_object(Operation::ObjectsRewrite, from, &self.source_object)?
            .number("sourceGeneration", self.source_generation)
            .text("rewriteToken", &self.rewrite_token)
            .text("destinationPredefinedAcl", &self.destination_predefined_acl)
            .text("destinationKmsKeyName", &self.destination_kms_key)
            .number("maxBytesRewrittenPerCall", self.max_bytes_rewritten_per_call)
            .conditions([
                self.if_generation_match,
                self.if_generation_not_match,
                self.if_metageneration_match,
                self.if_metageneration_not_match,
            ])
            .source_conditions([
                self.if_source_generation_match,
                self.if_source_generation_not_match,
                self.if_source_metageneration_match,
                self.if_source_metageneration_not_match,
            ])
            .key(self.common_object_request_params.as_ref())
            .header("x-goog-copy-source-encryption-algorithm", &self.copy_source_encryption_algorithm)
            .secret(
                "x-goog-copy-source-encryption-key",
                "x-goog-copy-source-encryption-key-sha256",
                &self.copy_source_encryption_key_bytes,
                &self.copy_source_encryption_key_sha256_bytes,
            )
            .with_body(self.destination.as_ref().map(settings).unwrap_or_default());
        bucket_in("destination_bucket", &self.destination_bucket)?.clone_into(&mut call.call.to_bucket);
        call.call.to_object.clone_from(&self.destination_name);
        Ok(call)
    }

    fn reply(&self, mut reply: JsonReply) -> Result<RewriteResponse, ObjectError> {
        let object = reply.body.get_mut("resource").map(Value::take);
        if let Value::Object(members) = &mut reply.body {
            members.remove("resource");
        }
        let rewritten: RewriteResponse = message(reply.body)?;
        Ok(RewriteResponse { resource: object.map(object_of).transpose()?, ..rewritten })
    }
}

impl Ask for MoveObjectRequest {
    type Reply = Object;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let bucket = bucket_in("bucket", &self.bucket)?;
        let mut call = JsonCall::on_object(Operation::ObjectsMove, bucket, &self.source_object)?
            .conditions([
                self.if_generation_match,
                self.if_generation_not_match,
                self.if_metageneration_match,
                self.if_metageneration_not_match,
            ])
            .source_conditions([
                self.if_source_generation_match,
                self.if_source_generation_not_match,
                self.if_source_metageneration_match,
                self.if_source_metageneration_not_match,
            ]);
        call.call.to_object.clone_from(&self.destination_object);
        Ok(call)
    }

    fn reply(&self, reply: JsonReply) -> Result<Object, ObjectError> {
        object_of(reply.body)
    }
}
