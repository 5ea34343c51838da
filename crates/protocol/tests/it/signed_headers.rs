//! Headers of signed requests: which of them must be signed, and which must come.

use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::signed::{Claim, SignedError, SignedRequest};

const GOOGLE_V4: &str = "X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=a%40b%2F20190201%2Fauto%2Fstorage%2F\
                         goog4_request&X-Goog-Date=20190201T090000Z&X-Goog-Expires=10&X-Goog-Signature=00\
                         &X-Goog-SignedHeaders=host%3Bx-goog-meta-a";
const AMAZON_V4: &str = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2F20190201%2Fauto%2Fs3%2Faws4_request\
                         &X-Amz-Date=20190201T090000Z&X-Amz-Expires=10&X-Amz-Signature=00\
                         &X-Amz-SignedHeaders=host%3Bx-goog-meta-a";
const GOOGLE_V2: &str = "GoogleAccessId=a&Expires=4102444800&Signature=AAAA";
const AMAZON_V2: &str = "AWSAccessKeyId=a&Expires=4102444800&Signature=AAAA";

fn read(query: &str, headers: &[(&str, &str)]) -> Result<Claim, SignedError> {
    read_as("PUT", query, headers)
}

fn read_as(method: &str, query: &str, headers: &[(&str, &str)]) -> Result<Claim, SignedError> {
    let request = SignedRequest { method, path: "/b/o", query, host: "h", host_bucket: None, headers };
    Claim::read(&request).map(|claim| claim.expect("a signature"))
}

/// Checks that `header` is refused because it is not signed.
fn assert_unsigned(query: &str, headers: &[(&str, &str)], header: &str) {
    let error = ObjectError::from(read(query, headers).expect_err(header));
    assert_eq!((error.kind.status(), error.kind.xml_code()), (403, "AccessDenied"), "{query} {header}");
    assert!(error.message.contains(&header.to_ascii_lowercase()), "{}", error.message);
}

#[test]
fn a_holder_of_a_signature_cannot_add_headers_that_change_the_request() {
    // The server reads the words of both dialects in one request, so each signature refuses both.
    for query in [GOOGLE_V4, AMAZON_V4] {
        for header in [
            "x-goog-acl",
            "X-Goog-Copy-Source",
            "x-goog-meta-b",
            "x-amz-acl",
            "x-amz-meta-b",
            "x-amz-tagging",
        ] {
            assert_unsigned(query, &[("x-goog-meta-a", "1"), (header, "value")], header);
        }
    }
    assert_unsigned(GOOGLE_V2, &[("x-amz-acl", "public-read")], "x-amz-acl");
    assert_unsigned(AMAZON_V2, &[("x-goog-acl", "public-read")], "x-goog-acl");
    let google =
        "GOOG4-HMAC-SHA256 Credential=a/20190201/auto/storage/goog4_request,SignedHeaders=host,Signature=00";
    let amazon =
        "AWS4-HMAC-SHA256 Credential=a/20190201/auto/s3/aws4_request,SignedHeaders=host,Signature=00";
    for (authorization, date) in [(google, "x-goog-date"), (amazon, "x-amz-date")] {
        let own = [("authorization", authorization), (date, "20190201T090000Z")];
        assert!(read("", &own).is_ok(), "{authorization}");
        assert_unsigned("", &[own[0], own[1], ("x-goog-acl", "public-read")], "x-goog-acl");
        assert_unsigned("", &[own[0], own[1], ("x-amz-acl", "public-read")], "x-amz-acl");
    }
}

#[test]
fn headers_that_describe_the_client_or_belong_to_the_signature_need_not_be_signed() {
    let headers = [
        ("X-Goog-Api-Client", "gl-python/3.12"),
        ("x-goog-gcs-idempotency-token", "1"),
        ("x-goog-user-project", "p"),
        ("x-goog-date", "20190201T090000Z"),
        ("x-goog-content-sha256", "UNSIGNED-PAYLOAD"),
        ("x-amz-date", "20190201T090000Z"),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
        ("amz-sdk-invocation-id", "1"),
        ("x-retry-test-id", "1"),
        ("content-type", "text/plain"),
    ];
    let signed = [("x-goog-meta-a", "1")];
    let all: Vec<(&str, &str)> = headers.into_iter().chain(signed).collect();
    for query in [GOOGLE_V4, AMAZON_V4] {
        assert!(read(query, &all).is_ok(), "{query}");
    }
    for query in [GOOGLE_V2, AMAZON_V2] {
        assert!(read(query, &headers).is_ok(), "{query}");
    }
}

#[test]
fn a_header_that_is_signed_and_did_not_come_is_named() {
    let error = ObjectError::from(read(GOOGLE_V4, &[]).expect_err("a header is missing"));
    assert_eq!((error.kind.status(), error.kind.xml_code()), (400, "MalformedSecurityHeader"));
    assert!(error.message.contains("not in the request: x-goog-meta-a"), "{}", error.message);
    assert!(read_as("OPTIONS", GOOGLE_V4, &[]).is_ok(), "a browser asks before it sends the header");
    // Amazon counts such a header as empty, and a client may have signed it so.
    assert!(read(AMAZON_V4, &[]).is_ok());
    let content_type = GOOGLE_V4.replace("x-goog-meta-a", "content-type");
    assert!(read(&content_type, &[]).is_ok(), "a content type that did not come is empty");
}
