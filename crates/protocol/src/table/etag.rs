//! ETags: the time of an entity's last write, as weak tags of HTTP.
//!
//! `W/"datetime'2021-09-21T01%3A04%3A37.9678478Z'"` is the literal that a `$filter` would hold,
//! percent-encoded, with zeros at the end of the fraction cut as in the entity itself. An entity is
//! never written twice at one time, so equal times are equal versions, and a condition is compared
//! as time: how a client or a proxy spelled `%3A` does not matter.

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

/// Which state an entity must be in for a conditional write: the meaning of `If-Match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: any, as long as there is one.
    Any,
    /// The state last written at this time.
    Exactly(Timestamp),
    /// A state that no entity of this service was ever in: a tag of someone else's making.
    Never,
}

impl IfMatch {
    /// Reads the value of the header. `InvalidInput` if it is neither `*` nor one weak tag. A
    /// weak tag that is none of the service's is no error of form: it only never holds (reported
    /// of the service for `W/"wrong"`).
    pub fn parse(header: &str) -> Result<Self, TableError> {
        let tag = header.trim();
        match (tag, parse(tag)) {
            ("*", _) => Ok(Self::Any),
            (_, Some(time)) => Ok(Self::Exactly(time)),
            _ if is_weak_tag(tag) => Ok(Self::Never),
            _ => Err(malformed(header)),
        }
    }

    /// Whether an entity that was last written at `time` satisfies this.
    pub fn allows(self, time: Timestamp) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(wanted) => wanted == time,
            Self::Never => false,
        }
    }
}

/// The time inside an ETag; `None` if it is none of this service's.
fn parse(tag: &str) -> Option<Timestamp> {
    let literal = tag.strip_prefix("W/\"")?.strip_suffix('"')?;
    let text = literal.strip_prefix("datetime'")?.strip_suffix('\'')?;
    parse_iso(&text.replace("%3A", ":").replace("%3a", ":"))
}

/// Whether this is one weak tag of HTTP, `W/"..."`.
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
    fn recorded_tags() {
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
    fn a_weak_tag_of_someone_else_never_holds() {
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
