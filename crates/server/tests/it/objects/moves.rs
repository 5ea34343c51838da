//! Moves, and compositions that delete their sources: readers see them whole or not at all, also while they go on, and after
//! a crash at any of their steps.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::future;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use rangehold_engine::blob::AuditCursor;
use rangehold_engine::store::Store;
use rangehold_engine::{NamesHook, NamesStep, ScanHook};
use rangehold_map::blob::{BlobId, BlobUser};
use rangehold_map::key::{KIND_BLOB, KIND_BUCKET, KIND_OBJECT, ObjectKey, ObjectRow};
use rangehold_map::{Change, PartitionPrefix, Timestamp};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::generation::Head;
use serde_json::Value;
use tokio::sync::Notify;

use super::chunk_files;
use crate::support::wire::{self, Answer, Request};
use crate::support::{Service, Wanted};

const SECOND: i64 = Timestamp::TICKS_PER_SECOND;
/// Too large for a row, so its bytes are in a blob.
const LARGE: usize = 100_000;
/// The sources, and their bytes. One lies in a row, the other in a blob.
const SOURCES: [(&str, u8, usize); 2] = [("a", b'a', 10), ("b", b'b', LARGE)];
const TARGET: &str = "t";
const MOVE: &str = "/storage/v1/b/photos/o/b/moveTo/o/t";
const COMPOSE: &str = "/storage/v1/b/photos/o/t/compose";
const BOTH: &str = r#"{"sourceObjects":[{"name":"a"},{"name":"b"}],"deleteSourceObjects":true}"#;

fn json_request(method: &str, target: &str, body: &str) -> Request {
    let headers: &[(&str, &str)] =
        if body.is_empty() { &[] } else { &[("Content-Type", "application/json")] };
    Request::new(method, target, headers, body.as_bytes())
}

impl Service {
    async fn open_on(objects: &Arc<dyn ObjectStore>, after_names_step: NamesHook) -> Self {
        let store = Store::on(Arc::clone(objects));
        Self::open(Wanted { store, after_names_step, ..Wanted::default() }).await
    }

    /// A service a day later, which walks over its buckets all the time.
    async fn a_day_later(objects: &Arc<dyn ObjectStore>) -> Self {
        let (store, ageing_every) = (Store::on(Arc::clone(objects)), Duration::from_millis(5));
        Self::open(Wanted { store, ageing_every, ahead: 25 * 3_600 * SECOND, ..Wanted::default() }).await
    }

    /// Makes the bucket, which deletes for good, and the sources. A second range begins between them and the target.
    async fn with_sources(self) -> Self {
        let body = r#"{"name":"photos","softDeletePolicy":{"retentionDurationSeconds":"0"}}"#;
        self.object_json("POST", "/storage/v1/b?project=p", body).await;
        for (name, byte, count) in SOURCES {
            self.upload(name, &vec![byte; count]).await;
        }
        self
    }

