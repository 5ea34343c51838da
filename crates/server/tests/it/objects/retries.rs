//! Retry tests: errors that clients order.

use serde_json::json;

use crate::support::Service;
use crate::support::wire::{self, Request};

#[tokio::test]
async fn ordered_errors_come_once_and_in_their_order() {
    let service = Service::start().await;
    let order = json!({"instructions": {"storage.buckets.list": ["return-503", "return-reset-connection"]}});
    let test = service.object_json("POST", "/retry_test", &order.to_string()).await;
    let id = test["id"].as_str().expect("an id");
    let list = Request::new("GET", "/b?project=p", &[("x-retry-test-id", id)], b"");
    assert_eq!(service.send_object(&list).await.status, 503);
    let address = service.running.object_address.expect("objects are served");
    let reset = wire::send_bytes(address, &list.head(address)).await;
    assert!(reset.is_empty(), "{}", String::from_utf8_lossy(&reset));
    assert_eq!(service.send_object(&list).await.status, 200);
    let done = service.object_json("GET", &format!("/retry_test/{id}"), "").await;
    assert_eq!(done["completed"], true);
}
