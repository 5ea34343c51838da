//! Signed URLs and forms of Google's conformance tests: the texts that their clients signed are built again from the
//! requests. `vectors/objects/NOTICE` says where they come from.

use std::cell::RefCell;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use rangehold_map::Timestamp;
use rangehold_protocol::object::policy::Policy;
use rangehold_protocol::object::signed::{Claim, Dialect, Key, Method, SignedError, SignedRequest};
use rangehold_protocol::time::parse_iso;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vectors {
    #[serde(rename = "signingV4Tests")]
    urls: Vec<Url>,
    #[serde(rename = "postPolicyV4Tests")]
    forms: Vec<Form>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Url {
    description: String,
    method: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    timestamp: String,
    expiration: i64,
    expected_url: String,
    expected_canonical_request: String,
    expected_string_to_sign: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    description: String,
    policy_input: FormInput,
    policy_output: FormOutput,
}

#[derive(Deserialize)]
struct FormInput {
    bucket: String,
    timestamp: String,
}

#[derive(Deserialize)]
struct FormOutput {
    fields: BTreeMap<String, String>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors/objects/v4_signatures.json")).expect("the vectors are JSON")
}

/// A request as it arrives for `url`.
fn with_request<T>(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    look: impl FnOnce(&SignedRequest<'_>) -> T,
) -> T {
    let (_, rest) = url.split_once("://").expect("an absolute URL");
    let (host, target) = rest.split_at(rest.find('/').expect("a path"));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    look(&SignedRequest { method, path, query, host, host_bucket: None, headers })
}

fn claim(method: &str, url: &str, headers: &[(&str, &str)]) -> Result<Claim, SignedError> {
    with_request(method, url, headers, Claim::read).map(|claim| claim.expect("a signature"))
}

/// The texts that would be accepted, and what is answered if none is.
fn texts(claim: &Claim) -> (Vec<String>, SignedError) {
    let seen = RefCell::new(Vec::new());
    let refuse = |text: &[u8], _: &[u8]| {
        seen.borrow_mut().push(String::from_utf8(text.to_vec()).expect("text"));
        false
    };
    let error = claim.verify(&Key::Rsa(&refuse)).expect_err("no text fits");
    (seen.into_inner(), error)
}

#[test]
fn signed_urls_of_the_conformance_tests_have_the_expected_texts() {
    for vector in vectors().urls {
        let headers: Vec<(&str, &str)> =
            vector.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let claim = claim(&vector.method, &vector.expected_url, &headers).expect(&vector.description);
        assert_eq!(claim.signer, "test-iam-credentials@dummy-project-id.iam.gserviceaccount.com");
        assert_eq!(claim.method, Method::Rsa);
        let (texts, error) = texts(&claim);
        assert!(texts.contains(&vector.expected_string_to_sign), "{}: {texts:?}", vector.description);
        let SignedError::Mismatch { canonical_request: Some(canonical), .. } = error else {
            panic!("{}: {error:?}", vector.description);
        };
        // The answer shows the host with its port, and these vectors sign it without.
        let canonical = canonical.replace(":8080\n", "\n").replace(":443\n", "\n");
        // The canonical request of this vector is not the one whose hash is in its string to sign.
        if vector.description != "Universe domain with virtual hosted style" {
            assert_eq!(canonical, vector.expected_canonical_request, "{}", vector.description);
        }
        let signed_at = parse_iso(&vector.timestamp).expect("a time").unix_seconds();
        let at = |seconds: i64| claim.check_time(Timestamp::from_unix_seconds(signed_at + seconds));
        assert_eq!((at(0), at(vector.expiration)), (Ok(()), Ok(())));
        assert!(matches!(at(vector.expiration + 1), Err(SignedError::Expired(_))));
        assert_eq!(at(-900), Ok(()), "clocks differ");
        assert!(matches!(at(-901), Err(SignedError::NotYetValid(_))));
    }
}

#[test]
fn forms_of_the_conformance_tests_meet_their_policies() {
    for vector in vectors().forms {
        let fields = vector.policy_output.fields;
        let encoded = &fields["policy"];
        let claim = Claim::of_form(|name| fields.get(name).cloned(), encoded).expect(&vector.description);
        assert_eq!(texts(&claim).0, std::slice::from_ref(encoded));
        let policy = Policy::parse(encoded).expect(&vector.description);
        let now = parse_iso(&vector.policy_input.timestamp).expect("a time");
        // A client chooses the access control list within the condition; the vector lacks the field.
        let mut sent: Vec<(String, String)> = fields.clone().into_iter().collect();
        if vector.description == "POST Policy ACL matching" {
            sent.push(("acl".to_owned(), "public-read".to_owned()));
        }
        assert_eq!(policy.check(&vector.policy_input.bucket, &sent, now), Ok(()), "{}", vector.description);
        sent.push(("x-goog-random".to_owned(), "1".to_owned()));
        assert!(policy.check(&vector.policy_input.bucket, &sent, now).is_err(), "{}", vector.description);
    }
}

/// Made with Python's `hmac`, by the steps of the documentation.
#[test]
fn signatures_with_a_secret_are_verified() {
    let url = include_str!("../vectors/objects/hmac_v4_url.txt").trim();
    let claim = claim("GET", url, &[]).expect("a signature");
    assert_eq!(claim.signer, "GOOG1EXAMPLE");
    assert_eq!(
        claim.method,
        Method::HmacSha256 { before: "GOOG4", scope: "20190201/auto/storage/goog4_request".to_owned() }
    );
    assert_eq!(claim.verify(&Key::Secret("secret")), Ok(()));
    assert!(claim.verify(&Key::Secret("other")).is_err());
    assert!(claim.verify(&Key::Rsa(&|_, _| true)).is_err(), "RSA cannot stand for HMAC");
    let moved = url.replace("bucket/name", "bucket/other");
    let moved = with_request("GET", &moved, &[], Claim::read).expect("a signature").expect("a signature");
    assert!(moved.verify(&Key::Secret("secret")).is_err());
}

#[test]
fn signatures_of_version_2_are_verified() {
    let url = include_str!("../vectors/objects/hmac_v2_url.txt").trim();
    let headers =
        [("X-Goog-Meta-A", " b  c "), ("content-type", "text/plain"), ("x-goog-encryption-key", "k")];
    let claim = claim("PUT", url, &headers).expect("a signature");
    assert_eq!(claim.signer, "GOOG1EXAMPLE");
    assert_eq!(claim.verify(&Key::Secret("secret")), Ok(()));
    assert!(matches!(
        claim.check_time(parse_iso("2100-01-01").expect("a time")),
        Err(SignedError::Expired(_))
    ));
    let subresource = format!("{url}&acl");
    let widened =
        with_request("PUT", &subresource, &headers, Claim::read).expect("a signature").expect("one");
    assert!(widened.verify(&Key::Secret("secret")).is_err(), "a subresource is another resource");
    let header = [
        ("authorization", include_str!("../vectors/objects/hmac_v2_header.txt").trim()),
        ("date", "Tue, 15 Nov 2011 20:20:20 GMT"),
    ];
    let by_header = with_request("GET", "http://h/bucket?uploads", &header, Claim::read)
        .expect("a signature")
        .expect("one");
    assert_eq!(by_header.verify(&Key::Secret("secret")), Ok(()));
}

/// A client that looks at the headers first has one URL for both.
#[test]
fn a_url_that_is_signed_for_get_serves_head_too() {
    let secret = Key::Secret("secret");
    let url = include_str!("../vectors/objects/hmac_v4_url.txt").trim();
    assert_eq!(claim("HEAD", url, &[]).expect("a signature").verify(&secret), Ok(()));
    for method in ["PUT", "DELETE", "POST"] {
        assert!(claim(method, url, &[]).expect("a signature").verify(&secret).is_err(), "{method}");
    }
    let vector = &vectors().urls[0];
    let (texts_of_get, _) = texts(&claim("GET", &vector.expected_url, &[]).expect("a signature"));
    let (texts_of_head, _) = texts(&claim("HEAD", &vector.expected_url, &[]).expect("a signature"));
    assert!(texts_of_get.iter().all(|text| texts_of_head.contains(text)));
    assert!(texts_of_head.len() > texts_of_get.len(), "a URL that is signed for HEAD serves it as before");
    let version_2 = "http://h/b/o?GoogleAccessId=a&Expires=4102444800&Signature=AAAA";
    let (first, _) = texts(&claim("HEAD", version_2, &[]).expect("a signature"));
    assert!(first.iter().any(|text| text.starts_with("GET\n")) && first[0].starts_with("HEAD\n"));
    let amazon = "http://h/b/o?AWSAccessKeyId=a&Expires=4102444800&Signature=AAAA";
    let (first, _) = texts(&claim("HEAD", amazon, &[]).expect("a signature"));
    assert!(first.iter().all(|text| text.starts_with("HEAD\n")), "Amazon's URLs are for one method");
}

#[test]
fn a_signature_that_lacks_a_part_is_malformed() {
    let vector = &vectors().urls[0];
    for name in ["Algorithm", "Credential", "Date", "Expires", "SignedHeaders"] {
        let url = vector.expected_url.replace(&format!("X-Goog-{name}"), "X-Other");
        assert!(matches!(claim("GET", &url, &[]), Err(SignedError::Malformed(_))), "without {name}");
    }
    for (part, other) in [
        ("X-Goog-Expires=10", "X-Goog-Expires=604801"),
        ("X-Goog-Expires=10", "X-Goog-Expires=0"),
        ("X-Goog-SignedHeaders=host", "X-Goog-SignedHeaders=other"),
        ("X-Goog-Date=20190201", "X-Goog-Date=20190202"),
        ("GOOG4-RSA-SHA256", "GOOG4-RSA-SHA512"),
        ("X-Goog-Signature=", "X-Goog-Signature=xx"),
    ] {
        let url = vector.expected_url.replace(part, other);
        assert!(matches!(claim("GET", &url, &[]), Err(SignedError::Malformed(_))), "{other}");
    }
    assert_eq!(
        with_request("GET", "http://h/b/o?a=b", &[("authorization", "Bearer x")], Claim::read),
        Ok(None)
    );
}

proptest! {
    #[test]
    fn any_request_is_read_or_refused(
        method in "[A-Z]{0,4}", path in "\\PC{0,10}", query in "\\PC{0,40}", value in "\\PC{0,40}"
    ) {
        let headers = [("authorization", value.as_str())];
        let request = SignedRequest {
            method: &method, path: &path, query: &query, host: &value, host_bucket: None, headers: &headers
        };
        let _ = Claim::read(&request);
        let text = BASE64_STANDARD.encode(&query);
        let _ = Policy::parse(&text);
    }

    #[test]
    fn what_is_signed_does_not_depend_on_how_the_client_encodes(name in "[^?#]{1,8}", value in "\\PC{0,8}") {
        let encode = |text: &str, every: bool| -> String {
            text.bytes().map(|byte| match byte {
                plain if plain.is_ascii_alphanumeric() && !every => char::from(plain).to_string(),
                other if every => format!("%{other:02x}"),
                other => format!("%{other:02X}"),
            }).collect()
        };
        let vector = &vectors().urls[0];
        let url = |every: bool| vector.expected_url.replace("test-object?", &format!("{}?p={}&", encode(&name, every), encode(&value, every)));
        let read = |every: bool| texts(&claim("GET", &url(every), &[]).expect("a signature")).0;
        prop_assert_eq!(read(false), read(true));
    }
}

/// The examples of Amazon's documentation of signatures of version 4 for S3.
#[test]
fn requests_that_clients_of_amazon_s3_sign_are_believed() {
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    const URL: &str = "https://examplebucket.s3.amazonaws.com/test.txt";
    let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let authorization = |signature: &str| {
        format!(
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature={signature}"
        )
    };
    let right = authorization("f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    let wrong = authorization("f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb42");
    fn headers<'a>(nothing: &'a str, authorization: &'a str) -> [(&'a str, &'a str); 4] {
        [
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", nothing),
            ("x-amz-date", "20130524T000000Z"),
            ("authorization", authorization),
        ]
    }
    let signed = claim("GET", URL, &headers(nothing, &right)).expect("a claim");
    assert_eq!((signed.signer.as_str(), signed.dialect), ("AKIAIOSFODNN7EXAMPLE", Dialect::Amazon));
    assert_eq!(signed.payload.as_deref(), Some(nothing));
    assert_eq!(signed.verify(&Key::Secret(SECRET)), Ok(()));
    let forged = claim("GET", URL, &headers(nothing, &wrong)).expect("a claim");
    assert!(forged.verify(&Key::Secret(SECRET)).is_err());
    let url = format!(
        "{URL}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F\
         aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=\
         aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    );
    let presigned = claim("GET", &url, &[]).expect("a claim");
    assert_eq!(presigned.verify(&Key::Secret(SECRET)), Ok(()));
    let time = |text| parse_iso(text).expect("a time");
    assert_eq!(presigned.check_time(time("2013-05-24T23:59:59Z")), Ok(()));
    assert!(presigned.check_time(time("2013-05-25T00:00:01Z")).is_err());
}
