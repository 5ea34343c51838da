//! Finishes a reply: the headers that every reply has, and the bodies of errors.

use http::Uri;
use rangehold_protocol::object::error::{ObjectError, Particular};
use rangehold_protocol::object::request::{Api, api_of};
use rangehold_protocol::object::xml;
use rangehold_protocol::time;

use super::reply::Reply;
use super::{Arrival, Outcome};

/// In which form errors are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    Json,
    /// Downloads.
    Text,
    Xml,
}

impl Speaks {
    /// The form for a request of an API. `is_media` says whether it asks for the bytes of an object (`alt=media`).
    pub(super) fn of(api: Api, is_media: bool) -> Self {
        match api {
            Api::Xml => Self::Xml,
            Api::Download => Self::Text,
            Api::Json | Api::Upload if is_media => Self::Text,
            Api::Json | Api::Upload | Api::Batch => Self::Json,
        }
    }

    /// The form for a request whose query was not read yet.
    pub(super) fn of_unread(uri: &Uri, in_host: bool) -> Self {
        let is_media = uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "alt=media"));
        Self::of(if in_host { Api::Xml } else { api_of(uri.path()) }, is_media)
    }
}

/// Turns the result of a request into its reply.
pub(super) fn finish(arrival: &Arrival, outcome: Outcome) -> Reply {
    let mut reply = match outcome.result {
        Ok(reply) => reply,
        Err(failure) => refused(&failure.0, outcome.speaks),
    };
    if reply.get("X-GUploader-UploadID").is_none() {
        reply.set("X-GUploader-UploadID", &arrival.id);
    }
    reply.set("Date", time::http_date(arrival.now));
    reply.set("Server", "Rangehold");
    reply
}

/// The reply for an error.
pub(super) fn refused(error: &ObjectError, speaks: Speaks) -> Reply {
    let status = error.kind.status();
    if status == 304 {
        return Reply::empty(status);
    }
    let mut reply = match speaks {
        Speaks::Json => Reply::json(status, error.json_body()),
        Speaks::Text => Reply::with_body(status, "text/html; charset=UTF-8", error.message.clone()),
        Speaks::Xml => Reply::with_body(status, "application/xml; charset=UTF-8", xml::error::body(error)),
    };
    if status == 401 {
        reply.set("WWW-Authenticate", "Bearer realm=\"https://accounts.google.com/\"");
    }
    if let Some(Particular::Size(size)) = error.particular {
        // Python's client takes a refusal for an empty object if this says so.
        reply.set("Content-Range", format!("bytes */{size}"));
    }
    reply
}
