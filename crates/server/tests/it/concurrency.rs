//! Many clients at once: what each may rely on whatever the others do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::wire::Answer;
use crate::support::{JSON, MULTIPART, Service, batch, next_page};
use serde_json::Value;
use tokio::task::JoinSet;

const PLAIN: (&str, &str) = ("Accept", "application/json;odata=nometadata");

async fn service_with_notes() -> Arc<Service> {
    let service = Service::start().await;
    service.create_table("notes").await;
    Arc::new(service)
}

async fn get(service: &Service, target: &str) -> Answer {
    service.send("GET", target, &[PLAIN], b"").await
}

/// The entities of a page.
fn entities(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let page: Value = serde_json::from_str(&answer.body).expect("JSON");
    page["value"].as_array().expect("a page").clone()
}

fn entity(row_key: &str) -> String {
    format!("/notes(PartitionKey='p',RowKey='{row_key}')")
}

/// Random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Optimistic concurrency: of all clients that read one version, only one can write, and that client is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn conditional_updates_lose_nothing() {
    const CLIENTS: usize = 64;
    const ATTEMPTS: usize = 6;
    let service = service_with_notes().await;
    assert_eq!(service.send("PUT", &entity("count"), &[JSON], br#"{"n":0}"#).await.status, 204);
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let service = service.clone();
        clients.spawn(async move {
            let mut successes = 0;
            for _ in 0..ATTEMPTS {
                let read = get(&service, &entity("count")).await;
                let etag = read.header("etag").expect("an ETag");
                let state: Value = serde_json::from_str(&read.body).expect("JSON");
                let next = format!(r#"{{"n":{}}}"#, state["n"].as_u64().expect("a number") + 1);
                let headers = [JSON, ("If-Match", etag.as_str())];
                let answer = service.send("PUT", &entity("count"), &headers, next.as_bytes()).await;
                match answer.status {
                    204 => successes += 1,
                    412 => {}
                    _ => panic!("{answer:?}"),
                }
            }
            successes
        });
    }
    let successes: u64 = clients.join_all().await.into_iter().sum();
    let state: Value = serde_json::from_str(&get(&service, &entity("count")).await.body).expect("JSON");
    assert_eq!(state["n"].as_u64(), Some(successes));
    assert!(successes < (CLIENTS * ATTEMPTS) as u64, "nobody was ever refused: the clients did not meet");
}

/// A batch writes one number to three rows. A request that reads all three rows sees one number.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_batch_is_seen_whole_or_not_at_all() {
    const ROWS: [&str; 3] = ["a", "b", "c"];
    let service = service_with_notes().await;
    let mut writers = JoinSet::new();
    for writer in 0..4 {
        let service = service.clone();
        writers.spawn(async move {
            for round in 0..50 {
                let number = writer * 1000 + round;
                let put = |row| (format!("PUT {} HTTP/1.1", entity(row)), format!(r#"{{"n":{number}}}"#));
                let body = batch(ROWS.map(put));
                let answer = service.send("POST", "/$batch", &[MULTIPART], body.as_bytes()).await;
                assert_eq!(answer.body.matches("HTTP/1.1 204").count(), ROWS.len(), "{answer:?}");
            }
        });
    }
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        let (service, done) = (service.clone(), done.clone());
        readers.spawn(async move {
            let mut seen = BTreeSet::new();
            while !done.load(Ordering::Relaxed) {
                let page =
                    entities(&get(&service, "/notes()?$filter=PartitionKey%20eq%20'p'&$select=n").await);
                let numbers: BTreeSet<Option<u64>> = page.iter().map(|row| row["n"].as_u64()).collect();
                assert!(page.is_empty() || (page.len() == ROWS.len() && numbers.len() == 1), "{page:?}");
                seen.extend(numbers);
            }
            seen.len()
        });
    }
    writers.join_all().await;
    done.store(true, Ordering::Relaxed);
    let states = readers.join_all().await;
    assert!(states.iter().all(|count| *count > 2), "the readers saw {states:?} states: too few to tell");
}

/// A client that follows a query's tokens sees each entity that exists all the time exactly once. It sees any other
/// entity at most once. All are in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pages_miss_and_repeat_nothing_that_stays() {
    const STABLE: usize = 120;
    let service = service_with_notes().await;
    for index in 0..STABLE {
        let target = entity(&format!("{index:04}"));
        assert_eq!(service.send("PUT", &target, &[JSON], b"{}").await.status, 204);
    }
    let done = Arc::new(AtomicBool::new(false));
    let mut others = JoinSet::new();
    for seed in 0..4 {
        let (service, done) = (service.clone(), done.clone());
        others.spawn(async move {
            let mut dice = Dice(seed);
            while !done.load(Ordering::Relaxed) {
                let target = entity(&format!("{:04}-{}", dice.below(STABLE as u64), dice.below(3)));
                let answer = match dice.below(2) {
                    0 => service.send("PUT", &target, &[JSON], b"{}").await,
                    _ => service.send("DELETE", &target, &[("If-Match", "*")], b"").await,
                };
                assert!(matches!(answer.status, 204 | 404), "{answer:?}");
            }
        });
    }
    let mut passing = 0;
    for _ in 0..8 {
        let mut seen: Vec<String> = Vec::new();
        let mut from = String::new();
        loop {
            let answer = get(&service, &format!("/notes()?$top=7&$select=RowKey{from}")).await;
            let page = entities(&answer);
            seen.extend(page.iter().map(|row| row["RowKey"].as_str().expect("a key").to_owned()));
            let Some(next) = next_page(&answer) else { break };
            from = next;
        }
        assert!(seen.is_sorted_by(|one, other| one < other), "{seen:?}");
        let stable = seen.iter().filter(|key| !key.contains('-')).count();
        assert_eq!(stable, STABLE, "{seen:?}");
        passing += seen.len() - stable;
    }
    assert!(passing > 0, "no page met an entity that came and went");
    done.store(true, Ordering::Relaxed);
    others.join_all().await;
}

