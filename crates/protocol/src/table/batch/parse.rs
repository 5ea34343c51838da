//! Splits a batch into its parts.
//!
//! The reader is tolerant, because real clients differ. Lines may end with CRLF or LF. There may be a
//! preamble, and blank lines in wrong places (one SDK ends its headers with two). Header names come in either
//! case, and boundaries with or without quotes and with any character. The last delimiter may be missing,
//! and an empty change set may hold one empty part. The reader borrows from the body and reads every byte at
//! most twice, once per level. There are limits for the body, the boundaries, the headers of each part, and
//! the number of parts.

use super::{Batch, CONTENT_ID, Part, find};
use crate::error::{ErrorCode, TableError};
use crate::table::limits::{
    BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX, BATCH_PART_HEADER_BYTES_MAX, BOUNDARY_BYTES_MAX,
};

type Headers<'a> = Vec<(&'a str, &'a str)>;

/// Splits the body of a batch with this `Content-Type`.
///
/// Fails with `MediaTypeNotSupported` for another type than `multipart/mixed`, with `RequestBodyTooLarge`
/// above 4 MiB, and with `InvalidInput` if the body is not a batch. More than 100 operations are not an
/// error here: the caller reports that, because the error names an operation.
pub fn parse<'a>(content_type: &str, body: &'a [u8]) -> Result<Batch<'a>, TableError> {
    if body.len() > BATCH_BYTES_MAX {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    let boundary = boundary(content_type)?.ok_or(ErrorCode::MediaTypeNotSupported)?;
    let parts = split(body, &boundary);
    let [part] = parts.as_slice() else {
        return Err(malformed(format!(
            "{} parts between the boundaries --{boundary}; a batch holds one change set, or a single query",
            parts.len()
        )));
    };
    let (headers, content) = headers(part)?;
    match find(&headers, "Content-Type").map(self::boundary).transpose()?.flatten() {
        Some(inner) => Ok(Batch { operations: change_set(content, &inner)?, query: false }),
        None => {
            let operation = operation(&headers, content)?;
            if operation.method != "GET" {
                return Err(malformed("an operation outside of a change set; only one GET may stand there"));
            }
            Ok(Batch { operations: vec![operation], query: true })
        }
    }
}

fn change_set<'a>(content: &'a [u8], boundary: &str) -> Result<Vec<Part<'a>>, TableError> {
    split(content, boundary)
        .into_iter()
        .map(|part| {
            let (headers, content) = headers(part)?;
            match find(&headers, "Content-Type").map(self::boundary).transpose()?.flatten() {
                Some(_) => Err(malformed("a change set inside of a change set")),
                None => operation(&headers, content),
            }
        })
        .collect()
}

/// Reads the request in a part whose own headers are `outer`.
fn operation<'a>(outer: &[(&'a str, &'a str)], content: &'a [u8]) -> Result<Part<'a>, TableError> {
    let (line, rest) = first_line(content.trim_ascii_start());
    let line = text(line)?;
    let mut words = line.splitn(2, ' ');
    let method = words.next().unwrap_or_default();
    let rest_of_line = words.next().unwrap_or_default().trim();
    // The version is split off at the last space, because some clients leave spaces in the URI.
    let uri = match rest_of_line.rsplit_once(' ') {
        Some((uri, version)) if version.starts_with("HTTP/") => uri.trim_end(),
        _ => rest_of_line,
    };
    let is_method = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
    if !is_method || uri.is_empty() || line.len() > BATCH_PART_HEADER_BYTES_MAX {
        return Err(malformed(
            "a part that does not begin with a request line such as POST /people HTTP/1.1",
        ));
    }
    let (mut headers, body) = headers(rest)?;
    if let Some(id) = find(outer, CONTENT_ID).filter(|_| find(&headers, CONTENT_ID).is_none()) {
        headers.push((CONTENT_ID, id));
    }
    Ok(Part { method, uri, headers, body: body.trim_ascii() })
}

