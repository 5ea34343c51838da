//! The history of load, as the admin API shows it. It has every request, a restart keeps it, and it stores keys on
//! the disk only if that was wanted.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rangehold_engine::store::{Store, StoreLocation, StoreOptions};
use rangehold_map::Timestamp;
use rangehold_server::history::{HISTORY_DIRECTORY, HistoryOptions};
use serde_json::Value;
use tokio::time::sleep;

use crate::support::{JSON, Service, Wanted};

/// A PartitionKey whose text appears only in keys.
const TELLTALE: &str = "Telltale-4711";

fn options(directory: Option<&Path>) -> HistoryOptions {
    HistoryOptions {
        directory: directory.map(|directory| directory.join(HISTORY_DIRECTORY)),
        budget_bytes: 8 << 20,
        with_keys: false,
        salt: [7; 16],
    }
}

async fn start(directory: &Path, with_keys: bool) -> Service {
    let location = StoreLocation::Directory(directory.to_owned());
    let mut tries = 0;
    let store = loop {
        // The service that had the directory before gives it up when its last task has ended.
        match Store::open(&location, StoreOptions::default()) {
            Ok(store) => break store,
            Err(error) if tries == 250 => panic!("{error}"),
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
        tries += 1;
    };
    let history = Some(HistoryOptions { with_keys, ..options(Some(directory)) });
    Service::open(Wanted { store, history, ..Wanted::default() }).await
}

/// Stops the service, and with it everything that still holds its directory.
async fn stop(service: Service) {
    service.running.stop().await;
}

async fn insert(service: &Service, partition: &str, row: u32) {
    let body = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row:06}"}}"#);
    let answer = service.send("POST", "/marathon", &[JSON], body.as_bytes()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

async fn history(service: &Service, query: &str) -> Value {
    service.told(&format!("/v1/history?{query}")).await
}

/// The sum of one of the numbers of cells (1 reads, 2 writes, ...) over columns and rows.
fn sum(history: &Value, number: usize) -> u64 {
    let columns = history["columns"].as_array().expect("columns").iter();
    let cells = columns.flat_map(|column| column["cells"].as_array().expect("cells"));
    cells.map(|cell| cell[number].as_u64().expect("a number")).sum()
}

/// Waits until the history has counted `writes` writes, and everything before them.
async fn written(service: &Service, query: &str, writes: u64) -> Value {
    for _ in 0..200 {
        let told = history(service, query).await;
        if sum(&told, 2) >= writes {
            return told;
        }
        sleep(Duration::from_millis(25)).await;
    }
    panic!("{} never told of {writes} writes", history(service, query).await);
}

/// Steps the clock so that ten seconds end at once, and waits until they are on the disk.
async fn ten_seconds_later(service: &Service) {
    let bytes = || async { history(service, "step=10").await["bytes"].as_u64() };
    let before = bytes().await;
    for _ in 0..10 {
        service.clock.step(10 * Timestamp::TICKS_PER_SECOND);
        for _ in 0..60 {
            sleep(Duration::from_millis(25)).await;
            if bytes().await > before {
                return;
            }
        }
    }
    panic!("nothing was written though a hundred seconds passed");
}

/// The segments of ten seconds, the newest last.
fn segments(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory.join(HISTORY_DIRECTORY)).expect("the history has a directory");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    let is_of_tens = |name: &str| name.starts_with("10s-") && name.ends_with(".segment");
    files.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_of_tens));
    files.sort();
    files
}

fn on_disk(directory: &Path, text: &str) -> bool {
    let contains = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let files = fs::read_dir(directory.join(HISTORY_DIRECTORY)).expect("the history has a directory");
    files.map(|file| fs::read(file.expect("a file").path()).expect("readable")).any(|bytes| contains(&bytes))
}

#[tokio::test]
async fn what_was_asked_is_told_by_key_and_second() {
    let service = Service::open(Wanted { history: Some(options(None)), ..Wanted::default() }).await;
    service.create_table("marathon").await;
    service.split("marathon/Half").await;
    for row in 0..6 {
        insert(&service, "Full", row).await;
    }
    // The axis follows the map only when ten seconds are over.
    ten_seconds_later(&service).await;
    let before = history(&service, "").await;
    for row in 0..3 {
        insert(&service, "Half", row).await;
    }
    let get = service.send("GET", "/marathon(PartitionKey='Half',RowKey='000001')", &[], b"").await;
    assert_eq!(get.status, 200);
    let told = written(&service, "step=1", sum(&before, 2) + 3).await;
    let rows = told["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{told}");
    assert_eq!(rows[0]["high"], "marathon/Half");
    assert_eq!(rows[1]["low"], "marathon/Half");
    let half = written(&service, "step=10&low=marathon%2FHalf", 3).await;
    assert_eq!(half["rows"].as_array().map(Vec::len), Some(1), "{half}");
    assert!(sum(&half, 2) < sum(&told, 2), "not those of Full: {half}");
    assert!(sum(&half, 1) >= 1 && sum(&half, 3) >= 4, "reads and entities: {half}");

    // Coarser columns are sums of finer ones. What was counted before the split is spread over both ranges and not
    // lost.
    let (seconds, tens, minutes) = (
        history(&service, "step=1").await,
        history(&service, "step=10").await,
        history(&service, "step=60&from=-3600").await,
    );
    assert_eq!(sum(&seconds, 2), sum(&tens, 2));
    assert_eq!(sum(&seconds, 2), sum(&minutes, 2));
    assert_eq!(tens["columns"][0]["spread"], true, "{tens}");
    stop(service).await;
}

