//! A folder that is deleted with all that lies in it: from below, object by object, folder by folder. What is renamed meanwhile lies
//! there no more, and is left alone.

use rangehold_map::KeyRange;
use rangehold_map::key::{ObjectKey, ObjectRow, names_beginning_with};
use rangehold_protocol::object::bucket::{Bucket, Look};
use rangehold_protocol::object::condition::{Conditions, Purpose};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::folder::{no_such_folder, stored_name, stored_parts, with_slash};
use rangehold_protocol::object::list::Want;
use rangehold_protocol::object::write::{Delete, Name};
use serde_json::json;

use super::ObjectService;
use super::exchange::Exchange;
use super::failure::Failure;
use super::grants::{DELETE, Place};
use super::list::visit_of;
use super::reply::Reply;
use super::tree_page::FolderPage;
use crate::limits::DELETED_AT_ONCE;

impl ObjectService {
    /// Deletes a folder with all that lies in it, object by object. If this is broken off, what was deleted stays deleted.
    pub(super) async fn delete_folder_recursively(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket_with_folders(exchange, bucket).await?;
        let (whole, conditions) = (with_slash(name), exchange.conditions()?);
        let (_, folder, _) = self.found_folder(&bucket, &whole).await?;
        conditions.check_seen(Some(&folder.seen()), Purpose::Write)?;
        let begin = || FolderPage {
            bucket: bucket.id,
            prefix: &whole,
            is_flat: false,
            after: None,
            most: DELETED_AT_ONCE,
            time: None,
            found: Vec::new(),
            has_more: false,
        };
        let page = self.page_of_folders(begin, "", "").await?;
        if page.has_more {
            let message = format!(
                "More than {DELETED_AT_ONCE} folders lie in {whole}. Delete some of those in it first."
            );
            return Err(ObjectError::new(ErrorKind::Invalid, message).into());
        }
        // From below: a folder comes after all folders in which it lies.
        for (below, id) in page.found.iter().rev() {
            match self.delete_with_objects(exchange, &bucket, below, *id).await {
                // It lies there no more.
                Err(Failure(error)) if error.kind == ErrorKind::NotFound && *below != whole => {}
                other => other?,
            }
        }
        let details = json!({ "folderId": whole });
        let response = json!({ "@type": "type.googleapis.com/google.protobuf.Empty" });
        self.told(exchange, &bucket, "DeleteFolderRecursive", &details, &response).await
    }

    /// Deletes the objects that lie in a folder itself, and the folder, as long as it has this name.
    async fn delete_with_objects(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        whole: &str,
        id: u64,
    ) -> Result<(), Failure> {
        let deadline = exchange.deadline();
        let keys = KeyRange::prefix(&names_beginning_with(bucket.id, &stored_name(id, "")));
        loop {
            let (found, _, way) = self.found_folder(bucket, whole).await?;
            if found != id {
                return Err(no_such_folder(&bucket.name, whole).into());
            }
            let found = self.heads(&keys).await?;
            if found.is_empty() {
                return self.deleted(bucket, whole, Some(id), &Conditions::default(), deadline).await;
            }
            for stored in found {
                let (_, name) = stored_parts(&stored).ok_or_else(|| ObjectError::damaged("a stored name"))?;
                let mut bucket = bucket.clone();
                let name = format!("{whole}{name}");
                self.permit_on(exchange, DELETE, &bucket, Place::Object(&name))?;
                // The folder had this name before its objects were found. If it is renamed meanwhile, this fails.
                let mut look = Look::new(way.tree.changes);
                look.found(&stored, &name);
                bucket.look = Some(look);
                let of = Name { bucket: &bucket, name: &stored };
                let delete = Delete { of, generation: None, conditions: &Conditions::default() };
                match self.change_object(&delete, deadline).await {
                    // Another request was faster.
                    Err(Failure(error)) if error.kind == ErrorKind::NoSuchObject => {}
                    other => other?,
                }
            }
        }
    }

    /// Some of the names in `keys` that have a live generation.
    async fn heads(&self, keys: &KeyRange) -> Result<Vec<String>, Failure> {
        let found = self.router.scan(keys, Vec::new, |found: &mut Vec<String>, key, _| {
            let Ok(key) = ObjectKey::decode(key) else { return visit_of(Want::Next) };
            let past = key.past_name();
            if key.row == ObjectRow::Head {
                found.push(key.name.into_owned());
            }
            visit_of(if found.len() < DELETED_AT_ONCE { Want::Seek(past) } else { Want::Stop })
        });
        Ok(found.await?)
    }
}
