//! Clients of a service that has budgets, as the cloud has, with small numbers so that a test meets them.

use std::time::Duration;

use rangehold_server::profile::{Budget, Profile};
use tokio::time::Instant;

use crate::support::Service;
use crate::support::wire::Answer;

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// `cloud`, with 40 entities a second for a partition.
fn small() -> Profile {
    Profile { partition: Some(Budget { per_second: 40.0, credit: Duration::ZERO }), ..Profile::cloud() }
}

async fn insert(service: &Service, partition: &str, row: u32) -> Answer {
    let body = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row:06}"}}"#);
    service.send("POST", "/notes", &[JSON, ("Prefer", "return-no-content")], body.as_bytes()).await
}

/// An entity group transaction that inserts `rows` into a partition.
async fn transaction(service: &Service, partition: &str, rows: std::ops::Range<u32>) -> Answer {
    let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    for row in rows {
        let entity = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row:06}"}}"#);
        body += "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
        body += &format!("POST {}/notes HTTP/1.1\r\nAccept: application/json\r\n", service.base());
        body += &format!("Content-Type: application/json\r\nPrefer: return-no-content\r\n\r\n{entity}\r\n");
    }
    body += "--c--\r\n--b--\r\n";
    let headers = [("Content-Type", "multipart/mixed; boundary=b")];
    service.send("POST", "/$batch", &headers, body.as_bytes()).await
}

/// How often a metric was counted, by its name and labels.
async fn counted(service: &Service, metric: &str) -> u64 {
    let answer = service.send_admin("GET", "/metrics", &[]).await;
    let line = answer.body.lines().find(|line| line.starts_with(metric));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn a_hot_partition_is_held_at_its_budget_and_its_neighbour_is_not() {
    let service = Service::with_profile(small()).await;
    service.create_table("notes").await;
    let begun = Instant::now();
    let (mut done, mut busy) = (0, 0);
    for row in 0..300 {
        let answer = insert(&service, "hot", row).await;
        match answer.status {
            204 => done += 1,
            503 => {
                busy += 1;
                assert_eq!(answer.code(), "ServerBusy");
                assert!(answer.body.contains(r#""value":"The server is busy.\nRequestId:"#), "{answer:?}");
            }
            status => panic!("{status}: {answer:?}"),
        }
        if row % 10 == 0 {
            assert_eq!(insert(&service, "quiet", row).await.status, 204);
        }
    }
    let most = 40.0 + begun.elapsed().as_secs_f64() * 40.0 + 1.0;
    assert!(f64::from(done) <= most && done >= 40 && busy > 0, "{done} done and {busy} busy, {most} at most");
    assert_eq!(counted(&service, r#"rangehold_throttled_total{cause="Partition"}"#).await, busy);
}

#[tokio::test]
async fn a_batch_that_is_not_let_in_is_refused_as_a_whole() {
    let service = Service::with_profile(small()).await;
    service.create_table("notes").await;
    let first = transaction(&service, "p", 0..90).await;
    assert!(first.status == 202 && first.body.contains("204 No Content"), "{first:?}");
    let second = transaction(&service, "p", 90..180).await;
    assert_eq!((second.status, second.code()), (503, "ServerBusy"));
    let rows = service.send("GET", "/notes()?$select=RowKey", &[], b"").await;
    assert!(rows.status == 503 || !rows.body.contains("000090"), "{rows:?}");
}

#[tokio::test]
async fn an_account_above_its_budget_is_told_so() {
    let account = Some(Budget { per_second: 40.0, credit: Duration::ZERO });
    let service = Service::with_profile(Profile { account, ..Profile::cloud() }).await;
    let mut answers = Vec::new();
    for _ in 0..120 {
        answers.push(service.send("GET", "/Tables", &[], b"").await);
    }
    let busy = answers.iter().find(|answer| answer.status == 503).expect("120 requests are too many");
    assert!(busy.body.contains("Operations per second is over the account limit."), "{busy:?}");
    assert!(answers.iter().filter(|answer| answer.status == 200).count() >= 40);
}

/// Reads of a partition are charged by what they return, so pages come short; and who follows the
/// tokens, waiting when he is told to, sees every entity once.
#[tokio::test]
async fn short_pages_lead_on_to_everything() {
    let service = Service::with_profile(small()).await;
    service.create_table("notes").await;
    assert_eq!(transaction(&service, "p", 0..60).await.status, 202);
    let (mut rows, mut pages, mut token) = (Vec::new(), 0, String::new());
    loop {
        let answer = service.send("GET", &format!("/notes()?$select=RowKey{token}"), &[], b"").await;
        if answer.status == 503 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        }
        assert_eq!(answer.status, 200, "{answer:?}");
        pages += 1;
        rows.extend(answer.body.split(r#""RowKey":""#).skip(1).map(|rest| rest[..6].to_owned()));
        match answer.header("x-ms-continuation-NextPartitionKey") {
            Some(partition) => {
                let row = answer.header("x-ms-continuation-NextRowKey").expect("both keys come");
                token = format!("&NextPartitionKey={partition}&NextRowKey={row}");
            }
            None => break,
        }
    }
    let expected: Vec<String> = (0..60).map(|row| format!("{row:06}")).collect();
    assert_eq!(rows, expected);
    assert!(pages > 1, "60 entities at 40 a second do not come in one page");
}
