//! Clients of a service that has budgets, as the cloud has. The numbers are small, so that a test reaches them on a slow
//! machine too.

use std::time::Duration;

use rangehold_map::{Change, Key, PartitionPrefix, RangeId, ServerId};
use rangehold_protocol::table::catalogue::TableRecord;
use rangehold_server::accounts::WELL_KNOWN_ACCOUNT;
use rangehold_server::profile::{Budget, PageRules, Profile};
use tokio::time::Instant;

use crate::support::wire::Answer;
use crate::support::{JSON, MULTIPART, Service, Wanted, batch, next_page};

/// A budget of so many entities a second.
fn budget(per_second: f64) -> Option<Budget> {
    Some(Budget { per_second, credit: Duration::ZERO })
}

/// The profile `cloud`, but with so many entities a second for each partition.
fn small(per_second: f64) -> Profile {
    Profile { partition: budget(per_second), ..Profile::cloud() }
}

async fn insert(service: &Service, partition: &str, row: u32) -> Answer {
    let body = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row:06}"}}"#);
    service.send("POST", "/notes", &[JSON, ("Prefer", "return-no-content")], body.as_bytes()).await
}

/// An entity group transaction that inserts `rows` into a partition.
async fn transaction(service: &Service, partition: &str, rows: std::ops::Range<u32>) -> Answer {
    let insert = |row| {
        let address = format!("POST {}/notes HTTP/1.1", service.base());
        let head = format!("{address}\r\nAccept: application/json\r\nPrefer: return-no-content");
        (head, format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row:06}"}}"#))
    };
    service.send("POST", "/$batch", &[MULTIPART], batch(rows.map(insert)).as_bytes()).await
}

