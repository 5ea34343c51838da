//! Many objects at a real server: in which order they are written, and what becomes of a job that is pushed back or stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use rangehold_client::bulk::{Gate, Outcome, Pace, delete_all, upload_all};
use rangehold_client::limits::BULK_RETRY;
use rangehold_client::object::{Bucket, Content, Error, Generation, Listing};
use rangehold_client::{Ended, Policy, Watch};
use serde_json::json;

use super::support::Home;
use super::support::way::{Fate, bucket_of};

/// Folders, and files in each of them.
const FOLDERS: u32 = 20;
const FILES: u32 = 40;

fn names() -> Vec<String> {
    (0..FOLDERS * FILES).map(|n| format!("{:02}/{:02}.txt", n / FILES, n % FILES)).collect()
}

/// In the order of names, as a listing or a walk over files gives them.
fn contents() -> impl Stream<Item = (String, Content)> {
    stream::iter(names()).map(|name| (name.clone(), Content::from(name)))
}

/// Deletions, as uploads come.
fn deletions(bucket: &Bucket, gate: &Gate) -> impl Stream<Item = Outcome> {
    delete_all(bucket, Listing::default(), gate, 7).map(|ended| ended.expect("the bucket can be listed"))
}

async fn there(bucket: &Bucket) -> BTreeMap<String, Generation> {
    let listed = bucket.list(Listing::default()).map_ok(|object| (object.name, object.generation));
    listed.try_collect().await.expect("the bucket can be listed")
}

/// Names that were done and skipped, in their order. None of them may have failed.
async fn sorted(outcomes: impl Stream<Item = Outcome>) -> (Vec<String>, Vec<String>) {
    let (mut done, mut skipped) = (Vec::new(), Vec::new());
    let mut outcomes = std::pin::pin!(outcomes);
    while let Some(outcome) = outcomes.next().await {
        match outcome {
            Outcome::Done(name) => done.push(name),
            Outcome::Skipped(name) => skipped.push(name),
            Outcome::Failed(name, error) => panic!("{name}: {error}"),
        }
    }
    (done, skipped)
}

/// How many folders are among some names.
fn folders(names: &[String]) -> usize {
    names.iter().map(|name| &name[..2]).collect::<BTreeSet<_>>().len()
}

/// A watch that counts refusals of a busy service, before it tells the gate.
fn counting(gate: &Gate) -> (Watch, Arc<AtomicU32>) {
    let (refusals, told) = (Arc::new(AtomicU32::new(0)), gate.watch());
    let counted = Arc::clone(&refusals);
    let watch = move |ended: Ended| {
        if matches!(ended.status, Some(429 | 503)) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        told(ended);
    };
    (Arc::new(watch), refusals)
}

#[tokio::test]
async fn a_job_spreads_over_all_folders_and_slows_down_when_it_is_pushed_back() {
    for deletes in [false, true] {
        let gate = Gate::new(Pace::FREE);
        let (watch, refusals) = counting(&gate);
        let retry = Policy::fixed(Duration::from_millis(2), 60);
        let opened = bucket_of(Home::open(), "spread", &json!({}), retry, Some(watch)).await;
        let Some((_home, way, _storage, bucket)) = opened else { return };
        if deletes {
            sorted(upload_all(&bucket, contents(), &Gate::new(Pace::FREE), 1)).await;
        }
        // Requests in the middle of the job are refused.
        let refused = (0..60).map(|n| Fate::Refused(if n % 4 == 3 { 503 } else { 429 }));
        way.next(&(0..300).map(|_| Fate::Fine).chain(refused).collect::<Vec<_>>());
        let (done, skipped) = match deletes {
            false => sorted(upload_all(&bucket, contents(), &gate, 7)).await,
            true => sorted(deletions(&bucket, &gate)).await,
        };
        let all: BTreeSet<String> = names().into_iter().collect();
        assert_eq!(skipped, [""; 0]);
        assert_eq!(done.iter().cloned().collect::<BTreeSet<_>>(), all);
        // In the order of names, fifty in a row would come from two or three of the twenty folders.
        for row in done.chunks(50) {
            assert!(folders(row) >= 10, "{row:?}");
        }
        assert_eq!(refusals.load(Ordering::Relaxed), 60);
        assert!(gate.rate().is_finite(), "{}", gate.rate());
        assert_eq!(there(&bucket).await.len(), if deletes { 0 } else { all.len() });
    }
}

