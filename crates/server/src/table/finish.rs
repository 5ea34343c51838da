//! Finishes a reply: the headers that the recordings of the service have, and the bodies of errors.
//!
//! | reply | headers |
//! |---|---|
//! | all | `Server`, `Date`, `x-ms-request-id`; `x-ms-version` and `x-ms-client-request-id` if the client sent them |
//! | JSON | `X-Content-Type-Options`; `Cache-Control`, except with errors that are found while the request is read |
//! | errors in XML | `x-ms-error-code` |
//! | not authenticated | `x-ms-error-code`; no headers of JSON and no `x-ms-version`; a plain content type |

use http::request::Parts;
use rangehold_protocol::auth::bearer;
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::error_reply;
use rangehold_protocol::time;

use super::exchange::{self, Exchange};
use super::reply::Reply;
use super::{Arrival, Outcome, UNAUTHENTICATED};

/// Adds the headers that every reply has.
pub(super) fn finish(
    exchange: Option<&Exchange<'_>>,
    head: &Parts,
    arrival: &Arrival,
    outcome: Outcome,
) -> Reply {
    let header = |name: &str| exchange::text(&head.headers, name);
    let authenticated = outcome.operation != UNAUTHENTICATED;
    let xml = outcome.xml;
    let mut reply = match outcome.result {
        Ok(mut reply) => {
            if !xml {
                reply.set("Cache-Control", "no-cache");
                reply.set("X-Content-Type-Options", "nosniff");
            }
            reply
        }
        Err(failure) if authenticated => refused(exchange, arrival, outcome.operation, &failure.error, xml),
        Err(failure) => unauthenticated(arrival, &failure.error, xml),
    };
    if authenticated {
        reply.set("Server", "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0");
        if let Some(version) = header("x-ms-version") {
            reply.set("x-ms-version", version);
        }
    } else {
        reply.set("Server", "Microsoft-HTTPAPI/2.0");
    }
    reply.set("x-ms-request-id", &arrival.id);
    if let Some(id) = header("x-ms-client-request-id") {
        reply.set("x-ms-client-request-id", id);
    }
    reply.set("Date", time::http_date(arrival.now));
    reply
}

/// The reply to a request that failed, and whose sender is known.
fn refused(
    exchange: Option<&Exchange<'_>>,
    arrival: &Arrival,
    operation: &str,
    error: &TableError,
    xml: bool,
) -> Reply {
    let mut reply = if xml {
        in_xml(error, arrival)
    } else {
        let level = exchange.map(Exchange::level_or_default).unwrap_or_default();
        let mut reply = in_json(error, arrival, level.content_type());
        reply.set("X-Content-Type-Options", "nosniff");
        if has_cache_control(operation, error) {
            reply.set("Cache-Control", "no-cache");
        }
        reply
    };
    if let Some(applied) = exchange.and_then(|exchange| exchange.prefer().applied()) {
        reply.set("Preference-Applied", applied);
    }
    reply
}

/// The reply to a request whose sender is not known.
fn unauthenticated(arrival: &Arrival, error: &TableError, xml: bool) -> Reply {
    let mut reply = match xml {
        true => in_xml(error, arrival),
        false => in_json(error, arrival, "application/json").header("x-ms-error-code", error.code.name()),
    };
    if reply.status == 401 {
        reply.set("WWW-Authenticate", bearer::challenge());
    }
    reply
}

fn in_json(error: &TableError, arrival: &Arrival, content_type: &str) -> Reply {
    Reply::with_body(error.code.status(), content_type, error_reply::json(error, &arrival.id, arrival.now))
}

fn in_xml(error: &TableError, arrival: &Arrival) -> Reply {
    Reply::with_body(
        error.code.status(),
        "application/xml",
        error_reply::xml(error, &arrival.id, arrival.now),
    )
    .header("x-ms-error-code", error.code.name())
}

/// Whether an error in JSON has `Cache-Control`. In the recordings, an error has it if it was found in the store, or
/// after the URI, the filter and the body were read. An error that is found while these are read does not have it.
/// Such errors are all of `InvalidInput`, except for queries that are well-formed but not offered (`$top` above its
/// limit, `eq null`). Bad names of tables are such errors too, except for the name of a table to be created.
fn has_cache_control(operation: &str, error: &TableError) -> bool {
    match error.code {
        code if code.is_found_by_store() => true,
        ErrorCode::AuthorizationFailure
        | ErrorCode::AuthorizationPermissionMismatch
        | ErrorCode::AuthorizationResourceTypeMismatch
        | ErrorCode::NotImplemented
        | ErrorCode::PropertiesNeedValue => true,
        ErrorCode::InvalidInput => {
            operation.starts_with("Query") && error.text == ErrorCode::InvalidInput.text()
        }
        ErrorCode::InvalidResourceName | ErrorCode::OutOfRangeInput => operation == "CreateTable",
        _ => false,
    }
}
