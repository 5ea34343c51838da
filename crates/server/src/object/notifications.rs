//! Notification configurations of buckets. They are stored and shown; nothing is published.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rangehold_map::key::BucketRow;
use rangehold_map::{Key, KeyRange, PartitionPrefix, Timestamp};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::limits::NOTIFICATIONS_MAX;
use rangehold_protocol::object::link::bucket_link;
use rangehold_protocol::object::merge::typed;
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::row::{decode_row, encode_row};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::json::resource;
use super::reply::Reply;

/// How the whole name of a topic begins.
const TOPIC_SERVICE: &str = "//pubsub.googleapis.com/";

/// A configuration, as its client sent it, with the whole name of its topic.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Notification {
    topic: String,
    event_types: Vec<String>,
    payload_format: Option<String>,
    object_name_prefix: Option<String>,
    custom_attributes: BTreeMap<String, String>,
}

impl Notification {
    fn decode(row: &[u8]) -> Result<Self, ObjectError> {
        decode_row("a notification configuration", row)
    }

    /// Checks it, and makes its topic whole. Clients for Java and C++ send a topic without the service in front of it.
    fn check(&mut self) -> Result<(), ObjectError> {
        if self.topic.is_empty() {
            return Err(ObjectError::required("topic"));
        }
        let path = self.topic.strip_prefix(TOPIC_SERVICE).unwrap_or(&self.topic);
        let names = path.strip_prefix("projects/").and_then(|names| names.split_once("/topics/"));
        if !names.is_some_and(|(project, topic)| !project.is_empty() && !topic.is_empty()) {
            let hint = "Write //pubsub.googleapis.com/projects/PROJECT/topics/TOPIC.";
            return Err(ObjectError::invalid("topic", &self.topic, hint));
        }
        self.topic = format!("{TOPIC_SERVICE}{path}");
        match self.payload_format.as_deref() {
            None | Some("NONE" | "JSON_API_V1") => Ok(()),
            Some(other) => Err(ObjectError::invalid("payload_format", other, "Use NONE or JSON_API_V1.")),
        }
    }

    fn json(&self, base: &str, bucket: &str, id: &str) -> Value {
        let mut out = json!({
            "kind": "storage#notification",
            "id": id,
            "selfLink": format!("{}/notificationConfigs/{id}", bucket_link(base, bucket)),
            "etag": id,
            "topic": self.topic,
            "payload_format": self.payload_format.as_deref().unwrap_or("JSON_API_V1"),
        });
        if !self.event_types.is_empty() {
            out["event_types"] = json!(self.event_types);
        }
        if let Some(prefix) = &self.object_name_prefix {
            out["object_name_prefix"] = json!(prefix);
        }
        if !self.custom_attributes.is_empty() {
            out["custom_attributes"] = json!(self.custom_attributes);
        }
        out
    }
}

impl ObjectService {
    pub(super) async fn list_notifications(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
    ) -> Result<Reply, Failure> {
        self.bucket(bucket).await?;
        let mut items = Vec::new();
        for (id, row) in self.notifications(bucket).await? {
            items.push(Notification::decode(&row)?.json(&exchange.base, bucket, &id));
        }
        let mut reply = json!({ "kind": "storage#notifications" });
        if !items.is_empty() {
            reply["items"] = items.into();
        }
        resource(exchange, reply)
    }

    /// The ids and rows of a bucket's configurations.
    async fn notifications(&self, bucket: &str) -> Result<Vec<(String, bytes::Bytes)>, Failure> {
        let keys = KeyRange::prefix(PartitionPrefix::bucket(bucket).as_bytes());
        let found = self.router.scan(&keys, Vec::new, |found, key, row| {
            if let Ok(Key::Bucket { row: BucketRow::Notification(id), .. }) = Key::decode(key) {
                found.push((id, row.clone()));
            }
            ControlFlow::Continue(())
        });
        Ok(found.await?)
    }

    pub(super) async fn insert_notification(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let mut notification: Notification = typed(self.body_object(exchange, body).await?)?;
        notification.check()?;
        if self.notifications(bucket).await?.len() >= NOTIFICATIONS_MAX {
            let message =
                format!("Bucket {bucket} has {NOTIFICATIONS_MAX} notification configurations, the most.");
            return Err(ObjectError::new(ErrorKind::Conflict, message).into());
        }
        let partition = PartitionPrefix::bucket(bucket);
        let judge = |rows: &[Option<bytes::Bytes>], now: Timestamp| {
            rows[0].as_ref().ok_or_else(ObjectError::no_such_bucket)?;
            // The times of a bucket's writes grow, so an id is never used again.
            let id = Micros::from(now).get().to_string();
            let key = partition.bucket_row(&BucketRow::Notification(id.clone()));
            Ok((vec![(key, Some(encode_row(&notification)))], id))
        };
        let live = [partition.bucket_row(&BucketRow::Bucket)];
        let id = self.change(&partition, &live, exchange.deadline(), judge).await?;
        resource(exchange, notification.json(&exchange.base, bucket, &id))
    }

    pub(super) async fn get_notification(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        id: &str,
    ) -> Result<Reply, Failure> {
        self.bucket(bucket).await?;
        let key = PartitionPrefix::bucket(bucket).bucket_row(&BucketRow::Notification(id.to_owned()));
        let row = self.router.get(&key).await?.ok_or_else(|| missing(id))?;
        resource(exchange, Notification::decode(&row)?.json(&exchange.base, bucket, id))
    }

    pub(super) async fn delete_notification(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        id: &str,
    ) -> Result<Reply, Failure> {
        self.bucket(bucket).await?;
        let partition = PartitionPrefix::bucket(bucket);
        let key = partition.bucket_row(&BucketRow::Notification(id.to_owned()));
        self.change(&partition, std::slice::from_ref(&key), exchange.deadline(), |rows, _| {
            rows[0].as_ref().ok_or_else(|| missing(id))?;
            Ok((vec![(key.clone(), None)], ()))
        })
        .await?;
        Ok(Reply::empty(204))
    }
}

fn missing(id: &str) -> ObjectError {
    ObjectError::new(ErrorKind::NotFound, format!("There is no notification configuration {id}."))
}
