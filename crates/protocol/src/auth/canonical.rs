//! The texts that a signature with an account key may cover.
//!
//! A client signs the account, the path and `comp`. What it signs is not always what arrives. Some clients
//! encode `'`, `(`, `)` and `,` in the path after they signed it, and others sign the encoded form but send
//! the plain one. For the secondary endpoint in path style, some clients sign `/account-secondary/...` and
//! some `/account/...`, and one sends both, one after the other. So several spellings are accepted. Each of
//! them, if a client sent it as a path, would be routed as this one, or would differ from it only in the endpoint. So a
//! signature never counts for another resource: what is signed for `a%20b` does not open `a%2520b`, whose decoded form
//! has the same letters.
//!
//! For a wrong signature all of these texts are signed, and whoever sends one need not know any key. So a path that is
//! longer than every path that names something has one spelling only, the one that was sent.

use std::iter;

use super::AuthRequest;
use crate::table::limits::{PATH_BYTES_MAX, PATH_UNITS_MAX};
use crate::uri;

/// The end that an account's name has at the secondary endpoint.
const SECONDARY: &str = "-secondary";

/// The texts, each once, that a `SharedKey` signature of the request may cover: method, `Content-MD5`,
/// `Content-Type`, date and resource, one on each line.
pub fn shared_key<'a>(
    request: &'a AuthRequest<'_>,
    account: &'a str,
    date: &str,
) -> Box<dyn Iterator<Item = String> + 'a> {
    Box::new(with_resources(first_lines(request, date), request, account))
}

/// The text that a client signs for `SharedKey`: the first of [`shared_key`], with the path as it is sent.
pub fn shared_key_as_sent(request: &AuthRequest<'_>, account: &str, date: &str) -> String {
    format!("{}/{account}{}{}", first_lines(request, date), request.path, comp_of(request))
}

/// All lines of a `SharedKey` text but the last one.
fn first_lines(request: &AuthRequest<'_>, date: &str) -> String {
    format!(
        "{}\n{}\n{}\n{date}\n",
        request.method,
        request.content_md5.unwrap_or_default(),
        request.content_type.unwrap_or_default(),
    )
}

/// The texts, each once, that a `SharedKeyLite` signature may cover: date and resource.
pub fn shared_key_lite<'a>(
    request: &'a AuthRequest<'_>,
    account: &'a str,
    date: &str,
) -> Box<dyn Iterator<Item = String> + 'a> {
    Box::new(with_resources(format!("{date}\n"), request, account))
}

/// The one query parameter that is signed.
fn comp_of(request: &AuthRequest<'_>) -> String {
    request.query.get("comp").map_or_else(String::new, |comp| format!("?comp={comp}"))
}

/// Nearly all clients sign the path as they send it. So that text comes first, and the others are made only if they
/// are asked for.
fn with_resources<'a>(
    begin: String,
    request: &'a AuthRequest<'_>,
    account: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let sent = format!("{begin}/{account}{}{}", request.path, comp_of(request));
    let first = sent.clone();
    let others = move || {
        let comp = comp_of(request);
        let mut texts = vec![first];
        for path in spellings(request.path) {
            for resource in resources(account, &path) {
                let text = format!("{begin}{resource}{comp}");
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
        texts.into_iter().skip(1)
    };
    iter::once(sent).chain(iter::once_with(others).flatten())
}

/// The path as it was sent, the decoded path, and the path with `'(),` all plain or all encoded.
fn spellings(path: &str) -> Vec<String> {
    let mut spellings = vec![path.to_owned()];
    if path.len() > PATH_BYTES_MAX {
        return spellings;
    }
    // With an encoded separator the decoded path would have other segments, so only the sent form counts.
    let lower = path.to_ascii_lowercase();
    if lower.contains("%2f") || lower.contains("%5c") {
        return spellings;
    }
    if let Ok(decoded) = uri::decode(path)
        && decoded.encode_utf16().count() <= PATH_UNITS_MAX
    {
        spellings.push(encode(&decoded, "/-_.~$'(),*!=@:;&+"));
        spellings.push(encode(&decoded, "/-_.~$(),="));
        spellings.push(encode(&decoded, "/-_.~$"));
        spellings.push(encode(&decoded, "/-_.~"));
        // It may be the encoded form of another path. Then only a client that meant that one can have signed it. If it is
        // the form of no path at all, it can mean nothing else.
        if uri::decode(&decoded).is_ok_and(|twice| twice == decoded) || uri::decode(&decoded).is_err() {
            spellings.push(decoded);
        }
    }
    spellings
}

/// Percent-encodes everything but ASCII letters, digits and the characters in `plain`.
fn encode(text: &str, plain: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain.as_bytes().contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Not by `format!`: it makes a string for each byte, and for a wrong signature a long path is encoded four times.
            let [high, low] = [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]));
            out.extend(['%', high, low]);
        }
    }
    out
}

