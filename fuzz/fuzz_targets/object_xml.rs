//! The XML API: any document, any body in chunks and any request line is read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rangehold_protocol::object::chunked::{Chunks, Signatures};
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::request::Query;
use rangehold_protocol::object::xml::acl;
use rangehold_protocol::object::xml::buckets::read_create;
use rangehold_protocol::object::xml::compose;
use rangehold_protocol::object::xml::delete::DeleteRequest;
use rangehold_protocol::object::xml::list::{ListRequest, Page};
use rangehold_protocol::object::xml::parts::{PART_NUMBER_MAX, read_complete};
use rangehold_protocol::object::xml::request::{Setting, XmlRequest};

fuzz_target!(|data: &[u8]| {
    if let Ok(parts) = read_complete(data) {
        assert!(!parts.is_empty() && parts.iter().all(|(number, _)| (1..=PART_NUMBER_MAX).contains(number)));
    }
    let _ =
        (DeleteRequest::read(data), read_create("bucket", data), acl::read(data, true), compose::read(data));
    for setting in [Setting::Cors, Setting::Lifecycle, Setting::Tagging, Setting::Website] {
        let _ = setting.read(data);
    }
    assert_eq!(in_chunks(data, data.len().max(1)).ok(), in_chunks(data, 3).ok());
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (method, target) = text.split_once(' ').unwrap_or(("GET", text));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Ok(query) = Query::parse(query) else { return };
    let _ = XmlRequest::read(method, path, None, &query, |_| Some(path));
    if let Ok(list) = ListRequest::read(&query) {
        list.render(path, &Page::default());
    }
});

/// The bytes in a body in chunks that comes in pieces of this size.
fn in_chunks(body: &[u8], piece: usize) -> Result<Vec<u8>, ObjectError> {
    let (mut chunks, mut out) = (Chunks::new(Signatures::Unchecked), Vec::new());
    for piece in body.chunks(piece) {
        chunks.push(piece);
        while let Some(bytes) = chunks.read()? {
            out.extend_from_slice(&bytes);
        }
    }
    chunks.finish(None).map(|_| out)
}
