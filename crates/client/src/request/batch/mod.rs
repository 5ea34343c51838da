//! Several changes in one request, which the service carries out together or not at all.
//!
//! All changes of a batch are in one partition, no entity comes twice, and there are at most 100 of them in at most
//! 4 MiB. [`groups`] cuts any list of changes into batches that keep these rules.

mod groups;
mod reply;

use http::Method;

pub use groups::groups;
pub(crate) use reply::outcomes;

use super::{Call, Change, Invalid};
use crate::account::Endpoint;

/// The delimiters of a batch. They may be the same each time, because the parts have their own length by the next
/// delimiter, and a body of JSON has no line that begins with two hyphens.
const BATCH: &str = "batch_rangehold";
const CHANGE_SET: &str = "changeset_rangehold";

/// One request with all `changes`. Fails if they break a rule of batches.
pub(crate) fn call(endpoint: &Endpoint, table: &str, changes: &[Change]) -> Result<Call, Invalid> {
    groups::check(changes)?;
    let mut body =
        format!("--{BATCH}\r\nContent-Type: multipart/mixed; boundary={CHANGE_SET}\r\n\r\n").into_bytes();
    for change in changes {
        let part = Call::change(table, change)?;
        put_part(&mut body, endpoint, &part);
    }
    body.extend_from_slice(format!("--{CHANGE_SET}--\r\n--{BATCH}--\r\n").as_bytes());
    let mut call = Call::new(Method::POST, "/$batch".to_owned());
    call.is_batch = true;
    Ok(call.with_body(format!("multipart/mixed; boundary={BATCH}"), body))
}

fn put_part(out: &mut Vec<u8>, endpoint: &Endpoint, part: &Call) {
    let mut head = format!(
        "--{CHANGE_SET}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         {} {endpoint}{} HTTP/1.1\r\n",
        part.method, part.path
    );
    for (name, value) in &part.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(&part.body);
    out.extend_from_slice(b"\r\n");
}
