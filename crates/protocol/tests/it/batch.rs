//! The envelope of batches: what clients send, what the service answers, and what is refused.

use proptest::prelude::*;
use rangehold_protocol::error::ErrorCode;
use rangehold_protocol::table::batch::{Batch, BatchReply, parse};
use rangehold_protocol::table::limits::{BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX, BATCH_PART_HEADER_BYTES_MAX};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    batches: Vec<SdkBatch>,
}

#[derive(Deserialize)]
struct SdkBatch {
    content_type: String,
    body: String,
    row_keys: Vec<String>,
}

#[test]
fn batches_of_the_sdk_are_read() {
    let vectors: Vectors = serde_json::from_str(include_str!("../vectors/sdk.json")).expect("make.py's form");
    assert!(vectors.batches.iter().any(|batch| batch.row_keys.is_empty()));
    for sent in &vectors.batches {
        let batch = parse(&sent.content_type, sent.body.as_bytes()).expect("a batch");
        assert!(!batch.query);
        assert_eq!(batch.operations.len(), sent.row_keys.len());
        for (index, (part, row_key)) in batch.operations.iter().zip(&sent.row_keys).enumerate() {
            assert_eq!(part.content_id(), Some(index.to_string().as_str()));
            if part.method == "DELETE" {
                assert!(part.body.is_empty());
                assert_eq!(part.header("if-match"), Some("*"));
            } else {
                let entity: serde_json::Value = serde_json::from_slice(part.body).expect("JSON");
                assert_eq!(entity["RowKey"], row_key.as_str());
                assert_eq!(part.header("content-type"), Some("application/json"));
            }
        }
    }
}

const TYPE: &str = "multipart/mixed; boundary=batch_a";

/// One batch, in each form in which clients write it.
fn variants() -> Vec<(&'static str, &'static str, String)> {
    let plain = concat!(
        "--batch_a\r\nContent-Type: multipart/mixed; boundary=changeset_b\r\n\r\n",
        "--changeset_b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 7\r\n\r\n",
        "POST https://h/T HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\nIf-Match: *\r\n\r\n{\"a\":1}\r\n",
        "--changeset_b--\r\n--batch_a--\r\n"
    );
    vec![
        ("plain", TYPE, plain.to_owned()),
        ("lines end with LF", TYPE, plain.replace("\r\n", "\n")),
        ("preamble", TYPE, format!("a preamble\r\n\r\n{plain}")),
        ("epilogue", TYPE, format!("{plain}--batch_a\r\nan epilogue")),
        ("no line end at the end", TYPE, plain.trim_end().to_owned()),
        ("no last delimiter", TYPE, plain.replace("--changeset_b--\r\n--batch_a--\r\n", "")),
        (
            "blank line between the ends",
            TYPE,
            plain.replace("--changeset_b--\r\n", "--changeset_b--\r\n\r\n"),
        ),
        (
            "lower-case names, two blank lines, as the JavaScript SDK",
            TYPE,
            plain
                .replace("Content-Type:", "content-type:")
                .replace("If-Match: *\r\n", "if-match: *\r\n\r\n")
                .replace("changeset_b\r\n\r\n", "changeset_b\r\n\r\n\r\n"),
        ),
        ("white space after a boundary", TYPE, plain.replace("--changeset_b\r\n", "--changeset_b \t\r\n")),
        ("blank line before the request", TYPE, plain.replace("POST", "\r\nPOST")),
        (
            "quoted boundary",
            "Multipart/Mixed; charset=utf-8; Boundary=\"batch_a\"",
            plain.replace("boundary=changeset_b", "boundary=\"changeset_b\""),
        ),
        ("boundary with '='", "multipart/mixed;boundary==_b=?", plain.replace("batch_a", "=_b=?")),
        (
            "quoted boundary with ';' and '\"'",
            "multipart/mixed; boundary=\"a;\\\"b c\"; x=y",
            plain.replace("batch_a", "a;\"b c"),
        ),
        ("no content type on the part", TYPE, plain.replace("Content-Type: application/http\r\n", "")),
        (
            "content id inside",
            TYPE,
            plain.replace("Content-ID: 7\r\n", "").replace("Accept:", "content-id: 7\r\nAccept:"),
        ),
        ("a body that looks like another boundary", TYPE, {
            plain.replace("{\"a\":1}", "{\"a\":1}\r\n--changeset_bc\r\n--changeset\r\n-- changeset_b")
        }),
    ]
}

