//! The answer to a batch: a multipart body with one answer for each change, or with one for the change that failed.
//!
//! The status of the whole is 202 even then. So the parts are what counts.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};

use crate::entity::NotAnEntity;

/// The answers inside `answer`, in the order of the changes.
///
/// Fails if the body is not an answer to a batch.
pub(crate) fn outcomes(answer: &Response<Bytes>) -> Result<Vec<Response<Bytes>>, NotAnEntity> {
    let content_type = answer.headers().get("content-type").and_then(|value| value.to_str().ok());
    let mut found = Vec::new();
    collect(content_type.unwrap_or_default(), answer.body(), &mut found)?;
    match found.is_empty() {
        true => Err(unreadable("it has no parts")),
        false => Ok(found),
    }
}

fn unreadable(why: &str) -> NotAnEntity {
    NotAnEntity::batch(why)
}

/// The change set lies in the batch, so a part may have parts itself.
fn collect(content_type: &str, body: &[u8], found: &mut Vec<Response<Bytes>>) -> Result<(), NotAnEntity> {
    let boundary = content_type
        .split(';')
        .find_map(|part| part.trim().strip_prefix("boundary="))
        .map(|boundary| boundary.trim_matches('"'))
        .ok_or_else(|| unreadable("its content type has no boundary"))?;
    let text = std::str::from_utf8(body).map_err(|_| unreadable("it is not text"))?;
    let delimiter = format!("--{boundary}");
    for part in text.split(&delimiter).skip(1).take_while(|part| !part.starts_with("--")) {
        let (headers, rest) = head_and_body(part.trim_start_matches("\r\n"))?;
        let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        if kind.starts_with("multipart/") {
            collect(kind, rest.as_bytes(), found)?;
        } else {
            found.push(one(rest)?);
        }
    }
    Ok(())
}

/// The answer to one change: a status line, headers, a body.
fn one(text: &str) -> Result<Response<Bytes>, NotAnEntity> {
    let (line, rest) = text.split_once("\r\n").unwrap_or((text, ""));
    let status: u16 = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| unreadable("a part has no status line"))?;
    let (headers, body) = head_and_body(rest)?;
    let mut answer = Response::builder()
        .status(status)
        .body(Bytes::copy_from_slice(body.trim().as_bytes()))
        .map_err(|_| unreadable("a part has a status that HTTP does not have"))?;
    *answer.headers_mut() = headers;
    Ok(answer)
}

fn head_and_body(text: &str) -> Result<(HeaderMap, &str), NotAnEntity> {
    let (head, body) = match text.strip_prefix("\r\n") {
        Some(body) => ("", body),
        None => text.split_once("\r\n\r\n").unwrap_or((text, "")),
    };
    let mut headers = HeaderMap::new();
    for line in head.lines().filter(|line| !line.trim().is_empty()) {
        let pair = line.split_once(':').and_then(|(name, value)| {
            let name: HeaderName = name.trim().parse().ok()?;
            Some((name, HeaderValue::from_str(value.trim()).ok()?))
        });
        let (name, value) = pair.ok_or_else(|| unreadable("a part has a malformed header"))?;
        headers.insert(name, value);
    }
    Ok((headers, body))
}

#[cfg(test)]
mod tests {
    use rangehold_protocol::table::batch::BatchReply;

    use super::*;

    fn answer(reply: BatchReply) -> Response<Bytes> {
        let content_type = reply.content_type();
        let body = Bytes::from(reply.finish());
        Response::builder()
            .status(202)
            .header("Content-Type", content_type)
            .body(body)
            .expect("it is an answer")
    }

    fn reply() -> BatchReply {
        BatchReply::new("batchresponse_1".to_owned(), "changesetresponse_2".to_owned())
    }

    #[test]
    fn the_parts_are_read_in_their_order() {
        let mut two = reply();
        two.operation(204, &[("ETag", "W/\"1\"")], b"");
        two.operation(204, &[("DataServiceVersion", "1.0;")], b"");
        let parts = outcomes(&answer(two)).expect("it is well formed");
        assert_eq!(parts.iter().map(|part| part.status().as_u16()).collect::<Vec<_>>(), [204, 204]);
        assert_eq!(parts[0].headers()["etag"], "W/\"1\"");
        assert!(parts[1].headers().get("etag").is_none());
    }

    #[test]
    fn the_error_of_one_change_is_read_with_its_body() {
        let body = br#"{"odata.error":{"code":"ServerBusy","message":{"lang":"en-US","value":"--changeset HTTP/1.1 "}}}"#;
        let mut failed = reply();
        failed.operation(503, &[("Content-Type", "application/json")], body);
        let parts = outcomes(&answer(failed)).expect("it is well formed");
        assert_eq!((parts.len(), parts[0].status().as_u16()), (1, 503));
        assert_eq!(&parts[0].body()[..], body);
    }

    #[test]
    fn other_answers_are_refused() {
        let plain = Response::new(Bytes::from_static(b"hello"));
        assert!(outcomes(&plain).is_err());
        assert!(outcomes(&answer(reply())).is_err());
    }
}
