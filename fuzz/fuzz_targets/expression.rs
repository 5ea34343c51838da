//! Conditions of IAM policies: any text is read or refused, and what was read has a value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rangehold_map::Timestamp;
use rangehold_protocol::object::policy::expression::{Circumstances, Expression};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Expression::parse(text) {
        Ok(expression) => {
            let of =
                Circumstances { now: Timestamp::default(), name: text, sort: "", list_prefix: Some("a/") };
            let _ = expression.holds(&of);
        }
        Err(error) => assert!((1..=text.len() + 1).contains(&error.at), "{error}"),
    }
});
