//! One request, read once: what every handler needs to know of it.

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

/// What a client asked for with `Prefer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefer {
    /// Nothing was asked.
    Unsaid,
    /// The created resource in the reply.
    Content,
    /// No body in the reply.
    NoContent,
}

impl Prefer {
    /// Reads the header; what it does not know it takes as unsaid.
    pub(crate) fn of(header: Option<&str>) -> Self {
        match header.map(|h| h.trim().to_ascii_lowercase()).as_deref() {
            Some("return-content") => Self::Content,
            Some("return-no-content") => Self::NoContent,
            _ => Self::Unsaid,
        }
    }

    /// The value of `Preference-Applied`, which is sent only where something was asked.
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
    /// The connection it came on.
    pub(crate) connection: &'a Connection,
    /// Account, style and path.
    pub(crate) address: Address,
    /// The id of the request.
    pub(crate) request_id: &'a str,
    /// Decoded query parameters.
    pub(crate) query: Query,
    /// The wall clock's time when the request came: what signatures and tokens are judged by.
    pub(crate) now: Timestamp,
    /// When the client has waited long enough.
    pub(crate) deadline: Instant,
}

impl Exchange<'_> {
    /// A header's value, if it is there once at least and is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        text(&self.head.headers, name)
    }

    /// Bytes of the body, as the client says; 0 if it does not say.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The JSON level that the client wants.
    pub(crate) fn level(&self) -> Result<MetadataLevel, TableError> {
        let accepts = self.head.headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok());
        MetadataLevel::negotiate(self.query.get("$format"), accepts)
    }

    /// The JSON level, or the default where the client asks for something we do not write: errors
    /// are JSON whatever was asked.
    pub(crate) fn level_or_default(&self) -> MetadataLevel {
        self.level().unwrap_or_default()
    }

    /// What the client prefers.
    pub(crate) fn prefer(&self) -> Prefer {
        Prefer::of(self.header("prefer"))
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

/// Headers that say who sent a request, or on what condition it acts.
const DECISIVE: [&str; 6] =
    ["authorization", "host", "if-match", "if-none-match", "x-ms-date", "x-ms-version"];

/// Refuses decisive headers that come twice or are not text. If an unreadable `If-Match` counted as absent, an
/// update would become an upsert.
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
    Ok(())
}

/// A header's first value, if it is text.
pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// When a request that comes now must be answered: `timeout` seconds, 30 at most.
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
