//! The XML API: any list of parts and any request line is read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rangehold_protocol::object::request::Query;
use rangehold_protocol::object::xml::list::{ListRequest, Page};
use rangehold_protocol::object::xml::parts::{PART_NUMBER_MAX, read_complete};
use rangehold_protocol::object::xml::request::XmlRequest;

fuzz_target!(|data: &[u8]| {
    if let Ok(parts) = read_complete(data) {
        assert!(!parts.is_empty() && parts.iter().all(|(number, _)| (1..=PART_NUMBER_MAX).contains(number)));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (method, target) = text.split_once(' ').unwrap_or(("GET", text));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Ok(query) = Query::parse(query) else { return };
    let _ = XmlRequest::read(method, path, None, &query, |_| Some(path));
    if let Ok(list) = ListRequest::read(&query) {
        list.render(path, &Page::default());
    }
});
