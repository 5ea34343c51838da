//! What is tried again, when, and what the client says if the effect is not known. A model of the service stands at the
//! other end of the network.

use std::time::Duration;

use super::model::{Fate, Network};
use rangehold_client::{
    Change, Condition, Entity, Error, Exponential, Found, Keys, OutcomeUnknown, Policy, Table,
};

/// A table in the model, and the network to it, on which the next requests have these fates.
async fn table(fates: &[Fate]) -> (Table, std::sync::Arc<Network>) {
    table_with(Policy::quick(), fates).await
}

async fn table_with(policy: Policy, fates: &[Fate]) -> (Table, std::sync::Arc<Network>) {
    let network = Network::planned(&[]);
    let table = network.service(1, policy).table("people").expect("it is a name");
    table.create().await.expect("nothing goes wrong yet");
    network.plan(fates);
    (table, network)
}

fn entity(n: i32) -> Entity {
    Entity::new("p", "r").with("N", n)
}

fn unknown(result: Result<impl std::fmt::Debug, Error>) -> OutcomeUnknown {
    match result {
        Err(Error::OutcomeUnknown(unknown)) => *unknown,
        other => panic!("the outcome is not unknown but {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_may_pass_is_tried_again_and_no_other() {
    for status in [408, 429, 500, 502, 503, 504] {
        let (table, network) = table(&[Fate::Refused(status)]).await;
        let before = network.sent().len();
        assert_eq!(table.get("p", "r").await.expect("the second attempt succeeds"), None, "{status}");
        assert_eq!(network.sent().len() - before, 2, "{status}");
    }
    for status in [400, 401, 403, 405, 413, 415, 501, 505] {
        let (table, network) = table(&[Fate::Refused(status)]).await;
        let before = network.sent().len();
        let error = table.get("p", "r").await.expect_err("it is refused");
        assert!(error.has_status(status), "{error}");
        assert_eq!(network.sent().len() - before, 1, "{status}");
    }
    let (table, network) = table(&[Fate::Unsent, Fate::RequestLost, Fate::AnswerLost]).await;
    table.get("p", "r").await.expect("the fourth attempt succeeds");
    assert_eq!(network.sent().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn waits_between_attempts_are_those_of_the_formula() {
    let numbers = Exponential {
        z: Duration::from_secs(10),
        min: Duration::from_secs(3),
        max: Duration::from_secs(100),
    };
    let (table, _) = table_with(Policy::exponential(numbers, 4), &[Fate::Refused(503); 4]).await;
    let begin = tokio::time::Instant::now();
    let error = table.get("p", "r").await.expect_err("all four attempts are refused");
    assert!(error.has_status(503));
    // 3 + 10 (0.8 to 1.2), then three times and seven times that; four requests of 1 to 20 ms each.
    let taken = begin.elapsed().as_secs_f64();
    let sum = |chance| (1..=3).map(|x| numbers.wait(x, chance).as_secs_f64()).sum::<f64>();
    assert!((sum(0.0)..=sum(1.0) + 0.1).contains(&taken), "{taken}");
    assert!((taken - sum(0.5)).abs() > 0.1, "the waits have no chance in them: {taken}");
}

#[tokio::test(start_paused = true)]
async fn none_tries_once_and_a_limit_on_time_ends_the_attempts() {
    let (once, network) = table_with(Policy::none(), &[Fate::Refused(503)]).await;
    assert!(once.get("p", "r").await.expect_err("it is refused").has_status(503));
    assert_eq!(network.sent().len(), 2);
    let policy = Policy::fixed(Duration::from_secs(10), 100).within(Duration::from_secs(35));
    let (patient, network) = table_with(policy, &[Fate::Refused(503); 100]).await;
    assert!(patient.get("p", "r").await.expect_err("it is refused").has_status(503));
    assert_eq!(network.sent().len(), 1 + 4);
}

#[tokio::test(start_paused = true)]
async fn a_retried_insert_is_recognised_by_its_token_alone() {
    for fate in [Fate::AnswerLost, Fate::Twice, Fate::DoneAndRefused(500), Fate::DoneAndRefused(504)] {
        let (plain, _) = table(&[fate]).await;
        let marked = plain.clone().with_token("Token");
        let version = marked.insert(entity(1)).await.expect("the token is there");
        let found = marked.get("p", "r").await.expect("it can be read").expect("it is there");
        assert_eq!(version, found.etag, "{fate:?}");
        assert!(found.text("Token").is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_token_the_error_shows_what_is_there() {
    let (table, _) = table(&[Fate::AnswerLost]).await;
    let unknown = unknown(table.insert(entity(7)).await);
    assert_eq!(unknown.attempts, 2);
    assert!(unknown.last.has_status(409));
    let text = unknown.to_string();
    assert!(text.contains("not known") && text.contains("RowKey=\"r\""), "{text}");
    match unknown.found {
        Found::Entity(found) => assert_eq!(found.integer("N"), Some(7)),
        other => panic!("the entity is there: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_entity_of_another_client_is_not_taken_for_our_own() {
    let (plain, network) = table(&[]).await;
    let marked = plain.clone().with_token("Token");
    let other =
        network.service(2, Policy::quick()).table("people").expect("it is a name").with_token("Token");
    other.insert(entity(1)).await.expect("it is new");
    // A plain conflict leaves nothing in doubt, and stays a conflict.
    assert!(marked.insert(entity(1)).await.expect_err("it exists").has_status(409));
    network.plan(&[Fate::RequestLost]);
    let unknown = unknown(marked.insert(entity(1)).await);
    assert!(matches!(unknown.found, Found::Entity(_)));
}

#[tokio::test(start_paused = true)]
async fn a_conditional_update_in_doubt_is_settled_by_its_token_or_not_at_all() {
    let (plain, network) = table(&[]).await;
    let first = plain.insert(entity(1)).await.expect("it is new").expect("a version");
    network.plan(&[Fate::AnswerLost]);
    let unknown = unknown(plain.merge(entity(2), Condition::from(&first)).await);
    assert!(unknown.last.has_status(412));

    let marked = plain.clone().with_token("Token");
    let now =
        plain.get("p", "r").await.expect("it can be read").expect("it is there").etag.expect("a version");
    network.plan(&[Fate::AnswerLost]);
    let version = marked.replace(entity(3), Condition::from(&now)).await.expect("the token is there");
    let found = plain.get("p", "r").await.expect("it can be read").expect("it is there");
    assert_eq!((version, found.integer("N")), (found.etag.clone(), Some(3)));

    // A lost request changes nothing, and the second attempt is the only one.
    let now = found.etag.expect("a version");
    network.plan(&[Fate::RequestLost]);
    plain.merge(entity(4), Condition::from(&now)).await.expect("the version is still right");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_in_doubt_is_said_to_be_unknown() {
    let (table, network) = table(&[]).await;
    table.insert(entity(1)).await.expect("it is new");
    network.plan(&[Fate::AnswerLost]);
    let unknown = unknown(table.remove(Keys::new("p", "r"), Condition::Any).await);
    assert!(unknown.last.has_status(404));
    assert!(matches!(unknown.found, Found::Nothing));
    assert!(table.remove(Keys::new("p", "r"), Condition::Any).await.expect_err("it is gone").has_status(404));
}

fn two() -> Vec<Change> {
    vec![
        Change::Delete(Keys::new("p", "old"), Condition::Any),
        Change::Insert(Entity::new("p", "new").with("N", 1)),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_busy_answer_inside_of_a_batch_is_tried_again() {
    for fate in [Fate::Refused(503), Fate::Refused(500), Fate::Unsent, Fate::RequestLost] {
        let (table, network) = table(&[]).await;
        table.insert(Entity::new("p", "old")).await.expect("it is new");
        network.plan(&[fate]);
        let before = network.sent().len();
        table.batch(two()).await.unwrap_or_else(|error| panic!("{fate:?}: {error}"));
        assert_eq!(network.sent().len() - before, 2, "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_in_doubt_is_settled_by_one_token() {
    for fate in [Fate::AnswerLost, Fate::DoneAndRefused(500), Fate::DoneAndRefused(503)] {
        let (plain, network) = table(&[]).await;
        plain.insert(Entity::new("p", "old")).await.expect("it is new");
        network.plan(&[fate]);
        let versions = plain.clone().with_token("Token").batch(two()).await;
        let versions = versions.unwrap_or_else(|error| panic!("{fate:?}: {error}"));
        assert_eq!(versions.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);

        plain.insert(Entity::new("p", "old")).await.expect("the batch removed it");
        plain.remove(Keys::new("p", "new"), Condition::Any).await.expect("the batch made it");
        network.plan(&[fate]);
        let unknown = unknown(plain.batch(two()).await);
        assert!(unknown.last.has_status(404), "the first change finds nothing any more");
        assert!(matches!(unknown.found, Found::Nothing));
    }
}

#[tokio::test(start_paused = true)]
async fn a_table_that_was_made_in_doubt_is_there() {
    let (table, network) = table(&[]).await;
    let other = network.service(1, Policy::quick()).table("others").expect("it is a name");
    network.plan(&[Fate::AnswerLost]);
    let unknown = unknown(other.create().await);
    assert!(matches!(unknown.found, Found::Table));
    let third = network.service(1, Policy::quick()).table("third").expect("it is a name");
    network.plan(&[Fate::AnswerLost]);
    third.create_if_absent().await.expect("it is there, however that came");
    drop(table);
}
