//! Rewrites that a client wants to make in several calls.

use crate::support::Service;
use crate::support::wire::Request;

const LIMIT: &str = "maxBytesRewrittenPerCall=1048576";

#[tokio::test]
async fn a_rewrite_to_another_location_takes_the_calls_that_its_limit_asks_for() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let body = r#"{"name":"far","location":"EU"}"#;
    service.object_json("POST", "/storage/v1/b?project=test-project", body).await;
    let bytes = vec![b'x'; 3 << 20];
    let upload = Request::new("POST", "/upload/storage/v1/b/photos/o?uploadType=media&name=a", &[], &bytes);
    assert_eq!(service.send_object(&upload).await.status, 200);

    let target = format!("/storage/v1/b/photos/o/a/rewriteTo/b/far/o/a?{LIMIT}");
    let mut token = String::new();
    for rewritten in ["1048576", "2097152"] {
        let answer = service.object_json("POST", &format!("{target}{token}"), "{}").await;
        assert_eq!(answer["totalBytesRewritten"], rewritten);
        assert_eq!((&answer["objectSize"], &answer["done"]), (&"3145728".into(), &false.into()));
        assert_eq!(service.object("GET", "/storage/v1/b/far/o/a", "").await.status, 404);
        token = format!("&rewriteToken={}", answer["rewriteToken"].as_str().expect("a token"));
    }
    let done = service.object_json("POST", &format!("{target}{token}"), "{}").await;
    assert_eq!((&done["done"], &done["resource"]["size"]), (&true.into(), &"3145728".into()));
    let read = service.object("GET", "/storage/v1/b/far/o/a?alt=media", "").await;
    assert_eq!((read.status, read.body.len()), (200, bytes.len()));

    let near = format!("/storage/v1/b/photos/o/a/rewriteTo/b/photos/o/b?{LIMIT}");
    assert_eq!(service.object_json("POST", &near, "{}").await["done"], true, "nothing has to be moved");
    for wrong in ["maxBytesRewrittenPerCall=100".to_owned(), format!("{LIMIT}&rewriteToken=AAAA")] {
        let target = format!("/storage/v1/b/photos/o/a/rewriteTo/b/far/o/a?{wrong}");
        assert_eq!(service.object("POST", &target, "{}").await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_rewrite_goes_on_with_the_generation_with_which_it_was_begun() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let upload = async |bytes: &[u8]| {
        let target = "/upload/storage/v1/b/photos/o?uploadType=media&name=a";
        assert_eq!(service.send_object(&Request::new("POST", target, &[], bytes)).await.status, 200);
    };
    upload(&vec![b'x'; 2 << 20]).await;
    let target = format!("/storage/v1/b/photos/o/a/rewriteTo/b/photos/o/cold?{LIMIT}");
    let begun = service.object_json("POST", &target, r#"{"storageClass":"COLDLINE"}"#).await;
    let token = begun["rewriteToken"].as_str().expect("a token");
    upload(b"another").await;
    let on = format!("{target}&rewriteToken={token}");
    let answer = service.object("POST", &on, r#"{"storageClass":"COLDLINE"}"#).await;
    assert_eq!(answer.status, 404, "its source is gone: {}", answer.body);
}
