//! Web pages of other origins.

use crate::support::Service;
use crate::support::wire::Request;

#[tokio::test]
async fn a_page_of_another_origin_may_do_what_a_rule_of_the_bucket_says() {
    let service = Service::start().await;
    service.create_bucket("photos").await;
    let from =
        |method: &str, origin: &str| Request::new(method, "/storage/v1/b/photos", &[("Origin", origin)], b"");
    let page = "https://page.example";
    assert_eq!(service.send_object(&from("DELETE", page)).await.status, 403);
    let rules =
        r#"{"cors":[{"origin":["https://page.example"],"method":["GET"],"responseHeader":["ETag"]}]}"#;
    service.object_json("PATCH", "/b/photos", rules).await;
    let allowed = service.send_object(&from("GET", page)).await;
    assert_eq!(allowed.status, 200, "{}", allowed.body);
    assert_eq!(allowed.header("Access-Control-Allow-Origin").as_deref(), Some(page));
    assert_eq!(service.send_object(&from("DELETE", page)).await.status, 403);
    assert_eq!(service.send_object(&from("GET", "https://other.example")).await.status, 403);
    // A program names the page that is to go on with its upload. A browser would not send the token of another page unasked.
    let with_token = |method: &str, origin: &str| {
        let headers = [("Origin", origin), ("Authorization", "Bearer token")];
        Request::new(method, "/storage/v1/b/photos", &headers, b"")
    };
    assert_eq!(service.send_object(&with_token("GET", "https://other.example")).await.status, 200);
    assert_eq!(service.send_object(&with_token("DELETE", page)).await.status, 403, "a rule names the page");
    let own = format!("http://{}", service.running.object_address.expect("objects are served"));
    assert_eq!(service.send_object(&from("GET", &own)).await.status, 200);

    let ask = [("Origin", page), ("Access-Control-Request-Method", "GET")];
    let asked = service.send_object(&Request::new("OPTIONS", "/storage/v1/b/photos", &ask, b"")).await;
    assert_eq!(asked.header("Access-Control-Allow-Methods").as_deref(), Some("GET"));
}
