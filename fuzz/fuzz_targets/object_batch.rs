//! Batches of objects: any body is read as a batch or is refused.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rangehold_protocol::object::batch::{CALLS_MAX, parse};

fuzz_target!(|data: &[u8]| {
    let Ok(calls) = parse("multipart/mixed; boundary=B", Bytes::copy_from_slice(data)) else { return };
    assert!(calls.len() <= CALLS_MAX, "{} calls", calls.len());
    for call in calls {
        assert!(!call.method.is_empty() && !call.target.is_empty());
        assert!(!call.target.contains(char::is_whitespace), "target {:?}", call.target);
        for (name, value) in &call.headers {
            assert!(!name.is_empty() && !name.contains(['\r', '\n', ':']), "header name {name:?}");
            assert!(!value.contains('\n'), "header value {value:?}");
        }
    }
});
