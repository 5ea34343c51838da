//! The admin API about ranges: changes that people ask for, and what the API says about them.

use serde_json::{Value, json};

use crate::support::wire::{Request, exchange};
use crate::support::{ADMIN_TOKEN, JSON, Service};

async fn change(service: &Service, verb: &str, body: Value) -> (u16, Value) {
    let answer = service.order("POST", &format!("/v1/map/{verb}"), &body.to_string()).await;
    (answer.status, serde_json::from_str(&answer.body).expect("JSON"))
}

async fn done(service: &Service, verb: &str, body: Value) -> Value {
    let (status, answer) = change(service, verb, body).await;
    assert_eq!(status, 200, "{verb}: {answer}");
    answer
}

async fn insert(service: &Service, partition: &str) -> u16 {
    let body = format!(r#"{{"PartitionKey":"{partition}","RowKey":"r"}}"#);
    service.send("POST", "/marathon", &[JSON], body.as_bytes()).await.status
}

#[tokio::test]
async fn ranges_are_split_moved_and_merged_by_hand() {
    let service = Service::with_servers(2).await;
    service.create_table("marathon").await;
    assert_eq!(insert(&service, "Full").await, 201);
    assert_eq!(insert(&service, "Half").await, 201);

    let split = done(&service, "split", json!({ "at": "marathon/Half" })).await;
    assert_eq!(split["ranges"], json!(["r2", "r3"]));
    done(&service, "move", json!({ "range": "marathon/Half", "to": "s2" })).await;
    let map = service.told("/v1/map").await;
    let right = &map["ranges"][1];
    assert_eq!(
        (&right["low"], &right["high"], &right["server"], &right["online"]),
        (&json!("marathon/Half"), &Value::Null, &json!("s2"), &json!(true)),
        "{map}"
    );
    for name in ["r3", "r3@2", "marathon%2FHalf", "marathon%2F%22Half%20way%22"] {
        let one = service.told(&format!("/v1/map?range={name}")).await;
        assert_eq!((&one["ranges"], &one["version"]), (&json!([right]), &map["version"]), "{name}");
    }
    let seen = service.told("/v1/ranges").await;
    assert_eq!(seen["servers"].as_array().map(Vec::len), Some(2), "{seen}");
    assert_eq!(seen["ranges"][1]["load"]["state"], "cold", "{seen}");
    assert_eq!(seen["manager"]["plans"], false);

    // The right range first moves to the server of the left one.
    let merged = done(&service, "merge", json!({ "left": "r2", "right": "r3" })).await;
    assert_eq!(merged["ranges"], json!(["r4"]));
    assert!(merged["held_for_ms"].is_number(), "{merged}");
    assert_eq!(service.told("/v1/map/check").await["findings"], json!([]));
    done(&service, "offline", json!({ "range": "r4" })).await;
    assert_eq!(insert(&service, "10 km").await, 503);
    done(&service, "online", json!({ "range": "r4" })).await;
    assert_eq!(insert(&service, "10 km").await, 201);
    for partition in ["Full", "Half"] {
        assert_eq!(insert(&service, partition).await, 409, "{partition} is still there");
    }

    let events = service.told("/v1/events?after=0&wait=0").await;
    let kinds: Vec<&str> =
        events["events"].as_array().unwrap().iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds, ["asked", "done"].repeat(5), "{events}");
    assert_eq!(events["events"][0]["text"], "split r1@1 at marathon/Half", "{events}");
    let last = events["events"][9]["number"].as_u64().unwrap();
    assert_eq!(service.told(&format!("/v1/events?after={last}&wait=0")).await["events"], json!([]));
    service.running.stop().await;
}

#[tokio::test]
async fn refusals_say_what_is_wrong() {
    let service = Service::with_servers(2).await;
    service.create_table("marathon").await;
    let cases = [
        ("split", json!({ "at": "marathon/Half", "range": "r1@9" }), 409, "generation 9"),
        ("split", json!({ "at": "marathon/Half", "range": "r7" }), 409, "r7 is not in the map"),
        ("split", json!({ "at": "marathon/Half/Ann" }), 409, "inside a partition"),
        ("split", json!({ "at": "sprint/Half" }), 400, "no table \"sprint\""),
        ("split", json!({ "at": "marathon/\"Half" }), 400, "at: "),
        ("split", json!({ "to": "marathon/Half" }), 400, "unknown field `to`"),
        ("move", json!({ "range": "r1", "to": "s9" }), 409, "no server s9"),
        ("move", json!({ "range": "r1", "to": "s1" }), 409, "already"),
        ("move", json!({ "range": "one", "to": "s" }), 400, "to: "),
        ("merge", json!({ "left": "r1", "right": "r1" }), 409, "r1"),
        ("online", json!({ "range": "r1" }), 409, "already"),
        ("stop", json!({ "range": "r1" }), 400, "choose split"),
    ];
    for (verb, body, status, says) in cases {
        let (got, answer) = change(&service, verb, body.clone()).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(got == status && message.contains(says), "{verb} {body}: {got} {answer}");
    }
    assert_eq!(service.told("/v1/map").await["version"], 1, "nothing was changed");
    for (query, status) in
        [("range=r1@9", 409), ("range=r7", 409), ("range=sprint/Half", 400), ("range=%", 400), ("at=r1", 400)]
    {
        let answer = service.order("GET", &format!("/v1/map?{query}"), "").await;
        assert_eq!(answer.status, status, "{query}: {}", answer.body);
    }
    assert_eq!(service.order("GET", "/v1/events?since=1", "").await.status, 400);
    assert_eq!(service.order("GET", "/v1/map/split", "").await.status, 405);
    assert_eq!(service.order("POST", "/v1/map", "").await.status, 405);
    service.still_serves().await;
}

#[tokio::test]
async fn only_a_client_with_the_token_changes_ranges() {
    let service = Service::start().await;
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let token = ("Authorization", bearer.as_str());
    let body = br#"{"range":"r1"}"#;
    for (headers, status) in [
        (vec![], 401),
        (vec![("Authorization", "Bearer wrong")], 401),
        (vec![token, ("Origin", "http://localhost")], 403),
        (vec![token, ("Host", "evil.example")], 403),
    ] {
        let request = Request::new("POST", "/v1/map/offline", &headers, body);
        let answer = exchange(service.running.admin_address, &request).await;
        assert_eq!(answer.status, status, "{headers:?}");
    }
    for path in ["/v1/map", "/v1/map/check", "/v1/ranges", "/v1/events", "/v1/nothing"] {
        assert_eq!(service.send_admin("GET", path, &[]).await.status, 401, "{path}");
    }
    service.still_serves().await;
}

#[tokio::test]
async fn a_client_that_follows_events_does_not_delay_the_end() {
    let service = Service::start().await;
    let admin = service.running.admin_address;
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let follow = Request::new("GET", "/v1/events", &[("Authorization", &bearer)], b"");
    let following = tokio::spawn(async move { exchange(admin, &follow).await });
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let stopping = tokio::time::timeout(std::time::Duration::from_secs(60), service.running.stop());
    stopping.await.expect("it does not wait for more events");
    assert_eq!(following.await.unwrap().status, 200);
}
