//! Batches: any body is read as a batch or is refused, and the parts of a batch lie in its body, in order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rangehold_protocol::table::batch::{Batch, parse};

/// The boundary is fixed, because the fuzzer would have to find the same one for the header and the body.
const CONTENT_TYPE: &str = "multipart/mixed; boundary=batch_a";

fuzz_target!(|data: &[u8]| {
    check(CONTENT_TYPE, data);
    // The first line is used as the content type too.
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    if let (Some(Ok(content_type)), Some(body)) = (lines.next().map(std::str::from_utf8), lines.next()) {
        check(content_type, body);
    }
});

fn check(content_type: &str, body: &[u8]) {
    let Ok(batch) = parse(content_type, body) else {
        return;
    };
    assert!(!batch.query || batch.operations.len() == 1, "a read beside other operations");
    assert!(batch.operations.len() <= 101, "{} operations", batch.operations.len());
    let mut from = body.as_ptr() as usize;
    let end = from + body.len();
    for part in &batch.operations {
        assert!(!part.method.is_empty() && !part.uri.is_empty());
        assert!(!part.method.contains(char::is_whitespace) && !part.uri.contains(['\r', '\n']));
        for text in [part.method, part.uri] {
            let at = text.as_ptr() as usize;
            assert!(from <= at && at + text.len() <= end, "a part out of order or out of the body");
            from = at + text.len();
        }
        for (name, value) in &part.headers {
            assert!(!name.is_empty() && !name.contains(['\r', '\n', ':']), "header name {name:?}");
            assert!(!value.contains(['\r', '\n']), "header value {value:?}");
        }
    }
    again(&batch);
}

/// A batch that is written in the SDKs' form is read as the same batch. Bodies that contain a boundary are left
/// out.
fn again(batch: &Batch<'_>) {
    let plain =
        |part: &rangehold_protocol::table::batch::Part<'_>| !part.body.windows(2).any(|pair| pair == b"--");
    if batch.operations.is_empty() || batch.operations.len() > 100 || !batch.operations.iter().all(plain) {
        return;
    }
    let mut body = Vec::new();
    if !batch.query {
        body.extend_from_slice(b"--batch_a\r\nContent-Type: multipart/mixed; boundary=changeset_b\r\n\r\n");
    }
    let boundary = if batch.query { "batch_a" } else { "changeset_b" };
    for part in &batch.operations {
        let head = format!(
            "--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(format!("{} {} HTTP/1.1\r\n", part.method, part.uri).as_bytes());
        for (name, value) in &part.headers {
            body.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        body.extend_from_slice(b"\r\n");
        body.extend_from_slice(part.body);
        body.extend_from_slice(b"\r\n");
    }
    let end = if batch.query { "--batch_a--\r\n" } else { "--changeset_b--\r\n--batch_a--\r\n" };
    body.extend_from_slice(end.as_bytes());
    let text = String::from_utf8_lossy(&body).into_owned();
    let read = parse(CONTENT_TYPE, &body).unwrap_or_else(|error| panic!("{error:?}: {text}"));
    assert_eq!(read.query, batch.query, "{text}");
    assert_eq!(read.operations.len(), batch.operations.len(), "{text}");
    for (read, part) in read.operations.iter().zip(&batch.operations) {
        assert_eq!((read.method, read.uri, read.body), (part.method, part.uri, part.body), "{text}");
    }
}
