//! Continuation tokens: any text is read as a token, is read as a key, or is refused. Every text that is written
//! as a token is read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rangehold_protocol::table::continuation::{Continuation, decode_part, encode_part};
use rangehold_protocol::table::query::{EntityQuery, TableQuery};
use rangehold_protocol::uri::Query;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let token = encode_part(text);
    // A text that is longer than a token may be is not a key either.
    if let Ok(decoded) = decode_part(&token) {
        assert_eq!(decoded, text, "as {token}");
    }
    if let Ok(key) = decode_part(text) {
        let again = encode_part(&key);
        assert!(
            decode_part(&again).is_ok_and(|decoded| decoded == key) || key.len() > 1_000,
            "{key:?} as {again}"
        );
    }
    if let Ok(Some(Continuation::Table { name })) = Continuation::of_tables(Some(text)) {
        assert!(!name.contains('\u{1}'), "{name:?}");
    }
    if let Ok(query) = Query::parse(text) {
        let _entities = EntityQuery::from_query(&query);
        let _tables = TableQuery::from_query(&query);
    }
});
