//! The URIs of tables and entities in `Location`, `DataServiceId`, `odata.id` and `odata.editLink`.
//!
//! A key stands in single quotes, and a quote inside it is doubled. All characters except the unreserved ones
//! of RFC 2396 are percent-encoded as UTF-8 (recorded: the RowKey `RK'@*$!%` is `RowKey='RK''%40*%24!%25'`).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// `https://host/T(PartitionKey='p',RowKey='r')`. `base` is the part before the table's name, without the
/// slash.
pub fn entity_uri(base: &str, table: &str, partition_key: &str, row_key: &str) -> String {
    let mut out = format!("{base}/").into_bytes();
    put_entity_path(&mut out, table, partition_key, row_key);
    String::from_utf8(out).expect("texts were joined")
}

/// `https://host/Tables('x')`; `base` as in [`entity_uri`].
pub fn table_uri(base: &str, name: &str) -> String {
    format!("{base}/Tables('{name}')")
}

/// Appends `T(PartitionKey='p',RowKey='r')`. The result needs no escapes in JSON.
pub(super) fn put_entity_path(out: &mut Vec<u8>, table: &str, partition_key: &str, row_key: &str) {
    out.extend_from_slice(table.as_bytes());
    out.extend_from_slice(b"(PartitionKey='");
    put_key(out, partition_key);
    out.extend_from_slice(b"',RowKey='");
    put_key(out, row_key);
    out.extend_from_slice(b"')");
}

fn put_key(out: &mut Vec<u8>, key: &str) {
    for (index, part) in key.split('\'').enumerate() {
        if index > 0 {
            out.extend_from_slice(b"''");
        }
        for piece in utf8_percent_encode(part, ENCODED) {
            out.extend_from_slice(piece.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_uris_are_written() {
        let base = "https://a.table.core.windows.net";
        for (partition_key, row_key, path) in [
            ("PK", "RK'@*$!%", "T(PartitionKey='PK',RowKey='RK''%40*%24!%25')"),
            ("PK", "你好", "T(PartitionKey='PK',RowKey='%E4%BD%A0%E5%A5%BD')"),
            ("A'aaa_bbbb2\"", "\"A'aaa_bbbb2", "T(PartitionKey='A''aaa_bbbb2%22',RowKey='%22A''aaa_bbbb2')"),
            ("", "a b", "T(PartitionKey='',RowKey='a%20b')"),
        ] {
            assert_eq!(entity_uri(base, "T", partition_key, row_key), format!("{base}/{path}"));
        }
        assert_eq!(table_uri(base, "T"), format!("{base}/Tables('T')"));
    }
}
