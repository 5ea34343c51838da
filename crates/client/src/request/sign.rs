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
/// Fails if an ETag, a token or a signature that the program gave cannot be part of a request.
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

#[cfg(test)]
mod tests {
    use rangehold_protocol::auth::Principal;

    use super::*;
    use crate::entity::Keys;

    const NOW: Timestamp = Timestamp::from_unix_seconds(1_700_000_000);

    fn sent(proof: &Proof<'_>) -> Request<Bytes> {
        let endpoint = Endpoint::parse("http://127.0.0.1:10002/acct").expect("an endpoint");
        let call = Call::get("people", &Keys::new("a b", "it's")).expect("the keys are allowed");
        signed(&endpoint, proof, &call, NOW, "id").expect("the proof is plain text")
    }

    #[test]
    fn the_service_accepts_a_request_that_was_signed_with_the_key() {
        let key = AccountKey::from_base64("c2VjcmV0").expect("base64");
        let request = sent(&Proof::SharedKey("acct", &key));
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let seen = AuthRequest {
            method: request.method().as_str(),
            path: request.uri().path(),
            query: &uri::Query::default(),
            authorization: header("authorization"),
            date: None,
            x_ms_date: header("x-ms-date"),
            content_md5: None,
            content_type: header("content-type"),
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            https: false,
        };
        assert_eq!(shared_key::authenticate(&seen, "acct", &[key], NOW), Ok(Principal::Owner));
    }

    #[test]
    fn a_token_is_a_header_and_a_signature_is_in_the_query() {
        let request = sent(&Proof::Bearer("token".to_owned()));
        assert_eq!(request.headers()["authorization"], "Bearer token");
        let request = sent(&Proof::Sas("sv=2019-02-02&sig=a%3D"));
        assert_eq!(request.uri().query(), Some("sv=2019-02-02&sig=a%3D"));
        assert!(request.headers().get("authorization").is_none());
        assert_eq!(request.uri().path(), "/acct/people(PartitionKey='a%20b',RowKey='it''s')");
    }
}
