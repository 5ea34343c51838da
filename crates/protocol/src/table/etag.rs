//! ETags: the time of an entity's last write, as weak tags of HTTP.
//!
//! `W/"datetime'2021-09-21T01%3A04%3A37.9678478Z'"` holds a time as a `$filter` would write it,
//! percent-encoded, and without zeros at the end of the fraction, as in the entity itself. An entity is
//! never written twice at one time, so equal times mean equal versions. A condition is compared as a time:
//! it does not matter how a client or a proxy spelled `%3A`.

use rangehold_map::Timestamp;

use crate::error::TableError;
use crate::time::{parse_iso, put_iso};

/// The ETag of an entity that was last written at `time`, as the header and `odata.etag` have it.
pub fn format(time: Timestamp) -> String {
    let mut out = b"W/\"datetime'".to_vec();
    put_encoded_time(&mut out, time);
    out.extend_from_slice(b"'\"");
    String::from_utf8(out).expect("only ASCII was written")
}

/// Appends the time inside an ETag, its colons percent-encoded.
pub(super) fn put_encoded_time(out: &mut Vec<u8>, time: Timestamp) {
    let start = out.len();
    put_iso(out, time);
    for at in (start..out.len()).rev() {
        if out[at] == b':' {
            out.splice(at..=at, *b"%3A");
        }
    }
}

/// The version that an entity must have for a conditional write: the meaning of `If-Match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: any version, if the entity exists.
    Any,
    /// The version that was written at this time.
    Exactly(Timestamp),
    /// A version that no entity can have, because this service did not make the tag.
    Never,
}

impl IfMatch {
    /// Reads the value of the header. Fails with `InvalidInput` if it is neither `*` nor one weak tag. A
    /// weak tag that this service did not make is not an error; the condition is then never met (the real
    /// service is reported to do so for `W/"wrong"`).
    pub fn parse(header: &str) -> Result<Self, TableError> {
        let tag = header.trim();
        match (tag, parse(tag)) {
            ("*", _) => Ok(Self::Any),
            (_, Some(time)) => Ok(Self::Exactly(time)),
            _ if is_weak_tag(tag) => Ok(Self::Never),
            _ => Err(malformed(header)),
        }
    }

    /// Whether an entity that was last written at `time` meets the condition.
    pub fn allows(self, time: Timestamp) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(wanted) => wanted == time,
            Self::Never => false,
        }
    }
}

/// The time inside an ETag; `None` if this service did not make the tag.
fn parse(tag: &str) -> Option<Timestamp> {
    let literal = tag.strip_prefix("W/\"")?.strip_suffix('"')?;
    let text = literal.strip_prefix("datetime'")?.strip_suffix('\'')?;
    parse_iso(&text.replace("%3A", ":").replace("%3a", ":"))
}

/// Whether this is exactly one weak tag of HTTP, `W/"..."`.
fn is_weak_tag(tag: &str) -> bool {
    let inside = tag.strip_prefix("W/\"").and_then(|rest| rest.strip_suffix('"'));
    inside.is_some_and(|inside| !inside.contains('"'))
}

fn malformed(header: &str) -> TableError {
    TableError::invalid_input(format!(
        "The etag value '{header}' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid."
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn recorded_tags_are_written_and_read() {
        for (text, tag) in [
            ("2021-09-21T01:04:37.9678478Z", "W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\""),
            ("2024-05-04T00:30:07.69693Z", "W/\"datetime'2024-05-04T00%3A30%3A07.69693Z'\""),
        ] {
            let time = parse_iso(text).unwrap();
            assert_eq!(format(time), tag);
            assert_eq!(IfMatch::parse(tag), Ok(IfMatch::Exactly(time)));
            let plain = tag.replace("%3A", ":");
            assert_eq!(IfMatch::parse(&plain), Ok(IfMatch::Exactly(time)));
            assert!(!IfMatch::Exactly(time).allows(time.next()));
        }
        assert_eq!(IfMatch::parse(" * "), Ok(IfMatch::Any));
    }

    #[test]
    fn a_weak_tag_of_another_service_never_matches() {
        for tag in ["W/\"wrong\"", "W/\"\"", "W/\"datetime''\""] {
            assert_eq!(IfMatch::parse(tag), Ok(IfMatch::Never), "{tag}");
        }
        assert!(!IfMatch::Never.allows(Timestamp::from_ticks(0)));
    }

    #[test]
    fn malformed_tags_are_quoted_in_the_refusal() {
        let tag = "W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"";
        for header in ["", "foo", "\"foo\"", "W/\"", "W/foo", &format!("{tag},{tag}")] {
            let error = IfMatch::parse(header).unwrap_err();
            assert!(error.text.starts_with(&format!("The etag value '{header}' specified")));
        }
    }

    proptest! {
        #[test]
        fn round_trip(ticks in 0..Timestamp::MAX_DATE_TIME.ticks()) {
            let time = Timestamp::from_ticks(ticks);
            prop_assert_eq!(IfMatch::parse(&format(time)), Ok(IfMatch::Exactly(time)));
        }
    }
}