#[test]
fn all_forms_of_one_batch_are_read_alike() {
    for (name, content_type, body) in variants() {
        let batch =
            parse(content_type, body.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}\n{body}"));
        assert!(!batch.query, "{name}");
        let [part] = batch.operations.as_slice() else { panic!("{name}: {batch:?}") };
        assert_eq!((part.method, part.uri, part.content_id()), ("POST", "https://h/T", Some("7")), "{name}");
        assert_eq!(part.header("IF-MATCH"), Some("*"), "{name}");
        assert!(part.body.starts_with(b"{\"a\":1}"), "{name}: {part:?}");
    }
}

#[test]
fn one_query_may_stand_alone() {
    // The documentation's example: the last delimiter is not closed, and the URI has a space.
    let body = concat!(
        "--batch_a\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n",
        "GET https://h/Blogs(PartitionKey='Channel 19',RowKey='2') HTTP/1.1\r\nAccept: application/json\r\n\r\n--batch_a\r\n\r\n"
    );
    let batch = parse(TYPE, body.as_bytes()).expect("a query");
    assert!(batch.query);
    assert_eq!(batch.operations[0].uri, "https://h/Blogs(PartitionKey='Channel 19',RowKey='2')");
    let two = body.replace("--batch_a\r\n\r\n", "") + body;
    let post = body.replace("GET", "POST");
    for wrong in [two, post] {
        assert_eq!(parse(TYPE, wrong.as_bytes()).unwrap_err().code, ErrorCode::InvalidInput, "{wrong}");
    }
}

fn changes(count: usize) -> String {
    let part = "--c\r\nContent-Type: application/http\r\n\r\nDELETE /T(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n";
    format!(
        "--batch_a\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{}--c--\r\n--batch_a--",
        part.repeat(count)
    )
}

#[test]
fn a_body_that_is_not_a_batch_is_refused() {
    let one = changes(1);
    let (head, tail) = one.split_once("--c\r\n").expect("a part");
    let long = "x".repeat(BATCH_PART_HEADER_BYTES_MAX);
    let bodies = [
        String::new(),
        "--batch_a--".to_owned(),
        "--batch_a\r\n\r\n--batch_a--".to_owned(),
        "no batch".to_owned(),
        format!("{one}\r\n{one}").replace("--batch_a--", ""),
        one.replace("DELETE ", "delete "),
        one.replace("DELETE /T(PartitionKey='p',RowKey='r') HTTP/1.1", "DELETE"),
        one.replace("If-Match: *", "If-Match *"),
        one.replace("If-Match: *", &format!("If-Match: {long}")),
        one.replace("/T(", &format!("/T{long}(")),
        one.replace("boundary=c", "boundary="),
        one.replace("boundary=c", &format!("boundary={}", "c".repeat(71))),
        format!("{head}--c\r\nContent-Type: multipart/mixed; boundary=d\r\n\r\n--d\r\n{tail}"),
    ];
    for body in bodies {
        let refused = parse(TYPE, body.as_bytes());
        assert_eq!(refused.map_err(|error| error.code), Err(ErrorCode::InvalidInput), "{body:.300}");
    }
    for content_type in ["", "application/json", "multipart/form-data; boundary=batch_a"] {
        assert_eq!(
            parse(content_type, one.as_bytes()).unwrap_err().code,
            ErrorCode::MediaTypeNotSupported,
            "{content_type}"
        );
    }
    for content_type in ["multipart/mixed", "multipart/mixed; boundary=\"\""] {
        assert_eq!(parse(content_type, one.as_bytes()).unwrap_err().code, ErrorCode::InvalidInput);
    }
    let large = vec![b'-'; BATCH_BYTES_MAX + 1];
    assert_eq!(parse(TYPE, &large).unwrap_err().code, ErrorCode::RequestBodyTooLarge);
}

#[test]
fn the_first_operation_above_the_limit_is_kept() {
    let count =
        |operations: usize| parse(TYPE, changes(operations).as_bytes()).expect("a batch").operations.len();
    assert_eq!(count(0), 0);
    assert_eq!(count(BATCH_OPERATIONS_MAX), BATCH_OPERATIONS_MAX);
    assert_eq!(count(BATCH_OPERATIONS_MAX + 1), BATCH_OPERATIONS_MAX + 1);
    assert_eq!(count(10_000), BATCH_OPERATIONS_MAX + 1);
}