    async fn upload(&self, name: &str, bytes: &[u8]) {
        let target = format!("/upload/storage/v1/b/photos/o?uploadType=media&name={name}");
        let answer = self.send_object(&Request::new("POST", &target, &[], bytes)).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// Lets a range begin with the names from `name` on.
    pub(super) async fn split_objects(&self, name: &str) {
        let rows = self.stored(KIND_BUCKET).await;
        let (_, bucket) = rows.last().expect("a bucket's row comes after the row that counts the ids");
        let bucket = Bucket::decode(bucket).expect("a bucket");
        let at = PartitionPrefix::object(bucket.id, name).as_bytes().to_vec();
        let map = self.node.router().map();
        let entry = map.lookup(&at).expect("a map has all keys");
        let split = Change::Split { range: entry.id, generation: entry.generation, at };
        self.node.executor().carry_out(&split).await.expect("it can be split");
    }

    /// Heads with an intent, and rows of decisions.
    async fn traces(&self) -> (usize, usize) {
        let rows = self.stored(KIND_OBJECT).await;
        let kinds = rows.iter().map(|(key, row)| (ObjectKey::decode(key).expect("a key").row, row));
        kinds.fold((0, 0), |(intents, decisions), (kind, row)| match kind {
            ObjectRow::Head if Head::decode(row).expect("a head").intent.is_some() => {
                (intents + 1, decisions)
            }
            ObjectRow::Outcome(_) => (intents, decisions + 1),
            _ => (intents, decisions),
        })
    }

    async fn status(&self, name: &str) -> u16 {
        self.object("GET", &format!("/storage/v1/b/photos/o/{name}"), "").await.status
    }

    /// A whole audit of the blobs, which asks the heads. These tests have no older generations and no uploads.
    async fn audit(&self) {
        let names = |blob: BlobId, user: BlobUser| async move {
            let head = PartitionPrefix::object(user.bucket, &user.name).object_row(&ObjectRow::Head);
            let head = self.node.router().get(&head).await?;
            Ok(head.is_some_and(|row| Head::decode(&row).expect("a head").live.uses(blob, &user.upload)))
        };
        let mut cursor = Some(AuditCursor::default());
        while let Some(from) = cursor {
            cursor = self.node.blobs().audit(&from, names).await.expect("an audit").next;
        }
        self.node.blobs().audit_files(async |_, _| Ok(None)).await.expect("an audit");
    }
}

/// The names that reads show, after it was checked that listings of both APIs show the same.
async fn shown(address: SocketAddr) -> Vec<&'static str> {
    let listed = wire::exchange(address, &json_request("GET", "/storage/v1/b/photos/o", "")).await;
    let listed: Value = serde_json::from_str(&listed.body).expect("JSON");
    let xml = wire::exchange(address, &json_request("GET", "/photos", "")).await.body;
    let mut shown = Vec::new();
    for name in ["a", "b", TARGET] {
        let target = format!("/storage/v1/b/photos/o/{name}?alt=media");
        let answer = wire::exchange(address, &json_request("GET", &target, "")).await;
        let is_there = answer.status == 200;
        assert!(is_there || answer.status == 404, "{name}: {}", answer.status);
        let items = listed["items"].as_array().map_or(&[][..], Vec::as_slice);
        let is_listed = items.iter().any(|item| item["name"] == name);
        assert_eq!((is_listed, xml.contains(&format!("<Key>{name}</Key>"))), (is_there, is_there), "{name}");
        if is_there {
            shown.push(name);
        }
    }
    shown
}

