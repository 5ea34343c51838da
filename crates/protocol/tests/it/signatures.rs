//! Requests and tokens that Microsoft's SDKs signed are accepted, and are refused when anything that is
//! signed changes. `vectors/make.py` makes the vectors.

use std::net::IpAddr;

use proptest::prelude::*;
use rangehold_map::Timestamp;
use rangehold_protocol::auth::sas::{AccountSas, TableSas};
use rangehold_protocol::auth::{AccountKey, Action, AuthRequest, Principal, shared_key};
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::acl::AccessPolicy;
use rangehold_protocol::time::parse_iso;
use rangehold_protocol::uri::Query;
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    account: String,
    key: String,
    now: String,
    requests: Vec<SignedRequest>,
    tokens: Vec<Token>,
}

#[derive(Deserialize, Clone)]
struct SignedRequest {
    name: String,
    method: String,
    path: String,
    query: String,
    authorization: String,
    date: String,
    x_ms_date: Option<String>,
    content_type: Option<String>,
    content_md5: Option<String>,
}

#[derive(Deserialize)]
struct Token {
    kind: String,
    token: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors/sdk.json")).expect("make.py writes this form")
}

impl Vectors {
    fn keys(&self) -> Vec<AccountKey> {
        vec![AccountKey::from_base64(&self.key).expect("a key")]
    }

    fn now(&self) -> Timestamp {
        parse_iso(&self.now).expect("a time")
    }
}

const MINUTE: i64 = 60 * Timestamp::TICKS_PER_SECOND;

/// A request that has only a query.
fn bare(query: &Query) -> AuthRequest<'_> {
    AuthRequest {
        method: "GET",
        path: "/people()",
        query,
        authorization: None,
        date: None,
        x_ms_date: None,
        content_md5: None,
        content_type: None,
        client: IpAddr::from([127, 0, 0, 1]),
        https: false,
    }
}

fn check(
    request: &SignedRequest,
    account: &str,
    keys: &[AccountKey],
    now: Timestamp,
) -> Result<Principal, TableError> {
    let query = Query::parse(&request.query).expect("a query");
    let request = AuthRequest {
        method: &request.method,
        path: &request.path,
        authorization: Some(&request.authorization),
        date: Some(&request.date),
        x_ms_date: request.x_ms_date.as_deref(),
        content_md5: request.content_md5.as_deref(),
        content_type: request.content_type.as_deref(),
        ..bare(&query)
    };
    shared_key::authenticate(&request, account, keys, now)
}

#[test]
fn requests_of_the_sdks_are_accepted() {
    let vectors = vectors();
    assert!(vectors.requests.len() > 90);
    for request in &vectors.requests {
        assert_eq!(
            check(request, &vectors.account, &vectors.keys(), vectors.now()),
            Ok(Principal::Owner),
            "{}",
            request.name
        );
    }
}

#[test]
fn a_changed_request_is_refused() {
    type Change = fn(&mut SignedRequest);
    let changes: [(&str, Change); 6] = [
        ("method", |r| r.method = "HEAD".to_owned()),
        ("path", |r| r.path.push('x')),
        ("date", |r| r.x_ms_date = Some("Sat, 21 Nov 2026 08:00:01 GMT".to_owned())),
        ("type", |r| r.content_type = Some("application/other".to_owned())),
        ("md5", |r| r.content_md5 = Some("x".to_owned())),
        ("comp", |r| r.query = "comp=other".to_owned()),
    ];
    let vectors = vectors();
    for request in vectors.requests.iter().filter(|r| r.authorization.starts_with("SharedKey ")) {
        for (what, change) in changes {
            let mut changed = request.clone();
            change(&mut changed);
            let refused = check(&changed, &vectors.account, &vectors.keys(), vectors.now()).unwrap_err();
            assert_eq!(refused.code, ErrorCode::AuthenticationFailed, "{what} of {}", request.name);
        }
    }
}

#[test]
fn account_key_and_date_must_be_right() {
    let vectors = vectors();
    let (request, now) = (&vectors.requests[0], vectors.now());
    let other = AccountKey::from_base64("AAAA").expect("a key");
    let mut second = vec![other.clone()];
    second.extend(vectors.keys());
    assert_eq!(check(request, "acct", &second, now), Ok(Principal::Owner), "the second key");

    let wrong_key = check(request, "acct", &[other], now).unwrap_err();
    let no_account = check(request, "acct", &[], now).unwrap_err();
    assert_eq!(wrong_key, no_account);
    assert!(check(request, "acct2", &vectors.keys(), now).is_err(), "another account");

    for (minutes, good) in [(15, true), (-15, true), (16, false), (-16, false)] {
        let then = now.saturating_add(minutes * MINUTE);
        assert_eq!(check(request, "acct", &vectors.keys(), then).is_ok(), good, "{minutes}");
    }
    for header in ["", "SharedKey", "SharedKey acct", "SharedKey acct:", "Basic YTpi", "SharedKey :x"] {
        let mut changed = request.clone();
        changed.authorization = header.to_owned();
        let refused = check(&changed, "acct", &vectors.keys(), now).unwrap_err();
        assert_eq!(refused.code, ErrorCode::AuthenticationFailed, "{header:?}");
    }
}

