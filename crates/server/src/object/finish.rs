//! Finishes a reply: the headers that every reply has, and the bodies of errors.

use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::xml;
use rangehold_protocol::time;

use super::reply::Reply;
use super::{Arrival, Outcome, Speaks};

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
    let reply = match speaks {
        Speaks::Json => Reply::json(status, error.json_body()),
        Speaks::Text => Reply::with_body(status, "text/html; charset=UTF-8", error.message.clone()),
        Speaks::Xml => Reply::with_body(status, "application/xml; charset=UTF-8", xml::error::body(error)),
    };
    match status {
        401 => reply.header("WWW-Authenticate", "Bearer realm=\"https://accounts.google.com/\""),
        _ => reply,
    }
}