#[test]
fn replies_are_as_recorded() {
    let mut reply = BatchReply::new("batchresponse_B".to_owned(), "changesetresponse_C".to_owned());
    assert_eq!(reply.content_type(), "multipart/mixed; boundary=batchresponse_B");
    let common = [("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-cache")];
    let updated = [common[0], common[1], ("DataServiceVersion", "1.0;"), ("ETag", "W/\"e\"")];
    reply.operation(204, &updated, b"");
    reply.operation(409, &common, b"{\"odata.error\":{}}");
    let expected = concat!(
        "--batchresponse_B\r\nContent-Type: multipart/mixed; boundary=changesetresponse_C\r\n\r\n",
        "--changesetresponse_C\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n",
        "DataServiceVersion: 1.0;\r\nETag: W/\"e\"\r\n\r\n\r\n",
        "--changesetresponse_C\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n",
        "HTTP/1.1 409 Conflict\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n\r\n",
        "{\"odata.error\":{}}\r\n--changesetresponse_C--\r\n--batchresponse_B--\r\n"
    );
    assert_eq!(String::from_utf8(reply.finish()).expect("text"), expected);

    let empty = BatchReply::new("b".to_owned(), "c".to_owned()).finish();
    assert_eq!(empty, b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n--b--\r\n");

    let mut query = BatchReply::new("b".to_owned(), "c".to_owned());
    query.query(200, &common[..1], b"{}");
    assert_eq!(
        String::from_utf8(query.finish()).expect("text"),
        "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 200 OK\r\nX-Content-Type-Options: nosniff\r\n\r\n{}\r\n--b--\r\n"
    );
}

/// Writes the batch that `operations` describe: method, URI, value of a header, body.
fn build(operations: &[(String, String, String, String)], end: &str) -> String {
    let mut body = format!("--x{end}Content-Type: multipart/mixed; boundary=\"y;\"{end}{end}");
    for (method, uri, value, content) in operations {
        body += &format!("--y;{end}Content-Type: application/http{end}{end}");
        body += &format!("{method} {uri} HTTP/1.1{end}X: {value}{end}{end}{content}{end}");
    }
    body + &format!("--y;--{end}--x--{end}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn reading_any_text_never_panics(body in "(--|a|b|\r|\n|\r\n|:| |=|\"|;|Content-Type: |multipart/mixed|boundary|POST /a HTTP/1.1){0,40}") {
        let _ = parse("multipart/mixed; boundary=a", body.as_bytes());
    }

    #[test]
    fn reading_any_bytes_never_panics(content_type in "multipart/mixed;.{0,20}", body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&content_type, &body);
        let _ = parse("multipart/mixed; boundary=-", &body);
    }

    #[test]
    fn reading_a_damaged_batch_never_panics(cut in 0usize..600, byte in any::<u8>()) {
        let mut body = changes(3).into_bytes();
        let at = cut % body.len();
        body[at] = byte;
        let _ = parse(TYPE, &body);
        let _ = parse(TYPE, &body[..at]);
    }

    #[test]
    fn a_built_batch_is_read_back(
        operations in prop::collection::vec(
            ("[A-Z]{1,6}", "/[!-~]{0,8}( [!-~]{1,4})?", "([!-~é]([ !-~é]{0,8}[!-~é])?)?", "([!-~é]([ \r\n!-~é]{0,20}[!-~é])?)?"),
            0..5
        ),
        end in "\r?\n",
    ) {
        // A generated text must not be a delimiter.
        prop_assume!(operations.iter().all(|operation| !operation.3.contains("--")));
        let body = build(&operations, &end);
        let batch: Batch<'_> = parse("multipart/mixed; boundary=x", body.as_bytes()).expect("a batch");
        let read: Vec<_> = batch
            .operations
            .iter()
            .map(|part| {
                let body = std::str::from_utf8(part.body).expect("text").to_owned();
                (part.method.to_owned(), part.uri.to_owned(), part.header("x").expect("a header").to_owned(), body)
            })
            .collect();
        prop_assert_eq!(read, operations);
    }
}
