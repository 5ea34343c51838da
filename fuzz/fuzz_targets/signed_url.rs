//! Signed requests and policy documents: any text is read or refused, and no signature fits by chance.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rangehold_protocol::object::policy::Policy;
use rangehold_protocol::object::signed::{Claim, Key, SignedRequest};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = Policy::parse(text.trim());
    let (target, authorization) = text.split_once('\n').unwrap_or((text, ""));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = [("authorization", authorization), ("x-goog-date", "20190201T090000Z")];
    let request = SignedRequest {
        method: "GET",
        path,
        query,
        host: "localhost:4443",
        host_bucket: None,
        headers: &headers,
    };
    if let Ok(Some(claim)) = Claim::read(&request) {
        assert!(
            claim.verify(&Key::Secret("a secret that nobody knows")).is_err(),
            "a signature fits by chance"
        );
    }
});
