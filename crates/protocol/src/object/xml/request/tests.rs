use proptest::prelude::*;

use super::*;

fn read(method: &str, target: &str, headers: &[(&str, &'static str)]) -> Result<XmlRequest, ObjectError> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = Query::parse(query).expect("a query");
    let header = |name: &str| headers.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
    XmlRequest::read(method, path, None, &query, header)
}

fn object(call: ObjectCall, name: &str) -> Result<XmlRequest, ObjectError> {
    Ok(XmlRequest::Object(call, "b".to_owned(), name.to_owned()))
}

#[test]
fn requests_about_objects_are_read() {
    let u = || "u".to_owned();
    for (method, target, expected) in [
        ("GET", "/b/a%2Fb//c%20?generation=1", object(ObjectCall::Get, "a/b//c ")),
        ("HEAD", "/%62/o", object(ObjectCall::Head, "o")),
        ("PUT", "/b/o+o", object(ObjectCall::Put, "o+o")),
        ("PUT", "/b/o?partNumber=3&uploadId=u", object(ObjectCall::PutPart { upload: u(), number: 3 }, "o")),
        ("PUT", "/b/o?upload_id=u", object(ObjectCall::ContinueSession(u()), "o")),
        ("PUT", "/b/o?compose", object(ObjectCall::Compose, "o")),
        ("POST", "/b/o?uploads", object(ObjectCall::BeginUpload, "o")),
        ("POST", "/b/o?uploads=", object(ObjectCall::BeginUpload, "o")),
        ("POST", "/b/o?uploadId=u", object(ObjectCall::CompleteUpload(u()), "o")),
        ("GET", "/b/o?uploadId=u", object(ObjectCall::ListParts(u()), "o")),
        ("DELETE", "/b/o?uploadId=u", object(ObjectCall::AbortUpload(u()), "o")),
        ("DELETE", "/b/o?upload_id=u", object(ObjectCall::CancelSession(u()), "o")),
        ("DELETE", "/b/o/", object(ObjectCall::Delete, "o/")),
    ] {
        assert_eq!(read(method, target, &[]), expected, "{method} {target}");
    }
    let source = CopySource { bucket: "b-x".to_owned(), name: "a/b".to_owned(), generation: None };
    for text in ["b%2Dx/a%2Fb", "/b-x/a/b"] {
        let copy = [("x-goog-copy-source", text)];
        assert_eq!(read("PUT", "/b/o", &copy), object(ObjectCall::Copy(source.clone()), "o"));
    }
    let resumable = [("x-goog-resumable", "start")];
    assert_eq!(read("POST", "/b/o", &resumable), object(ObjectCall::BeginSession, "o"));
}

#[test]
fn requests_about_buckets_are_read() {
    for (method, target, call) in [
        ("GET", "/b", BucketCall::List),
        ("GET", "/b/?list-type=2", BucketCall::List),
        ("GET", "/b?uploads", BucketCall::ListUploads),
        ("POST", "/b/", BucketCall::PostForm),
        ("PUT", "/b", BucketCall::Create),
        ("HEAD", "/b/", BucketCall::Head),
        ("DELETE", "/b", BucketCall::Delete),
        ("POST", "/b?delete", BucketCall::DeleteObjects),
        ("GET", "/b?cors", BucketCall::Get(Setting::Cors)),
        ("PUT", "/b?acl=", BucketCall::Set(Setting::Acl)),
        ("GET", "/b?object-lock", BucketCall::Get(Setting::ObjectLock)),
    ] {
        assert_eq!(
            read(method, target, &[]),
            Ok(XmlRequest::Bucket(call, "b".to_owned())),
            "{method} {target}"
        );
    }
    let query = Query::default();
    let by_host = XmlRequest::read("GET", "/b/o", Some("h"), &query, |_| None);
    assert_eq!(by_host, Ok(XmlRequest::Object(ObjectCall::Get, "h".to_owned(), "b/o".to_owned())));
    let by_host = XmlRequest::read("GET", "/", Some("h"), &query, |_| None);
    assert_eq!(by_host, Ok(XmlRequest::Bucket(BucketCall::List, "h".to_owned())));
}

#[test]
fn requests_have_the_operation_that_does_the_same() {
    for (method, target, operation) in [
        ("GET", "/", Some("storage.buckets.list")),
        ("PUT", "/b", Some("storage.buckets.insert")),
        ("GET", "/b", Some("storage.objects.list")),
        ("GET", "/b?cors", None),
        ("GET", "/b/o", Some("storage.objects.get")),
        ("PUT", "/b/o", Some("storage.objects.insert")),
        ("PUT", "/b/o?upload_id=u", Some("storage.objects.insert")),
        ("PUT", "/b/o?compose=", Some("storage.objects.compose")),
        ("PUT", "/b/o?partNumber=3&uploadId=u", None),
        ("DELETE", "/b/o", Some("storage.objects.delete")),
    ] {
        let request = read(method, target, &[]).expect(target);
        assert_eq!(request.operation().map(Operation::name), operation, "{method} {target}");
    }
}

#[test]
fn what_is_not_served_is_named() {
    for (method, target, named) in [
        ("PUT", "/b?location", "PUT with 'location'"),
        ("DELETE", "/b?cors", "DELETE with 'cors'"),
        ("GET", "/b?versions", "GET with 'versions'"),
        ("GET", "/b?website", "GET with 'website'"),
        ("PUT", "/b/o?tagging", "PUT with 'tagging'"),
    ] {
        let refused = read(method, target, &[]).expect_err(target);
        assert_eq!(refused.kind, ErrorKind::NotImplemented, "{method} {target}");
        assert!(refused.message.contains(named), "{}", refused.message);
    }
    for (method, target) in
        [("PATCH", "/b/o"), ("PATCH", "/b"), ("PUT", "/"), ("DELETE", "/b/o?acl"), ("GET", "/b/o?compose")]
    {
        assert_eq!(
            read(method, target, &[]).expect_err(target).kind,
            ErrorKind::MethodNotAllowed,
            "{method} {target}"
        );
    }
    assert_eq!(read("GET", "/", &[]), Ok(XmlRequest::ListBuckets));
    assert_eq!(read("GET", "/b/o?acl", &[]), object(ObjectCall::GetAcl, "o"));
    assert_eq!(read("PUT", "/b/o?partNumber=0&uploadId=u", &[]).expect_err("0").kind, ErrorKind::Invalid);
    assert_eq!(read("GET", "/b/%FF", &[]).expect_err("not UTF-8").kind, ErrorKind::Invalid);
    let version = CopySource::parse("b/o%3F?versionId=7").map(|source| (source.name, source.generation));
    assert_eq!(version, Ok(("o?".to_owned(), Some(7))));
    for text in ["bucket", "b/o?versionId=x"] {
        assert!(CopySource::parse(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn names_of_objects_are_read_as_they_were_encoded(name in "[^\0]{1,12}", every: bool) {
        let encode = |byte: u8| match byte {
            b'/' if !every => "/".to_owned(),
            byte => format!("%{byte:02X}"),
        };
        let path: String = name.bytes().map(encode).collect();
        prop_assert_eq!(read("GET", &format!("/b/{path}"), &[]), object(ObjectCall::Get, &name));
    }
}