/// The RowKeys of a page.
fn row_keys(answer: &Answer) -> Vec<String> {
    answer.body.split(r#""RowKey":""#).skip(1).map(|rest| rest[..6].to_owned()).collect()
}

/// How often a metric was counted, by its name and labels.
async fn counted(service: &Service, metric: &str) -> u64 {
    let answer = service.send_admin("GET", "/metrics", &[]).await;
    let line = answer.body.lines().find(|line| line.starts_with(metric));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn a_hot_partition_is_held_at_its_budget_and_its_neighbour_is_not() {
    let service = Service::with_profile(small(4.0)).await;
    service.create_table("notes").await;
    let begun = Instant::now();
    let (mut done, mut busy) = (0, 0);
    for row in 0..60 {
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
        if row % 20 == 0 {
            assert_eq!(insert(&service, "quiet", row).await.status, 204);
        }
    }
    let most = 4.0 + begun.elapsed().as_secs_f64() * 4.0 + 1.0;
    assert!(f64::from(done) <= most && done >= 4 && busy > 0, "{done} done and {busy} busy, {most} at most");
    assert_eq!(counted(&service, r#"rangehold_throttled_total{cause="Partition"}"#).await, busy);
    // Refused requests are load that the range would have. So the range counts them, and shows them when the second
    // has ended.
    let seen = async || {
        let seen = service.told("/v1/ranges").await;
        seen["ranges"][0]["load"]["throttled_per_s"].as_f64().expect("a number")
    };
    let until = Instant::now() + Duration::from_secs(20);
    while seen().await == 0.0 {
        assert!(Instant::now() < until, "the range has not heard of {busy} refused requests");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_batch_that_is_not_let_in_is_refused_as_a_whole() {
    let service = Service::with_profile(small(4.0)).await;
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
    let account = budget(4.0);
    let service = Service::with_profile(Profile { account, ..Profile::cloud() }).await;
    let mut answers = Vec::new();
    for _ in 0..40 {
        answers.push(service.send("GET", "/Tables", &[], b"").await);
    }
    let busy = answers.iter().find(|answer| answer.status == 503).expect("40 requests are too many");
    assert!(busy.body.contains("Operations per second is over the account limit."), "{busy:?}");
    assert!(answers.iter().filter(|answer| answer.status == 200).count() >= 4);
}

/// Reads of a partition are charged by what they return, so pages are short. A client that follows
/// the tokens, and waits when it is told to, sees every entity once.
#[tokio::test]
async fn short_pages_lead_on_to_everything() {
    let service = Service::with_profile(small(40.0)).await;
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
        rows.extend(row_keys(&answer));
        match next_page(&answer) {
            Some(next) => token = next,
            None => break,
        }
    }
    let expected: Vec<String> = (0..60).map(|row| format!("{row:06}")).collect();
    assert_eq!(rows, expected);
    assert!(pages > 1, "60 entities at 40 a second do not come in one page");
}

/// Splits the range that holds a partition of `notes`. The partition begins the right half.
async fn split_before(service: &Service, partition: &str) -> [RangeId; 2] {
    let map = service.node.router().map();
    let name = Key::Table { account: WELL_KNOWN_ACCOUNT.to_owned(), lower_name: "notes".to_owned() };
    let stored =
        service.node.router().get(&name.encode()).await.expect("it can be read").expect("there is a table");
    let table = TableRecord::decode(&stored).expect("it is a table's").id;
    let at = PartitionPrefix::entity(WELL_KNOWN_ACCOUNT, table, partition).as_bytes().to_vec();
    let entry = map.lookup(&at).expect("a map has all keys");
    let split = Change::Split { range: entry.id, generation: entry.generation, at };
    let ranges = service.node.executor().carry_out(&split).await.expect("it can be split").ranges;
    ranges.try_into().expect("a split makes two")
}

/// Follows the tokens of a query of `notes`. Returns the RowKeys of each page.
async fn pages(service: &Service, query: &str) -> Vec<Vec<String>> {
    let (mut pages, mut token) = (Vec::new(), String::new());
    loop {
        let answer = service.send("GET", &format!("/notes()?{query}{token}"), &[], b"").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        pages.push(row_keys(&answer));
        let Some(next) = next_page(&answer) else { return pages };
        token = next;
    }
}

/// A service with the partitions a to e of `notes`, one entity in each, in three ranges: a b, c d, e.
async fn three_ranges(profile: Profile) -> Service {
    let service = Service::open(Wanted { profile, servers: 2, ..Wanted::default() }).await;
    service.create_table("notes").await;
    for (row, partition) in (0..).zip(["a", "b", "c", "d", "e"]) {
        assert_eq!(insert(&service, partition, row).await.status, 204);
    }
    split_before(&service, "c").await;
    split_before(&service, "e").await;
    service
}

#[tokio::test]
async fn in_cloud_a_page_ends_with_its_range_and_in_fast_it_goes_on() {
    let rows = |rows: &[u32]| rows.iter().map(|row| format!("{row:06}")).collect::<Vec<_>>();
    let fast = three_ranges(Profile::fast()).await;
    assert_eq!(pages(&fast, "").await, [rows(&[0, 1, 2, 3, 4])]);
    let cloud = three_ranges(Profile::cloud()).await;
    assert_eq!(pages(&cloud, "").await, [rows(&[0, 1]), rows(&[2, 3]), rows(&[4])]);
    // Pages without entities have tokens too, which lead on.
    assert_eq!(pages(&cloud, "$filter=RowKey%20eq%20'000004'").await, [rows(&[]), rows(&[]), rows(&[4])]);
    assert_eq!(pages(&cloud, "$filter=missing%20eq%201").await, [rows(&[]), rows(&[]), rows(&[])]);
    // The bounds of a filter, and `$top`, end a query as they do in `fast`.
    assert_eq!(pages(&cloud, "$filter=PartitionKey%20eq%20'b'").await, [rows(&[1])]);
    assert_eq!(pages(&cloud, "$filter=PartitionKey%20lt%20'c'").await, [rows(&[0, 1])]);
    assert_eq!(pages(&cloud, "$top=0").await, [rows(&[])]);
}

#[tokio::test]
async fn a_page_whose_time_is_over_ends_with_a_token_even_if_it_is_empty() {
    let rules = PageRules { within: Duration::ZERO, ..Profile::cloud().pages };
    let service = three_ranges(Profile { pages: rules, ..Profile::cloud() }).await;
    // Each page looks at one entity, whether the entity matches or not. A client that follows the tokens sees all of
    // them.
    let all = pages(&service, "").await;
    assert!(all.len() >= 5 && all.iter().all(|page| page.len() <= 1), "{all:?}");
    assert_eq!(all.concat().len(), 5);
    let one = pages(&service, "$filter=RowKey%20eq%20'000004'").await;
    assert!(one.len() >= 5 && one[0].is_empty(), "{one:?}");
    assert_eq!(one.concat(), ["000004"]);
}

#[tokio::test]
async fn what_is_seen_of_a_move_in_cloud_is_not_seen_of_one_that_is_refused() {
    let service = three_ranges(Profile::cloud()).await;
    let range = service.node.router().map().lookup(b"\xFF").expect("a map has all keys").clone();
    for (to, why) in [(range.place.server, "on that server already"), (ServerId(9), "no server s9")] {
        let order = format!(r#"{{"range":"{}","to":"{to}"}}"#, range.id);
        let refused = service.order("POST", "/v1/map/move", &order).await;
        assert!(refused.status == 409 && refused.body.contains(why), "{refused:?}");
        assert_eq!(service.order("GET", "/v1/rehearsals", "").await.body, "[]\n");
    }
}

#[tokio::test]
async fn in_cloud_a_move_is_seen_and_so_is_that_of_a_merge() {
    let service = three_ranges(Profile::cloud()).await;
    let map = service.node.router().map();
    let [_, left, right] = map.entries() else { panic!("{map:?}") };
    let shown = format!(r#""range": "{}""#, right.id);
    for (verb, order) in [
        ("move", format!(r#"{{"range":"{}","to":"s2"}}"#, right.id)),
        ("merge", format!(r#"{{"left":"{}","right":"{}"}}"#, left.id, right.id)),
    ] {
        let done = service.order("POST", &format!("/v1/map/{verb}"), &order).await;
        assert_eq!(done.status, 200, "{done:?}");
        let seen = service.order("GET", "/v1/rehearsals", "").await.body;
        assert!(seen.contains(&shown), "{verb}: {seen}");
        service.order("DELETE", "/v1/rehearsals", "").await;
    }
}

#[tokio::test]
async fn queries_are_counted_by_their_kind() {
    let service = three_ranges(Profile::fast()).await;
    pages(&service, "").await;
    pages(&service, "$top=2").await;
    pages(&service, "$filter=PartitionKey%20ge%20'd'").await;
    pages(&service, "$filter=PartitionKey%20eq%20'a'%20and%20missing%20eq%201").await;
    service.send("GET", "/notes(PartitionKey='a',RowKey='000000')", &[], b"").await;
    let counted = service.told("/v1/queries").await;
    let of = |kind: &str| {
        let found = counted.as_array().expect("a list").iter().find(|one| one["kind"] == kind);
        let counts = &found.expect("every kind is there")["counts"];
        ["answers", "looked_at", "returned", "ranges", "servers", "tokens"]
            .map(|n| counts[n].as_u64().unwrap())
    };
    // The first query has one page over three ranges. The second has two pages of two entities, which also look at
    // the next entity, and one page of one.
    assert_eq!(of("table scan"), [4, 5 + 3 + 3 + 1, 10, 3 + 2 + 2 + 1, 4, 2]);
    assert_eq!(of("partition range scan"), [1, 2, 2, 2, 1, 0]);
    assert_eq!(of("row range scan"), [1, 1, 0, 1, 1, 0]);
    assert_eq!(of("point query"), [1, 1, 1, 1, 1, 0]);
}

#[tokio::test]
async fn a_range_rehearses_being_offline_and_its_neighbours_serve() {
    let service = three_ranges(Profile::fast()).await;
    let [_, last] = split_before(&service, "d").await;
    let order = format!(r#"{{"range":"{last}","act":"offline","seconds":3600}}"#);
    assert_eq!(service.order("POST", "/v1/rehearsals", &order).await.status, 200);
    let get = async |partition: &str, row: u32| {
        let target = format!("/notes(PartitionKey='{partition}',RowKey='{row:06}')");
        service.send("GET", &target, &[], b"").await
    };
    assert_eq!((get("d", 3).await.status, get("c", 2).await.status), (503, 200));
    assert_eq!((insert(&service, "d", 9).await.status, insert(&service, "c", 9).await.status), (503, 204));
    // A query ends before the range, with a token. The request with this token is refused. So nothing is skipped.
    let first = service.send("GET", "/notes()", &[], b"").await;
    assert!(first.status == 200 && !first.body.contains("000003"), "{first:?}");
    let token = first.header("x-ms-continuation-NextPartitionKey").expect("there is more");
    let second = service.send("GET", &format!("/notes()?NextPartitionKey={token}"), &[], b"").await;
    assert_eq!((second.status, second.code()), (503, "ServerBusy"));
    assert_eq!(service.order("DELETE", "/v1/rehearsals", "").await.body, "[]\n");
    assert_eq!(get("d", 3).await.status, 200);
    assert_eq!(pages(&service, "").await.concat().len(), 6);
}

#[tokio::test]
async fn a_range_rehearses_time_outs_that_tell_nothing() {
    let service = three_ranges(Profile::fast()).await;
    let range = service.node.router().map().lookup(b"\xFF").expect("a map has all keys").id;
    let order = |rest: &str| format!(r#"{{"range":"{range}","act":"timeout","seconds":3600{rest}}}"#);
    let gateway = order(r#","late_seconds":0.05,"gateway":true"#);
    assert_eq!(service.order("POST", "/v1/rehearsals", &gateway).await.status, 200);
    let begun = Instant::now();
    let answer = insert(&service, "f", 0).await;
    assert_eq!((answer.status, answer.code()), (504, "OperationTimedOut"));
    assert!(begun.elapsed() >= Duration::from_millis(50));
    service.order("DELETE", "/v1/rehearsals", "").await;
    let late = order(r#","late_seconds":0"#);
    assert_eq!(service.order("POST", "/v1/rehearsals", &late).await.status, 200);
    for row in 1..40 {
        let answer = insert(&service, "f", row).await;
        assert_eq!((answer.status, answer.code()), (500, "OperationTimedOut"));
    }
    service.order("DELETE", "/v1/rehearsals", "").await;
    // Some inserts were done and some were not, and all had the same answer.
    let done = pages(&service, "$filter=PartitionKey%20eq%20'f'").await.concat().len();
    assert!((5..35).contains(&done), "{done}");
}