#[tokio::test]
async fn a_job_that_was_stopped_goes_on_where_it_ended() {
    const STOP: usize = 150;
    let gate = Gate::new(Pace::FREE);
    let opened = bucket_of(Home::open(), "stopped", &json!({}), Policy::quick(), None).await;
    let Some((_home, _way, _storage, bucket)) = opened else { return };
    let all = (FOLDERS * FILES) as usize;
    let first = {
        let outcomes = std::pin::pin!(upload_all(&bucket, contents(), &gate, 1));
        sorted(outcomes.take(STOP)).await.0
    };
    let before = there(&bucket).await;
    assert!(first.len() == STOP && (STOP..all / 2).contains(&before.len()), "{}", before.len());
    // Another seed, as in another process.
    let (done, skipped) = sorted(upload_all(&bucket, contents(), &gate, 2)).await;
    assert_eq!(done.len() + skipped.len(), all);
    let skipped: BTreeSet<String> = skipped.into_iter().collect();
    assert!(before.keys().all(|name| skipped.contains(name)), "nothing is written twice");
    let after = there(&bucket).await;
    assert!(before.iter().all(|(name, generation)| after.get(name) == Some(generation)));
    assert_eq!(after.len(), all);

    let deleted = {
        let outcomes = std::pin::pin!(deletions(&bucket, &gate));
        sorted(outcomes.take(STOP)).await.0
    };
    let left = there(&bucket).await;
    assert!(deleted.iter().all(|name| !left.contains_key(name)) && left.len() > all / 2, "{}", left.len());
    // Deletions that had begun end by themselves meanwhile, so some of those that are left are gone when the next job comes to them.
    let (done, skipped) = sorted(deletions(&bucket, &gate)).await;
    assert!(done.len() + skipped.len() <= left.len() && done.len() > left.len() / 2);
    assert_eq!(there(&bucket).await.len(), 0);
}

#[tokio::test]
async fn a_job_is_finished_at_a_bucket_that_bears_ten_writes_a_second() {
    const OBJECTS: usize = 50;
    let home = Home::open_with(&["--profile", "cloud", "--rate-scale", "0.01"]);
    let gate = Gate::new(Pace::FREE);
    let (watch, refusals) = counting(&gate);
    let opened = bucket_of(home, "rates", &json!({}), BULK_RETRY, Some(watch)).await;
    let Some((_home, _way, _storage, bucket)) = opened else { return };
    let (done, skipped) = sorted(upload_all(&bucket, contents().take(OBJECTS), &gate, 3)).await;
    assert_eq!((done.len(), skipped.len()), (OBJECTS, 0));
    assert!(refusals.swap(0, Ordering::Relaxed) > 0, "it wants more than the bucket bears");
    assert!(gate.rate().is_finite(), "{}", gate.rate());
    let gate = Gate::new(Pace::FREE);
    let (done, skipped) = sorted(deletions(&bucket, &gate)).await;
    // An attempt that was answered with 503 was not made here; a client cannot know that of every service.
    assert_eq!(done.len() + skipped.len(), OBJECTS);
    assert!(refusals.load(Ordering::Relaxed) > 0);
    assert_eq!(there(&bucket).await.len(), 0);
}

#[tokio::test]
async fn what_was_written_after_it_was_listed_is_not_deleted() {
    let opened = bucket_of(Home::open(), "later", &json!({}), Policy::quick(), None).await;
    let Some((_home, _way, _storage, bucket)) = opened else { return };
    let free = Gate::new(Pace::FREE);
    sorted(upload_all(&bucket, contents().take(40), &free, 1)).await;
    // All is listed at the beginning, and deleted slowly.
    let slow = Gate::new(Pace { per_second: 20.0, doubles_in: None });
    let mut job = std::pin::pin!(delete_all(&bucket, Listing::default(), &slow, 1));
    let first = job.next().await.expect("there are some").expect("it can be listed");
    assert!(matches!(first, Outcome::Done(_)), "{first:?}");
    let mut replaced = BTreeSet::new();
    for (name, generation) in there(&bucket).await {
        let condition = rangehold_client::object::Condition::Is(generation);
        match bucket.upload(&name, Content::from("new"), condition).await {
            Ok(_) => replaced.insert(name),
            Err(Error::Refused(refusal)) => {
                assert_eq!(refusal.status, 412, "the job was faster");
                false
            }
            Err(error) => panic!("{name}: {error}"),
        };
    }
    let mut left_alone = BTreeSet::new();
    while let Some(outcome) = job.next().await {
        if let Outcome::Failed(name, error) = outcome.expect("it can be listed") {
            assert!(error.has_status(412), "{name}: {error}");
            left_alone.insert(name);
        }
    }
    assert!(!replaced.is_empty());
    assert_eq!(left_alone, replaced);
    assert_eq!(there(&bucket).await.into_keys().collect::<BTreeSet<_>>(), replaced);
}
