//! The admin endpoint: what a client may see, and what keeps web pages out.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use rangehold_engine::{Step, StepHook};
use rangehold_map::Timestamp;
use rangehold_server::accounts::{Accounts, WELL_KNOWN_ACCOUNT};
use rangehold_testkit::sign::Signer;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::wire::Request;
use crate::support::{ADMIN_HOST, ADMIN_TOKEN, JSON, MEMORY_BYTES, Service, Wanted};

#[tokio::test]
async fn health_and_metrics_are_for_everybody() {
    let service = Service::start().await;
    for path in ["/livez", "/healthz", "/readyz"] {
        assert_eq!(service.send_admin("GET", path, &[]).await.status, 200, "{path}");
    }
    service.create_table("notes").await;
    let metrics = service.send_admin("GET", "/metrics", &[]).await;
    assert_eq!(metrics.status, 200);
    assert!(
        metrics
            .body
            .contains("rangehold_requests_total{operation=\"CreateTable\",response_type=\"Success\"} 1")
    );
    assert!(!metrics.body.contains("notes"), "names of tables are the users' data");
    assert_eq!(service.send_admin("GET", "/", &[]).await.status, 404);
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"] {
        assert_eq!(service.send_admin(method, "/healthz", &[]).await.status, 405, "{method}");
    }
}

#[tokio::test]
async fn the_status_asks_for_the_token() {
    let service = Service::start().await;
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let status = service.told("/v1/status").await;
    assert_eq!(status["ranges"].as_array().map(Vec::len), Some(1), "{status}");
    let longer = format!("{bearer}x");
    for wrong in ["", "Bearer", "Bearer ", ADMIN_TOKEN, &bearer[..bearer.len() - 1], &longer] {
        let answer = service.send_admin("GET", "/v1/status", &[("Authorization", wrong)]).await;
        assert_eq!(answer.status, 401, "{wrong}");
    }
    let answer = service.send_admin("GET", "/v1/status", &[]).await;
    assert_eq!(answer.status, 401);
    assert!(!answer.body.contains(ADMIN_TOKEN));
}