fn policy() -> AccessPolicy {
    AccessPolicy {
        id: "pö licy".to_owned(),
        start: None,
        expiry: parse_iso("2040-01-01"),
        permission: Some("r".to_owned()),
    }
}

fn check_token(
    vectors: &Vectors,
    token: &str,
    policies: &[AccessPolicy],
    now: Timestamp,
) -> Result<Principal, TableError> {
    let query = Query::parse(token)?;
    let request = bare(&query);
    if query.get("tn").is_some() {
        TableSas::authenticate(&request, &vectors.account, &vectors.keys())?.resolve(policies, &request, now)
    } else {
        AccountSas::authenticate(&request, &vectors.account, &vectors.keys(), now)
    }
}

#[test]
fn tokens_of_the_sdks_are_accepted() {
    let vectors = vectors();
    for token in &vectors.tokens {
        let checked = check_token(&vectors, &token.token, &[policy()], vectors.now());
        match (token.kind.as_str(), checked) {
            ("table", Ok(Principal::TableSas { table, .. })) => assert_eq!(table, "people"),
            ("account", Ok(Principal::AccountSas { .. })) => {}
            // This answer shows that the signature is good.
            ("account, not for tables", Err(error)) => {
                assert_eq!(error.code, ErrorCode::AuthorizationServiceMismatch)
            }
            (kind, checked) => panic!("{kind}: {checked:?} for {}", token.token),
        }
    }
}

#[test]
fn no_field_of_a_token_can_change() {
    let vectors = vectors();
    for token in &vectors.tokens {
        let pairs: Vec<&str> = token.token.split('&').collect();
        for (at, pair) in pairs.iter().enumerate() {
            for changed in [format!("{pair}x"), pair.split_once('=').expect("a pair").0.to_owned()] {
                let mut pairs = pairs.clone();
                pairs[at] = &changed;
                let refused =
                    check_token(&vectors, &pairs.join("&"), &[policy()], vectors.now()).unwrap_err();
                assert_eq!(refused.code, ErrorCode::AuthenticationFailed, "{changed} in {}", token.token);
            }
        }
        let twice = format!("{}&{}", token.token, pairs[0]);
        assert!(check_token(&vectors, &twice, &[policy()], vectors.now()).is_err());
        let added = format!("{}&sip=127.0.0.1&spk=a", token.token);
        assert!(check_token(&vectors, &added, &[policy()], vectors.now()).is_err());
    }
}

/// Signs `fields` as a table SAS of a version with addresses, for tokens that the SDKs refuse to make.
fn table_token(vectors: &Vectors, fields: &[(&str, &str)]) -> String {
    let of = |name: &str| fields.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| *value);
    let text = format!(
        "{}\n{}\n{}\n/table/acct/people\n{}\n{}\n{}\n2019-02-02\n{}\n{}\n{}\n{}",
        of("sp"),
        of("st"),
        of("se"),
        of("si"),
        of("sip"),
        of("spr"),
        of("spk"),
        of("srk"),
        of("epk"),
        of("erk")
    );
    let sig = vectors.keys()[0].sign(&text).replace('+', "%2B");
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("sv=2019-02-02&tn=people&{}&sig={sig}", fields.join("&"))
}

#[test]
fn a_token_is_checked_for_time_address_and_protocol() {
    use ErrorCode::{
        AuthenticationFailed, AuthorizationProtocolMismatch, AuthorizationSourceIPMismatch as SourceIp,
    };
    const FUTURE: (&str, &str) = ("se", "2040-01-01");
    let vectors = vectors();
    type Fields = &'static [(&'static str, &'static str)];
    let cases: [(Fields, Option<ErrorCode>); 19] = [
        (&[("sp", "r"), FUTURE], None),
        (&[("sp", "du"), FUTURE], None),
        (&[("sp", "rw"), FUTURE], Some(AuthenticationFailed)),
        (&[("sp", "rr"), FUTURE], Some(AuthenticationFailed)),
        (&[FUTURE], Some(AuthenticationFailed)),
        (&[("sp", "r")], Some(AuthenticationFailed)),
        (&[("sp", "r"), ("se", "2026-11-21T08:00:00Z")], Some(AuthenticationFailed)),
        (&[("sp", "r"), ("se", "2026-11-21T08:00:00.0000001Z")], None),
        (&[("sp", "r"), FUTURE, ("st", "2026-11-21T08:00Z")], None),
        (&[("sp", "r"), FUTURE, ("st", "2026-11-21T08:01Z")], Some(AuthenticationFailed)),
        (&[("sp", "r"), ("se", "tomorrow")], Some(AuthenticationFailed)),
        (&[("sp", "r"), FUTURE, ("spr", "https")], Some(AuthorizationProtocolMismatch)),
        (&[("sp", "r"), FUTURE, ("spr", "http")], Some(AuthenticationFailed)),
        (&[("sp", "r"), FUTURE, ("sip", "127.0.0.1")], None),
        (&[("sp", "r"), FUTURE, ("sip", "126.0.0.0-127.0.0.1")], None),
        (&[("sp", "r"), FUTURE, ("sip", "127.0.0.2")], Some(SourceIp)),
        (&[("sp", "r"), FUTURE, ("sip", "::1")], Some(SourceIp)),
        (&[("sp", "r"), FUTURE, ("sip", "127.0.0.0/8")], Some(AuthenticationFailed)),
        (&[("sp", "r"), FUTURE, ("srk", "a")], Some(AuthenticationFailed)),
    ];
    for (fields, expected) in cases {
        let checked = check_token(&vectors, &table_token(&vectors, fields), &[], vectors.now());
        assert_eq!(checked.err().map(|error| error.code), expected, "{fields:?}");
    }
}

