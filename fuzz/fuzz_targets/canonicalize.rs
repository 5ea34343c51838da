//! Signatures with an account key: a request that a client signed by the documented rule is accepted, and a
//! request that was changed after that is refused.
//!
//! Each line of the input is one part: method, path, query, content type, MD5, and the part to change.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;
use rangehold_map::Timestamp;
use rangehold_protocol::auth::{AccountKey, AuthRequest, shared_key};
use rangehold_protocol::time::http_date;
use rangehold_protocol::uri::Query;

/// A quarter of an hour and a second, in ticks of 100 ns.
const TOO_LATE: i64 = 901 * 10_000_000;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut lines = text.splitn(6, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (method, path, raw_query, content_type, md5, choice) =
        (line(), line(), line(), line(), line(), line());
    let Ok(query) = Query::parse(raw_query) else {
        return;
    };
    let key = AccountKey::from_base64("a2V5IG9mIHRoZSBhY2NvdW50").expect("it is base64");
    let now = Timestamp::from_ticks(17_000_000_000_000_000);
    let date = http_date(now);
    let comp = query.get("comp").map_or(String::new(), |comp| format!("?comp={comp}"));
    let resource = format!("/acct{path}{comp}");
    let full = key.sign(&format!("{method}\n{md5}\n{content_type}\n{date}\n{resource}"));
    let lite = key.sign(&format!("{date}\n{resource}"));
    for (scheme, signature) in [("SharedKey", full), ("SharedKeyLite", lite)] {
        let header = format!("{scheme} acct:{signature}");
        let request = AuthRequest {
            method,
            path,
            query: &query,
            authorization: Some(&header),
            date: None,
            x_ms_date: Some(&date),
            content_md5: Some(md5),
            content_type: Some(content_type),
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            https: false,
        };
        let keys = std::slice::from_ref(&key);
        let taken = |request: &AuthRequest<'_>, account: &str, keys: &[AccountKey], now| {
            shared_key::authenticate(request, account, keys, now).is_ok()
        };
        assert!(taken(&request, "acct", keys, now), "{request:?}");
        assert!(!taken(&request, "other", keys, now), "for another account");
        assert!(!taken(&request, "acct", &[], now), "for an account without keys");
        let later = Timestamp::from_ticks(now.ticks() + TOO_LATE);
        assert!(!taken(&request, "acct", keys, later), "too late");
        if scheme == "SharedKey" && choice != method {
            assert!(!taken(&AuthRequest { method: choice, ..request }, "acct", keys, now), "another method");
        }
        // With one more character it is another path, in every spelling.
        let longer = format!("{path}x");
        assert!(!taken(&AuthRequest { path: &longer, ..request }, "acct", keys, now), "another path");
    }
});
