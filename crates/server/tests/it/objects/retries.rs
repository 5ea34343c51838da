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

#[tokio::test]
async fn requests_of_the_xml_api_meet_the_errors_of_the_operations_that_do_the_same() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let order = json!({"instructions": {
        "storage.objects.insert": ["return-503"],
        "storage.objects.get": ["return-reset-connection", "return-broken-stream-after-2B", "return-429"],
        "storage.objects.list": ["return-500"],
    }});
    let test = service.object_json("POST", "/retry_test", &order.to_string()).await;
    let named = [("x-retry-test-id", test["id"].as_str().expect("an id"))];
    let put = Request::new("PUT", "/photos/o", &named, b"hello");
    let refused = service.send_object(&put).await;
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("<Error><Code>ServiceUnavailable</Code>"), "{}", refused.body);
    assert_eq!(service.object("GET", "/photos/o", "").await.status, 404, "nothing was done");
    assert_eq!(service.send_object(&put).await.status, 200);

    let address = service.running.object_address.expect("objects are served");
    let get = Request::new("GET", "/photos/o", &named, b"");
    assert!(wire::send_bytes(address, &get.head(address)).await.is_empty());
    let broken = wire::send_bytes(address, &get.head(address)).await;
    assert!(!String::from_utf8_lossy(&broken).contains("hello"), "the body breaks off");
    assert_eq!(service.send_object(&get).await.status, 429);
    assert_eq!(service.send_object(&get).await.body, "hello");
    let list = Request::new("GET", "/photos", &named, b"");
    assert_eq!(service.send_object(&list).await.status, 500);
    assert_eq!(service.send_object(&list).await.status, 200);
}
