//! From a call to an HTTP request of an account.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use http::Request;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rangehold_map::Timestamp;
use rangehold_protocol::auth::{AccountKey, AuthRequest, shared_key};
use rangehold_protocol::time::http_date;
use rangehold_protocol::uri;

use super::{Call, Invalid, VERSION};
use crate::account::Endpoint;

/// What stays as it is in a value of a query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// What proves the sender of one request.
pub(crate) enum Proof<'a> {
    /// The name of an account and its key.
    SharedKey(&'a str, &'a AccountKey),
    /// Query parameters.
    Sas(&'a str),
    /// A token.
    Bearer(String),
}

/// The request that is sent at `now`. `id` names the operation in the logs of both sides.
///
/// Fails if a version, a token or a signature that the program gave cannot be part of a request.
pub(crate) fn signed(
    endpoint: &Endpoint,
    proof: &Proof<'_>,
    call: &Call,
    now: Timestamp,
    id: &str,
) -> Result<Request<Bytes>, Invalid> {
    let path = format!("{}{}", endpoint.path, call.path);
    let mut query: Vec<String> = call
        .query
        .iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, QUERY)))
        .collect();
    if let Proof::Sas(parameters) = proof {
        query.push((*parameters).to_owned());
    }
    let date = http_date(now);
    let mut request = Request::builder()
        .method(call.method.clone())
        .uri(uri_of(endpoint, &path, &query))
        .header("x-ms-version", VERSION)
        .header("x-ms-date", &date)
        .header("x-ms-client-request-id", id);
    for (name, value) in &call.headers {
        request = request.header(*name, value);
    }
    match proof {
        Proof::SharedKey(account, key) => {
            request =
                request.header("Authorization", authorization(endpoint, call, &path, &date, account, key));
        }
        Proof::Bearer(token) => request = request.header("Authorization", format!("Bearer {token}")),
        Proof::Sas(_) => {}
    }
    request.body(call.body.clone()).map_err(|error| {
        Invalid(format!(
            "an ETag, a token or a signature holds a character that HTTP does not allow: {error}"
        ))
    })
}

fn uri_of(endpoint: &Endpoint, path: &str, query: &[String]) -> String {
    let scheme = if endpoint.https { "https" } else { "http" };
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{}{path}{mark}{}", endpoint.authority, query.join("&"))
}

fn authorization(
    endpoint: &Endpoint,
    call: &Call,
    path: &str,
    date: &str,
    account: &str,
    key: &AccountKey,
) -> String {
    let comp = call.query.iter().find(|(name, _)| *name == "comp");
    let comp = comp.map_or_else(String::new, |(name, value)| format!("{name}={value}"));
    let request = AuthRequest {
        method: call.method.as_str(),
        path,
        query: &uri::Query::parse(&comp).expect("a plain parameter is well formed"),
        authorization: None,
        date: None,
        x_ms_date: Some(date),
        content_md5: None,
        content_type: call.header("Content-Type"),
        client: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        https: endpoint.https,
    };
    shared_key::authorization(&request, account, key)
}
