//! The object service as clients meet it.

mod addresses;
mod ageing;
mod bandwidth;
mod blobs;
mod buckets;
mod compositions;
mod encryption;
mod folders;
mod growth;
mod grpc;
mod grpc_rates;
mod hang_ups;
mod managed_folders;
mod moves;
mod operations;
mod packed;
mod pages;
mod payloads;
mod policies;
mod rates;
mod retries;
mod rewrites;
mod xml;

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use rangehold_engine::Visit;
use rangehold_map::KeyRange;
use serde_json::Value;

use crate::support::wire::{Answer, Request};
use crate::support::{Service, Wanted};

impl Service {
    /// A service with the bucket `photos`.
    pub(crate) async fn with_photos() -> Self {
        Self::open_with_photos(Wanted::default()).await
    }

    /// The same, started as `wanted` says.
    pub(crate) async fn open_with_photos(wanted: Wanted) -> Self {
        let service = Self::open(wanted).await;
        service.create_bucket("photos").await;
        service
    }

    /// Sends a request to the object service, with JSON if there is some.
    pub(crate) async fn object(&self, method: &str, target: &str, body: &str) -> Answer {
        let json: &[(&str, &str)] =
            if body.is_empty() { &[] } else { &[("Content-Type", "application/json")] };
        self.send_object(&Request::new(method, target, json, body.as_bytes())).await
    }

    /// The same, and expects success and JSON.
    pub(crate) async fn object_json(&self, method: &str, target: &str, body: &str) -> Value {
        let answer = self.object(method, target, body).await;
        assert_eq!(answer.status, 200, "{method} {target}: {}", answer.body);
        serde_json::from_str(&answer.body).expect("JSON")
    }

    /// The rows of a kind.
    pub(crate) async fn stored(&self, kind: u8) -> Vec<(Vec<u8>, Bytes)> {
        let take = |rows: &mut Vec<_>, key: &[u8], row: &Bytes| {
            rows.push((key.to_vec(), row.clone()));
            Visit::Next
        };
        self.node.router().scan(&KeyRange::prefix(&[kind]), Vec::new, take).await.expect("rows")
    }

    /// Creates a bucket of the test project.
    pub(crate) async fn create_bucket(&self, name: &str) -> Value {
        let body = format!(r#"{{"name":"{name}"}}"#);
        self.object_json("POST", "/storage/v1/b?project=test-project", &body).await
    }
}

/// How many chunk files there are.
async fn chunk_files(objects: &Arc<dyn ObjectStore>) -> usize {
    objects.list(Some(&Path::from("blobs"))).try_collect::<Vec<_>>().await.expect("a list").len()
}
