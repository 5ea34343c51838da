//! Many entities: written and deleted in batches, at a real service, and over a model of one with faults.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use rangehold_client::bulk::{Deletion, TableGate, TablePace, delete_keys, delete_matching, upsert_entities};
use rangehold_client::moving::Fingerprint;
use rangehold_client::{Condition, Entity, Error, Keys, Policy, Query, Table};
use tokio::time::Instant;

use super::model::{Fate, Network};
use super::support::Home;

/// Of one partition, and more of them than a batch has.
const LARGE: &str = "customer-00300";

/// One large partition between small ones.
fn entities() -> Vec<Entity> {
    let small = (0..600).map(|n| Entity::new(format!("customer-{n:05}"), "order").with("N", n));
    let large = (0..2_400).map(|n| Entity::new(LARGE, format!("row {n:06}")).with("N", n));
    small.chain(large).collect()
}

fn free() -> TableGate {
    TableGate::new(TablePace::FREE)
}

async fn fill(table: &Table, entities: Vec<Entity>) {
    upsert_entities(table, entities, 4, &free(), 1, |_| {}).await.expect("they can be written");
}

async fn sum(deletions: impl Stream<Item = Result<Deletion, Error>>) -> Deletion {
    let add = |sum, deletion| std::future::ready(Ok(sum + deletion));
    deletions.try_fold(Deletion::default(), add).await.expect("they can be deleted")
}

async fn all(table: &Table) -> Vec<Entity> {
    table.query(Query::default()).try_collect().await.expect("it can be read")
}

