//! What is written to the log at its most detailed level: nothing with which a reader of the log could act as a
//! client.

#[allow(dead_code, reason = "this test uses a part of it")]
#[path = "it/support/mod.rs"]
mod support;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rangehold_map::Timestamp;
use rangehold_protocol::time::iso;
use rangehold_server::accounts::WELL_KNOWN_KEY;
use rangehold_testkit::sign::{Signer, bearer_token};
use support::wire::Request;
use support::{ADMIN_TOKEN, Service};
use tracing_subscriber::fmt::MakeWriter;

/// A log that is kept in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Sends the requests of this test: each way of authentication, once right and once wrong. Returns the texts that
/// must not be in the log.
async fn requests(service: &Service) -> Vec<String> {
    let signer = Signer::well_known();
    let now = service.clock.wall();
    let mut secrets = vec![WELL_KNOWN_KEY.to_owned(), ADMIN_TOKEN.to_owned()];

    let mut signed = Request::new("GET", "/devstoreaccount1/Tables", &[], b"");
    signer.sign(&mut signed, now.unix_seconds());
    let mut lite = Request::new("GET", "/devstoreaccount1/Tables", &[], b"");
    signer.sign_lite(&mut lite, now.unix_seconds());
    for request in [signed, lite] {
        let header = request.header("authorization").unwrap_or_default().to_owned();
        secrets.extend(header.rsplit(':').next().map(str::to_owned));
        assert_eq!(service.send_raw(&request).await.status, 200);
        let elsewhere = Request { target: "/devstoreaccount1/Tables('x')".to_owned(), ..request };
        assert_eq!(service.send_raw(&elsewhere).await.status, 403);
    }

    let expiry = iso(Timestamp::from_unix_seconds(now.unix_seconds() + 3600));
    let common = [("se", expiry), ("sv", "2019-02-02".to_owned())];
    for (fields, path) in [
        (&[("ss", "t"), ("srt", "sco"), ("sp", "rl")][..], "/Tables"),
        (&[("tn", "notes"), ("sp", "r")], "/notes()"),
    ] {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).chain(common.clone());
        let token = signer.sas(&fields.collect::<Vec<_>>());
        let signature = token.split("sig=").nth(1).unwrap_or_default();
        secrets.push(signature.to_owned());
        secrets.push(signature.replace("%2B", "+").replace("%2F", "/").replace("%3D", "="));
        for (token, status) in [(token.clone(), 200), (token.replace("sp=r", "sp=d"), 403)] {
            let target = format!("/devstoreaccount1{path}?{token}");
            let answer = service.send_raw(&Request::new("GET", &target, &[], b"")).await;
            assert_eq!(answer.status, status, "{answer:?}");
        }
    }

    let good = bearer_token(now.unix_seconds());
    let old = bearer_token(now.unix_seconds() - 7200);
    for (token, status) in [(good, 200), (old, 401)] {
        let header = format!("Bearer {token}");
        let headers = [("Authorization", header.as_str()), ("x-ms-version", "2020-12-06")];
        let answer = service.send_raw(&Request::new("GET", "/devstoreaccount1/Tables", &headers, b"")).await;
        assert_eq!(answer.status, status, "{answer:?}");
        secrets.push(token);
    }
    let header = format!("Bearer {ADMIN_TOKEN}");
    let answer = service.send_admin("GET", "/v1/status", &[("Authorization", &header)]).await;
    assert_eq!(answer.status, 200);
    secrets
}

/// A process has one log for everything, so this is the only test of its program.
#[tokio::test]
async fn no_key_signature_or_token_is_logged() {
    let log = Log::default();
    let everything = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
    everything.with_writer(log.clone()).init();
    let service = Service::start().await;
    service.create_table("notes").await;
    let secrets = requests(&service).await;
    service.running.stop().await;

    let text = log.text();
    for secret in &secrets {
        assert!(secret.len() >= 10, "{secret:?} is too short to be looked for");
        assert!(!text.contains(secret.as_str()), "{secret} is in the log");
    }
    assert!(secrets.len() >= 10);
    // The log was on, and has what an operator needs.
    for expected in ["request", "path=\"/devstoreaccount1/Tables\"", "operation=\"QueryEntities\"", "TRACE"] {
        let found = text.contains(expected) || text.contains(&expected.replace('"', ""));
        assert!(found, "no {expected} in the log");
    }
}