/// Reads header lines up to a blank line or the end. Returns them with the content that follows.
fn headers(mut bytes: &[u8]) -> Result<(Headers<'_>, &[u8]), TableError> {
    let mut headers = Vec::new();
    let whole = bytes.len();
    loop {
        let (line, rest) = first_line(bytes);
        if whole - rest.len() > BATCH_PART_HEADER_BYTES_MAX && !line.is_empty() {
            return Err(malformed(format!("headers above {BATCH_PART_HEADER_BYTES_MAX} bytes in one part")));
        }
        if line.is_empty() {
            return Ok((headers, rest));
        }
        let (name, value) = text(line)?
            .split_once(':')
            .filter(|(name, _)| !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic()))
            .ok_or_else(|| malformed("a line among the headers that is not a header"))?;
        headers.push((name, value.trim()));
        bytes = rest;
    }
}

/// The bytes of each part between delimiters `--boundary`, without the line end before a delimiter. Empty
/// parts are left out. Reading stops with the first part above [`BATCH_OPERATIONS_MAX`].
fn split<'a>(bytes: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut begin = None;
    let mut at = 0;
    let mut ended = false;
    while at < bytes.len() && !ended && parts.len() <= BATCH_OPERATIONS_MAX {
        let (line, rest) = first_line(&bytes[at..]);
        let after = bytes.len() - rest.len();
        if let Some(last) = delimiter(line, boundary) {
            parts.extend(begin.map(|begin: usize| &bytes[begin..at.max(begin)]));
            begin = Some(after);
            ended = last;
        }
        at = after;
    }
    if let Some(begin) = begin.filter(|_| !ended && at == bytes.len()) {
        parts.push(&bytes[begin..]);
    }
    parts.retain(|part| !part.trim_ascii().is_empty());
    parts.into_iter().map(without_line_end).collect()
}

/// `Some` if a line is a delimiter of `boundary`: `Some(true)` for the last one.
fn delimiter(line: &[u8], boundary: &str) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary.as_bytes())?;
    match rest.trim_ascii() {
        b"" => Some(false),
        b"--" => Some(true),
        _ => None,
    }
}

/// The first line without its end, and what comes after it.
fn first_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'\n', bytes) {
        Some(end) => {
            let line = &bytes[..end];
            (line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..])
        }
        None => (bytes.strip_suffix(b"\r").unwrap_or(bytes), &[]),
    }
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// A line as text. Control characters are refused, because the reply's headers may repeat parts of the line.
fn text(line: &[u8]) -> Result<&str, TableError> {
    std::str::from_utf8(line)
        .ok()
        .filter(|line| !line.contains(|c: char| c.is_control() && c != '\t'))
        .ok_or_else(|| malformed("a header that is not UTF-8, or holds control characters"))
}

/// The boundary in a content type `multipart/mixed`; `None` for another type.
fn boundary(content_type: &str) -> Result<Option<String>, TableError> {
    let (essence, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    if !essence.trim().eq_ignore_ascii_case("multipart/mixed") {
        return Ok(None);
    }
    let boundary = parameter(parameters, "boundary").unwrap_or_default();
    let printable = boundary.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    if boundary.is_empty() || boundary.len() > BOUNDARY_BYTES_MAX || !printable || boundary.ends_with(' ') {
        return Err(malformed(format!(
            "multipart/mixed without a boundary of 1 to {BOUNDARY_BYTES_MAX} printable characters"
        )));
    }
    Ok(Some(boundary))
}

/// The value of a media type's parameter, with or without quotes.
fn parameter(mut parameters: &str, wanted: &str) -> Option<String> {
    while let Some((name, rest)) = parameters.split_once('=') {
        let rest = rest.trim_start();
        let (value, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let (value, after) = rest.split_once(';').unwrap_or((rest, ""));
                (value.trim_end().to_owned(), after)
            }
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        parameters = after;
    }
    None
}

/// The text up to the closing quote, with backslashes resolved, and what follows the next semicolon.
fn unquoted(quoted: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                return (value, quoted[at + 1..].split_once(';').map_or("", |(_, after)| after));
            }
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

fn malformed(what: impl std::fmt::Display) -> TableError {
    TableError::invalid_input(format!("{} The batch holds {what}.", ErrorCode::InvalidInput.text()))
}