#[tokio::test]
async fn the_status_tells_what_runs_here_and_where() {
    let accounts = Accounts::parse("devstoreaccount1:c2VjcmV0;other:b3RoZXIgc2VjcmV0").expect("accounts");
    let service = Service::with_accounts(accounts).await;
    let signer = Signer::new(WELL_KNOWN_ACCOUNT, "c2VjcmV0");
    for table in ["marathon", "notes"] {
        let body = format!(r#"{{"TableName":"{table}"}}"#);
        let created =
            service.send_as(&signer, Request::new("POST", "/Tables", &[JSON], body.as_bytes())).await;
        assert_eq!(created.status, 201, "{created:?}");
    }
    let photos = Request::new("POST", "/storage/v1/b?project=p", &[JSON], br#"{"name":"photos"}"#);
    assert_eq!(service.send_object(&photos).await.status, 200);

    let status = service.told("/v1/status").await;
    let at = |address: SocketAddr| json!(format!("http://{address}"));
    let running = &service.running;
    let objects = running.object_address.expect("objects are served");
    let expected = json!({
        "tables": at(running.table_address), "objects": at(objects), "admin": at(running.admin_address),
    });
    assert_eq!(status["addresses"], expected);
    let exactly = |number: u64| json!({ "number": number, "at_least": false });
    let expected = json!([
        { "name": WELL_KNOWN_ACCOUNT, "tables": exactly(2) }, { "name": "other", "tables": exactly(0) },
    ]);
    assert_eq!(status["accounts"], expected);
    assert_eq!((&status["tables"], &status["buckets"]), (&exactly(2), &exactly(1)));
    assert_eq!(status["memory"]["budget_bytes"], MEMORY_BYTES);
    let resident = status["memory"]["resident_bytes"].as_u64();
    assert_eq!(resident.is_some_and(|bytes| bytes > 0), cfg!(target_os = "linux"), "{status}");
    assert_eq!(status["disk_free_bytes"], Value::Null, "everything is in memory");
    for key in ["c2VjcmV0", "b3RoZXIgc2VjcmV0"] {
        assert!(!status.to_string().contains(key), "{status}");
    }
}

#[tokio::test]
async fn the_uptime_follows_the_clock_of_the_process() {
    let service = Service::start().await;
    let uptime = |status: &Value| status["uptime_s"].as_i64().expect("seconds");
    let before = uptime(&service.told("/v1/status").await);
    service.clock.step(100 * Timestamp::TICKS_PER_SECOND);
    let after = uptime(&service.told("/v1/status").await);
    assert!(after >= before + 100, "{after} s after {before} s");
}

#[tokio::test]
async fn web_pages_are_kept_out() {
    let service = Service::start().await;
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let token = ("Authorization", bearer.as_str());
    for path in ["/healthz", "/metrics", "/v1/status"] {
        for origin in ["http://localhost", "null", "https://evil.example"] {
            let answer = service.send_admin("GET", path, &[token, ("Origin", origin)]).await;
            assert_eq!(answer.status, 403, "{path} {origin}");
        }
        for host in ["evil.example", "evil.example:10080", "127.0.0.1.evil.example", "198.51.100.7", ""] {
            let answer = service.send_admin("GET", path, &[token, ("Host", host)]).await;
            assert_eq!(answer.status, 403, "{path} {host}");
        }
        let chosen = format!("{}:10080", ADMIN_HOST.to_uppercase());
        for host in ["localhost", "localhost:10080", "127.0.0.1", "[::1]:10080", ADMIN_HOST, &chosen] {
            let answer = service.send_admin("GET", path, &[token, ("Host", host)]).await;
            assert_eq!(answer.status, 200, "{path} {host}");
        }
    }
}

/// Inserts a row into the range that begins at `marathon/Half`.
async fn insert_in_half(service: &Service) {
    let insert = service.send("POST", "/marathon", &[JSON], br#"{"PartitionKey":"Half","RowKey":"r"}"#).await;
    assert_eq!(insert.status, 201, "{insert:?}");
}

async fn readiness(service: &Service) -> (u16, Value) {
    let answer = service.send_admin("GET", "/readyz", &[]).await;
    (answer.status, serde_json::from_str(&answer.body).expect("JSON"))
}

/// Ends the lease of a server in its first life, as a process does that believes the server dead.
async fn end_lease(service: &Service, server: u64) {
    let ended = Path::from(format!("cluster/servers/{server}/{:020}-ended", 1));
    service.node.host().store().object_store().put(&ended, PutPayload::default()).await.expect("stored");
}

/// Asks again and again until the answer is as it should be.
async fn until(service: &Service, target: &str, is: impl Fn(&Value) -> bool) -> Value {
    let mut told = Value::Null;
    for _ in 0..600 {
        let answer = service.order("GET", target, "").await;
        told = serde_json::from_str(&answer.body).expect("JSON");
        if is(&told) {
            return told;
        }
        sleep(Duration::from_millis(25)).await;
    }
    panic!("{target} never told what was waited for: {told}");
}

#[tokio::test]
async fn readiness_says_in_sentences_what_is_wrong() {
    let service = Service::start().await;
    assert_eq!(readiness(&service).await, (200, json!({ "ready": true, "troubles": [] })));
    end_lease(&service, 1).await;
    let lost = |told: &Value| told["ready"] == false;
    let told = until(&service, "/readyz", lost).await;
    let sentence = told["troubles"][0]["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("s1 has lost its lease"), "{told}");
    assert_eq!(
        (&told["troubles"][0]["kind"], &told["troubles"][0]["stops"]),
        (&json!("server"), &json!("reads"))
    );
    assert_eq!(readiness(&service).await.0, 503);
    // Containers and proxies ask on the port of tables. The sentences, which may name files, are not for everybody there.
    let asked = |path| Request::new("GET", path, &[], b"");
    assert_eq!(service.send_raw(&asked("/livez")).await.status, 200);
    let answer = service.send_raw(&asked("/readyz")).await;
    let told: Value = serde_json::from_str(&answer.body).expect("JSON");
    let expected = json!({ "ready": false, "troubles": [{ "kind": "server", "stops": "reads" }] });
    assert_eq!((answer.status, told), (503, expected));
}

/// The manager's task dies in the middle of a split, as it might because of a bug. Then the range holds its writes,
/// and no task works on the change.
#[tokio::test]
async fn a_change_that_was_broken_off_is_brought_to_its_end_without_a_restart() {
    let died = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&died);
    let after_step = StepHook::new(move |step, _| {
        assert!(step != Step::Retired || once.swap(true, Ordering::Relaxed), "the manager dies here");
        ready(())
    });
    let service = Service::open(Wanted { after_step, ..Wanted::default() }).await;
    service.create_table("marathon").await;
    let split = service.order("POST", "/v1/map/split", r#"{"at":"marathon/Half"}"#).await;
    assert_eq!(split.status, 500, "{}", split.body);
    assert!(died.load(Ordering::Relaxed));

    let mended = |told: &Value| {
        told["events"].as_array().expect("events").iter().any(|event| event["kind"] == "mended")
    };
    until(&service, "/v1/events?wait=0", mended).await;
    service.still_serves().await;
    insert_in_half(&service).await;
    let map = until(&service, "/v1/map", |_| true).await;
    assert!(
        map["ranges"].as_array().is_some_and(|ranges| ranges.iter().all(|range| range["doing"].is_null()))
    );
    service.split("marathon/Half").await;
    service.running.stop().await;
}

#[tokio::test]
async fn ranges_of_a_server_that_has_lost_its_lease_go_to_the_others() {
    let service = Service::open(Wanted { servers: 2, plans: true, ..Wanted::default() }).await;
    service.create_table("marathon").await;
    service.split("marathon/Half").await;
    let moved = service.order("POST", "/v1/map/move", r#"{"range":"marathon/Half","to":"s2"}"#).await;
    assert_eq!(moved.status, 200, "{}", moved.body);

    end_lease(&service, 2).await;
    let all_at_s1 = |map: &Value| {
        map["ranges"]
            .as_array()
            .expect("ranges")
            .iter()
            .all(|range| range["server"] == "s1" && range["doing"].is_null())
    };
    until(&service, "/v1/map", all_at_s1).await;
    insert_in_half(&service).await;
    service.still_serves().await;

    let (status, told) = readiness(&service).await;
    assert_eq!((status, &told["ready"]), (200, &json!(true)), "everything is served again: {told}");
    assert_eq!(
        (&told["troubles"][0]["kind"], &told["troubles"][0]["stops"]),
        (&json!("server"), &Value::Null)
    );
    let events = until(&service, "/v1/events?wait=0", |_| true).await;
    let events = events["events"].as_array().expect("events").clone();
    assert!(events.iter().any(|event| event["kind"] == "server-ended"), "{events:?}");
    let seen = until(&service, "/v1/ranges", |_| true).await;
    assert_eq!(
        (&seen["servers"][0]["ended"], &seen["servers"][1]["ended"]),
        (&json!(false), &json!(true)),
        "{seen}"
    );
    service.running.stop().await;
}