/// A step, and the names that reads show after it.
type Seen = (NamesStep, Vec<&'static str>);

/// A hook after whose n-th call the process does nothing any more.
fn dies_at(step: usize) -> (NamesHook, Arc<Notify>) {
    let (died, reached) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let told = Arc::clone(&died);
    let hook = NamesHook::new(move |_, _| {
        let (told, reached) = (Arc::clone(&told), Arc::clone(&reached));
        async move {
            if reached.fetch_add(1, Ordering::SeqCst) == step {
                told.notify_one();
                future::pending::<()>().await;
            }
        }
    });
    (hook, died)
}

/// Carries a change of so many steps out until it dies after this step, and checks what the next process shows and leaves. False if the change
/// has no such step.
async fn dies_and_is_taken_up(change: (&str, &str), steps: usize, step: usize, by_walk: bool) -> bool {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let (hook, died) = dies_at(step);
    let service = Service::open_on(&objects, hook).await.with_sources().await;
    service.split_objects("n").await;
    let address = service.running.object_address.expect("objects are served");
    let request = json_request("POST", change.0, change.1);
    let has_died = tokio::select! {
        answer = wire::exchange(address, &request) => {
            assert_eq!(answer.status, 200, "{}", answer.body);
            false
        }
        () = died.notified() => true,
    };
    service.node.clone().close().await;

    let why = format!("{} {step} {by_walk}", change.0);
    let (before, after): (&[&str], &[&str]) =
        (&["a", "b"], if change.0 == MOVE { &["a", TARGET] } else { &[TARGET] });
    let service = match by_walk {
        true => Service::a_day_later(&objects).await,
        false => Service::open_on(&objects, NamesHook::default()).await,
    };
    let address = service.running.object_address.expect("objects are served");
    let seen = shown(address).await;
    assert!(seen == before || seen == after, "{seen:?} {why}");
    if by_walk {
        // It ends what nobody carries out, and removes the rows of what was undone.
        while service.traces().await != (0, 0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    } else {
        // Requests that write the sources take the change up. What they undid is remembered for a day, and without a source
        // that names it, only the walk finds the row of a decision.
        for name in before.iter().filter(|name| !after.contains(name)) {
            let target = format!("/storage/v1/b/photos/o/{name}");
            let patched = service.object("PATCH", &target, r#"{"metadata":{"k":"v"}}"#).await;
            assert_eq!(patched.status, if seen == before { 200 } else { 404 }, "{} {why}", patched.body);
        }
        let is_found_by_the_walk_alone = step + 2 == steps;
        let remembered = seen == before || is_found_by_the_walk_alone;
        assert_eq!(service.traces().await, (0, usize::from(remembered)), "{why}");
    }
    assert_eq!(shown(address).await, seen, "{why}");
    let (_, decisions) = service.traces().await;
    let rows = service.stored(KIND_OBJECT).await.len();
    // One object has the bytes of the large source, and a row for them.
    assert_eq!(rows, seen.len() + 1 + decisions, "heads and contents; {why}");
    service.audit().await;
    for (name, byte, count) in SOURCES {
        let mut expected = vec![byte; count];
        let holder = if seen.contains(&name) { name } else { TARGET };
        let target = format!("/storage/v1/b/photos/o/{holder}?alt=media");
        let answer = service.object("GET", &target, "").await;
        if holder != name && change.0 == COMPOSE {
            expected = SOURCES.iter().flat_map(|(_, byte, count)| vec![*byte; *count]).collect();
        }
        assert!(answer.status == 200 && answer.body.as_bytes() == expected, "{holder} {why}");
    }
    let blobs = if seen == after && change.0 == COMPOSE { 2 } else { 1 };
    assert_eq!(service.stored(KIND_BLOB).await.len(), 2 * blobs, "blobs and users; {why}");
    assert_eq!(chunk_files(&objects).await, blobs, "{why}");
    service.node.clone().close().await;
    has_died
}

#[tokio::test]
async fn after_a_crash_at_any_step_of_a_move_one_name_shows_and_nothing_is_left() {
    // Begun, committed, ended, forgotten.
    for (step, by_walk) in (0..=4).flat_map(|step| [(step, false), (step, true)]) {
        assert_eq!(dies_and_is_taken_up((MOVE, ""), 4, step, by_walk).await, step < 4, "{step}");
    }
}

#[tokio::test]
async fn after_a_crash_at_any_step_of_a_compose_the_sources_show_or_the_target() {
    // Begun twice, committed, ended twice, forgotten.
    for (step, by_walk) in (0..=6).flat_map(|step| [(step, false), (step, true)]) {
        assert_eq!(dies_and_is_taken_up((COMPOSE, BOTH), 6, step, by_walk).await, step < 6, "{step}");
    }
}

#[tokio::test]
async fn readers_and_listings_between_all_steps_see_the_sources_or_the_target() {
    let address: Arc<OnceLock<SocketAddr>> = Arc::default();
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let looks = Arc::new(AtomicBool::new(false));
    let hook = {
        let (address, seen) = (Arc::clone(&address), Arc::clone(&seen));
        NamesHook::new(move |step, _| {
            let (address, seen, looks) = (Arc::clone(&address), Arc::clone(&seen), Arc::clone(&looks));
            async move {
                // A reader finishes a committed change on its way, and so reaches steps itself.
                if !looks.swap(true, Ordering::SeqCst) {
                    let shown = shown(*address.get().expect("it is served")).await;
                    seen.lock().expect("no test has failed").push((step, shown));
                    looks.store(false, Ordering::SeqCst);
                }
            }
        })
    };
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let service = Service::open_on(&objects, hook).await.with_sources().await;
    address.set(service.running.object_address.expect("objects are served")).expect("set once");
    service.object_json("POST", COMPOSE, BOTH).await;
    let seen = std::mem::take(&mut *seen.lock().expect("no test has failed"));
    assert_eq!(seen.len(), 6, "{seen:?}");
    for (step, shown) in seen {
        let expected: &[&str] = if step == NamesStep::Begun { &["a", "b"] } else { &[TARGET] };
        assert_eq!(shown, expected, "{step:?}");
    }
    assert_eq!(service.traces().await, (0, 0));
}

#[tokio::test]
async fn a_page_over_two_ranges_shows_a_name_once_however_often_it_moves() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let service = Service::open_on(&objects, NamesHook::default()).await;
    let service = service.with_sources().await;
    service.split_objects("n").await;
    let moving = async {
        for round in 0..20 {
            let (from, to) = if round % 2 == 0 { ("b", "t") } else { ("t", "b") };
            let target = format!("/storage/v1/b/photos/o/{from}/moveTo/o/{to}");
            service.object_json("POST", &target, "").await;
        }
    };
    let listing = async {
        loop {
            let listed = service.object_json("GET", "/storage/v1/b/photos/o", "").await;
            let items = listed["items"].as_array().expect("items");
            let moved = items.iter().filter(|item| item["name"] != "a").count();
            assert_eq!((items.len(), moved), (2, 1), "{listed}");
        }
    };
    tokio::select! {
        () = moving => {}
        () = listing => {}
    }
    assert_eq!(service.traces().await, (0, 0));
}

/// Lists the bucket, and moves one object of it to another name when the page has read the first of two ranges.
async fn listed_with_a_move_in_the_middle(from: &'static str, to: &'static str) -> Vec<Value> {
    let address: Arc<OnceLock<SocketAddr>> = Arc::default();
    let (moves, is_moved) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let after_scan_step = {
        let (address, moves, is_moved) = (Arc::clone(&address), Arc::clone(&moves), Arc::clone(&is_moved));
        ScanHook::new(move |_, _| {
            let (address, is_moved) = (address.get().copied(), Arc::clone(&is_moved));
            let moves = moves.swap(false, Ordering::SeqCst);
            async move {
                if let Some(address) = address.filter(|_| moves) {
                    let target = format!("/storage/v1/b/photos/o/{from}/moveTo/o/{to}");
                    let answer = wire::exchange(address, &json_request("POST", &target, "")).await;
                    is_moved.store(answer.status == 200, Ordering::SeqCst);
                }
            }
        })
    };
    let service = Service::open(Wanted { after_scan_step, ..Wanted::default() }).await.with_sources().await;
    service.split_objects("n").await;
    if from == TARGET {
        service.object_json("POST", MOVE, "").await;
    }
    address.set(service.running.object_address.expect("objects are served")).expect("set once");
    moves.store(true, Ordering::SeqCst);
    let listed = service.object_json("GET", "/storage/v1/b/photos/o", "").await;
    assert!(is_moved.load(Ordering::SeqCst), "the move was made while the page was read");
    listed["items"].as_array().expect("items").iter().map(|item| item["name"].clone()).collect()
}

#[tokio::test]
async fn a_page_that_is_held_up_between_two_ranges_shows_a_move_whole() {
    for (from, to) in [("b", TARGET), (TARGET, "b")] {
        let names = listed_with_a_move_in_the_middle(from, to).await;
        assert!(names.len() == 2 && names[0] == "a", "{from} to {to}: {names:?}");
    }
}

#[tokio::test]
async fn of_two_moves_at_once_one_wins_and_moves_in_a_circle_end() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let service = Service::open_on(&objects, NamesHook::default()).await;
    let service = service.with_sources().await;
    let moves = |from: &str, to: &str| {
        let target = format!("/storage/v1/b/photos/o/{from}/moveTo/o/{to}");
        let service = &service;
        async move { service.object("POST", &target, "").await }
    };
    let status = |answers: &[Answer]| {
        let mut status: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        status.sort_unstable();
        status
    };
    let twice = future::join(moves("b", "t"), moves("b", "u")).await;
    assert_eq!(status(&[twice.0, twice.1]), [200, 404]);
    let target = if service.status("t").await == 200 { "t" } else { "u" };
    // Each of these may find its source overwritten by the other; in the end one of two objects is left.
    let circle = future::join(moves("a", target), moves(target, "a")).await;
    assert!(status(&[circle.0, circle.1]).iter().all(|status| [200, 404].contains(status)));
    let left = service.stored(KIND_OBJECT).await;
    let is_head =
        |(key, _): &&(Vec<u8>, Bytes)| ObjectKey::decode(key).is_ok_and(|key| key.row == ObjectRow::Head);
    assert_eq!(left.iter().filter(is_head).count(), 1);
    assert_eq!((service.traces().await, moves("a", "a").await.status), ((0, 0), 400));
}

#[tokio::test]
async fn what_forbids_a_move_is_found_before_anything_is_written() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let service = Service::open_on(&objects, NamesHook::default()).await;
    let service = service.with_sources().await;
    let rows = service.stored(KIND_OBJECT).await;
    let status = async |target: &str, body: &str| service.object("POST", target, body).await.status;
    assert_eq!(status(&format!("{MOVE}?ifSourceGenerationMatch=1"), "").await, 412);
    assert_eq!(status("/storage/v1/b/photos/o/none/moveTo/o/t", "").await, 404);
    assert_eq!(status("/storage/v1/b/photos/o/b/moveTo/o/a?ifGenerationMatch=0", "").await, 412);
    assert_eq!(service.stored(KIND_OBJECT).await, rows);
    let held = r#"{"temporaryHold":true}"#;
    service.object_json("PATCH", "/storage/v1/b/photos/o/b", held).await;
    let rows = service.stored(KIND_OBJECT).await;
    assert_eq!((status(MOVE, "").await, status(COMPOSE, BOTH).await), (403, 403));
    assert_eq!(service.stored(KIND_OBJECT).await, rows);
    service.object_json("PATCH", "/storage/v1/b/photos/o/b", r#"{"temporaryHold":false}"#).await;
    let onto_a_source = service.object_json("POST", "/storage/v1/b/photos/o/a/compose", BOTH).await;
    assert_eq!(onto_a_source["size"], (LARGE + 10).to_string());
    assert_eq!((service.status("a").await, service.status("b").await), (200, 404));
    assert_eq!(service.traces().await, (0, 0));
}

#[tokio::test]
async fn a_moved_source_becomes_an_older_version_or_a_soft_deleted_one_as_after_a_delete() {
    for (settings, listing) in [
        (r#""versioning":{"enabled":true}"#, "versions=true"),
        (r#""versioning":{"enabled":false}"#, "softDeleted=true"),
    ] {
        let service = Service::start().await;
        let body = format!(r#"{{"name":"photos",{settings}}}"#);
        service.object_json("POST", "/storage/v1/b?project=p", &body).await;
        service.upload("b", &vec![b'b'; LARGE]).await;
        let source = service.object_json("GET", "/storage/v1/b/photos/o/b", "").await;
        service.object_json("POST", MOVE, "").await;
        let listed = service.object_json("GET", &format!("/storage/v1/b/photos/o?{listing}"), "").await;
        let kept = &listed["items"][0];
        assert_eq!(
            (&kept["name"], &kept["generation"]),
            (&source["name"], &source["generation"]),
            "{listed}"
        );
        let answer = service.object("GET", "/storage/v1/b/photos/o/t?alt=media", "").await;
        assert!(answer.status == 200 && answer.body.len() == LARGE);
    }
}

/// As a deletion that names a generation. Google's Python tests ask for it.
#[tokio::test]
async fn a_source_that_is_named_by_its_generation_goes_for_good_though_its_bucket_keeps_versions() {
    let service = Service::start().await;
    let body = r#"{"name":"photos","versioning":{"enabled":true},"softDeletePolicy":{"retentionDurationSeconds":"0"}}"#;
    service.object_json("POST", "/storage/v1/b?project=p", body).await;
    service.upload("a", b"a").await;
    service.upload("b", &vec![b'b'; LARGE]).await;
    let named = service.object_json("GET", "/storage/v1/b/photos/o/a", "").await;
    let generation = named["generation"].as_str().unwrap();
    let body = format!(
        r#"{{"sourceObjects":[{{"name":"a","generation":"{generation}"}},{{"name":"b"}}],"deleteSourceObjects":true}}"#
    );
    service.object_json("POST", COMPOSE, &body).await;
    let listed = service.object_json("GET", "/storage/v1/b/photos/o?versions=true", "").await;
    let names: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["b", "t"], "{listed}");
    let answer = service.object("GET", "/storage/v1/b/photos/o/t?alt=media", "").await;
    assert!(answer.status == 200 && answer.body.len() == LARGE + 1);
}
