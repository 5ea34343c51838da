//! Folders as resources: made, shown and listed. How they are renamed and deleted is in `folder_changes`.

use rangehold_map::capacity::Usage;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::Purpose;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::folder::{
    Folder, Make, check_folder, folders_of, no_such_folder, parent_of, with_slash,
};
use rangehold_protocol::object::list::Position;
use serde_json::{Value, json};

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::grants::{CREATE_FOLDER, Place};
use super::json::resource;
use super::list::page_by;
use super::located::{Way, moved_meanwhile};
use super::reply::Reply;
use super::tree_page::FolderPage;
use crate::limits::FOLDER_TRIES_MAX;

impl ObjectService {
    /// A bucket that has folders.
    pub(super) async fn bucket_with_folders(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
    ) -> Result<Bucket, Failure> {
        let bucket = self.bucket_for(exchange, name).await?;
        match bucket.has_folders() {
            true => Ok(bucket),
            false => {
                let message = format!(
                    "The bucket {name} has no folders: it was made without a hierarchical namespace."
                );
                Err(ObjectError::new(ErrorKind::Invalid, message).into())
            }
        }
    }

    pub(super) async fn insert_folder(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let body = self.body_object(exchange, body).await?;
        let name = body.get("name").and_then(Value::as_str).ok_or_else(|| ObjectError::required("name"))?;
        let (whole, recursive) = (with_slash(name), exchange.query.flag("recursive")?);
        check_folder(&whole)?;
        let bucket = self.bucket_with_folders(exchange, bucket).await?;
        self.permit_on(exchange, CREATE_FOLDER, &bucket, Place::Directory(&whole))?;
        self.admit_folder(exchange, &bucket.name, &whole, Usage::Write).await?;
        let (folders, _) = folders_of(&whole);
        for _ in 0..FOLDER_TRIES_MAX {
            let way = self.way(bucket.id, &folders).await?;
            let (known, seen) = (way.ids.len(), way.tree.changes);
            if known == folders.len() {
                let message = format!("The folder exists already: {}/{whole}", bucket.name);
                return Err(ObjectError::new(ErrorKind::Conflict, message).into());
            }
            if known + 1 < folders.len() && !recursive {
                return Err(no_parent(&bucket, &whole).into());
            }
            let make = Make { bucket: &bucket, seen, parent: way.last(), names: &folders[known..] };
            if let Some((_, folder)) = self.change_object(&make, exchange.deadline()).await? {
                return resource(exchange, folder.json(&bucket, &exchange.base, &whole));
            }
        }
        Err(moved_meanwhile())
    }

    /// The folder with a whole name, its id and the way to it.
    pub(super) async fn found_folder(
        &self,
        bucket: &Bucket,
        whole: &str,
    ) -> Result<(u64, Folder, Way), Failure> {
        let (folders, _) = folders_of(whole);
        let way = self.way(bucket.id, &folders).await?;
        if way.ids.len() < folders.len() || folders.is_empty() {
            return Err(no_such_folder(&bucket.name, whole).into());
        }
        let id = way.last();
        let folder = self.folder(bucket.id, id).await?;
        Ok((id, folder.ok_or_else(|| no_such_folder(&bucket.name, whole))?, way))
    }

    pub(super) async fn get_folder(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let (bucket, whole) = (self.bucket_with_folders(exchange, bucket).await?, with_slash(name));
        let (_, folder, _) = self.found_folder(&bucket, &whole).await?;
        exchange.conditions()?.check_seen(Some(&folder.seen()), Purpose::Read)?;
        resource(exchange, folder.json(&bucket, &exchange.base, &whole))
    }

    pub(super) async fn list_folders(&self, exchange: &Exchange<'_>, bucket: &str) -> Result<Reply, Failure> {
        let bucket = self.bucket_with_folders(exchange, bucket).await?;
        let text = |name: &str| exchange.parameter(name).unwrap_or_default();
        let is_flat = match text("delimiter") {
            "" => false,
            "/" => true,
            other => return Err(ObjectError::invalid("delimiter", other, "It must be '/'.").into()),
        };
        let most = exchange.query.page_size("pageSize")?;
        let after = Some(text("pageToken")).filter(|token| !token.is_empty());
        let after = after.map(Position::parse).transpose()?.map(|position| position.name);
        let time = self.page_time(exchange.deadline());
        let begin = || FolderPage {
            bucket: bucket.id,
            prefix: text("prefix"),
            is_flat,
            after: after.clone(),
            most,
            time: Some(time),
            found: Vec::new(),
            has_more: false,
        };
        let page = self.page_of_folders(begin, text("startOffset"), text("endOffset"));
        let page = page_by(time.deadline, page).await?;
        let (mut items, mut read) = (Vec::with_capacity(page.found.len()), 0);
        for (whole, id) in &page.found {
            if read > 0 && time.is_up() {
                break;
            }
            read += 1;
            // One that was deleted since the page was made is left out.
            if let Some(folder) = self.folder(bucket.id, *id).await? {
                items.push(folder.json(&bucket, &exchange.base, whole));
            }
        }
        let mut reply = json!({ "kind": "storage#folders", "items": items });
        let has_more = page.has_more || read < page.found.len();
        if let Some((last, _)) = page.found[..read].last().filter(|_| has_more) {
            let next = Position { name: last.clone(), generation: 0, prefix_done: false };
            reply["nextPageToken"] = next.token().into();
        }
        resource(exchange, reply)
    }
}

/// The folder above a new one does not exist.
pub(super) fn no_parent(bucket: &Bucket, whole: &str) -> ObjectError {
    let message = format!(
        "The parent folder does not exist: {}/{}. Make it first, or pass recursive.",
        bucket.name,
        parent_of(whole)
    );
    ObjectError::new(ErrorKind::BucketRule, message)
}
