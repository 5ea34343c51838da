//! Rows and copies that stand for one entity, and queries that fan out, over a model of the service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::model::{Fate, Network, SLOW};
use futures::TryStreamExt;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_client::keys::{
    Buckets, NumberKeys, composite, hash_prefixed, padded, prefixes, without_prefix,
};
use rangehold_client::pattern::{Age, Copies, SecondaryRows, fan_out, newest};
use rangehold_client::{Change, Condition, Entity, Error, Filter, Keys, Policy, Query, Table, groups};

async fn table(network: &Arc<Network>) -> Table {
    let table = network.service(1, Policy::quick()).table("entries").expect("it is a name");
    table.create_if_absent().await.expect("nothing goes wrong yet");
    table
}

async fn all(table: &Table, query: Query) -> Vec<Entity> {
    table.query(query).try_collect().await.expect("nothing goes wrong any more")
}

fn runner(bib: u32, age: u32, name: &str) -> Entity {
    let entity = Entity::new("marathon", "").with("Bib", i32::try_from(bib).expect("small"));
    entity.with("Age", i32::try_from(age).expect("small")).with("Name", name).with("Sex", "M")
}

/// The two RowKeys of the documents.
fn registrations() -> SecondaryRows {
    SecondaryRows::new(|entity| {
        let number = |name: &str| entity.integer(name).unwrap_or_default().unsigned_abs();
        let (bib, age) = (number("Bib"), number("Age"));
        let (name, sex) = (entity.text("Name").unwrap_or_default(), entity.text("Sex").unwrap_or_default());
        let bib_first = format!("BIB:{}", padded(bib, 5).expect("five digits"));
        let age_first = format!("AGE:{}", padded(age, 3).expect("three digits"));
        vec![
            composite(&[&bib_first, name, sex, &age.to_string()]),
            composite(&[&age_first, &bib.to_string(), name, sex]),
        ]
    })
}

