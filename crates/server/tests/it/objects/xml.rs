//! The XML API over HTTP.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::support::Service;
use crate::support::wire::{Answer, Request, parse, send_bytes};

impl Service {
    async fn xml(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send_object(&Request::new(method, target, headers, body)).await
    }
}

/// The text of an element.
fn element<'a>(body: &'a str, name: &str) -> &'a str {
    let rest = body.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("no {name} in {body}")).1;
    rest.split_once("</").expect("a closed element").0
}

/// The kinds of the checksums of a reply, one for each header.
fn hashes(answer: &Answer) -> Vec<&str> {
    let headers = answer.headers.iter().filter(|(name, _)| name == "x-goog-hash");
    headers.map(|(_, value)| value.split_once('=').expect("a checksum").0).collect()
}

#[tokio::test]
async fn an_object_is_put_read_copied_and_deleted() {
    let service = Service::with_photos().await;
    let headers =
        [("Content-Type", "text/plain"), ("x-goog-meta-color", "red"), ("x-goog-if-generation-match", "0")];
    let made = service.xml("PUT", "/%70hotos/a%2Fb%20c", &headers, b"hello").await;
    assert_eq!(made.status, 200, "{}", made.body);
    let generation = made.header("x-goog-generation").expect("a generation");
    let again = service.xml("PUT", "/photos/a%2Fb%20c", &headers, b"other").await;
    assert_eq!((again.status, element(&again.body, "Code")), (412, "PreconditionFailed"));

    let read = service.xml("GET", "/photos/a/b%20c", &[("Range", "bytes=1-2")], b"").await;
    assert_eq!((read.status, read.body.as_str()), (206, "el"));
    assert_eq!(read.header("x-goog-meta-color").as_deref(), Some("red"));
    let etag = read.header("etag").expect("an entity tag");
    assert_eq!(etag, "\"5d41402abc4b2a76b9719d911017c592\"", "the MD5 of the bytes");
    assert_eq!(made.header("etag"), Some(etag.clone()));
    assert_eq!((hashes(&made), hashes(&read)), (vec!["crc32c", "md5"], vec!["crc32c", "md5"]));
    let json = service.object("GET", "/storage/v1/b/photos/o/a%2Fb%20c?alt=media", "").await;
    assert_eq!(hashes(&json).len(), 1, "the JSON API has one header for both");
    let unchanged = service.xml("GET", "/photos/a/b%20c", &[("If-None-Match", &etag)], b"").await;
    assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""));
    let later = [("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT")];
    assert_eq!(service.xml("GET", "/photos/a/b%20c", &later, b"").await.status, 304);
    let earlier = [("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")];
    assert_eq!(service.xml("GET", "/photos/a/b%20c", &earlier, b"").await.status, 412);

    service.xml("PUT", "/photos/empty", &[], b"").await;
    let empty = service.xml("HEAD", "/photos/empty", &[], b"").await;
    assert_eq!(empty.header("content-length").as_deref(), Some("0"), "clients want the length");
    service.xml("PUT", "/photos/called-gzip", &[("Content-Encoding", "gzip")], b"foo").await;
    let plain = service.xml("GET", "/photos/called-gzip", &[], b"").await;
    assert_eq!((plain.status, plain.body.as_str()), (200, "foo"), "what is not gzip comes as it is");
    assert_eq!(plain.header("content-encoding").as_deref(), Some("gzip"));

    let amazon = [("x-amz-meta-color", "blue"), ("x-amz-date", "20261125T000000Z")];
    assert_eq!(service.xml("PUT", "/photos/amazon", &amazon, b"hello").await.status, 200);
    let read = service.xml("GET", "/photos/amazon", &amazon[1..], b"").await;
    assert_eq!(read.header("x-amz-meta-color").as_deref(), Some("blue"));
    let read = service.xml("GET", "/photos/amazon", &[], b"").await;
    assert_eq!(read.header("x-goog-meta-color").as_deref(), Some("blue"));

    let sum = [("x-goog-content-sha256", "00")];
    let wrong = service.xml("PUT", "/photos/wrong", &sum, b"hello").await;
    assert_eq!((wrong.status, element(&wrong.body, "Code")), (400, "BadDigest"));

    let source = [("x-goog-copy-source", "photos/a%2Fb%20c")];
    let copied = service.xml("PUT", "/photos/copy", &source, b"").await;
    assert_eq!(copied.status, 200, "{}", copied.body);
    let resource = service.object_json("GET", "/b/photos/o/copy", "").await;
    assert_eq!((&resource["size"], &resource["metadata"]["color"]), (&json!("5"), &json!("red")));

    let wrong = [("x-goog-if-generation-match", "1")];
    assert_eq!(service.xml("DELETE", "/photos/a%2Fb%20c", &wrong, b"").await.status, 412);
    let right = [("x-goog-if-generation-match", generation.as_str())];
    assert_eq!(service.xml("DELETE", "/photos/a%2Fb%20c", &right, b"").await.status, 204);
    let missing = service.xml("GET", "/photos/a%2Fb%20c", &[], b"").await;
    assert_eq!((missing.status, element(&missing.body, "Code")), (404, "NoSuchKey"));
    let bucket = service.xml("PUT", "/nowhere/a", &[], b"").await;
    assert_eq!((bucket.status, element(&bucket.body, "Code")), (404, "NoSuchBucket"));
    let named = service.xml("GET", "/photos?website", &[], b"").await;
    assert_eq!((named.status, element(&named.body, "Code")), (501, "NotImplemented"));
}

