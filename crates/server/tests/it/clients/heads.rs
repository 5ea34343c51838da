//! Request lines and headers that no client library would send.

use rangehold_server::limits::{HEADER_BYTES_MAX, HEADER_FIELDS_MAX, URI_BYTES_MAX};

use crate::support::Service;
use crate::support::wire::{Answer, parse, send_bytes};

/// Sends bytes as they are, and reads the reply.
async fn raw(service: &Service, bytes: impl AsRef<[u8]>) -> Answer {
    let reply = send_bytes(service.running.table_address, bytes.as_ref()).await;
    parse(&reply).expect("a reply")
}

#[tokio::test]
async fn a_head_above_its_limits_is_refused() {
    let service = Service::start().await;
    let long = "a".repeat(2 * HEADER_BYTES_MAX);
    let too_large = service.send("GET", "/Tables", &[("x-long", &long)], b"").await;
    assert_eq!(too_large.status, 431);

    // Every request of the test has some fields of its own. With these there are exactly as many as are allowed. Then
    // there is one more.
    let names: Vec<String> = (0..HEADER_FIELDS_MAX).map(|index| format!("x-field-{index}")).collect();
    let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let own = 5;
    let most = service.send("GET", "/Tables", &fields[..HEADER_FIELDS_MAX - own], b"").await;
    assert_eq!(most.status, 200, "{most:?}");
    let too_many = service.send("GET", "/Tables", &fields[..=HEADER_FIELDS_MAX - own], b"").await;
    assert_eq!(too_many.status, 431);
    service.still_serves().await;
}

#[tokio::test]
async fn a_uri_above_its_limit_is_refused() {
    let service = Service::start().await;
    let room = URI_BYTES_MAX - "/devstoreaccount1/Tables".len() - "?x=".len();
    let longest = service.send("GET", &format!("/Tables?x={}", "a".repeat(room)), &[], b"").await;
    // The question mark belongs to neither the path nor the query, so it is not counted.
    assert_eq!(longest.status, 200);
    let longer = service.send("GET", &format!("/Tables?x={}", "a".repeat(room + 2)), &[], b"").await;
    assert_eq!((longer.status, longer.code()), (400, "InvalidUri"));
    service.still_serves().await;
}

#[tokio::test]
async fn a_uri_that_cannot_be_decoded_is_refused() {
    let service = Service::start().await;
    for part in ["%", "%4", "%zz", "%00", "%C0%AF", "%E0%80%AF", "%FF", "%ED%A0%80"] {
        for target in [format!("/notes(PartitionKey='{part}',RowKey='r')"), format!("/{part}")] {
            let answer = service.send("GET", &target, &[], b"").await;
            assert_eq!((answer.status, answer.code()), (400, "InvalidUri"), "{target}");
        }
        for target in [format!("/notes()?$filter={part}"), format!("/notes()?{part}=a")] {
            let answer = service.send("GET", &target, &[], b"").await;
            assert_eq!((answer.status, answer.code()), (400, "InvalidUri"), "{target}");
        }
    }
    service.still_serves().await;
}

