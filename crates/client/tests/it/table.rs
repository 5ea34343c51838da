//! What each operation of the client does at a real service.

use super::support::Home;
use futures::{StreamExt, TryStreamExt};
use rangehold_client::pattern::{Age, Copies};
use rangehold_client::sequence::{Sequence, SequenceOptions, StrictSequence};
use rangehold_client::{
    Binary, Change, Condition, DateTime, Entity, Error, Filter, Guid, Keys, Operator, Query, Service,
    Timestamp, Value, groups,
};
use serde::{Deserialize, Serialize};

fn status(result: Result<impl Sized, Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(Error::Refused(refusal)) => refusal.status,
        Err(other) => panic!("not an answer of the service: {other}"),
    }
}

#[tokio::test]
async fn each_change_does_what_its_name_says() {
    let home = Home::open();
    let table = home.table("changes").await;
    let one = || Entity::new("p", "r").with("A", 1);
    let any = Condition::Any;
    assert_eq!(status(table.replace(one(), any.clone()).await), 404);
    assert_eq!(status(table.merge(one(), any.clone()).await), 404);
    assert_eq!(status(table.remove(one().keys, any.clone()).await), 404);
    assert_eq!(table.get("p", "r").await.expect("the table exists"), None);

    let first = table.insert(one()).await.expect("it is new").expect("a write has a version");
    assert_eq!(status(table.insert(one()).await), 409);
    let second = table.merge(Entity::new("p", "r").with("B", 2), Condition::from(&first)).await;
    let second = second.expect("the version is right").expect("a write has a version");
    assert_eq!(status(table.merge(one(), Condition::from(&first)).await), 412);
    assert_eq!(status(table.replace(one(), Condition::from(&first)).await), 412);
    assert_eq!(status(table.remove(one().keys, Condition::from(&first)).await), 412);

    let found = table.get("p", "r").await.expect("it can be read").expect("it is there");
    assert_eq!((found.integer("A"), found.integer("B")), (Some(1), Some(2)));
    assert_eq!(found.etag, Some(second));
    assert!(found.timestamp.is_some());

    table.insert_or_merge(Entity::new("p", "r").with("C", 3)).await.expect("it has no condition");
    table.insert_or_replace(Entity::new("p", "r").with("D", 4)).await.expect("it has no condition");
    let found = table.get("p", "r").await.expect("it can be read").expect("it is there");
    assert_eq!(found.properties.into_iter().collect::<Vec<_>>(), [("D".to_owned(), Value::Int32(4))]);
    table.remove(one().keys, any).await.expect("it is there");
    assert_eq!(table.get("p", "r").await.expect("the table exists"), None);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Colour {
    Red,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Everything {
    text: String,
    small: i32,
    large: i64,
    double: f64,
    whole: f64,
    flag: bool,
    bytes: Binary,
    guid: Guid,
    first: DateTime,
    last: DateTime,
    colour: Colour,
    absent: Option<i32>,
    present: Option<i64>,
}

fn everything() -> Everything {
    Everything {
        text: "it's \"日本\"\n".to_owned(),
        small: -7,
        large: i64::MAX,
        double: 0.1 + 0.2,
        whole: 5.0,
        flag: true,
        bytes: Binary(vec![0, 1, 255]),
        guid: Guid([0x1A; 16]),
        first: DateTime(Timestamp::MIN_DATE_TIME),
        last: DateTime(Timestamp::MAX_DATE_TIME),
        colour: Colour::Red,
        absent: None,
        present: Some(1),
    }
}

#[tokio::test]
async fn values_keep_their_types_by_serde_and_by_name() {
    let home = Home::open();
    let table = home.table("types").await;
    table
        .insert(Entity::of("p", "r", &everything()).expect("a struct with values"))
        .await
        .expect("it is new");
    let found = table.get("p", "r").await.expect("it can be read").expect("it is there");
    assert_eq!(found.read::<Everything>().expect("it has the same fields"), everything());
    for (name, value) in [
        ("small", Value::Int32(-7)),
        ("large", Value::Int64(i64::MAX)),
        ("whole", Value::Double(5.0)),
        ("present", Value::Int64(1)),
        ("colour", Value::from("Red")),
        ("guid", Value::Guid([0x1A; 16])),
        ("last", Value::DateTime(Timestamp::MAX_DATE_TIME)),
    ] {
        assert_eq!(found.get(name), Some(&value), "{name}");
    }
    assert_eq!(found.get("absent"), None);
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    partition_key: String,
    row_key: String,
    timestamp: DateTime,
    n: i32,
}

#[tokio::test]
async fn keys_with_any_allowed_character_are_found_again() {
    let home = Home::open();
    let table = home.table("keys").await;
    for key in ["a b", "it''s", "50%25", "ä日本", "a+b&c=d", "(x,y)", "~!*;:@$"] {
        table
            .insert(Entity::new(key, key).with("N", 1))
            .await
            .unwrap_or_else(|error| panic!("{key}: {error}"));
        let found = table.get(key, key).await.expect("it can be read").expect(key);
        let row: Row = found.read().expect("the struct has fields of the service");
        assert_eq!((row.partition_key.as_str(), row.row_key.as_str(), row.n), (key, key, 1));
        let only = Query::of(Filter::partition(key));
        let all: Vec<Entity> = table.query(only).try_collect().await.expect("it can be queried");
        assert_eq!(all.len(), 1, "{key}");
    }
    for key in ["a/b", "a\\b", "#", "?", "\t"] {
        let refused = table.insert(Entity::new("p", key)).await.expect_err(key);
        assert!(matches!(&refused, Error::Invalid(why) if why.to_string().contains("RowKey")), "{refused}");
    }
}

#[tokio::test]
async fn pages_follow_each_other_and_a_stored_token_goes_on() {
    let home = Home::open();
    let table = home.table("pages").await;
    let rows = (0..25).map(|n| Change::Insert(Entity::new("p", format!("{n:02}")).with("N", n)));
    for group in groups(rows) {
        table.batch(group).await.expect("they are new");
    }
    let query = Query::of(Filter::partition("p")).page_items(10);
    let pages: Vec<_> = table.pages(query.clone(), None).try_collect().await.expect("all pages come");
    let sizes: Vec<usize> = pages.iter().map(|page| page.entities.len()).collect();
    assert_eq!(sizes, [10, 10, 5]);
    let stored = serde_json::to_string(&pages[0].next).expect("a token can be stored");
    let token = serde_json::from_str(&stored).expect("and read again");
    let mut rest = std::pin::pin!(table.pages(query.clone(), token));
    let second = rest.next().await.expect("there is one").expect("it comes");
    assert_eq!(second, pages[1]);

    let large = Query::of(Filter::partition("p").and(Filter::compare("N", Operator::GreaterOrEqual, 20)));
    let found: Vec<Entity> =
        table.query(large.select(["RowKey"])).try_collect().await.expect("it can be queried");
    let keys: Vec<&str> = found.iter().map(|entity| entity.keys.row_key.as_str()).collect();
    assert_eq!(keys, ["20", "21", "22", "23", "24"]);
    assert!(found.iter().all(|entity| entity.properties.is_empty()));
}

#[tokio::test]
async fn a_batch_happens_as_a_whole_or_not_at_all() {
    let home = Home::open();
    let table = home.table("batches").await;
    let one = table.insert(Entity::new("p", "1").with("N", 1)).await.expect("it is new").expect("a version");
    let changes = |version: Condition| {
        vec![
            Change::Insert(Entity::new("p", "2").with("N", 2)),
            Change::Merge(Entity::new("p", "1").with("M", 1), version),
            Change::InsertOrReplace(Entity::new("p", "3")),
        ]
    };
    let versions = table.batch(changes(Condition::from(&one))).await.expect("the version is right");
    assert_eq!(versions.len(), 3);
    assert!(versions.iter().all(Option::is_some));
    let refused = table.batch(changes(Condition::Any)).await.expect_err("the first entity exists");
    let refusal = refused.refusal().expect("the service refused");
    assert_eq!((refusal.status, refusal.change), (409, Some(0)));
    assert_eq!(refusal.code, "EntityAlreadyExists");

    let mut others = changes(Condition::from(&one));
    others[0] = Change::Delete(Keys::new("p", "2"), Condition::Any);
    let refused = table.batch(others).await.expect_err("the version is old");
    assert_eq!(refused.refusal().map(|refusal| (refusal.status, refusal.change)), Some((412, Some(1))));
    assert!(table.get("p", "2").await.expect("it can be read").is_some());
}

#[tokio::test]
async fn tables_are_made_listed_and_deleted() {
    let home = Home::open();
    let table = home.table("tables").await;
    assert_eq!(status(table.create().await), 409);
    table.create_if_absent().await.expect("it exists");
    let names: Vec<String> = home.service.tables().try_collect().await.expect("they can be listed");
    assert!(names.iter().any(|name| name == table.name()), "{names:?}");
    table.delete().await.expect("it exists");
    assert_eq!(status(table.delete().await), 404);
    assert_eq!(status(table.get("p", "r").await), 404);
    let refused = home.service.table("no-table").err().expect("a hyphen is not allowed");
    assert!(refused.to_string().contains("no-table"));
}

#[tokio::test]
async fn a_shared_access_signature_opens_the_account() {
    let home = Home::open();
    let table = home.table("sas").await;
    table.insert(Entity::new("p", "r").with("N", 1)).await.expect("it is new");
    let sas = rangehold_testkit::sign::Signer::well_known().sas_for_everything();
    let endpoint = home.connection.split_once("TableEndpoint=").expect("the string names it").1;
    let text = format!("TableEndpoint={endpoint};SharedAccessSignature={sas}");
    let guest = Service::from_connection_string(&text).expect("it is complete");
    let guest = guest.table(table.name()).expect("it is a name");
    let only = Query::of(Filter::partition("p"));
    let found: Vec<Entity> = guest.query(only).try_collect().await.expect("the signature allows it");
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn processes_that_share_a_sequence_get_all_numbers_once() {
    let home = Home::open();
    let table = home.table("sequences").await;
    let options = || SequenceOptions { table: table.name().to_owned(), ..SequenceOptions::default() };
    let mut callers = Vec::new();
    for _ in 0..3 {
        // A service of its own has a line of its own, as another process has.
        let service = Service::from_connection_string(&home.connection).expect("it is complete");
        let plain = Sequence::open(&service, "p", "plain", options()).await.expect("the table is there");
        let strict =
            StrictSequence::open(&service, "p", "strict", options()).await.expect("the table is there");
        for _ in 0..10 {
            let (plain, strict) = (plain.clone(), strict.clone());
            callers.push(tokio::spawn(async move {
                let number = plain.next().await.expect("there is a number");
                let claim = strict.next().await.expect("there is a number");
                let claimed = claim.number();
                claim.finish().await.expect("it is ours");
                (number, claimed)
            }));
        }
    }
    let (mut plain, mut strict) = (Vec::new(), Vec::new());
    for caller in callers {
        let (number, claimed) = caller.await.expect("a caller does not panic");
        plain.push(number);
        strict.push(claimed);
    }
    plain.sort_unstable();
    strict.sort_unstable();
    assert_eq!(plain, (1..=30).collect::<Vec<i64>>());
    assert_eq!(strict, plain);
    let left = Query::of(Filter::partition("p"));
    let left: Vec<Entity> = table.query(left).try_collect().await.expect("it can be queried");
    let rows: Vec<_> = left.iter().map(|row| (row.keys.row_key.as_str(), row.integer("Value"))).collect();
    assert_eq!(rows, [("plain", Some(30)), ("strict", Some(30))], "all claims are gone");
}

#[tokio::test]
async fn a_copy_follows_its_primary_to_other_partitions() {
    let home = Home::open();
    let table = home.table("copies").await;
    let city = |entity: &Entity| Keys::new(entity.text("City").unwrap_or_default(), "runner");
    let copies = Copies::new(table.clone(), move |entity| vec![city(entity)]);
    for (city, before) in [("Berlin", "Paris"), ("Paris", "Berlin"), ("Berlin", "Paris")] {
        copies.put(Entity::new("marathon", "1").with("City", city)).await.expect("no other change comes");
        let copy =
            copies.get(&Keys::new(city, "runner")).await.expect("it can be read").expect("it is there");
        assert_eq!((copy.entity.text("City"), copy.age), (Some(city), Age::Newest));
        assert_eq!(copies.get(&Keys::new(before, "runner")).await.expect("it can be read"), None);
    }
    assert_eq!(copies.recover("marathon").await.expect("it can be read"), 0);
}
