//! The method of a request.

use crate::error::{ErrorCode, TableError};

/// The method of a request, after `X-HTTP-Method` was taken into account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Read.
    Get,
    /// Insert, or a batch.
    Post,
    /// Replace.
    Put,
    /// Merge: `PATCH`, or `MERGE` as OData once called it.
    Merge,
    /// Delete.
    Delete,
}

impl Method {
    /// The method of a request with `line` in its request line, and with these `X-HTTP-Method` headers.
    ///
    /// A client sends `POST` with `X-HTTP-Method: MERGE` where a proxy would refuse the method itself.
    /// Fails with `MethodNotAllowed`, or with one of the `XMethod...` codes.
    pub fn of<'a>(line: &str, mut tunnelled: impl Iterator<Item = &'a str>) -> Result<Self, TableError> {
        let named = |name: &str| match name {
            "GET" => Some(Self::Get),
            "POST" => Some(Self::Post),
            "PUT" => Some(Self::Put),
            "MERGE" | "PATCH" => Some(Self::Merge),
            "DELETE" => Some(Self::Delete),
            _ => None,
        };
        let method = named(line).ok_or(ErrorCode::MethodNotAllowed)?;
        let Some(tunnel) = tunnelled.next() else {
            return Ok(method);
        };
        if tunnelled.next().is_some() {
            return Err(ErrorCode::XMethodIncorrectCount.into());
        }
        if method != Self::Post {
            return Err(ErrorCode::XMethodNotUsingPost.into());
        }
        match named(&tunnel.to_ascii_uppercase()) {
            Some(tunnelled @ (Self::Put | Self::Merge | Self::Delete)) => Ok(tunnelled),
            Some(Self::Get | Self::Post) | None => Err(ErrorCode::XMethodIncorrectValue.into()),
        }
    }
}
