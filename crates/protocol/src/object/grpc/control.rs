//! What only the control service has: layouts and managed folders.

use serde_json::{Map, Value};

use super::call::{Ask, JsonCall, JsonReply, items, message, text_of};
use super::messages::{
    CreateManagedFolderRequest, DeleteManagedFolderRequest, Empty, GetManagedFolderRequest,
    GetStorageLayoutRequest, ListManagedFoldersRequest, ListManagedFoldersResponse, ManagedFolder,
    StorageLayout,
};
use super::name::{bucket_in, bucket_name, managed_folder_in};
use crate::object::error::ObjectError;
use crate::object::request::Operation;

impl Ask for GetStorageLayoutRequest {
    type Reply = StorageLayout;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        let hint = "Write projects/_/buckets/BUCKET/storageLayout.";
        let bucket = self.name.strip_suffix("/storageLayout");
        let bucket = bucket.ok_or_else(|| ObjectError::invalid("name", &self.name, hint))?;
        let call = JsonCall::on_bucket(Operation::BucketsGetStorageLayout, bucket_in("name", bucket)?);
        Ok(call.text("prefix", &self.prefix))
    }

    fn reply(&self, reply: JsonReply) -> Result<StorageLayout, ObjectError> {
        Ok(StorageLayout { name: self.name.clone(), ..message(reply.body)? })
    }
}

/// The message of a folder's resource.
fn folder_of(resource: Value) -> Result<ManagedFolder, ObjectError> {
    let bucket = text_of(&resource, "bucket");
    let folder: ManagedFolder = message(resource)?;
    let name = format!("{}/managedFolders/{}", bucket_name(&bucket), folder.name);
    Ok(ManagedFolder { name, ..folder })
}

fn on_folder(operation: Operation, name: &str) -> Result<JsonCall, ObjectError> {
    let (bucket, folder) = managed_folder_in("name", name)?;
    let mut call = JsonCall::on_bucket(operation, bucket);
    folder.clone_into(&mut call.call.id);
    Ok(call)
}

impl Ask for CreateManagedFolderRequest {
    type Reply = ManagedFolder;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        if self.managed_folder_id.is_empty() {
            return Err(ObjectError::required("managed_folder_id"));
        }
        let bucket = bucket_in("parent", &self.parent)?;
        let body = Map::from_iter([("name".to_owned(), self.managed_folder_id.as_str().into())]);
        Ok(JsonCall::on_bucket(Operation::ManagedFoldersInsert, bucket).with_body(body))
    }

    fn reply(&self, reply: JsonReply) -> Result<ManagedFolder, ObjectError> {
        folder_of(reply.body)
    }
}

impl Ask for GetManagedFolderRequest {
    type Reply = ManagedFolder;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        Ok(on_folder(Operation::ManagedFoldersGet, &self.name)?
            .maybe("ifMetagenerationMatch", self.if_metageneration_match)
            .maybe("ifMetagenerationNotMatch", self.if_metageneration_not_match))
    }

    fn reply(&self, reply: JsonReply) -> Result<ManagedFolder, ObjectError> {
        folder_of(reply.body)
    }
}

impl Ask for DeleteManagedFolderRequest {
    type Reply = Empty;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        Ok(on_folder(Operation::ManagedFoldersDelete, &self.name)?
            .maybe("ifMetagenerationMatch", self.if_metageneration_match)
            .maybe("ifMetagenerationNotMatch", self.if_metageneration_not_match)
            .flag("allowNonEmpty", self.allow_non_empty))
    }

    fn reply(&self, _: JsonReply) -> Result<Empty, ObjectError> {
        Ok(Empty::default())
    }
}

impl Ask for ListManagedFoldersRequest {
    type Reply = ListManagedFoldersResponse;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        Ok(JsonCall::on_bucket(Operation::ManagedFoldersList, bucket_in("parent", &self.parent)?)
            .number("pageSize", self.page_size.into())
            .text("pageToken", &self.page_token)
            .text("prefix", &self.prefix))
    }

    fn reply(&self, mut reply: JsonReply) -> Result<ListManagedFoldersResponse, ObjectError> {
        let folders = items(&mut reply.body, "items").into_iter().map(folder_of);
        Ok(ListManagedFoldersResponse {
            managed_folders: folders.collect::<Result<_, _>>()?,
            next_page_token: text_of(&reply.body, "nextPageToken"),
        })
    }
}