#[tokio::test]
async fn headers_in_utf_8_are_kept_and_other_bytes_are_refused() {
    let service = Service::with_photos().await;
    let headers = [("x-goog-meta-u", "é 日本"), ("Content-Disposition", "attachment; filename=\"é\"")];
    assert_eq!(service.xml("PUT", "/photos/o", &headers, b"hello").await.status, 200);
    let read = service.xml("GET", "/photos/o", &[], b"").await;
    for (name, value) in headers {
        assert_eq!(read.header(name).as_deref(), Some(value));
    }
    let copy = [("x-goog-copy-source", "photos/o"), ("x-goog-metadata-directive", "COPY")];
    assert_eq!(service.xml("PUT", "/photos/%C3%A9", &copy, b"").await.status, 200);
    let named = [("x-goog-copy-source", "photos/é")];
    assert_eq!(service.xml("PUT", "/photos/again", &named, b"").await.status, 200);

    let address = service.running.object_address.expect("objects are served");
    for header in ["x-goog-meta-u", "x-goog-if-generation-match", "Range"] {
        let mut head = Request::new("PUT", "/photos/latin", &[(header, "~")], b"").head(address);
        *head.iter_mut().find(|byte| **byte == b'~').expect("a value") = 0xE9;
        let refused = parse(&send_bytes(address, &head).await).expect("an answer");
        assert_eq!((refused.status, element(&refused.body, "Code")), (400, "InvalidArgument"));
        assert!(refused.body.contains(&header.to_ascii_lowercase()), "{}", refused.body);
    }
    assert_eq!(service.xml("GET", "/photos/latin", &[], b"").await.status, 404);
}

#[tokio::test]
async fn listings_of_both_versions_go_on_where_the_page_before_ended() {
    let service = Service::with_photos().await;
    for name in ["a", "dir/1", "dir/2", "e", "f"] {
        service.xml("PUT", &format!("/photos/{name}"), &[], b"x").await;
    }
    let keys = |body: &str| -> Vec<String> {
        body.split("<Key>").skip(1).map(|rest| rest.split_once('<').expect("text").0.to_owned()).collect()
    };
    let first = service.xml("GET", "/photos?delimiter=/&max-keys=2", &[], b"").await;
    assert_eq!((first.status, keys(&first.body)), (200, vec!["a".to_owned()]));
    assert_eq!(element(&first.body, "NextMarker"), "dir/");
    let second = service.xml("GET", "/photos/?delimiter=/&marker=dir/", &[], b"").await;
    assert_eq!(keys(&second.body), ["e", "f"]);
    assert!(!second.body.contains("CommonPrefixes"), "{}", second.body);

    let first = service.xml("GET", "/photos?list-type=2&max-keys=3", &[], b"").await;
    assert_eq!(keys(&first.body), ["a", "dir/1", "dir/2"]);
    let token = element(&first.body, "NextContinuationToken");
    let second =
        service.xml("GET", &format!("/photos?list-type=2&continuation-token={token}"), &[], b"").await;
    assert_eq!(keys(&second.body), ["e", "f"]);
    assert_eq!(element(&second.body, "IsTruncated"), "false");
    let after = service.xml("GET", "/photos?list-type=2&start-after=dir/2", &[], b"").await;
    assert_eq!(keys(&after.body), ["e", "f"]);
}

