//! Folders of buckets with a hierarchical namespace. A rename and a recursive deletion are answered with an operation that is done,
//! as the JSON API answers them.

use prost::Message;
use serde_json::{Map, Value};

use super::call::{Ask, JsonCall, JsonReply, items, message, text_of};
use super::messages::operation::Result as Ending;
use super::messages::{
    Any, CreateFolderRequest, DeleteFolderRecursiveMetadata, DeleteFolderRecursiveRequest,
    DeleteFolderRequest, Empty, Folder, GetFolderRequest, ListFoldersRequest, ListFoldersResponse, Operation,
    RenameFolderMetadata, RenameFolderRequest,
};
use super::name::{bucket_in, bucket_name, folder_in};
use crate::object::error::ObjectError;
use crate::object::request::Operation as Op;

/// The message of a folder's resource.
fn folder_of(resource: Value) -> Result<Folder, ObjectError> {
    let bucket = text_of(&resource, "bucket");
    let folder: Folder = message(resource)?;
    let name = format!("{}/folders/{}", bucket_name(&bucket), folder.name);
    Ok(Folder { name, ..folder })
}

fn on_folder(operation: Op, name: &str) -> Result<JsonCall, ObjectError> {
    let (bucket, folder) = folder_in("name", name)?;
    let mut call = JsonCall::on_bucket(operation, bucket);
    folder.clone_into(&mut call.call.id);
    Ok(call)
}

/// A message with its type, as operations have it.
fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/{name}"), value: message.encode_to_vec().into() }
}

/// The message of an operation that is done.
fn done(operation: &Value, metadata: Any, response: Any) -> Operation {
    Operation {
        name: text_of(operation, "name"),
        metadata: Some(metadata),
        done: true,
        result: Some(Ending::Response(response)),
    }
}

impl Ask for CreateFolderRequest {
    type Reply = Folder;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        if self.folder_id.is_empty() {
            return Err(ObjectError::required("folder_id"));
        }
        let body = Map::from_iter([("name".to_owned(), self.folder_id.as_str().into())]);
        Ok(JsonCall::on_bucket(Op::FoldersInsert, bucket_in("parent", &self.parent)?)
            .flag("recursive", self.recursive)
            .with_body(body))
    }

    fn reply(&self, reply: JsonReply) -> Result<Folder, ObjectError> {
        folder_of(reply.body)
    }
}

impl Ask for GetFolderRequest {
    type Reply = Folder;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        Ok(on_folder(Op::FoldersGet, &self.name)?
            .maybe("ifMetagenerationMatch", self.if_metageneration_match)
            .maybe("ifMetagenerationNotMatch", self.if_metageneration_not_match))
    }

    fn reply(&self, reply: JsonReply) -> Result<Folder, ObjectError> {
        folder_of(reply.body)
    }
}

impl Ask for DeleteFolderRequest {
    type Reply = Empty;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        Ok(on_folder(Op::FoldersDelete, &self.name)?
            .maybe("ifMetagenerationMatch", self.if_metageneration_match)
            .maybe("ifMetagenerationNotMatch", self.if_metageneration_not_match))
    }

    fn reply(&self, _: JsonReply) -> Result<Empty, ObjectError> {
        Ok(Empty::default())
    }
}

impl Ask for ListFoldersRequest {
    type Reply = ListFoldersResponse;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        Ok(JsonCall::on_bucket(Op::FoldersList, bucket_in("parent", &self.parent)?)
            .number("pageSize", self.page_size.into())
            .text("pageToken", &self.page_token)
            .text("prefix", &self.prefix)
            .text("delimiter", &self.delimiter)
            .text("startOffset", &self.lexicographic_start)
            .text("endOffset", &self.lexicographic_end))
    }

    fn reply(&self, mut reply: JsonReply) -> Result<ListFoldersResponse, ObjectError> {
        let folders = items(&mut reply.body, "items").into_iter().map(folder_of);
        Ok(ListFoldersResponse {
            folders: folders.collect::<Result<_, _>>()?,
            next_page_token: text_of(&reply.body, "nextPageToken"),
        })
    }
}

impl Ask for RenameFolderRequest {
    type Reply = Operation;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        if self.destination_folder_id.is_empty() {
            return Err(ObjectError::required("destination_folder_id"));
        }
        let mut call = on_folder(Op::FoldersRename, &self.name)?
            .maybe("ifSourceMetagenerationMatch", self.if_metageneration_match)
            .maybe("ifSourceMetagenerationNotMatch", self.if_metageneration_not_match);
        call.call.to_object.clone_from(&self.destination_folder_id);
        Ok(call)
    }

    fn reply(&self, mut reply: JsonReply) -> Result<Operation, ObjectError> {
        let metadata: RenameFolderMetadata = message(reply.body["metadata"].take())?;
        let folder = folder_of(reply.body["response"].take())?;
        let metadata = any("google.storage.control.v2.RenameFolderMetadata", &metadata);
        Ok(done(&reply.body, metadata, any("google.storage.control.v2.Folder", &folder)))
    }
}

impl Ask for DeleteFolderRecursiveRequest {
    type Reply = Operation;

    fn call(&self) -> Result<JsonCall, ObjectError> {
        Ok(on_folder(Op::FoldersDeleteRecursive, &self.name)?
            .maybe("ifMetagenerationMatch", self.if_metageneration_match)
            .maybe("ifMetagenerationNotMatch", self.if_metageneration_not_match))
    }

    fn reply(&self, mut reply: JsonReply) -> Result<Operation, ObjectError> {
        let metadata: DeleteFolderRecursiveMetadata = message(reply.body["metadata"].take())?;
        let metadata = any("google.storage.control.v2.DeleteFolderRecursiveMetadata", &metadata);
        Ok(done(&reply.body, metadata, any("google.protobuf.Empty", &Empty::default())))
    }
}
