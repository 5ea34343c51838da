//! Managed folders of buckets. They are stored with their bucket, and so are their policies: see [`iam`](super::iam).

use rangehold_protocol::object::bucket::{Bucket, ManagedFolder};
use rangehold_protocol::object::condition::{Conditions, Purpose};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::folder::{check_folder, with_slash};
use rangehold_protocol::object::generation::Generation;
use rangehold_protocol::object::list::ListRequest;
use rangehold_protocol::object::micros::Micros;
use serde_json::{Value, json};

use super::ObjectService;
use super::buckets::{cut_page, page_after};
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::json::resource;
use super::list::found_by;
use super::reply::Reply;

/// Managed folders of one bucket. All of them are in the bucket's row.
const MANAGED_FOLDERS_MAX: usize = 100;

impl ObjectService {
    pub(super) async fn insert_managed_folder(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let body = self.body_object(exchange, body).await?;
        let name = body.get("name").and_then(Value::as_str).ok_or_else(|| ObjectError::required("name"))?;
        let name = with_slash(name);
        check_folder(&name)?;
        let add = |bucket: &Bucket, now: Micros| {
            let mut bucket = bucket.clone();
            if bucket.managed_folders.len() >= MANAGED_FOLDERS_MAX {
                let message = format!("A bucket has at most {MANAGED_FOLDERS_MAX} managed folders.");
                return Err(ObjectError::new(ErrorKind::Invalid, message));
            }
            let folder = ManagedFolder { created: now, updated: now, metageneration: 1 };
            if bucket.managed_folders.insert(name.clone(), folder).is_some() {
                let message = format!("The managed folder {name} exists already.");
                return Err(ObjectError::new(ErrorKind::Conflict, message));
            }
            Ok(bucket)
        };
        let changed = self.change_bucket(bucket, &Conditions::default(), exchange.deadline(), add).await?;
        shown(exchange, &changed, &name)
    }

    pub(super) async fn get_managed_folder(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let (bucket, name) = (self.bucket(bucket).await?, with_slash(name));
        let folder = bucket.managed_folders.get(&name).ok_or_else(|| missing(&name))?;
        exchange.conditions()?.check_seen(Some(&folder.seen()), Purpose::Read)?;
        shown(exchange, &bucket, &name)
    }

    pub(super) async fn list_managed_folders(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket(bucket).await?;
        let prefix = exchange.parameter("prefix").unwrap_or_default();
        let after = page_after(exchange)?;
        let found = bucket
            .managed_folders
            .iter()
            .filter(|(name, _)| name.starts_with(prefix) && after.as_ref().is_none_or(|after| *name > after));
        let wanted = exchange.query.page_size("pageSize")?;
        let (page, next) = cut_page(found, wanted, |(name, _)| name.as_str());
        let json = |(name, folder): &(&String, &ManagedFolder)| {
            bucket.managed_folder_json(&exchange.base, name, folder)
        };
        let items: Vec<Value> = page.iter().map(json).collect();
        let mut reply = json!({ "kind": "storage#managedFolders", "items": items });
        if let Some(next) = next {
            reply["nextPageToken"] = next.into();
        }
        resource(exchange, reply)
    }

    /// Deletes a managed folder and its policy. One in which objects or other managed folders lie is deleted only with
    /// `allowNonEmpty`; they stay.
    pub(super) async fn delete_managed_folder(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let (name, conditions) = (with_slash(name), exchange.conditions()?);
        let allows = exchange.query.flag("allowNonEmpty")?;
        let found = |bucket: &Bucket| -> Result<(), ObjectError> {
            let folder = bucket.managed_folders.get(&name).ok_or_else(|| missing(&name))?;
            conditions.check_seen(Some(&folder.seen()), Purpose::Write)?;
            let is_below = |other: &String| *other != name && other.starts_with(&name);
            match !allows && bucket.managed_folders.keys().any(is_below) {
                true => Err(not_empty(&name)),
                false => Ok(()),
            }
        };
        let before = self.bucket(bucket).await?;
        found(&before)?;
        if !allows && self.has_objects_below(exchange, &before, &name).await? {
            return Err(not_empty(&name).into());
        }
        let remove = |bucket: &Bucket, _| {
            found(bucket)?;
            let mut bucket = bucket.clone();
            bucket.managed_folders.remove(&name);
            bucket.folder_policies.remove(&name);
            Ok(bucket)
        };
        self.change_bucket(bucket, &Conditions::default(), exchange.deadline(), remove).await?;
        Ok(Reply::empty(204))
    }

    /// Whether an object has a name below the folder. An object that is written later does not keep the folder: it needs
    /// none.
    async fn has_objects_below(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        folder: &str,
    ) -> Result<bool, Failure> {
        let mut request = ListRequest::parse(|parameter| match parameter {
            "prefix" => Some(folder),
            "maxResults" => Some("1"),
            _ => None,
        })?;
        // A page may end before it shows anything, if many names below the folder were deleted.
        let looking = async {
            loop {
                let put = |found: &mut bool, _: &str, _: &Generation| *found = true;
                let (found, end) = self.page(exchange, bucket, &request, || false, put).await?;
                if found || end.next.is_none() {
                    return Ok(found);
                }
                request.position = end.next;
            }
        };
        let late = "The server could not find out in time whether objects lie in the folder. Try again, or pass \
                    allowNonEmpty=true.";
        found_by(exchange.deadline(), looking, late).await
    }
}

fn shown(exchange: &Exchange<'_>, bucket: &Bucket, name: &str) -> Result<Reply, Failure> {
    let folder = bucket.managed_folders.get(name).ok_or_else(|| missing(name))?;
    resource(exchange, bucket.managed_folder_json(&exchange.base, name, folder))
}

pub(super) fn missing(name: &str) -> ObjectError {
    ObjectError::new(ErrorKind::NotFound, format!("There is no managed folder {name}."))
}

fn not_empty(name: &str) -> ObjectError {
    let message = format!(
        "The managed folder {name} is not empty. To delete it and keep what lies in it, pass allowNonEmpty=true."
    );
    ObjectError::new(ErrorKind::Conflict, message)
}