#[test]
fn a_policy_gives_what_its_token_leaves_out() {
    let vectors = vectors();
    let resolve = |fields: &[(&str, &str)], policies: &[AccessPolicy]| {
        check_token(&vectors, &table_token(&vectors, fields), policies, vectors.now())
            .map_err(|error| error.code)
    };
    let failed = Err(ErrorCode::AuthenticationFailed);
    let named = |expiry, permission: Option<&str>| AccessPolicy {
        id: "p".to_owned(),
        start: None,
        expiry: parse_iso(expiry),
        permission: permission.map(str::to_owned),
    };
    let (full, timed) = (named("2040-01-01", Some("r")), named("2040-01-01", None));
    assert!(resolve(&[("si", "p")], std::slice::from_ref(&full)).is_ok());
    assert_eq!(resolve(&[("si", "p")], &[]), failed, "a policy that is gone");
    assert_eq!(resolve(&[("si", "P")], std::slice::from_ref(&full)), failed, "ids have their case");
    assert_eq!(resolve(&[("si", "p"), ("sp", "r")], &[full]), failed, "a field given twice");
    assert!(resolve(&[("si", "p"), ("sp", "r")], std::slice::from_ref(&timed)).is_ok());
    assert_eq!(resolve(&[("si", "p")], &[timed]), failed, "permissions left open");
    assert_eq!(resolve(&[("si", "p")], &[named("2020-01-01", Some("r"))]), failed, "a policy that expired");
}

#[test]
fn a_table_token_stays_in_its_table_and_keys() {
    let vectors = vectors();
    let fields = [("sp", "ra"), ("se", "2040-01-01"), ("spk", "b"), ("srk", "5"), ("epk", "c")];
    let principal = check_token(&vectors, &table_token(&vectors, &fields), &[], vectors.now()).expect("good");
    let permit = |action, table, key| principal.permit(action, Some(table), key).map_err(|error| error.code);
    assert_eq!(permit(Action::InsertEntity, "PEOPLE", Some(("b", "5"))), Ok(()));
    assert_eq!(permit(Action::InsertEntity, "people", Some(("c", "zz"))), Ok(()));
    assert_eq!(permit(Action::QueryEntities, "people", None), Ok(()));
    assert!(
        principal.key_bounds().is_some_and(|bounds| bounds.contains("b", "6") && !bounds.contains("b", "4"))
    );
    // Recorded for an insert out of bounds.
    let outside = Err(ErrorCode::AuthorizationFailure);
    assert_eq!(permit(Action::InsertEntity, "people", Some(("b", "4"))), outside);
    assert_eq!(permit(Action::InsertEntity, "people", Some(("d", "5"))), outside);
    assert_eq!(permit(Action::InsertEntity, "others", Some(("b", "5"))), outside);
    assert_eq!(permit(Action::SetAcl, "people", None), outside);
    // A test suite that ran against the service shows that a point query out of bounds finds nothing.
    let nothing = Err(ErrorCode::ResourceNotFound);
    assert_eq!(permit(Action::QueryEntities, "people", Some(("b", "4"))), nothing);
    assert_eq!(permit(Action::QueryEntities, "others", Some(("b", "4"))), outside);
    // Recorded for an upsert with `sp=r`.
    assert_eq!(
        permit(Action::UpsertEntity, "people", Some(("b", "5"))),
        Err(ErrorCode::AuthorizationPermissionMismatch)
    );
}

proptest! {
    #[test]
    fn an_unsigned_request_is_refused(
        names in prop::collection::vec("sv|ss|srt|sp|st|se|sip|spr|ses|tn|si|spk|srk|epk|erk|sig", 0..16),
        values in prop::collection::vec("2019-02-02|t|sco|r|2040-01-01|https|127.0.0.1|.{0,8}", 16)
    ) {
        let pairs: Vec<String> = names.iter().zip(&values).map(|(n, v)| format!("{n}={v}")).collect();
        let vectors = vectors();
        prop_assert!(check_token(&vectors, &pairs.join("&"), &[policy()], vectors.now()).is_err());
    }

    #[test]
    fn checking_any_header_never_panics(authorization in ".{0,60}", date in ".{0,40}", path in "/.{0,30}") {
        let vectors = vectors();
        let request = SignedRequest { authorization, date, path, x_ms_date: None, ..vectors.requests[0].clone() };
        prop_assert!(check(&request, "acct", &vectors.keys(), vectors.now()).is_err());
    }
}