/// The account and the path, with and without the end that marks the secondary endpoint.
fn resources(account: &str, path: &str) -> Vec<String> {
    let mut resources = vec![format!("/{account}{path}"), format!("/{account}{SECONDARY}{path}")];
    let below_secondary = path
        .strip_prefix('/')
        .and_then(|rest| rest.strip_prefix(account))
        .and_then(|rest| rest.strip_prefix(SECONDARY))
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    if let Some(rest) = below_secondary {
        resources.push(format!("/{account}/{account}{rest}"));
        // The Python SDK signs the primary's path, and sends it behind the secondary's.
        if rest
            .strip_prefix('/')
            .and_then(|rest| rest.strip_prefix(account))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        {
            resources.push(format!("/{account}{rest}"));
        }
    }
    resources
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use proptest::prelude::*;

    use super::*;
    use crate::uri::Query;

    fn texts(path: &str, query: &str) -> Vec<String> {
        let query = Query::parse(query).unwrap();
        let request = AuthRequest {
            method: "GET",
            path,
            query: &query,
            authorization: None,
            date: None,
            x_ms_date: None,
            content_md5: None,
            content_type: None,
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            https: false,
        };
        shared_key_lite(&request, "acct", "D").collect()
    }

    #[test]
    fn the_sent_path_and_its_other_spellings_are_accepted() {
        let all = texts("/T(PartitionKey=%27a%27,RowKey=%27b%27)", "comp=acl&x=y");
        assert_eq!(all[0], "D\n/acct/T(PartitionKey=%27a%27,RowKey=%27b%27)?comp=acl");
        for expected in [
            "D\n/acct/T(PartitionKey='a',RowKey='b')?comp=acl",
            "D\n/acct/T%28PartitionKey%3D%27a%27%2CRowKey%3D%27b%27%29?comp=acl",
        ] {
            assert!(all.iter().any(|text| text == expected), "{all:?}");
        }
    }

    #[test]
    fn the_secondary_endpoint_is_signed_with_or_without_its_mark() {
        let all = texts("/acct-secondary/", "restype=service&comp=stats");
        for expected in [
            "D\n/acct/acct-secondary/?comp=stats",
            "D\n/acct/acct/?comp=stats",
            "D\n/acct-secondary/acct-secondary/?comp=stats",
        ] {
            assert!(all.iter().any(|text| text == expected), "{all:?}");
        }
        assert!(texts("/acct-secondaryT", "").iter().all(|text| text.contains("-secondaryT")));
    }

    #[test]
    fn a_signature_for_an_encoded_character_does_not_open_the_path_with_its_percent_sign() {
        let signed = texts("/T(RowKey='a%20b')", "").remove(0);
        assert!(texts("/T(RowKey='a%20b')", "").contains(&signed));
        assert!(
            texts("/T(RowKey='a b')", "").contains(&signed),
            "a client may sign the encoded form and send the plain one"
        );
        assert!(!texts("/T(RowKey='a%2520b')", "").contains(&signed), "{signed:?} is another row");
        // A percent sign that begins no code is not the form of another path.
        assert!(texts("/T(RowKey='100%25')", "").contains(&"D\n/acct/T(RowKey='100%')".to_owned()));
    }

    #[test]
    fn an_encoded_slash_does_not_become_a_separator() {
        assert!(texts("/T(a%2Fb)", "").iter().all(|text| text.contains("%2F")));
    }

    /// The longest path of an entity whose keys have 1,024 characters like this one.
    fn longest(character: &str) -> String {
        let key = character.repeat(1024);
        let (account, table) = ("a".repeat(24), "T".repeat(63));
        format!("/{account}-secondary/{account}/{table}(PartitionKey='{key}',RowKey='{key}')")
    }

    #[test]
    fn the_longest_path_that_names_something_has_all_spellings() {
        // Three bytes that are encoded, as long as one character can be; and a quote, which is written twice.
        for character in ["a", "%e8%aa%9e", "''", "%27%27"] {
            assert_eq!(spellings(&longest(character)).len(), 6, "{character}");
        }
    }

    #[test]
    fn a_path_that_names_nothing_since_it_is_too_long_has_only_the_spelling_that_was_sent() {
        // More bytes than the longest path that names something; and fewer bytes but more characters.
        for part in ["%e8%aa%9e".repeat(2300), "(,)'".repeat(3000)] {
            let path = format!("/T{part}");
            assert_eq!(spellings(&path), std::slice::from_ref(&path));
            // A client that knows a key is told what is wrong with its path, and not that its signature is wrong.
            assert_eq!(texts(&path, "")[0], format!("D\n/acct{path}"));
        }
    }

    #[test]
    fn every_byte_is_encoded_as_two_capital_digits() {
        assert_eq!(encode("a/\u{0}é~ÿ", "/"), "a/%00%C3%A9%7E%C3%BF");
    }

    proptest! {
        #[test]
        fn all_spellings_name_the_routed_path(path in "/[ -~]{0,20}") {
            for spelling in spellings(&path).iter().filter(|_| uri::decode(&path).is_ok()) {
                let decoded = uri::decode(&path).unwrap();
                prop_assert!(uri::decode(spelling).map_or(*spelling == decoded, |read| read == decoded), "{spelling}");
            }
        }
    }
}
