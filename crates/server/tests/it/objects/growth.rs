//! What buckets bear, over the lives of processes and over changes of ranges. Time is paused in these tests: the twenty seconds in
//! which a bucket must be used here pass at once.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use rangehold_engine::Clock;
use rangehold_engine::store::Store;
use rangehold_map::capacity::Rules;
use rangehold_map::{Change, PartitionPrefix, Timestamp};
use rangehold_protocol::object::list::Position;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::rates::{SLOW, metric, with_rates};
use crate::support::{Service, Wanted, in_one_moment};

const HOUR: i64 = 3_600 * Timestamp::TICKS_PER_SECOND;
/// The steps in which a bucket is used: twice in each twentieth of the time that counts.
const STEP: Duration = Duration::from_millis(500);
/// Far more steps than any growth here needs.
const STEPS_MAX: usize = 400;

/// A service of the `life`-th process over a store.
async fn service(store: Store, life: i64) -> Service {
    let begins = Timestamp::from_unix_seconds(1_800_000_000).saturating_add(life * HOUR);
    let rates = Rules { doubles_after: Duration::from_secs(20), ..Rules::documented().scaled(SLOW) };
    let (profile, clock) = (with_rates(rates, Duration::ZERO), Some(Clock::manual(begins)));
    Service::open(Wanted { store, profile, servers: 2, clock, ..Wanted::default() }).await
}

/// The `life`-th process over `objects`. When `work` is done the process is gone as if it had been killed: nothing is closed.
fn lives<T>(objects: &Arc<dyn ObjectStore>, life: i64, work: impl AsyncFnOnce(&Service) -> T) -> T {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(async { work(&service(Store::on(Arc::clone(objects)), life).await).await })
}

/// Asks for a write of a name of the bucket. Nearly all are refused, and they count.
async fn ask(service: &Service, name: &str) {
    let answer = service.object("DELETE", &format!("/storage/v1/b/photos/o/{name}"), "").await;
    assert!([404, 429, 503].contains(&answer.status), "{}", answer.body);
}

/// The spans of all buckets in use.
async fn spans(service: &Service) -> usize {
    in_one_moment(metric(service, "bucket_spans")).await as usize
}

/// Uses all of the bucket until it has at least so many spans. Returns how many it has, when the row with them was written.
async fn grow(service: &Service, least: usize) -> usize {
    ask(service, "first").await;
    let mut steps = 0;
    while spans(service).await < least {
        assert!(steps < STEPS_MAX, "the bucket does not grow");
        steps += 1;
        in_one_moment(async {
            for digit in 0..16 {
                ask(service, &format!("{digit:x}-{steps}")).await;
            }
        })
        .await;
        sleep(STEP).await;
    }
    sleep(10 * STEP).await;
    spans(service).await
}

/// The spans that a process finds when it uses the bucket for the first time.
async fn found(service: &Service) -> usize {
    ask(service, "first").await;
    sleep(10 * STEP).await;
    spans(service).await
}

async fn change(service: &Service, verb: &str, body: serde_json::Value) {
    let answer = service.order("POST", &format!("/v1/map/{verb}"), &body.to_string()).await;
    assert_eq!(answer.status, 200, "{verb}: {}", answer.body);
}

/// Lets a range begin with the bucket.
async fn split_at_the_bucket(service: &Service) {
    let at = PartitionPrefix::bucket("photos").as_bytes().to_vec();
    let map = service.node.router().map();
    let entry = map.lookup(&at).expect("a map has all keys");
    let split = Change::Split { range: entry.id, generation: entry.generation, at };
    service.node.executor().carry_out(&split).await.expect("it can be split");
}

#[test]
fn a_bucket_that_has_grown_bears_the_same_after_a_kill() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let grown = lives(&objects, 0, async |service| {
        service.create_bucket("photos").await;
        grow(service, 2).await
    });
    assert_eq!((grown, lives(&objects, 1, found)), (2, 2));
}

#[test]
fn a_bucket_that_has_grown_bears_the_same_over_a_split_a_move_and_a_merge_of_its_range() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let grown = lives(&objects, 0, async |service| {
        service.create_bucket("photos").await;
        grow(service, 2).await;
        split_at_the_bucket(service).await;
        change(service, "move", json!({ "range": "r3", "to": "s2" })).await;
        assert_eq!(spans(service).await, 2);
        // The row of what it bears now is written where the range is now.
        grow(service, 3).await
    });
    let after_the_move = lives(&objects, 1, async |service| {
        let found = found(service).await;
        change(service, "merge", json!({ "left": "r2", "right": "r3" })).await;
        assert_eq!(spans(service).await, found);
        found
    });
    let after_the_merge = lives(&objects, 2, found);
    assert_eq!((after_the_move, after_the_merge), (grown, grown));
}

#[tokio::test(start_paused = true)]
async fn a_page_counts_for_the_names_where_it_begins() {
    let service = service(Store::in_memory(), 0).await;
    service.create_bucket("photos").await;
    assert_eq!(grow(&service, 2).await, 2);
    let is_let_in = async |target: &str| match service.object("GET", target, "").await {
        answer if answer.status == 200 => true,
        answer if [429, 503].contains(&answer.status) => false,
        answer => panic!("{target}: {} {}", answer.status, answer.body),
    };
    let token = Position { name: "c".to_owned(), generation: 0, prefix_done: false }.token();
    // Each half bears one read, and was asked for none.
    assert!(is_let_in("/storage/v1/b/photos/o?startOffset=9").await);
    assert!(!is_let_in(&format!("/storage/v1/b/photos/o?pageToken={token}")).await);
    assert!(!is_let_in(&format!("/storage/v1/b/photos/o?startOffset=1&pageToken={token}")).await);
    assert!(!is_let_in(&format!("/photos?list-type=2&continuation-token={token}")).await);
    assert!(!is_let_in("/photos?marker=c").await);
    assert!(!is_let_in("/storage/v1/b/photos/o?matchGlob=c*").await);
    assert!(is_let_in("/storage/v1/b/photos/o").await);
    assert!(!is_let_in("/photos").await);
}
