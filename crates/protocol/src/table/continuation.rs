//! Continuation tokens: where the next page begins.
//!
//! A page that is not the last one names, in headers, the first item that it did not return. The client
//! repeats its query and sends these names as query parameters. Tokens are opaque to clients, but not signed.
//! An invented token makes the page begin at another key; since every page is authorised like the first, it
//! never shows more than the client may see.
//!
//! ```text
//!   1!16!cGthZGNhMmUwZA--      version 1, 16 characters follow, base64 of "pkadca2e0d"
//! ```
//!
//! The form is the recorded one: base64 with `-` for the `=` at its end. No recording shows a `+` or a `/`;
//! this module writes `*` and `_` for them, which need no encoding in a query, and reads both forms. The
//! service also accepts a plain key (its PHP SDK relied on that), and people use this to begin a query in
//! the middle of a table. So a text that does not begin like a token is a key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use rangehold_map::TableId;
use rangehold_map::codec::Reader;
use rangehold_map::key::table_prefix;

use super::limits::TOKEN_BYTES_MAX;
use crate::error::{ErrorCode, TableError};

const VERSION: &str = "1!";
/// In table tokens of the real service this character ends the name, and a time follows.
const END_OF_TABLE_NAME: char = '\u{1}';

/// The query parameter that carries a PartitionKey.
pub const NEXT_PARTITION_KEY: &str = "NextPartitionKey";
/// The query parameter that carries a RowKey.
pub const NEXT_ROW_KEY: &str = "NextRowKey";
/// The query parameter that carries a table's name.
pub const NEXT_TABLE_NAME: &str = "NextTableName";

/// Where the next page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Continuation {
    /// At the first entity whose keys are these or greater.
    Entity {
        /// PartitionKey.
        partition_key: String,
        /// RowKey; `None` is the first row of the partition.
        row_key: Option<String>,
    },
    /// At the first table whose name is this one or greater.
    Table {
        /// Name, in lower case, which is the order of tables.
        name: String,
    },
}

impl Continuation {
    /// Continues at the first entity of a table whose stored key is `boundary` or greater. The boundary must
    /// lie between partitions. `None` where no PartitionKey names exactly this place.
    pub fn at_boundary(account: &str, table: TableId, boundary: &[u8]) -> Option<Self> {
        let rest = boundary.strip_prefix(table_prefix(account, table).as_slice())?;
        let text = |more: &[u8]| {
            let bytes = [rest, more].concat();
            let mut reader = Reader::new(&bytes);
            reader.text().ok().filter(|_| reader.is_at_end())
        };
        // The boundary is an encoded PartitionKey; or one without its end, which sorts just before it; or
        // the end of a partition, behind which the least PartitionKey is the same text with U+0000 added.
        let partition_key = text(b"").or_else(|| text(b"\x00")).or_else(|| text(b"\x01\x00"))?;
        Some(Self::Entity { partition_key, row_key: None })
    }

    /// The headers that carry it, as name and value. An entity always has both headers, because some SDKs
    /// send an absent header back as an empty parameter.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Entity { partition_key, row_key } => vec![
                ("x-ms-continuation-NextPartitionKey", encode_part(partition_key)),
                ("x-ms-continuation-NextRowKey", encode_part(row_key.as_deref().unwrap_or_default())),
            ],
            Self::Table { name } => vec![("x-ms-continuation-NextTableName", encode_part(name))],
        }
    }

    /// Reads the query parameters of an entity query: `NextPartitionKey`, and perhaps `NextRowKey`. An
    /// empty parameter counts as absent. Fails with `InvalidInput` on a malformed token, and on a RowKey
    /// without a PartitionKey.
    pub fn of_entities(
        partition_key: Option<&str>,
        row_key: Option<&str>,
    ) -> Result<Option<Self>, TableError> {
        let given = |part: Option<&str>| part.filter(|p| !p.is_empty()).map(decode_part).transpose();
        match (given(partition_key)?, given(row_key)?) {
            (Some(partition_key), row_key) => Ok(Some(Self::Entity { partition_key, row_key })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(ErrorCode::InvalidInput.into()),
        }
    }

    /// Reads the query parameter `NextTableName`. Fails with `InvalidInput` on a malformed token.
    pub fn of_tables(name: Option<&str>) -> Result<Option<Self>, TableError> {
        let Some(part) = name.filter(|n| !n.is_empty()) else {
            return Ok(None);
        };
        let mut name = decode_part(part)?;
        name.truncate(name.find(END_OF_TABLE_NAME).unwrap_or(name.len()));
        Ok(Some(Self::Table { name }))
    }
}