fn deleted(deleted: u64) -> Deletion {
    Deletion { deleted, ..Deletion::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_that_meet_a_condition_are_deleted_and_no_others() {
    let home = Home::open();
    let table = home.table("matching").await;
    fill(&table, entities()).await;
    let matching = |filter: &str| delete_matching(&table, Some(filter.to_owned()), &free(), 7);

    // The whole table is read, and all of its places at the same time.
    assert_eq!(sum(matching("N lt 300 or N ge 2000")).await, deleted(2 * 300 + 400));
    let is_left = |entity: &Entity| entity.integer("N").is_some_and(|n| (300..2_000).contains(&n));
    let left: Vec<Entity> = entities().into_iter().filter(is_left).collect();
    assert_eq!(Fingerprint::of(&all(&table).await), Fingerprint::of(&left));

    // One partition, and all that is left.
    let rows = format!("PartitionKey eq '{LARGE}' and RowKey gt 'row 001000'");
    assert_eq!(sum(matching(&rows)).await, deleted(999));
    assert_eq!(sum(matching(&rows)).await, deleted(0), "the same job, run again, has nothing to do");
    assert_eq!(sum(delete_matching(&table, None, &free(), 7)).await, deleted(left.len() as u64 - 999));
    assert_eq!(all(&table).await, []);

    let wrong = delete_matching(&table, Some("N lt".to_owned()), &free(), 7).try_collect::<Vec<_>>().await;
    assert!(wrong.expect_err("it is not a filter").has_status(400));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_gone_are_counted_and_stop_nothing() {
    let home = Home::open();
    let table = home.table("keys").await;
    let keys = |rows: std::ops::Range<i32>| rows.map(|n| Keys::new(LARGE, format!("row {n:06}")));
    fill(&table, keys(0..250).map(|keys| Entity { keys, ..Entity::new("", "") }).collect()).await;
    // One in one batch, many in another one, and one key that comes twice.
    for gone in keys(150..151).chain(keys(0..40)) {
        table.remove(gone, Condition::Any).await.expect("it is there");
    }
    let list: Vec<Keys> = keys(0..240).chain(keys(239..240)).collect();
    let job = |list: Vec<Keys>| sum(delete_keys(&table, stream::iter(list).map(Ok), &free(), 3));
    let found = job(list.clone()).await;
    assert_eq!(found, Deletion { deleted: 240 - 41, gone: 42, changed: 0 });
    assert_eq!(job(list).await, Deletion { deleted: 0, gone: 241, changed: 0 });
    assert_eq!(all(&table).await.len(), 10);

    let missing = home.service.table("missing").expect("it is a name");
    let refused = delete_keys(&missing, stream::iter(keys(0..2)).map(Ok::<_, Error>), &free(), 3);
    let refused = refused.try_collect::<Vec<_>>().await;
    assert!(refused.expect_err("entities of a missing table are not gone but unknown").has_status(404));
}

/// A table in the model, with a gate that hears of every attempt.
async fn model(network: &Arc<Network>, pace: TablePace) -> (Table, TableGate) {
    let gate = TableGate::new(pace);
    let service = network.watched(1, Policy::quick(), Some(gate.watch()));
    let table = service.table("orders").expect("it is a name");
    table.create_if_absent().await.expect("nothing goes wrong yet");
    (table, gate)
}

#[tokio::test(start_paused = true)]
async fn a_job_keeps_to_the_rates_of_partitions_and_of_the_account() {
    let network = Network::planned(&[]);
    let (table, gate) = model(&network, TablePace::DOCUMENTED).await;
    let write = |partitions: i32| {
        let entities = (0..10_000).map(move |n| Entity::new(format!("p{}", n % partitions), n.to_string()));
        let (table, gate) = (table.clone(), gate.clone());
        async move {
            let begin = Instant::now();
            upsert_entities(&table, entities.collect(), 64, &gate, 1, |_| {}).await.expect("it is fine");
            begin.elapsed().as_secs_f64()
        }
    };
    let one = write(1).await;
    assert!((4.8..5.5).contains(&one), "2,000 a second: {one}");
    let many = write(50).await;
    assert!((0.4..0.6).contains(&many), "20,000 a second: {many}");
}

#[tokio::test(start_paused = true)]
async fn push_back_slows_a_job_down_and_does_not_fail_it() {
    for status in [408, 429, 500, 503] {
        let network = Network::planned(&[]);
        let (table, gate) = model(&network, TablePace::FREE).await;
        let written = || upsert_entities(&table, entities(), 4, &gate, 1, |_| {});
        written().await.expect("it is fine");
        assert_eq!(gate.rate(), f64::INFINITY, "there was no sign");
        // Of a batch the model says 503 inside of the 202, as the service does.
        network.plan(&[Fate::Refused(status); 16]);
        written().await.expect("the service comes back");
        assert!(gate.rate().is_finite(), "{status}: {}", gate.rate());

        let (table, gate) = model(&network, TablePace::FREE).await;
        let mut job = std::pin::pin!(delete_matching(&table, None, &gate, 1));
        let first = job.next().await.expect("there are some").expect("nothing goes wrong yet");
        network.plan(&[Fate::Refused(status); 100]);
        assert_eq!(first + sum(job).await, deleted(3_000));
        assert!(gate.rate().is_finite(), "{status}: {}", gate.rate());
        assert_eq!(all(&table).await, []);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_requests_and_answers_leave_no_entity_behind() {
    for seed in 0..20 {
        let network = Network::faulty(seed, 0);
        let (table, gate) = model(&network, TablePace::FREE).await;
        fill(&table, entities()).await;
        network.harm(20);
        let Deletion { deleted, gone, changed } = sum(delete_matching(&table, None, &gate, seed)).await;
        assert_eq!((deleted + gone, changed), (3_000, 0), "seed {seed}");
        assert!(deleted > 1_000, "seed {seed}: most are seen to be deleted: {deleted}");
        network.heal();
        assert_eq!(all(&table).await, []);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_written_after_it_was_listed_is_left_alone() {
    let network = Network::planned(&[]);
    // A batch at a time, so that all is listed and most is not deleted when the other client writes.
    let (table, gate) = model(&network, TablePace { account: 100.0, partition: f64::INFINITY }).await;
    fill(&table, entities()).await;
    let mut job = std::pin::pin!(delete_matching(&table, Some("N ge 0".to_owned()), &gate, 1));
    let first = job.next().await.expect("there are some").expect("nothing goes wrong");
    let other = network.service(2, Policy::quick()).table("orders").expect("it is a name");
    let mut merged = 0;
    for entity in all(&other).await.into_iter().step_by(10) {
        let paid = Entity { keys: entity.keys, ..Entity::new("", "").with("N", -1) };
        match other.merge(paid, Condition::Any).await {
            Ok(_) => merged += 1,
            // The job was faster.
            Err(error) => assert!(error.has_status(404), "{error}"),
        }
    }
    let whole = first + sum(job).await;
    assert_eq!(whole.gone, 0);
    assert!(merged > 0);
    assert_eq!(whole.changed, merged);
    assert_eq!(whole.deleted + whole.changed, 3_000);
    let left = all(&table).await;
    assert_eq!(left.len() as u64, whole.changed);
    assert!(left.iter().all(|entity| entity.integer("N") == Some(-1)));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_dropped_is_finished_by_the_next_one() {
    let network = Network::planned(&[]);
    let (table, slow) = model(&network, TablePace { account: 100.0, partition: f64::INFINITY }).await;
    fill(&table, entities()).await;
    {
        let mut job = std::pin::pin!(delete_matching(&table, None, &slow, 1));
        for _ in 0..3 {
            job.next().await.expect("there are more").expect("nothing goes wrong");
        }
    }
    let left = all(&table).await.len();
    assert!((2_000..3_000).contains(&left), "{left}");
    // Batches that had begun end by themselves meanwhile, so some are gone before the next job comes to them.
    let Deletion { deleted, gone, changed } = sum(delete_matching(&table, None, &free(), 2)).await;
    assert!(deleted > 0 && deleted + gone <= left as u64 && changed == 0, "{deleted} {gone} of {left}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(all(&table).await, []);
}
