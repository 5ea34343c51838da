//! What every handler needs to know about a request. It is read once.

use http::header::{self, HeaderMap};
use http::request::Parts;
use rangehold_map::Timestamp;
use rangehold_protocol::auth::Principal;
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::format::MetadataLevel;
use rangehold_protocol::table::request::Conditions;
use rangehold_protocol::uri::Query;
use tokio::time::Instant;

use super::address::Address;
use crate::limits;
use crate::listener::Connection;

/// The preference of a client, from the header `Prefer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefer {
    /// No preference.
    Unsaid,
    /// The reply should have the created resource.
    Content,
    /// The reply should have no body.
    NoContent,
}

impl Prefer {
    /// Reads the headers, each with one preference or a list of them (RFC 7240). The first that is known counts.
    pub(crate) fn of<'h>(headers: impl IntoIterator<Item = &'h str>) -> Self {
        let mut preferences = headers.into_iter().flat_map(|header| header.split(','));
        let known = preferences.find_map(|preference| {
            match preference.split(';').next()?.trim().to_ascii_lowercase().as_str() {
                "return-content" => Some(Self::Content),
                "return-no-content" => Some(Self::NoContent),
                _ => None,
            }
        });
        known.unwrap_or(Self::Unsaid)
    }

    /// The value of `Preference-Applied`, which is sent only if the client has a preference.
    pub(crate) const fn applied(self) -> Option<&'static str> {
        match self {
            Self::Unsaid => None,
            Self::Content => Some("return-content"),
            Self::NoContent => Some("return-no-content"),
        }
    }
}

/// A request as its handler sees it, without the body.
pub(crate) struct Exchange<'a> {
    /// Method, URI and headers as they came.
    pub(crate) head: &'a Parts,
    /// The connection of the request.
    pub(crate) connection: &'a Connection,
    /// Account, style and path.
    pub(crate) address: Address,
    /// The id of the request.
    pub(crate) request_id: &'a str,
    /// Decoded query parameters.
    pub(crate) query: Query,
    /// The time of the wall clock when the request came. Signatures and tokens are checked with it.
    pub(crate) now: Timestamp,
    /// The deadline of the request.
    pub(crate) deadline: Instant,
}

impl Exchange<'_> {
    /// The first value of a header, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        text(&self.head.headers, name)
    }

    /// The JSON level that the client wants.
    pub(crate) fn level(&self) -> Result<MetadataLevel, TableError> {
        let accepts = self.head.headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok());
        MetadataLevel::negotiate(self.query.get("$format"), accepts)
    }

    /// The JSON level. It is the default if the client asks for a format that we do not write, because errors are
    /// JSON in any case.
    pub(crate) fn level_or_default(&self) -> MetadataLevel {
        self.level().unwrap_or_default()
    }

    /// What the client prefers.
    pub(crate) fn prefer(&self) -> Prefer {
        Prefer::of(self.head.headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok()))
    }

    /// The conditional headers.
    pub(crate) fn conditions(&self) -> Conditions<'_> {
        Conditions { if_match: self.header("if-match"), if_none_match: self.header("if-none-match") }
    }
}

/// An authenticated request.
pub(crate) struct Authorised<'a> {
    /// The request.
    pub(crate) exchange: &'a Exchange<'a>,
    /// The sender, with what it may do.
    pub(crate) principal: Principal,
}

/// Headers with the credentials or the conditions of a request.
const DECISIVE: [&str; 6] =
    ["authorization", "host", "if-match", "if-none-match", "x-ms-date", "x-ms-version"];

/// Refuses the headers in [`DECISIVE`] if one comes twice or is not text. If an unreadable `If-Match` counted as
/// absent, an update would become an upsert.
pub(crate) fn check_headers(headers: &HeaderMap) -> Result<(), TableError> {
    let malformed = |name: &str, why: &str| {
        let begin = "The value for one of the HTTP headers is not in the correct format";
        TableError::new(ErrorCode::InvalidHeaderValue, format!("{begin}: {name} {why}."))
    };
    for name in DECISIVE {
        let mut values = headers.get_all(name).iter();
        let Some(first) = values.next() else { continue };
        if values.next().is_some() {
            return Err(malformed(name, "is given twice"));
        }
        if first.to_str().is_err() {
            return Err(malformed(name, "holds other characters than visible ASCII"));
        }
    }
    check_codings(headers)
}

/// Refuses a body in any transfer coding but `chunked` (RFC 9112, section 6.1): it would be read without being decoded.
fn check_codings(headers: &HeaderMap) -> Result<(), TableError> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    if codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        return Ok(());
    }
    let text = "The transfer encoding of the request is not implemented: send the body as it is, or chunked.";
    Err(TableError::new(ErrorCode::NotImplemented, text))
}

/// A header's first value, if it is text.
pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The deadline of a request that comes now: in `timeout` seconds, or in 30 if that is sooner.
pub(crate) fn deadline(query: &Query) -> Result<Instant, TableError> {
    let now = Instant::now();
    let Some(asked) = query.get("timeout").filter(|t| !t.is_empty()) else {
        return Ok(now + limits::REQUEST_WITHIN);
    };
    let seconds: u64 = asked.parse().map_err(|_| {
        TableError::new(
            ErrorCode::InvalidQueryParameterValue,
            format!(
                "Value for one of the query parameters specified in the request URI is invalid: timeout={asked} is not a number of seconds."
            ),
        )
    })?;
    Ok(now + limits::REQUEST_WITHIN.min(std::time::Duration::from_secs(seconds.max(1))))
}
