//! Bodies of the admin endpoint, in and out.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::timeout;

use super::api::Refused;
use crate::limits::{ADMIN_BODY_BYTES_MAX, ADMIN_BODY_WITHIN};

pub(super) async fn body_of(body: Incoming) -> Result<Bytes, Refused> {
    match timeout(ADMIN_BODY_WITHIN, Limited::new(body, ADMIN_BODY_BYTES_MAX).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        _ => Err(Refused::malformed(format!(
            "the body did not come: send at most {ADMIN_BODY_BYTES_MAX} bytes, within {} s",
            ADMIN_BODY_WITHIN.as_secs()
        ))),
    }
}

pub(super) fn not_served(head: &Parts, methods: &str) -> Response<Full<Bytes>> {
    plain(StatusCode::METHOD_NOT_ALLOWED, format!("only {methods} is served at {}\n", head.uri.path()))
}

pub(super) fn answer(result: Result<Value, Refused>) -> Response<Full<Bytes>> {
    match result {
        Ok(value) => json_response(StatusCode::OK, &value),
        Err(refused) => json_response(refused.status, &refused.json()),
    }
}

pub(super) fn json_response(status: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    json_text(status, format!("{value:#}\n"))
}

/// A reply with JSON in one line.
pub(super) fn compact(status: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    json_text(status, format!("{value}\n"))
}

fn json_text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = plain(status, text);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