#[tokio::test]
async fn a_restart_keeps_the_history_and_keys_only_where_that_was_wanted() {
    for with_keys in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        let service = start(path, with_keys).await;
        service.create_table("marathon").await;
        service.split(&format!("marathon/\"{TELLTALE}\"")).await;
        insert(&service, TELLTALE, 0).await;
        ten_seconds_later(&service).await;
        insert(&service, TELLTALE, 1).await;
        insert(&service, TELLTALE, 2).await;
        // There are three inserts, and one write to the catalogue.
        let before = written(&service, "step=10", 4).await;
        stop(service).await;
        assert_eq!(on_disk(path, TELLTALE), with_keys, "keys are stored: {with_keys}");

        let service = start(path, with_keys).await;
        // The clock of the service before this one was stepped forward, so this clock is too.
        service.clock.step(200 * Timestamp::TICKS_PER_SECOND);
        let after = history(&service, "step=10").await;
        let minutes = history(&service, "step=60&from=-600").await;
        // Each question reads the names of tables, so the number of reads grows. Only the writes stay the same.
        assert_eq!(sum(&after, 2), sum(&before, 2), "{after}");
        assert_eq!(sum(&minutes, 2), sum(&before, 2), "{minutes}");
        // The boundary of a range is recognised, whether its key was stored or not.
        assert_eq!(after["rows"], before["rows"]);
        let last = |told: &Value| told["columns"].as_array().and_then(|columns| columns.last()).cloned();
        let of_last = last(&before).expect("a column");
        let same =
            after["columns"].as_array().expect("columns").iter().find(|column| column["at"] == of_last["at"]);
        let same = same.expect("it is still there");
        assert_eq!((&same["spread"], &same["cells"][1][2]), (&Value::Bool(false), &of_last["cells"][1][2]));
        stop(service).await;
    }
}

#[tokio::test]
async fn a_torn_tail_is_cut_and_costs_no_more_than_its_column() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let service = start(path, false).await;
    service.create_table("marathon").await;
    insert(&service, "Full", 0).await;
    written(&service, "step=10", 2).await;
    ten_seconds_later(&service).await;
    let first = sum(&history(&service, "step=10").await, 2);
    for row in 1..5 {
        insert(&service, "Full", row).await;
    }
    written(&service, "step=10", first + 4).await;
    stop(service).await;

    let last = segments(path).pop().expect("a segment");
    let length = fs::metadata(&last).expect("its length").len();
    fs::OpenOptions::new().write(true).open(&last).expect("open").set_len(length - 3).expect("cut");
    let service = start(path, false).await;
    service.clock.step(200 * Timestamp::TICKS_PER_SECOND);
    let told = history(&service, "step=10").await;
    assert_eq!(sum(&told, 2), first, "{told}");
    assert!(fs::metadata(&last).expect("its length").len() < length - 3, "the torn record is gone");
    // The history goes on.
    insert(&service, "Full", 9).await;
    written(&service, "step=10", first + 1).await;
    stop(service).await;
}

#[tokio::test]
async fn a_disk_that_refuses_costs_columns_and_no_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let service = start(directory.path(), false).await;
    service.create_table("marathon").await;
    let segments = directory.path().join(HISTORY_DIRECTORY);
    let ten_seconds = 10 * Timestamp::TICKS_PER_SECOND;
    let trouble_is = async |expected: bool| {
        for row in 0..200 {
            insert(&service, &format!("{expected}"), row).await;
            service.clock.step(ten_seconds);
            sleep(Duration::from_millis(25)).await;
            let told = history(&service, "").await;
            if told["trouble"].is_string() == expected {
                return told;
            }
        }
        panic!("there never was trouble, or it never went: {expected}");
    };
    fs::remove_dir_all(&segments).expect("it was there");
    let told = trouble_is(true).await;
    assert!(told["lost_columns"].as_u64() > Some(0), "{told}");
    let ready = service.send_admin("GET", "/readyz", &[]).await;
    assert!(ready.status == 200 && ready.body.contains("the history of load is not being kept"), "{ready:?}");
    fs::create_dir(&segments).expect("made again");
    trouble_is(false).await;
    assert!(fs::read_dir(&segments).expect("it is there").count() > 0, "it goes on in new segments");
    stop(service).await;
}

#[tokio::test]
async fn a_question_that_cannot_be_answered_says_why() {
    let service = Service::open(Wanted { history: Some(options(None)), ..Wanted::default() }).await;
    service.create_table("marathon").await;
    for (query, says) in [
        ("from=yesterday", "from: \"yesterday\" is not a time"),
        ("step=0", "step: \"0\" is not a number from 1 to 86400"),
        ("rows=1000", "rows: \"1000\""),
        ("low=sprint%2FHalf", "no table \"sprint\""),
        ("low=marathon%2FHalf&high=marathon%2FFull", "give a high above low"),
        ("since=1", "\"since\" is not understood"),
        ("low=%zz", "percent-encoded"),
    ] {
        let answer = service.order("GET", &format!("/v1/history?{query}"), "").await;
        assert_eq!(answer.status, 400, "{query}: {}", answer.body);
        let refused: Value = serde_json::from_str(&answer.body).expect("JSON");
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(says), "{query}: {message}");
    }
    let long = history(&service, "from=1970-01-01T00:00:00Z&step=60").await;
    assert_eq!((&long["to"], &long["next"]), (&long["next"], &long["to"]), "it goes on there: {long}");
    let off = Service::start().await;
    assert_eq!(off.order("GET", "/v1/history", "").await.status, 409);
    stop(service).await;
}