fn row_keys(entities: &[Entity]) -> Vec<&str> {
    entities.iter().map(|entity| entity.keys.row_key.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn all_rows_of_an_entity_change_in_one_batch() {
    let network = Network::planned(&[]);
    let (table, rows) = (table(&network).await, registrations());
    table.batch(rows.insert(&runner(1234, 55, "John"))).await.expect("it is new");
    let found = all(&table, Query::default()).await;
    assert_eq!(row_keys(&found), ["AGE:055__1234__John__M", "BIB:01234__John__M__55"]);
    assert_eq!(found[0].properties, found[1].properties);

    let old = found[1].clone();
    table
        .batch(rows.replace(&old, &runner(1234, 56, "John")).expect("it was read"))
        .await
        .expect("it is the newest");
    let found = all(&table, Query::default()).await;
    assert_eq!(row_keys(&found), ["AGE:056__1234__John__M", "BIB:01234__John__M__56"]);
    let refused = table.batch(rows.replace(&old, &runner(1234, 57, "John")).expect("it was read")).await;
    assert!(refused.expect_err("another change came first").has_status(404));
    assert_eq!(all(&table, Query::default()).await, found);

    let same_keys = found[0].clone();
    let mut taller = same_keys.clone();
    taller.properties.insert("Height".to_owned(), 180.into());
    table.batch(rows.replace(&same_keys, &taller).expect("it was read")).await.expect("it is the newest");
    let refused = table.batch(rows.replace(&same_keys, &taller).expect("it was read")).await;
    assert!(refused.expect_err("the version is old").has_status(412));

    let last = all(&table, Query::default()).await;
    table.batch(rows.delete(&last[0]).expect("it was read")).await.expect("it is the newest");
    assert_eq!(all(&table, Query::default()).await, []);
    assert!(rows.delete(&runner(1, 1, "Ann")).is_err(), "an entity that was not read has no version");
}

#[tokio::test(start_paused = true)]
async fn a_fan_out_returns_the_order_of_names_behind_prefixes() {
    let network = Network::planned(&[]);
    let table = table(&network).await;
    let mut names: Vec<String> = (0..120).map(|n| format!("2016-05-10-12-{n:03}")).collect();
    let entity = |name: &String| Entity::new(hash_prefixed(name, 1).expect("one digit"), "");
    for group in groups(names.iter().rev().map(|name| Change::Insert(entity(name)))) {
        table.batch(group).await.expect("they are new");
    }
    let queries = prefixes(1).expect("sixteen").into_iter().map(|prefix| {
        let (low, high) = (format!("{prefix}2016"), format!("{prefix}2017"));
        Query::of(Filter::key_range("PartitionKey", &low, &high)).page_items(3)
    });
    let name = |entity: &Entity| without_prefix(&entity.keys.partition_key).expect("it has one").to_owned();
    let found: Vec<Entity> = fan_out(&table, queries.collect(), name).try_collect().await.expect("they come");
    names.sort();
    assert_eq!(found.iter().map(name).collect::<Vec<_>>(), names);
}

#[tokio::test(start_paused = true)]
async fn buckets_are_read_as_one_partition_and_the_newest_come_first() {
    let network = Network::planned(&[]);
    let table = table(&network).await;
    let (buckets, ids) = (Buckets::new(4).expect("four"), NumberKeys::INT32.newest_first());
    for id in 1..=40 {
        let row_key = ids.key(id).expect("it is small");
        let bucket = buckets.key("events", &row_key);
        table.insert(Entity::new(bucket, row_key.as_str())).await.expect("it is new");
        table.insert(Entity::new("one", row_key)).await.expect("it is new");
    }
    let queries = buckets.all("events").iter().map(|bucket| Query::of(Filter::partition(bucket))).collect();
    let found = fan_out(&table, queries, |entity| entity.keys.row_key.clone());
    let found: Vec<Entity> = found.try_collect().await.expect("they come");
    let id = |entity: &Entity| ids.id(&entity.keys.row_key).expect("it is one of ours");
    assert_eq!(found.iter().map(id).collect::<Vec<_>>(), (1..=40).rev().collect::<Vec<_>>());
    let latest = newest(&table, "one", 3).await.expect("they come");
    assert_eq!(latest.iter().map(id).collect::<Vec<_>>(), [40, 39, 38]);
}

/// An article, with a copy under each of its tags.
fn article(tags: &str) -> Entity {
    Entity::new("articles", "a1").with("Tags", tags)
}

fn copy_keys(entity: &Entity) -> Vec<Keys> {
    let tags = entity.text("Tags").unwrap_or_default().split(' ').filter(|tag| !tag.is_empty());
    tags.map(|tag| Keys::new(format!("tag-{tag}"), entity.text("Name").unwrap_or("a1"))).collect()
}

fn copies(table: &Table) -> Copies {
    Copies::new(table.clone(), copy_keys)
}

/// The tags under which a copy is found. All copies are the newest, and like the primary; no intent is left.
async fn tags(table: &Table, what: &str) -> String {
    let entries = all(table, Query::of(Filter::partition("articles"))).await;
    assert!(entries.iter().all(|entry| !entry.keys.row_key.contains('~')), "{what}: {entries:?}");
    let primary = table.get("articles", "a1").await.expect("it can be read");
    let tags = primary.as_ref().and_then(|primary| primary.text("Tags")).unwrap_or_default().to_owned();
    for tag in ["red", "green", "blue"] {
        let copy = copies(table).get(&Keys::new(format!("tag-{tag}"), "a1")).await.expect("it can be read");
        assert_eq!(copy.is_some(), tags.contains(tag), "{what}: the copy under {tag} of {tags}");
        if let Some(copy) = copy {
            assert_eq!(copy.entity.properties, article(&tags).properties, "{what}");
            assert_eq!((copy.age, copy.primary), (Age::Newest, Keys::new("articles", "a1")), "{what}");
        }
    }
    tags
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_killed_at_any_step_is_finished_or_never_began() {
    let mut outcomes = BTreeMap::new();
    for killed in [Fate::KilledBefore, Fate::KilledAfter] {
        for step in 0.. {
            let network = Network::planned(&[]);
            let table = table(&network).await;
            copies(&table).put(article("red green")).await.expect("nothing goes wrong");
            let what = format!("{killed:?} at step {step}");
            assert_eq!(tags(&table, &what).await, "red green");

            network.plan(&[vec![Fate::Fine; step], vec![killed]].concat());
            let changing = copies(&table);
            let change = changing.put(article("green blue"));
            let ended = tokio::time::timeout(Duration::from_secs(3600), change).await;
            network.plan(&[]);
            copies(&table).recover("articles").await.expect("nothing goes wrong any more");
            let left = tags(&table, &what).await;
            *outcomes.entry(left.clone()).or_insert(0) += 1;
            if ended.is_ok() {
                assert_eq!(left, "green blue");
                break;
            }
        }
    }
    assert!(outcomes["red green"] >= 3 && outcomes["green blue"] >= 10, "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_wakes_up_late_brings_no_old_copy_back() {
    for step in 0..14 {
        let network = Network::planned(&[]);
        let table = table(&network).await;
        copies(&table).put(article("red")).await.expect("nothing goes wrong");
        // One request of the first program is slow, and meanwhile another program makes the next change.
        network.plan(&[vec![Fate::Fine; step], vec![Fate::Slow]].concat());
        let late = copies(&table);
        let late = tokio::spawn(async move { late.put(article("red green")).await });
        tokio::time::sleep(SLOW / 2).await;
        copies(&table).put(article("blue red")).await.expect("it is alone for this time");
        let ended = late.await.expect("it does not panic");
        let refused = |error: &Error| error.has_status(409) || error.has_status(412);
        assert!(ended.as_ref().err().is_none_or(refused), "step {step}: {ended:?}");
        let left = tags(&table, &format!("step {step}")).await;
        assert!(left == "blue red" || left == "red green", "step {step}: {left}");
    }
}

#[tokio::test(start_paused = true)]
async fn copies_agree_in_the_end_under_faults() {
    for seed in 0..50 {
        let network = Network::faulty(seed, 20);
        let table = network.service(seed, Policy::quick()).table("entries").expect("it is a name");
        table.create_if_absent().await.ok();
        let mut chance = StdRng::seed_from_u64(seed);
        for _ in 0..8 {
            let list: Vec<&str> = ["red", "green", "blue"].into_iter().filter(|_| chance.random()).collect();
            let writer = copies(&table);
            let change = writer.put(article(&list.join(" ")));
            let _given_up =
                tokio::time::timeout(Duration::from_millis(chance.random_range(1..2000)), change).await;
        }
        network.heal();
        // Requests that are still on their way arrive within this time.
        tokio::time::sleep(Duration::from_secs(60)).await;
        copies(&table).recover("articles").await.expect("nothing goes wrong any more");
        tags(&table, &format!("seed {seed}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_learns_that_its_copy_is_behind() {
    let network = Network::planned(&[]);
    let table = table(&network).await;
    copies(&table).put(article("red")).await.expect("nothing goes wrong");
    // The batch is the third request, after the look for an intent and the read of the primary.
    network.plan(&[Fate::Fine, Fate::Fine, Fate::KilledAfter]);
    let writer = copies(&table);
    let change = writer.put(article("red").with("Text", "new"));
    assert!(tokio::time::timeout(Duration::from_secs(3600), change).await.is_err());
    network.plan(&[]);
    let copy =
        copies(&table).get(&Keys::new("tag-red", "a1")).await.expect("it can be read").expect("it is there");
    let primary = table.get("articles", "a1").await.expect("it can be read").expect("it is there");
    assert_eq!(copy.entity.get("Text"), None);
    assert_eq!(Some(copy.age), primary.timestamp.map(Age::BehindSince));
    assert_eq!(copies(&table).recover("articles").await.expect("nothing goes wrong any more"), 1);
    let copy =
        copies(&table).get(&Keys::new("tag-red", "a1")).await.expect("it can be read").expect("it is there");
    assert_eq!((copy.entity.text("Text"), copy.age), (Some("new"), Age::Newest));
    let wrong: Result<_, Error> = copies(&table).get(&primary.keys).await;
    assert!(wrong.expect_err("the primary is not a copy").to_string().contains("not a copy"));
    table.remove(primary.keys, Condition::Any).await.expect("it is there");
}
