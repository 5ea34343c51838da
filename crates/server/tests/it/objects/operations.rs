//! Long-running operations, and the restoration of many objects.

use serde_json::{Value, json};

use crate::support::Service;

impl Service {
    /// Restores what the body says, and waits for the end of the operation.
    async fn bulk_restore(&self, body: Value) -> Value {
        let begun = self.object_json("POST", "/b/photos/o/bulkRestore", &body.to_string()).await;
        let name = begun["name"].as_str().expect("a name");
        let id = name.strip_prefix("projects/_/buckets/photos/operations/").expect("an id");
        loop {
            let operation = self.object_json("GET", &format!("/b/photos/operations/{id}"), "").await;
            if operation["done"] == true {
                return operation;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    async fn names(&self) -> Vec<String> {
        let page = self.object_json("GET", "/b/photos/o", "").await;
        let items = page["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
    }

    async fn put_text(&self, name: &str, text: &str) {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=media&name={name}");
        self.object_json("POST", &target, text).await;
    }
}

#[tokio::test]
async fn soft_deleted_objects_are_restored_together_and_live_ones_stay() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    for name in ["a/1", "a/2", "b/1", "c"] {
        service.put_text(name, "first").await;
        service.put_text(name, "second").await;
        let target = format!("/b/photos/o/{}", name.replace('/', "%2F"));
        assert_eq!(service.object("DELETE", &target, "").await.status, 204);
    }
    service.put_text("a/2", "newer").await;
    let done = service.bulk_restore(json!({"matchGlobs": ["a/*"]})).await;
    assert_eq!(done["metadata"]["succeededCount"], "1", "{done}");
    assert_eq!(done["metadata"]["skippedCount"], "1", "{done}");
    assert_eq!(service.names().await, ["a/1", "a/2"]);
    let body = service.object("GET", "/b/photos/o/a%2F1?alt=media", "").await.body;
    assert_eq!(body, "second", "the generation that was made last");
    let done = service.bulk_restore(json!({"allowOverwrite": true})).await;
    assert_eq!(done["response"], json!({}), "{done}");
    assert_eq!(service.names().await, ["a/1", "a/2", "b/1", "c"]);
    assert_eq!(service.object("GET", "/b/photos/o/a%2F2?alt=media", "").await.body, "second");

    let listed = service.object_json("GET", "/b/photos/operations?pageSize=1", "").await;
    let (first, token) = (&listed["operations"], listed["nextPageToken"].as_str().expect("one more"));
    let second = service.object_json("GET", &format!("/b/photos/operations?pageToken={token}"), "").await;
    assert_eq!(
        (first.as_array().map(Vec::len), second["operations"].as_array().map(Vec::len)),
        (Some(1), Some(1))
    );
    let id =
        second["operations"][0]["name"].as_str().and_then(|name| name.rsplit('/').next()).expect("an id");
    let late = service.object("POST", &format!("/b/photos/operations/{id}/cancel"), "").await;
    assert_eq!(late.status, 400, "{}", late.body);
    assert_eq!(service.object("GET", "/b/photos/operations/7", "").await.status, 404);
    for wrong in [json!({"matchGlobs": ["["]}), json!({"createdAfterTime": "soon"})] {
        let refused = service.object("POST", "/b/photos/o/bulkRestore", &wrong.to_string()).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
    }
}
