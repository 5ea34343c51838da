//! Objects that are composed of others.

use serde_json::json;

use crate::support::Service;
use crate::support::wire::{Answer, Request};

impl Service {
    /// Composes `/photos/NAME` over the XML API, of these elements.
    async fn composed(&self, name: &str, headers: &[(&str, &str)], components: &str) -> Answer {
        let body = format!("<ComposeRequest>{components}</ComposeRequest>");
        let target = format!("/photos/{name}?compose");
        self.send_object(&Request::new("PUT", &target, headers, body.as_bytes())).await
    }

    /// A bucket with the objects `a` and `b`; returns the generation of `b`.
    async fn with_a_and_b() -> (Self, String) {
        let service = Self::with_photos().await;
        service.send_object(&Request::new("PUT", "/photos/a", &[], b"hello ")).await;
        let made = service.send_object(&Request::new("PUT", "/photos/b", &[], b"world")).await;
        let generation = made.header("x-goog-generation").expect("a generation");
        (service, generation)
    }
}

fn component(name: &str, more: &str) -> String {
    format!("<Component><Name>{name}</Name>{more}</Component>")
}

#[tokio::test]
async fn an_object_is_composed_over_the_xml_api() {
    let (service, generation) = Service::with_a_and_b().await;
    let headers = [
        ("Content-Type", "text/plain"),
        // Of the object, and not of the document.
        ("Content-Encoding", "gzip"),
        ("x-goog-meta-color", "red"),
        ("x-goog-if-generation-match", "0"),
    ];
    let named = component("b", &format!("<Generation>{generation}</Generation>"));
    let components = component("a", "") + &named + &component("a", "");
    let made = service.composed("c", &headers, &components).await;
    assert_eq!((made.status, made.body.as_str()), (200, ""));
    assert_eq!(made.header("x-goog-component-count").as_deref(), Some("3"));
    assert!(made.header("x-goog-hash").is_some_and(|hash| hash.starts_with("crc32c=")), "{made:?}");
    let resource = service.object_json("GET", "/b/photos/o/c", "").await;
    assert_eq!(resource["generation"], json!(made.header("x-goog-generation")));
    for (member, value) in [
        ("size", json!("17")),
        ("componentCount", json!(3)),
        ("contentType", json!("text/plain")),
        ("contentEncoding", json!("gzip")),
        ("metadata", json!({"color": "red"})),
    ] {
        assert_eq!(resource[member], value, "{member}");
    }
    let read = service.object("GET", "/photos/c", "").await;
    assert_eq!((read.status, read.body.as_str()), (200, "hello worldhello "));

    let taken = service.composed("c", &headers, &components).await;
    assert!(taken.status == 412 && taken.body.contains("<Code>PreconditionFailed</Code>"), "{}", taken.body);
    let matched = component("b", &format!("<IfGenerationMatch>{generation}</IfGenerationMatch>"));
    assert_eq!(service.composed("c", &[], &matched).await.status, 200);
    assert_eq!(service.object("GET", "/photos/c", "").await.body, "world");
}

#[tokio::test]
async fn a_composition_that_cannot_be_made_is_refused_in_xml() {
    let (service, generation) = Service::with_a_and_b().await;
    let other = format!("<IfGenerationMatch>{generation}</IfGenerationMatch>");
    for (components, status, code) in [
        (component("missing", ""), 404, "NoSuchKey"),
        (component("a", "<Generation>1</Generation>"), 404, "NoSuchKey"),
        (component("a", &other), 412, "PreconditionFailed"),
        (component("a", "<Generation>x</Generation>"), 400, "InvalidArgument"),
        (String::new(), 400, "InvalidArgument"),
        (component("a", "").repeat(33), 400, "InvalidArgument"),
        ("<Object><Name>a</Name></Object>".to_owned(), 400, "MalformedXML"),
    ] {
        let refused = service.composed("c", &[], &components).await;
        assert_eq!(refused.status, status, "{components}: {}", refused.body);
        assert!(refused.body.contains(&format!("<Code>{code}</Code>")), "{components}: {}", refused.body);
    }
    assert_eq!(service.object("GET", "/photos/c", "").await.status, 404);
    let document = format!("<ComposeRequest>{}</ComposeRequest>", component("a", ""));
    let nowhere = Request::new("PUT", "/nowhere/c?compose", &[], document.as_bytes());
    let refused = service.send_object(&nowhere).await;
    assert!(refused.status == 404 && refused.body.contains("<Code>NoSuchBucket</Code>"), "{}", refused.body);
}

#[tokio::test]
async fn a_composition_over_the_xml_api_meets_the_faults_of_a_retry_test() {
    let (service, _) = Service::with_a_and_b().await;
    let order = json!({"instructions": {"storage.objects.compose": ["return-503"]}}).to_string();
    let test = service.object_json("POST", "/retry_test", &order).await;
    let named = [("x-retry-test-id", test["id"].as_str().expect("an id"))];
    assert_eq!(service.composed("c", &named, &component("a", "")).await.status, 503);
    assert_eq!(service.composed("c", &named, &component("a", "")).await.status, 200);
}

#[tokio::test]
async fn compositions_of_compositions_may_have_more_parts_than_their_count_can_tell() {
    let service = Service::with_photos().await;
    assert_eq!(service.object("PUT", "/photos/none", "").await.status, 200);
    for _ in 0..7 {
        assert_eq!(service.composed("none", &[], &component("none", "").repeat(32)).await.status, 200);
    }
    let resource = service.object_json("GET", "/b/photos/o/none", "").await;
    assert_eq!(resource["componentCount"], json!(i32::MAX));
}
