//! The canonical forms of paths, queries and headers.

use std::fmt::Write as _;

/// The parameters of a query, decoded. A plus sign stands for itself. Bytes that are not UTF-8 are replaced, so a
/// signature over them is refused.
pub(super) fn pairs(query: &str) -> impl Iterator<Item = (String, String)> + use<'_> {
    let items = query.split('&').filter(|item| !item.is_empty());
    items.map(|item| {
        let (name, value) = item.split_once('=').unwrap_or((item, ""));
        (text(name), text(value))
    })
}

fn text(encoded: &str) -> String {
    percent_encoding::percent_decode_str(encoded).decode_utf8_lossy().into_owned()
}

/// Percent-encodes everything but letters, digits and `-_.~`, and but slashes if they are kept.
pub(super) fn encode(bytes: &[u8], keep_slashes: bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 16);
    for byte in bytes {
        match byte {
            b'-' | b'_' | b'.' | b'~' => out.push(char::from(*byte)),
            b'/' if keep_slashes => out.push('/'),
            letter if letter.is_ascii_alphanumeric() => out.push(char::from(*letter)),
            other => write!(out, "%{other:02X}").expect("a string takes all that is written"),
        }
    }
    out
}

/// The path in the one form that is signed, however the client encoded it.
pub(super) fn path(raw: &str) -> String {
    let decoded: Vec<u8> = percent_encoding::percent_decode_str(raw).collect();
    encode(&decoded, true)
}

/// The parameters that have the signature.
const SIGNATURES: [&str; 2] = ["X-Goog-Signature", "X-Amz-Signature"];

/// The query in order, without the parameter that has the signature.
pub(super) fn query(pairs: impl Iterator<Item = (String, String)>) -> String {
    let mut encoded: Vec<(String, String)> = pairs
        .filter(|(name, _)| !SIGNATURES.iter().any(|signature| name.eq_ignore_ascii_case(signature)))
        .map(|(name, value)| (encode(name.as_bytes(), false), encode(value.as_bytes(), false)))
        .collect();
    encoded.sort();
    let joined: Vec<String> = encoded.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    joined.join("&")
}

/// The value of a header without white space around it, and with one space for each run of white space inside.
pub(super) fn header_value(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}