#[tokio::test]
async fn bytes_that_are_not_a_uri_are_refused() {
    let service = Service::start().await;
    for target in [&b"/devstoreaccount1/\0"[..], b"/devstoreaccount1/a b", b"http://", b"/\x7f"] {
        let mut request = b"GET ".to_vec();
        request.extend_from_slice(target);
        request.extend_from_slice(b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(raw(&service, request).await.status, 400, "{}", target.escape_ascii());
    }
    // HTTP reads this target as a host, and we have no such host.
    let answer = raw(&service, "GET no-slash HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert_eq!((answer.status, answer.code()), (401, "NoAuthenticationInformation"));
    // Raw UTF-8 is not a URI either. But some clients send it, and if they sign the request, it is answered.
    service.create_table("notes").await;
    let answer = service.send("GET", "/notes(PartitionKey='é',RowKey='r')", &[], b"").await;
    assert_eq!((answer.status, answer.code()), (404, "ResourceNotFound"));
    service.still_serves().await;
}

#[tokio::test]
async fn a_request_names_a_host() {
    let service = Service::start().await;
    for head in
        ["GET /devstoreaccount1/Tables HTTP/1.1\r\n", "GET /devstoreaccount1/Tables HTTP/1.1\r\nHost:\r\n"]
    {
        let answer = raw(&service, format!("{head}Connection: close\r\n\r\n")).await;
        assert_eq!((answer.status, answer.code()), (400, "HostInformationNotPresent"));
    }
    let twice = service.send("GET", "/Tables", &[("Host", "a"), ("Host", "b")], b"").await;
    assert_eq!((twice.status, twice.code()), (400, "InvalidHeaderValue"));
    service.still_serves().await;
}

/// HTTP/1.0 is served, because health checks and old proxies use it. Its requests may come without a host, but they
/// need one, as all requests do.
#[tokio::test]
async fn http_1_0() {
    let service = Service::start().await;
    let healthy = raw(&service, "GET /healthz HTTP/1.0\r\n\r\n").await;
    assert_eq!(healthy.status, 200);
    let nameless = raw(&service, "GET /devstoreaccount1/Tables HTTP/1.0\r\n\r\n").await;
    assert_eq!((nameless.status, nameless.code()), (400, "HostInformationNotPresent"));
    let stranger = raw(&service, "GET /devstoreaccount1/Tables HTTP/1.0\r\nHost: a\r\n\r\n").await;
    assert_eq!((stranger.status, stranger.code()), (401, "NoAuthenticationInformation"));
    assert_eq!(raw(&service, "GET /healthz HTTP/3.7\r\n\r\n").await.status, 400);
    service.still_serves().await;
}

/// Requests with two lengths, or with a length and chunks, are used to smuggle other requests past a proxy.
#[tokio::test]
async fn a_body_has_one_length() {
    let service = Service::start().await;
    let head = "POST /devstoreaccount1/Tables HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    for lengths in [
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 2,3\r\n",
        "Content-Length: +2\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: gzip\r\n",
    ] {
        let answer = raw(&service, format!("{head}{lengths}\r\n{{}}")).await;
        assert_eq!(answer.status, 400, "{lengths}");
    }
    // If a request has chunks, its length is ignored, and nothing after the chunks is read as a request.
    let both = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    let reply = send_bytes(service.running.table_address, format!("{head}{both}").as_bytes()).await;
    let replies = String::from_utf8_lossy(&reply).matches("HTTP/1.1 ").count();
    assert_eq!(replies, 1, "{}", String::from_utf8_lossy(&reply));
    service.still_serves().await;
}

#[tokio::test]
async fn methods_that_tables_do_not_know() {
    let service = Service::start().await;
    for method in ["BREW", "TRACE", "HEAD", "get", "PROPFIND"] {
        let answer = service.send(method, "/Tables", &[], b"").await;
        assert_eq!(answer.status, 405, "{method}");
    }
    assert_eq!(raw(&service, "G@T / HTTP/1.1\r\nHost: a\r\n\r\n").await.status, 400);
    service.still_serves().await;
}

#[tokio::test]
async fn headers_that_decide_are_read_or_refused() {
    let service = Service::start().await;
    for version in ["2019-2-2", "2019-02-02-", "latest", "2019/02/02", "２０１９-02-02", "", "20190-2-02"]
    {
        let answer = service.send("GET", "/Tables", &[("x-ms-version", version)], b"").await;
        assert_eq!((answer.status, answer.code()), (400, "InvalidHeaderValue"), "{version}");
    }
    for version in ["2011-08-18", "2099-12-31"] {
        let answer = service.send("GET", "/Tables", &[("x-ms-version", version)], b"").await;
        assert_eq!(answer.status, 200, "{version}");
    }
    // If these headers counted as absent, an update would become an upsert.
    service.create_table("notes").await;
    let target = "/notes(PartitionKey='p',RowKey='r')";
    for headers in [&[("If-Match", "é")][..], &[("If-Match", "*"), ("If-Match", "*")]] {
        let answer = service.send("PUT", target, headers, b"{}").await;
        assert_eq!((answer.status, answer.code()), (400, "InvalidHeaderValue"), "{headers:?}");
    }
    assert_eq!(service.send("GET", target, &[], b"").await.status, 404);
    service.still_serves().await;
}

/// A target with scheme and host, which is the form that proxies use, means the same.
#[tokio::test]
async fn an_absolute_uri() {
    let service = Service::start().await;
    let answer = raw(
        &service,
        "GET http://a/devstoreaccount1/Tables HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert_eq!((answer.status, answer.code()), (401, "NoAuthenticationInformation"));
    service.still_serves().await;
}

#[tokio::test]
async fn a_body_in_a_transfer_coding_other_than_chunked_is_refused() {
    let service = Service::start().await;
    for coding in ["gzip, chunked", "gzip\r\nTransfer-Encoding: chunked"] {
        let head = format!(
            "POST /devstoreaccount1/Tables HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: {coding}\r\n\r\n"
        );
        let answer = raw(&service, head + "0\r\n\r\n").await;
        assert_eq!((answer.status, answer.code()), (501, "NotImplemented"), "{coding}");
    }
    service.still_serves().await;
}

#[tokio::test]
async fn a_body_is_compared_with_its_content_md5() {
    let service = Service::start().await;
    let body = br#"{"TableName":"checked"}"#;
    for (md5, status, code) in [
        ("not base64", 400, "InvalidMd5"),
        ("c2hvcnQ=", 400, "InvalidMd5"),
        ("AAAAAAAAAAAAAAAAAAAAAA==", 400, "Md5Mismatch"),
        ("uKAEmNn3JEerCsLc19MHVg==", 201, ""),
    ] {
        let answer = service.send("POST", "/Tables", &[("content-md5", md5)], body).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{md5}");
    }
}

#[tokio::test]
async fn a_preference_is_found_in_a_list() {
    let service = Service::start().await;
    let prefer = ("prefer", "respond-async, return-no-content");
    let answer = service.send("POST", "/Tables", &[prefer], br#"{"TableName":"listed"}"#).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(answer.header("preference-applied").as_deref(), Some("return-no-content"));
}

#[tokio::test]
async fn a_query_option_that_comes_twice_is_refused() {
    let service = Service::start().await;
    for query in ["$top=1&$top=2", "$filter=true&$filter=false", "$select=a&%24Select=b"] {
        let answer = service.send("GET", &format!("/Tables?{query}"), &[], b"").await;
        assert_eq!((answer.status, answer.code()), (400, "InvalidInput"), "{query}: {answer:?}");
    }
}
