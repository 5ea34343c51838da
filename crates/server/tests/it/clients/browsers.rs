//! Requests that browsers send for pages of other origins.

use crate::support::Service;
use crate::support::wire::{Answer, Request};

const RULES: &str = "<StorageServiceProperties><Cors>\
    <CorsRule><AllowedOrigins>http://page.example</AllowedOrigins><AllowedMethods>GET,POST</AllowedMethods>\
    <AllowedHeaders>x-ms-*,content-type</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders>\
    <MaxAgeInSeconds>200</MaxAgeInSeconds></CorsRule>\
    <CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>DELETE,OPTIONS</AllowedMethods>\
    <AllowedHeaders>*</AllowedHeaders><ExposedHeaders></ExposedHeaders>\
    <MaxAgeInSeconds>10</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

async fn with_rules() -> Service {
    let service = Service::start().await;
    let target = "/?restype=service&comp=properties";
    let answer = service.send("PUT", target, &[("Content-Type", "application/xml")], RULES.as_bytes()).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    service
}

async fn preflight(service: &Service, headers: &[(&str, &str)]) -> Answer {
    service.send_raw(&Request::new("OPTIONS", "/devstoreaccount1/Tables", headers, b"")).await
}

fn allowed(answer: &Answer) -> Option<String> {
    answer.header("access-control-allow-origin")
}

#[tokio::test]
async fn a_preflight_needs_no_key() {
    let service = with_rules().await;
    let method = "Access-Control-Request-Method";
    let headers = ("Access-Control-Request-Headers", "x-ms-date, x-ms-version,Content-Type");
    let answer = preflight(&service, &[("Origin", "http://page.example"), (method, "POST"), headers]).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(allowed(&answer).as_deref(), Some("http://page.example"));
    assert_eq!(answer.header("access-control-allow-methods").as_deref(), Some("POST"));
    assert_eq!(answer.header("access-control-allow-headers").as_deref(), Some(headers.1));
    assert_eq!(answer.header("access-control-max-age").as_deref(), Some("200"));
    // The header comes once, even if a rule allows OPTIONS itself, because browsers refuse a reply with two origins.
    let any = preflight(&service, &[("Origin", "http://any.example"), (method, "DELETE")]).await;
    assert_eq!((any.status, allowed(&any).as_deref()), (200, Some("*")));

    for refused in [
        &[("Origin", "http://other.example"), (method, "POST")][..],
        &[("Origin", "http://page.example"), (method, "PUT")],
        &[
            ("Origin", "http://page.example"),
            (method, "GET"),
            ("Access-Control-Request-Headers", "authorization"),
        ],
    ] {
        let answer = preflight(&service, refused).await;
        assert_eq!((answer.status, answer.code()), (403, "CorsPreflightFailure"), "{refused:?}");
        assert_eq!(allowed(&answer), None);
    }
    for incomplete in [&[("Origin", "http://page.example")][..], &[(method, "GET")], &[]] {
        let answer = preflight(&service, incomplete).await;
        assert_eq!((answer.status, answer.code()), (400, "MissingRequiredHeader"), "{incomplete:?}");
    }
}

#[tokio::test]
async fn an_actual_request_shows_its_reply_to_allowed_pages() {
    let service = with_rules().await;
    let page = service.send("GET", "/Tables", &[("Origin", "http://page.example")], b"").await;
    assert_eq!((page.status, allowed(&page).as_deref()), (200, Some("http://page.example")));
    assert_eq!(page.header("access-control-allow-credentials").as_deref(), Some("true"));
    assert_eq!(page.header("access-control-expose-headers").as_deref(), Some("x-ms-*"));
    assert_eq!(page.header("vary").as_deref(), Some("Origin"));
    // The request is served, and the browser hides the reply from the page.
    let other = service.send("GET", "/Tables", &[("Origin", "http://other.example")], b"").await;
    assert_eq!((other.status, allowed(&other)), (200, None));
    assert_eq!(other.header("vary").as_deref(), Some("Origin"));
    // Errors are shown too, because otherwise a page could not tell what went wrong.
    let missing = service.send("GET", "/Tables('nosuch')", &[("Origin", "http://page.example")], b"").await;
    assert_eq!((missing.status, allowed(&missing).as_deref()), (404, Some("http://page.example")));
    let stranger = Request::new("GET", "/devstoreaccount1/Tables", &[("Origin", "http://page.example")], b"");
    let stranger = service.send_raw(&stranger).await;
    assert_eq!((stranger.status, allowed(&stranger).as_deref()), (401, Some("http://page.example")));
}

#[tokio::test]
async fn an_account_without_rules_allows_nothing() {
    let service = Service::start().await;
    let asked = [("Origin", "http://page.example"), ("Access-Control-Request-Method", "GET")];
    let answer = preflight(&service, &asked).await;
    assert_eq!((answer.status, answer.code()), (403, "CorsPreflightFailure"));
    let page = service.send("GET", "/Tables", &[asked[0]], b"").await;
    assert_eq!((page.status, allowed(&page), page.header("vary")), (200, None, None));
    let unknown = Request::new("OPTIONS", "/nosuchaccount/Tables", &asked, b"");
    let refused = service.send_raw(&unknown).await;
    assert_eq!((refused.status, refused.code()), (403, "CorsPreflightFailure"));

    // A stranger does not learn which accounts there are, also while the catalogue cannot be read.
    let offline = service.order("POST", "/v1/map/offline", r#"{"range":"r1"}"#).await;
    assert_eq!(offline.status, 200, "{}", offline.body);
    let known = preflight(&service, &asked).await;
    let unknown = service.send_raw(&unknown).await;
    assert_eq!((known.status, known.code()), (unknown.status, unknown.code()));
    assert_eq!(known.status, 503);
}