/// All clients create, fill, read and delete one table at the same time. Each answer is one that the documentation
/// has, and what was deleted does not come back when a table gets the same name.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deleted_table_stays_deleted() {
    let service = Arc::new(Service::start().await);
    let create = async |service: &Service| {
        service.send("POST", "/Tables", &[JSON], br#"{"TableName":"churn"}"#).await.status
    };
    let mut clients = JoinSet::new();
    for seed in 0..16 {
        let service = service.clone();
        clients.spawn(async move {
            let mut dice = Dice(seed);
            let mut inserted = 0;
            for round in 0..25 {
                let body = format!(r#"{{"PartitionKey":"p{}","RowKey":"{seed}-{round}"}}"#, dice.below(3));
                let (answer, expected) = match dice.below(8) {
                    0 => (
                        service.send("POST", "/Tables", &[JSON], br#"{"TableName":"churn"}"#).await,
                        [201, 409],
                    ),
                    1 => (service.send("DELETE", "/Tables('churn')", &[], b"").await, [204, 404]),
                    2 => (get(&service, "/churn()").await, [200, 404]),
                    _ => (service.send("POST", "/churn", &[JSON], body.as_bytes()).await, [201, 404]),
                };
                assert!(expected.contains(&answer.status), "{answer:?}");
                inserted += usize::from(answer.body.contains(&format!("{seed}-{round}")));
            }
            inserted
        });
    }
    let inserted: usize = clients.join_all().await.into_iter().sum();
    assert!(inserted > 20, "only {inserted} inserts met the table");
    create(&service).await;
    assert_eq!(service.send("DELETE", "/Tables('churn')", &[], b"").await.status, 204);
    assert_eq!(get(&service, "/churn()").await.code(), "TableNotFound");
    assert_eq!(create(&service).await, 201);
    assert_eq!(get(&service, "/churn()").await.body, r#"{"value":[]}"#);
}
