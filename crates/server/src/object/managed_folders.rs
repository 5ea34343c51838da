//! Managed folders of buckets. They are stored with their bucket, and so are their policies: see [`iam`](super::iam).

use rangehold_protocol::object::bucket::{Bucket, ManagedFolder};
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::micros::Micros;
use serde_json::{Value, json};

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::json::resource;
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
        shown(exchange, &self.bucket(bucket).await?, &with_slash(name))
    }

    pub(super) async fn list_managed_folders(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket(bucket).await?;
        let prefix = exchange.parameter("prefix").unwrap_or_default();
        let folders = bucket.managed_folders.iter().filter(|(name, _)| name.starts_with(prefix));
        let items = folders.map(|(name, folder)| bucket.managed_folder_json(&exchange.base, name, folder));
        let items: Vec<Value> = items.collect();
        resource(exchange, json!({ "kind": "storage#managedFolders", "items": items }))
    }

    pub(super) async fn delete_managed_folder(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let name = with_slash(name);
        let remove = |bucket: &Bucket, _| {
            let mut bucket = bucket.clone();
            bucket.managed_folders.remove(&name).ok_or_else(|| missing(&name))?;
            bucket.folder_policies.remove(&name);
            Ok(bucket)
        };
        self.change_bucket(bucket, &Conditions::default(), exchange.deadline(), remove).await?;
        Ok(Reply::empty(204))
    }
}

fn shown(exchange: &Exchange<'_>, bucket: &Bucket, name: &str) -> Result<Reply, Failure> {
    let folder = bucket.managed_folders.get(name).ok_or_else(|| missing(name))?;
    resource(exchange, bucket.managed_folder_json(&exchange.base, name, folder))
}

/// The name of a folder ends with a slash, also if the client leaves it out.
pub(super) fn with_slash(name: &str) -> String {
    if name.ends_with('/') { name.to_owned() } else { format!("{name}/") }
}

pub(super) fn missing(name: &str) -> ObjectError {
    ObjectError::new(ErrorKind::NotFound, format!("There is no managed folder {name}."))
}