#[tokio::test]
async fn an_upload_in_parts_becomes_an_object_once() {
    let service = Service::with_photos().await;
    let begun = service.xml("POST", "/photos/big?uploads", &[("Content-Type", "image/png")], b"").await;
    assert!(begun.body.contains("xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""), "{}", begun.body);
    let upload = element(&begun.body, "UploadId").to_owned();
    let part = |number: u32| format!("/photos/big?partNumber={number}&uploadId={upload}");
    for sum in ["crc32c=AAAAAA==", "crc32c=1234"] {
        let wrong = service.xml("PUT", &part(1), &[("x-goog-hash", sum)], b"first").await;
        assert_eq!((wrong.status, element(&wrong.body, "Code")), (400, "BadDigest"));
        let message = element(&wrong.body, "Message");
        assert_eq!(message, "The CRC32C you specified did not match what we computed.");
    }
    let large = vec![b'x'; 5 << 20];
    let mut tags = Vec::new();
    for (number, bytes) in [(1, large.as_slice()), (2, b"replaced"), (2, b"second"), (3, b"unused")] {
        let stored = service.xml("PUT", &part(number), &[], bytes).await;
        assert_eq!(stored.status, 200, "{}", stored.body);
        assert_eq!(hashes(&stored), ["crc32c", "md5"]);
        tags.push(stored.header("etag").expect("an entity tag"));
    }
    let target = format!("/photos/big?uploadId={upload}");
    let listed = service.xml("GET", &target, &[], b"").await;
    assert_eq!(listed.body.matches("<Part>").count(), 3, "{}", listed.body);
    let list = |parts: &[(u32, &str)]| {
        let parts: Vec<String> = parts
            .iter()
            .map(|(number, tag)| format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"))
            .collect();
        format!("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", parts.concat())
    };
    let refused = service.xml("POST", &target, &[], list(&[(1, &tags[0]), (2, &tags[1])]).as_bytes()).await;
    assert_eq!((refused.status, element(&refused.body, "Code")), (400, "InvalidPart"));
    assert_eq!(element(&refused.body, "Message"), "The requested upload part was not found.");
    let refused = service.xml("POST", &target, &[], list(&[]).as_bytes()).await;
    assert_eq!(
        (refused.status, element(&refused.body, "Code")),
        (400, "MalformedCompleteMultipartUploadRequest")
    );
    let wanted = list(&[(1, &tags[0]), (2, &tags[2])]);
    let completed = service.xml("POST", &target, &[], wanted.as_bytes()).await;
    assert_eq!(completed.status, 200, "{}", completed.body);
    assert_eq!(hashes(&completed), ["crc32c"], "the MD5 of what was joined is not known");
    let repeated = service.xml("POST", &target, &[], wanted.as_bytes()).await;
    assert_eq!(repeated.status, 200, "{}", repeated.body);
    assert_eq!(repeated.header("x-goog-generation"), completed.header("x-goog-generation"));
    let read = service.xml("GET", "/photos/big", &[("Range", "bytes=-8")], b"").await;
    assert_eq!(read.body, "xxsecond");
    assert_eq!(read.header("content-type").as_deref(), Some("image/png"));
    assert_eq!(service.xml("PUT", &part(4), &[], b"late").await.status, 404);

    let begun = service.xml("POST", "/photos/other?uploads=", &[], b"").await;
    let target = format!("/photos/other?uploadId={}", element(&begun.body, "UploadId"));
    service.xml("PUT", &format!("{target}&partNumber=1"), &[], b"bytes").await;
    let uploads = service.xml("GET", "/photos?uploads", &[], b"").await;
    assert_eq!((uploads.status, element(&uploads.body, "Key")), (200, "other"), "{}", uploads.body);
    assert_eq!(uploads.body.matches("<Upload>").count(), 1, "{}", uploads.body);
    let later = service.xml("GET", "/photos?uploads&key-marker=other", &[], b"").await;
    assert_eq!(later.body.matches("<Upload>").count(), 0, "a marker without an id: {}", later.body);
    let before = service.xml("GET", "/photos?uploads&key-marker=other&upload-id-marker=-", &[], b"").await;
    assert_eq!(before.body.matches("<Upload>").count(), 1, "{}", before.body);
    assert_eq!(service.xml("DELETE", &target, &[], b"").await.status, 204);
    let gone = service.xml("GET", &target, &[], b"").await;
    assert_eq!((gone.status, element(&gone.body, "Code")), (404, "NoSuchUpload"));
}

#[tokio::test]
async fn a_form_uploads_a_file() {
    let service = Service::with_photos().await;
    let form = |fields: &str| {
        format!(
            "--B\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nup/${{filename}}\r\n{fields}--B\r\n\
             Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\n\
             hello\r\n--B--\r\n"
        )
    };
    let headers = [("Content-Type", "multipart/form-data; boundary=B")];
    let posted = service.xml("POST", "/photos/", &headers, form("").as_bytes()).await;
    assert_eq!(posted.status, 204, "{}", posted.body);
    let resource = service.object_json("GET", "/b/photos/o/up%2Fa.txt", "").await;
    assert_eq!((&resource["size"], &resource["contentType"]), (&json!("5"), &json!("text/plain")));
    let status = "--B\r\nContent-Disposition: form-data; name=\"success_action_status\"\r\n\r\n201\r\n";
    let posted = service.xml("POST", "/photos", &headers, form(status).as_bytes()).await;
    assert_eq!((posted.status, element(&posted.body, "Key")), (201, "up/a.txt"));
    let bucket = "--B\r\nContent-Disposition: form-data; name=\"bucket\"\r\n\r\nphotos\r\n";
    assert_eq!(service.xml("POST", "/", &headers, form(bucket).as_bytes()).await.status, 204);
    assert_eq!(
        service.xml("POST", "/", &headers, form("").as_bytes()).await.status,
        400,
        "no bucket is named"
    );
    let unknown = "--B\r\nContent-Disposition: form-data; name=\"x-goog-random\"\r\n\r\n1\r\n";
    assert_eq!(service.xml("POST", "/photos", &headers, form(unknown).as_bytes()).await.status, 400);
    let policy = "--B\r\nContent-Disposition: form-data; name=\"policy\"\r\n\r\ne30=\r\n";
    let refused = service.xml("POST", "/photos", &headers, form(policy).as_bytes()).await;
    assert_eq!(refused.status, 400, "a policy without a signature: {}", refused.body);
}

#[tokio::test]
async fn a_signed_url_is_valid_between_its_dates() {
    let service = Service::with_photos().await;
    service.xml("PUT", "/photos/a", &[], b"hello").await;
    let url = |year: u32| {
        format!(
            "/photos/a?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=a%40b%2F{year}0201%2Fauto%2Fstorage%2F\
             goog4_request&X-Goog-Date={year}0201T090000Z&X-Goog-Expires=10&X-Goog-SignedHeaders=host&X-Goog-Signature=00"
        )
    };
    let expired = service.xml("GET", &url(2019), &[], b"").await;
    assert_eq!((expired.status, element(&expired.body, "Code")), (400, "ExpiredToken"));
    let early = service.xml("GET", &url(2999), &[], b"").await;
    assert_eq!((early.status, element(&early.body, "Code")), (403, "AccessDenied"));
}

#[tokio::test]
async fn a_resumable_upload_begins_with_a_header_and_ends_as_a_put_does() {
    let service = Service::with_photos().await;
    let begun = service.xml("POST", "/photos/a%2Fb", &[("x-goog-resumable", "start")], b"").await;
    assert_eq!(begun.status, 201, "{}", begun.body);
    let location = begun.header("location").expect("an address");
    let target = &location[location.find("/photos").expect("a path")..];
    let unknown = [("Content-Range", "bytes */*")];
    assert_eq!(service.xml("PUT", target, &unknown, b"").await.status, 308);
    let sent = service.xml("PUT", target, &[], b"hello").await;
    assert_eq!((sent.status, sent.body.as_str()), (200, ""));
    assert_eq!(sent.header("etag").as_deref(), Some("\"5d41402abc4b2a76b9719d911017c592\""));
    assert_eq!((sent.header("content-type"), hashes(&sent)), (None, vec!["crc32c", "md5"]));
    let read = service.xml("GET", "/photos/a%2Fb", &[], b"").await;
    assert_eq!(
        (read.body.as_str(), read.header("x-goog-generation")),
        ("hello", sent.header("x-goog-generation"))
    );
    let again = service.xml("PUT", target, &unknown, b"").await;
    assert_eq!((again.status, again.body.as_str()), (200, ""), "the first answer is repeated");
    assert_eq!(again.header("x-goog-generation"), sent.header("x-goog-generation"));
}

#[tokio::test]
async fn an_object_is_not_put_from_a_body_of_unknown_length() {
    let service = Service::with_photos().await;
    let begun = service.xml("POST", "/photos/a?uploads", &[], b"").await;
    let part = format!("/photos/a?partNumber=1&uploadId={}", element(&begun.body, "UploadId"));
    let address = service.running.object_address.expect("objects are served");
    for target in ["/photos/a", part.as_str()] {
        let head = format!("PUT {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let refused = parse(&send_bytes(address, head.as_bytes()).await).expect("an answer");
        assert_eq!((refused.status, element(&refused.body, "Code")), (411, "MissingContentLength"));
        let chunked = [("Transfer-Encoding", "chunked")];
        let stored = service.xml("PUT", target, &chunked, b"5\r\nhello\r\n0\r\n\r\n").await;
        assert_eq!(stored.status, 200, "{}", stored.body);
    }
    assert_eq!(service.xml("GET", "/photos/a", &[], b"").await.body, "hello");
}

#[tokio::test]
async fn a_url_that_is_signed_with_an_hmac_key_of_the_api_is_valid() {
    let service = Service::with_photos().await;
    let put = service.xml("PUT", "/photos/a.txt", &[], b"hello").await;
    assert_eq!(put.status, 200, "{}", put.body);
    let keys = "/storage/v1/projects/test-project/hmacKeys";
    let made = service.object_json("POST", &format!("{keys}?serviceAccountEmail=a@example.com"), "").await;
    let (id, secret) = (made["metadata"]["accessId"].as_str().unwrap(), made["secret"].as_str().unwrap());
    let url = |secret: &str| {
        let text = "GET\n\n\n4102444800\n/photos/a.txt";
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
        let signature = STANDARD.encode(hmac::sign(&key, text.as_bytes()));
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        format!("/photos/a.txt?GoogleAccessId={id}&Expires=4102444800&Signature={signature}")
    };
    assert_eq!(service.xml("GET", &url(secret), &[], b"").await.body, "hello");
    let refused = service.xml("GET", &url("another secret"), &[], b"").await;
    assert_eq!((refused.status, element(&refused.body, "Code")), (403, "SignatureDoesNotMatch"));

    let page = "https://page.example";
    service
        .object_json(
            "PATCH",
            "/b/photos",
            r#"{"cors":[{"origin":["https://page.example"],"method":["GET"]}]}"#,
        )
        .await;
    let ask = [("Origin", page), ("Access-Control-Request-Method", "GET")];
    let asked = service.xml("OPTIONS", &url(secret), &ask, b"").await;
    assert_eq!((asked.status, asked.header("Access-Control-Allow-Origin").as_deref()), (200, Some(page)));
}

#[tokio::test]
async fn a_bucket_is_made_set_up_emptied_and_deleted() {
    let service = Service::start().await;
    let project = [("x-goog-project-id", "test-project")];
    let description =
        b"<CreateBucketConfiguration><LocationConstraint>EU</LocationConstraint></CreateBucketConfiguration>";
    let made = service.xml("PUT", "/photos", &project, description).await;
    assert_eq!(made.status, 200, "{}", made.body);
    let again = service.xml("PUT", "/photos", &project, b"").await;
    assert_eq!((again.status, element(&again.body, "Code")), (409, "BucketAlreadyExists"));
    assert_eq!(service.xml("HEAD", "/photos", &[], b"").await.status, 200);
    assert_eq!(service.xml("HEAD", "/nowhere", &[], b"").await.status, 404);
    let listed = service.xml("GET", "/", &project, b"").await;
    assert_eq!((listed.status, element(&listed.body, "Name")), (200, "photos"));
    let other = service.xml("GET", "/", &[("x-goog-project-id", "other")], b"").await;
    assert!(!other.body.contains("<Bucket>"), "{}", other.body);

    assert_eq!(
        element(&service.xml("GET", "/photos?location", &[], b"").await.body, "LocationConstraint"),
        "EU"
    );
    let tags = b"<Tagging><TagSet><Tag><Key>team</Key><Value>red</Value></Tag></TagSet></Tagging>";
    let stale = [("x-goog-if-metageneration-match", "9")];
    assert_eq!(service.xml("PUT", "/photos?tagging", &stale, tags).await.status, 412);
    assert_eq!(service.xml("PUT", "/photos?tagging", &[], tags).await.status, 200);
    assert_eq!(service.object_json("GET", "/b/photos", "").await["labels"]["team"], "red");
    assert_eq!(element(&service.xml("GET", "/photos?tagging", &[], b"").await.body, "Key"), "team");
    let refused = service.xml("PUT", "/photos?tagging", &[("x-goog-content-sha256", "00")], tags).await;
    assert_eq!((refused.status, element(&refused.body, "Code")), (400, "BadDigest"));

    for name in ["a", "b", "c"] {
        service.xml("PUT", &format!("/photos/{name}"), &[], b"x").await;
    }
    let public = service.xml("PUT", "/photos/a?acl", &[("x-goog-acl", "public-read")], b"").await;
    assert_eq!(public.status, 200, "{}", public.body);
    let list = service.xml("GET", "/photos/a?acl", &[], b"").await;
    assert!(list.body.contains("<Scope type=\"AllUsers\"></Scope><Permission>READ"), "{}", list.body);
    let (_, list) = list.body.split_once("?>").expect("a declaration");
    assert_eq!(service.xml("PUT", "/photos/b?acl", &[], list.as_bytes()).await.status, 200);
    let shown = service.object_json("GET", "/b/photos/o/b/acl/allUsers", "").await;
    assert_eq!(shown["role"], "READER");

    assert_eq!(service.xml("DELETE", "/photos", &[], b"").await.status, 409);
    let many = b"<Delete><Object><Key>a</Key></Object><Object><Key>none</Key></Object><Object><Key>b</Key></Object></Delete>";
    let wrong =
        service.xml("POST", "/photos?delete", &[("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")], many).await;
    assert_eq!((wrong.status, element(&wrong.body, "Code")), (400, "BadDigest"));
    let deleted = service.xml("POST", "/photos?delete", &[], many).await;
    assert_eq!((deleted.status, deleted.body.matches("<Deleted>").count()), (200, 3), "{}", deleted.body);
    let left = service.xml("GET", "/photos", &[], b"").await;
    assert_eq!((left.body.matches("<Key>").count(), element(&left.body, "Key")), (1, "c"));
    service.xml("DELETE", "/photos/c", &[], b"").await;
    assert_eq!(service.xml("DELETE", "/photos", &[], b"").await.status, 204);
}

#[tokio::test]
async fn a_body_in_chunks_is_stored_without_their_form() {
    let service = Service::with_photos().await;
    let headers = [
        ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        ("x-amz-trailer", "x-amz-checksum-crc32"),
        ("x-amz-decoded-content-length", "11"),
        ("Content-Encoding", "aws-chunked"),
    ];
    let body = |sum: &str| format!("6\r\nhello \r\n5\r\nworld\r\n0\r\nx-amz-checksum-crc32:{sum}\r\n\r\n");
    let wrong = service.xml("PUT", "/photos/a", &headers, body("AAAAAA==").as_bytes()).await;
    assert_eq!((wrong.status, element(&wrong.body, "Code")), (400, "BadDigest"));
    assert_eq!(service.xml("HEAD", "/photos/a", &[], b"").await.status, 404);
    let right = service.xml("PUT", "/photos/a", &headers, body("DUoRhQ==").as_bytes()).await;
    assert_eq!(right.status, 200, "{}", right.body);
    let read = service.xml("GET", "/photos/a", &[], b"").await;
    assert_eq!((read.body.as_str(), read.header("content-encoding")), ("hello world", None));

    // Whatever says that there are chunks, they are taken off; and what is not in chunks then is refused.
    let coded = [("Content-Encoding", "gzip,aws-chunked")];
    assert_eq!(service.xml("PUT", "/photos/b", &coded, b"3\r\nfoo\r\n0\r\n\r\n").await.status, 200);
    let resource = service.object_json("GET", "/b/photos/o/b", "").await;
    assert_eq!((&resource["size"], &resource["contentEncoding"]), (&json!("3"), &json!("gzip")));
    assert_eq!(service.xml("PUT", "/photos/c", &coded, b"hello world").await.status, 400);
    let short = [headers[0], ("x-amz-decoded-content-length", "4"), headers[3]];
    assert_eq!(service.xml("PUT", "/photos/c", &short, b"3\r\nfoo\r\n0\r\n\r\n").await.status, 400);
    let other = [("x-amz-content-sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD")];
    assert_eq!(service.xml("PUT", "/photos/c", &other, b"0\r\n\r\n").await.status, 501);
}