/// Writes one part of a token: `1!<length>!<base64>`.
pub fn encode_part(text: &str) -> String {
    let base64: String = STANDARD.encode(text).chars().map(written).collect();
    format!("{VERSION}{}!{base64}", base64.len())
}

/// Reads one part of a token. Fails with `InvalidInput` on a text that begins like a token but is malformed,
/// and on one above [`TOKEN_BYTES_MAX`].
pub fn decode_part(part: &str) -> Result<String, TableError> {
    if part.len() > TOKEN_BYTES_MAX {
        return Err(ErrorCode::InvalidInput.into());
    }
    let Some(rest) = part.strip_prefix(VERSION) else {
        return Ok(part.to_owned());
    };
    decode_token(rest).ok_or_else(|| ErrorCode::InvalidInput.into())
}

fn decode_token(rest: &str) -> Option<String> {
    let (length, base64) = rest.split_once('!')?;
    if length.parse() != Ok(base64.len()) {
        return None;
    }
    let base64: String = base64.chars().map(read).collect();
    String::from_utf8(STANDARD.decode(base64).ok()?).ok()
}

/// A token's character for one of base64.
fn written(c: char) -> char {
    match c {
        '=' => '-',
        '/' => '_',
        '+' => '*',
        other => other,
    }
}

/// The character of base64 for one of a token. An unencoded `+` in a query arrives as a space.
fn read(c: char) -> char {
    match c {
        '-' => '=',
        '_' => '/',
        '*' | ' ' => '+',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rangehold_map::PartitionPrefix;
    use rangehold_map::key::after_prefix;

    use super::*;

    /// Tokens that the real service was recorded sending, and one that a client made for it.
    #[test]
    fn recorded_tokens_are_written_and_read() {
        for (text, token) in [
            ("pkadca2e0d", "1!16!cGthZGNhMmUwZA--"),
            ("partition_key_1", "1!20!cGFydGl0aW9uX2tleV8x"),
            ("row_key_3", "1!12!cm93X2tleV8z"),
            ("Smith", "1!8!U21pdGg-"),
            ("Ben1898", "1!12!QmVuMTg5OA--"),
        ] {
            assert_eq!(encode_part(text), token);
            assert_eq!(decode_part(token).as_deref(), Ok(text));
        }
        assert_eq!(
            Continuation::of_tables(Some("1!40!dGFibGVkZWQxMTM5YgEwMWQzNTljZGFhN2M3YTVh")),
            Ok(Some(Continuation::Table { name: "tableded1139b".to_owned() }))
        );
    }

    #[test]
    fn both_alphabets_are_read() {
        assert_eq!(encode_part("<.>"), "1!4!PC4*");
        assert_eq!(encode_part("ÿÿÿ"), "1!8!w7_Dv8O_");
        for token in ["1!4!PC4*", "1!4!PC4+", "1!4!PC4 "] {
            assert_eq!(decode_part(token).as_deref(), Ok("<.>"), "{token}");
        }
        assert_eq!(decode_part("1!8!w7/Dv8O/").as_deref(), Ok("ÿÿÿ"));
        assert_eq!(decode_part("1!4!MTE=").as_deref(), Ok("11"));
    }

    #[test]
    fn bare_keys_are_keys_and_malformed_tokens_are_refused() {
        assert_eq!(decode_part("Smith").as_deref(), Ok("Smith"));
        assert_eq!(decode_part("2!x").as_deref(), Ok("2!x"));
        assert_eq!(decode_part("1!0!").as_deref(), Ok(""));
        for token in
            ["1!", "1!8", "1!7!U21pdGg-", "1!-8!U21pdGg-", "1!8!U21pdG\"-", "1!4!/wAA", "1!8!U21-dGg-"]
        {
            assert_eq!(decode_part(token).map_err(|e| e.code), Err(ErrorCode::InvalidInput), "{token}");
        }
        let long = "x".repeat(TOKEN_BYTES_MAX + 1);
        assert_eq!(decode_part(&long).map_err(|e| e.code), Err(ErrorCode::InvalidInput));
    }

    #[test]
    fn parameters_are_tokens_or_plain_keys() {
        let entity = |p: &str, r: Option<&str>| Continuation::Entity {
            partition_key: p.to_owned(),
            row_key: r.map(str::to_owned),
        };
        let of = Continuation::of_entities;
        assert_eq!(of(Some("1!8!U21pdGg-"), Some("r")), Ok(Some(entity("Smith", Some("r")))));
        assert_eq!(of(Some("p"), None), Ok(Some(entity("p", None))));
        assert_eq!(of(Some("p"), Some("")), Ok(Some(entity("p", None))));
        assert_eq!(of(Some("1!0!"), Some("1!0!")), Ok(Some(entity("", Some("")))));
        assert_eq!(of(None, None), Ok(None));
        assert_eq!(of(Some(""), Some("")), Ok(None));
        assert_eq!(of(None, Some("r")).map_err(|e| e.code), Err(ErrorCode::InvalidInput));
        assert_eq!(Continuation::of_tables(Some("")), Ok(None));
    }

    #[test]
    fn a_boundary_between_partitions_has_a_token() {
        let table = TableId(7);
        let at = |boundary: &[u8]| match Continuation::at_boundary("a", table, boundary)? {
            Continuation::Entity { partition_key, row_key: None } => Some(partition_key),
            other => panic!("{other:?}"),
        };
        let partition = PartitionPrefix::entity("a", table, "mé");
        let mut open = partition.as_bytes().to_vec();
        assert_eq!(at(&open).as_deref(), Some("mé"));
        open.pop();
        assert_eq!(at(&open).as_deref(), Some("mé"));
        let after = after_prefix(partition.as_bytes()).unwrap();
        assert_eq!(at(&after).as_deref(), Some("mé\0"));
        // A byte in the middle of a character, another table, and a row.
        open.pop();
        assert_eq!(at(&open), None);
        assert_eq!(at(PartitionPrefix::entity("a", TableId(8), "m").as_bytes()), None);
        assert_eq!(at(&partition.key("r")), None);
    }

    proptest! {
        /// A key lies below the boundary exactly if it lies below the first key of the next page.
        #[test]
        fn a_boundary_and_its_token_divide_the_keys_alike(cut in "[ab\u{0}\u{1}\u{10000}é]{0,3}", kind in 0..3, other in "[ab\u{0}\u{1}\u{10000}é]{0,4}") {
            let table = TableId(7);
            let prefix = |key: &str| PartitionPrefix::entity("a", table, key).as_bytes().to_vec();
            let mut boundary = prefix(&cut);
            match kind {
                0 => {}
                1 => { boundary.pop(); }
                _ => boundary = after_prefix(&boundary).unwrap(),
            }
            let Some(Continuation::Entity { partition_key, .. }) = Continuation::at_boundary("a", table, &boundary) else {
                return Err(TestCaseError::fail("no PartitionKey for a boundary"));
            };
            prop_assert_eq!(prefix(&other) < boundary, prefix(&other) < prefix(&partition_key));
        }

        #[test]
        fn headers_are_read_back(partition_key in ".*", row_key in ".*") {
            let token = Continuation::Entity { partition_key, row_key: Some(row_key) };
            let headers = token.headers();
            prop_assert!(headers.iter().all(|(_, v)| v.bytes().all(|b| b.is_ascii_graphic())));
            prop_assert_eq!(Continuation::of_entities(Some(&headers[0].1), Some(&headers[1].1)), Ok(Some(token)));
        }

        #[test]
        fn reading_any_text_never_panics(text in "(1!)?[0-9]{0,3}!?[\\PC]{0,12}") {
            let _ = decode_part(&text);
        }
    }
}
