//! What is sent for each operation. Pure.

use bytes::Bytes;
use http::{Method, Request};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::resource::{Condition, Generation};
use crate::account::Endpoint;
use crate::request::Invalid;

/// What stays as it is in a segment of a path and in a value of a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Where a request goes.
#[derive(Debug, Clone)]
enum Target {
    /// A path below the endpoint.
    Path(String),
    /// The URL of an upload session, which is its own proof.
    Session(String),
}

/// One operation, as it is sent.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    target: Target,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    /// Whether a second execution cannot do harm.
    pub(super) is_idempotent: bool,
}

/// A text as one segment of a path.
pub(super) fn segment(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

impl Call {
    fn new(method: Method, target: Target) -> Self {
        let is_idempotent = method == Method::GET;
        Self { method, target, query: Vec::new(), headers: Vec::new(), body: Bytes::new(), is_idempotent }
    }

    /// A call below `/storage/v1`.
    pub(super) fn api(method: Method, path: &str) -> Self {
        Self::new(method, Target::Path(format!("/storage/v1{path}")))
    }

    /// An upload into a bucket.
    pub(super) fn upload(bucket: &str, kind: &str) -> Self {
        let path = format!("/upload/storage/v1/b/{}/o", segment(bucket));
        Self::new(Method::POST, Target::Path(path)).parameter("uploadType", kind)
    }

    /// A call to an upload session. All of them may be repeated.
    pub(super) fn session(method: Method, url: &str) -> Self {
        Self::new(method, Target::Session(url.to_owned())).idempotent(true)
    }

    /// `/b/BUCKET/o/NAME`, with what follows.
    pub(super) fn object(method: Method, bucket: &str, name: &str, rest: &str) -> Self {
        Self::api(method, &format!("/b/{}/o/{}{rest}", segment(bucket), segment(name)))
    }

    pub(super) fn parameter(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(super) fn maybe(self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.parameter(name, value),
            None => self,
        }
    }

    pub(super) fn generation(self, generation: Option<Generation>) -> Self {
        self.maybe("generation", generation.map(|generation| generation.to_string()))
    }

    /// The condition of a change. With one, the call may be repeated.
    pub(super) fn condition(self, condition: Condition) -> Self {
        let value = condition.value();
        let is_idempotent = self.is_idempotent || value.is_some();
        self.maybe("ifGenerationMatch", value).idempotent(is_idempotent)
    }

    pub(super) fn idempotent(mut self, is_idempotent: bool) -> Self {
        self.is_idempotent = is_idempotent;
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string().into_bytes())
    }

    pub(super) fn body(self, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }.header("Content-Type", content_type)
    }

    pub(super) fn bytes(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    /// The path, for logs. That of a session is secret.
    pub(super) fn path(&self) -> &str {
        match &self.target {
            Target::Path(path) => path,
            Target::Session(_) => "(upload session)",
        }
    }

    /// Whether the request needs a proof of its sender.
    pub(super) fn needs_proof(&self) -> bool {
        matches!(self.target, Target::Path(_))
    }

    /// The request that is sent.
    pub(super) fn request(
        &self,
        endpoint: &Endpoint,
        token: Option<&str>,
    ) -> Result<Request<Bytes>, Invalid> {
        let mut url = match &self.target {
            Target::Path(path) => format!("{endpoint}{path}"),
            Target::Session(url) => url.clone(),
        };
        for (at, (name, value)) in self.query.iter().enumerate() {
            let mark = if at == 0 { '?' } else { '&' };
            url.push_str(&format!("{mark}{name}={}", utf8_percent_encode(value, PLAIN)));
        }
        let mut request = Request::builder().method(self.method.clone()).uri(url);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let body = self.body.clone();
        request
            .body(body)
            .map_err(|error| Invalid(format!("the request to {} cannot be sent: {error}", self.path())))
    }
}
