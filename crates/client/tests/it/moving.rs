//! Whole tables, in parts, at a real service.

use std::sync::Arc;

use super::support::Home;
use parking_lot::Mutex;
use rangehold_client::bulk::{TableGate, TablePace, upsert_entities};
use rangehold_client::moving::{Fingerprint, Part, Source, Span, read_parts, rest};
use rangehold_client::{Entity, Error, Table};

/// Small enough that a table of some thousand entities has several parts; a page has about 60,000 bytes.
const PART_BYTES: usize = 100_000;
const AT_ONCE: usize = 4;

/// One large partition between small ones, and keys with long beginnings in common.
fn entities() -> Vec<Entity> {
    let small = (0..600).map(|n| Entity::new(format!("customer-{n:05}"), "order").with("N", n));
    let large = (0..2_400).map(|n| Entity::new("customer-00300", format!("row {n:06}")).with("N", n));
    small.chain(large).collect()
}

async fn write(table: &Table, done: impl Fn(u64)) {
    let gate = TableGate::new(TablePace::FREE);
    upsert_entities(table, entities(), AT_ONCE, &gate, 1, done).await.expect("they can be written");
}

async fn parts(table: &Table, spans: Vec<Span>) -> Vec<Part> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let take = {
        let found = found.clone();
        move |part| {
            found.lock().push(part);
            std::future::ready(Ok::<_, Error>(()))
        }
    };
    let source = Source::new(table.clone());
    read_parts(&source, spans, AT_ONCE, PART_BYTES, take).await.expect("the table can be read");
    std::mem::take(&mut found.lock())
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_hold_each_entity_once_and_the_rest_of_some_is_the_others() {
    let home = Home::open();
    let table = home.table("moving").await;
    let written = Mutex::new(0);
    let done = |count| *written.lock() += count;
    write(&table, done).await;
    assert_eq!(written.into_inner(), 3_000);

    let all = parts(&table, vec![Span::default()]).await;
    assert!(all.len() >= AT_ONCE, "{} parts", all.len());
    let sum: Fingerprint = all.iter().map(|part| part.fingerprint).sum();
    assert_eq!(sum, Fingerprint::of(&entities()));
    assert!(all.iter().all(|part| part.fingerprint == Fingerprint::of(&part.entities)));
    assert_eq!(rest(all.iter().map(|part| part.span.clone()).collect()), []);
    let longest = all.iter().map(|part| part.entities.len()).max();
    assert!(longest < Some(2_400), "the large partition was cut: {longest:?}");

    // A program that was killed goes on with what is missing.
    let (done, lost) = all.split_at(all.len() / 2);
    let missing = rest(done.iter().map(|part| part.span.clone()).collect());
    let again: Fingerprint = parts(&table, missing).await.iter().map(|part| part.fingerprint).sum();
    assert_eq!(again, lost.iter().map(|part| part.fingerprint).sum());

    // Only what is wanted, and the keys with it.
    let few = Source::new(table.clone()).filtered(Some("N lt 2 or N eq 599".to_owned()));
    let few = few.selected(&["N".to_owned()]);
    let border = all.iter().find_map(|part| part.span.up_to.clone()).expect("there are several parts");
    let [below, above] = Span::default().cut(border);
    let mut found = Vec::new();
    for span in [below, above] {
        found.extend(few.part(span, usize::MAX, &|_| {}).await.expect("it can be read").0.entities);
    }
    let wanted = entities().into_iter().filter(|entity| [0, 1, 599].map(Some).contains(&entity.integer("N")));
    assert_eq!(Fingerprint::of(&found), Fingerprint::of(&wanted.collect::<Vec<_>>()));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_table_under_writes_each_entity_that_stays_appears_once() {
    let home = Home::open();
    let table = home.table("busy").await;
    write(&table, |_| {}).await;
    let (stop, writer) = (Arc::new(Mutex::new(false)), table.clone());
    let stopped = stop.clone();
    let writing = tokio::spawn(async move {
        for n in 0.. {
            if *stopped.lock() {
                return;
            }
            // Between the others, before a row and at the end; and a row that stays gets a new value.
            let one = Entity::new("customer-00300", format!("row {:06}", n % 2_400)).with("N", -n);
            for entity in
                [one, Entity::new(format!("customer-{:05}x", n % 600), "new"), Entity::new("z", "z")]
            {
                writer.insert_or_replace(entity).await.expect("it can be written");
            }
        }
    });
    let all = parts(&table, vec![Span::default()]).await;
    *stop.lock() = true;
    writing.await.expect("the writer does not panic");
    let stayed = |entity: &&Entity| entity.keys.row_key == "order" || entity.keys.row_key.starts_with("row ");
    let mut found: Vec<_> =
        all.iter().flat_map(|part| &part.entities).filter(stayed).map(|entity| entity.keys.clone()).collect();
    let mut wanted: Vec<_> = entities().into_iter().map(|entity| entity.keys).collect();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
}
