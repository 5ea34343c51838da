//! Credentials that are wrong, and credentials in odd places.

use rangehold_map::Timestamp;
use rangehold_protocol::time::{http_date, iso};

use crate::support::Service;
use crate::support::wire::{Answer, Request};
use rangehold_testkit::sign::{Signer, bearer_token};

const FAILED: (u16, &str) = (403, "AuthenticationFailed");

fn in_minutes(service: &Service, minutes: i64) -> Timestamp {
    Timestamp::from_unix_seconds(service.clock.wall().unix_seconds() + minutes * 60)
}

fn outcome(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.code())
}

async fn list(service: &Service, headers: &[(&str, &str)], query: &str) -> Answer {
    let target = format!("/devstoreaccount1/Tables{query}");
    service.send_raw(&Request::new("GET", &target, headers, b"")).await
}

#[tokio::test]
async fn a_date_is_good_for_a_quarter_of_an_hour() {
    let service = Service::start().await;
    for (minutes, good) in [(-16, false), (-14, true), (14, true), (16, false)] {
        let date = http_date(in_minutes(&service, minutes));
        let answer = service.send("GET", "/Tables", &[("x-ms-date", &date)], b"").await;
        assert_eq!(outcome(&answer), if good { (200, "") } else { FAILED }, "{minutes}");
    }
    let nonsense = service.send("GET", "/Tables", &[("x-ms-date", "yesterday")], b"").await;
    assert_eq!(outcome(&nonsense), FAILED);
    // Dates are compared with the present time, even after the clock stepped back. Clients know nothing of its
    // earlier times.
    service.still_serves().await;
    service.clock.step(-10_000_000 * 3600);
    service.still_serves().await;
}

#[tokio::test]
async fn credentials_come_in_one_place() {
    let service = Service::start().await;
    let expiry = iso(in_minutes(&service, 60));
    let fields = [("ss", "t"), ("srt", "sco"), ("sp", "rl"), ("se", expiry.as_str()), ("sv", "2019-02-02")];
    let token = Signer::well_known().sas(&fields.map(|(name, value)| (name, value.to_owned())));
    let alone = list(&service, &[], &format!("?{token}")).await;
    assert_eq!(alone.status, 200, "{alone:?}");
    let both = service.send("GET", &format!("/Tables?{token}"), &[], b"").await;
    assert_eq!(outcome(&both), FAILED);
    let twice = list(&service, &[], &format!("?{token}&sp=rwdl")).await;
    assert_eq!(outcome(&twice), (400, "InvalidQueryParameterValue"));
    let changed = list(&service, &[], &format!("?{}", token.replace("sp=rl", "sp=rwdl"))).await;
    assert_eq!(outcome(&changed), FAILED);
    let neither = list(&service, &[], "").await;
    assert_eq!(outcome(&neither), (401, "NoAuthenticationInformation"));
    let header = ("Authorization", "SharedKey devstoreaccount1:AAAA");
    let repeated = list(&service, &[header, header], "").await;
    assert_eq!(outcome(&repeated), (400, "InvalidHeaderValue"));
    service.still_serves().await;
}

#[tokio::test]
async fn signatures_that_are_none() {
    let service = Service::start().await;
    let mut signed = Request::new("GET", "/devstoreaccount1/Tables", &[], b"");
    Signer::well_known().sign(&mut signed, service.clock.wall().unix_seconds());
    let date = signed.header("x-ms-date").unwrap_or_default().to_owned();
    let good = signed.header("authorization").unwrap_or_default().to_owned();
    assert_eq!(list(&service, &[("x-ms-date", &date), ("Authorization", &good)], "").await.status, 200);
    for header in [
        &good[..good.len() - 4],
        &format!("{good}AAAA"),
        &good.replace("devstoreaccount1:", "devstoreaccount1"),
        &good.replace("devstoreaccount1:", "other:"),
        &good.replace("SharedKey ", "SharedKeyLite "),
        &good.replace("SharedKey ", "Basic "),
        "SharedKey",
        "SharedKey ",
        "SharedKey :",
        "SharedKey devstoreaccount1:",
        "SharedKey devstoreaccount1:====",
        "Bearer",
        "nonsense",
    ] {
        let answer = list(&service, &[("x-ms-date", &date), ("Authorization", header)], "").await;
        assert_eq!(outcome(&answer), FAILED, "{header}");
    }
    // Nothing of the request may change after it was signed.
    let moved = Request { target: "/devstoreaccount1/Tables('x')".to_owned(), ..signed.clone() };
    assert_eq!(outcome(&service.send_raw(&moved).await), FAILED);
    let other = Request { method: "POST".to_owned(), ..signed };
    assert_eq!(outcome(&service.send_raw(&other).await), FAILED);
    service.still_serves().await;
}

#[tokio::test]
async fn tokens_that_are_none() {
    let service = Service::start().await;
    let good = bearer_token(service.clock.wall().unix_seconds());
    let version = ("x-ms-version", "2020-12-06");
    let as_bearer = |token: &str| format!("Bearer {token}");
    assert_eq!(list(&service, &[version, ("Authorization", &as_bearer(&good))], "").await.status, 200);
    let old = bearer_token(in_minutes(&service, -120).unix_seconds());
    let (header, rest) = good.split_once('.').expect("three parts");
    let long = "a".repeat(20_000);
    for token in [".", "..", "a.b.c", header, rest, &old, &long, &good[..good.len() / 2]] {
        let answer = list(&service, &[version, ("Authorization", &as_bearer(token))], "").await;
        assert_eq!(outcome(&answer), (401, "InvalidAuthenticationInfo"), "{token}");
        assert!(answer.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer ")));
    }
    service.still_serves().await;
}

/// An account that does not exist gets the same answer as a wrong key.
#[tokio::test]
async fn accounts_cannot_be_guessed() {
    let service = Service::start().await;
    let wrong_key = Signer::new("devstoreaccount1", "d3Jvbmcga2V5");
    let no_account = Signer::new("nosuchaccount", "d3Jvbmcga2V5");
    let mut bodies = Vec::new();
    for signer in [wrong_key, no_account] {
        let answer = service.send_as(&signer, Request::new("GET", "/Tables", &[], b"")).await;
        assert_eq!(outcome(&answer), FAILED);
        bodies.push(answer.body.split("RequestId:").next().unwrap_or_default().to_owned());
    }
    assert_eq!(bodies[0], bodies[1]);
}
