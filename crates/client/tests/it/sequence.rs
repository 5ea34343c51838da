//! Sequences over a model of the service, with and without faults between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::model::{Fate, Network};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_client::limits::SEQUENCE_KNOWN_FOR;
use rangehold_client::sequence::{Sequence, SequenceError, SequenceOptions, StrictSequence, Width};
use rangehold_client::{Condition, Entity, Error, Policy, Service, Value};
use tokio::time::Instant;

const SCOPE: &str = "orders";
const NAME: &str = "invoice";

async fn plain(service: &Service) -> Sequence {
    Sequence::open(service, SCOPE, NAME, SequenceOptions::default()).await.expect("the table can be made")
}

async fn strict(service: &Service) -> StrictSequence {
    StrictSequence::open(service, SCOPE, NAME, SequenceOptions::default())
        .await
        .expect("the table can be made")
}

async fn value(service: &Service) -> Option<Value> {
    let table = service.table("identities").expect("it is a name");
    table.get(SCOPE, NAME).await.expect("it can be read").and_then(|entity| entity.get("Value").cloned())
}

async fn set(service: &Service, value: Value) {
    let table = service.table("identities").expect("it is a name");
    table.create_if_absent().await.expect("it can be made");
    table
        .insert_or_replace(Entity::new(SCOPE, NAME).with("Value", value))
        .await
        .expect("it has no condition");
}

#[tokio::test(start_paused = true)]
async fn the_layout_is_that_of_the_article() {
    let network = Network::planned(&[]);
    let service = network.service(1, Policy::quick());
    let sequence = plain(&service).await;
    assert_eq!(value(&service).await, None);
    assert_eq!(sequence.next().await.expect("it is the first"), 1);
    assert_eq!(sequence.next().await.expect("it is the second"), 2);
    assert_eq!(value(&service).await, Some(Value::Int32(2)));
    set(&service, Value::Int64(41)).await;
    assert_eq!(sequence.next().await.expect("an Int64 goes on too"), 42);
    assert_eq!(value(&service).await, Some(Value::Int64(42)));
}

#[tokio::test(start_paused = true)]
async fn callers_of_one_process_share_a_merge_and_are_served_in_their_order() {
    let network = Network::planned(&[]);
    let sequence = plain(&network.service(1, Policy::quick())).await;
    let callers: Vec<_> = (0..64)
        .map(|_| {
            let sequence = sequence.clone();
            tokio::spawn(async move { sequence.next().await.expect("there is a number") })
        })
        .collect();
    let mut numbers = Vec::new();
    for caller in callers {
        numbers.push(caller.await.expect("it does not panic"));
    }
    assert_eq!(numbers, (1..=64).collect::<Vec<i64>>());
    let counts = sequence.counts();
    assert_eq!((counts.numbers, counts.conflicts), (64, 0));
    assert!(counts.rounds <= 2, "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_block_is_reserved_by_one_merge() {
    let network = Network::planned(&[]);
    let service = network.service(1, Policy::quick());
    let options = SequenceOptions { block: 100, width: Width::Int64, ..SequenceOptions::default() };
    let sequence = Sequence::open(&service, SCOPE, NAME, options).await.expect("the table can be made");
    for wanted in 1..=150 {
        assert_eq!(sequence.next().await.expect("there is a number"), wanted);
    }
    assert_eq!(sequence.counts().rounds, 2);
    assert_eq!(value(&service).await, Some(Value::Int64(200)));
}

#[tokio::test(start_paused = true)]
async fn only_a_round_that_follows_at_once_does_not_read() {
    let network = Network::planned(&[]);
    let service = network.service(1, Policy::none());
    let (sequence, other) = (plain(&service).await, plain(&network.service(2, Policy::none())).await);
    let requests = async |sequence: &Sequence, wanted: i32| {
        let before = network.sent().len();
        assert_eq!(sequence.next().await.expect("there is a number"), i64::from(wanted));
        network.sent()[before..]
            .iter()
            .map(|sent| sent.split(' ').next().unwrap_or_default().to_owned())
            .collect()
    };
    let asked: Vec<String> = requests(&sequence, 1).await;
    assert_eq!(asked, ["GET", "POST"], "nothing is known at first");
    let asked: Vec<String> = requests(&sequence, 2).await;
    assert_eq!(asked, ["PATCH"], "the next round follows at once");
    let asked: Vec<String> = requests(&other, 3).await;
    assert_eq!(asked, ["GET", "PATCH"], "another client knows nothing of it");
    let asked: Vec<String> = requests(&other, 4).await;
    assert_eq!(asked, ["PATCH"]);
    tokio::time::sleep(SEQUENCE_KNOWN_FOR).await;
    let asked: Vec<String> = requests(&sequence, 5).await;
    assert_eq!(asked, ["GET", "PATCH"], "what is known is too old");
    assert_eq!(other.counts().conflicts + sequence.counts().conflicts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_round_that_knew_too_little_is_tried_again_without_a_wait() {
    let network = Network::planned(&[]);
    let service = network.service(1, Policy::none());
    let sequence = plain(&service).await;
    assert_eq!(sequence.next().await.expect("it is the first"), 1);
    network.plan(&[Fate::Refused(412)]);
    let before = network.sent().len();
    assert_eq!(sequence.next().await.expect("it is the second"), 2);
    assert_eq!(network.sent().len() - before, 3, "the merge that was refused, a read and a merge");
    assert_eq!(sequence.counts().conflicts, 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_number_is_followed_by_an_error_and_a_wrong_entity_is_named() {
    let network = Network::planned(&[]);
    let service = network.service(1, Policy::quick());
    let sequence = plain(&service).await;
    set(&service, Value::Int32(i32::MAX - 1)).await;
    assert_eq!(sequence.next().await.expect("one is left"), i64::from(i32::MAX));
    let error = sequence.next().await.expect_err("none is left");
    assert!(error.to_string().contains("2147483647"), "{error}");
    set(&service, Value::from("five")).await;
    let error = sequence.next().await.expect_err("it is not a number");
    assert!(error.to_string().contains("five"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn too_many_conflicts_end_in_an_error_with_advice() {
    let network = Network::planned(&[]);
    let options = SequenceOptions { tries: 3, ..SequenceOptions::default() };
    let service = network.service(1, Policy::none());
    let sequence = Sequence::open(&service, SCOPE, NAME, options).await.expect("the table can be made");
    network.plan(&[Fate::Fine, Fate::Refused(412)].repeat(3));
    match sequence.next().await {
        Err(error @ SequenceError::Contended { tries: 3, conflicts: 3, .. }) => {
            assert!(error.to_string().contains("blocks"), "{error}");
        }
        other => panic!("not contended: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_a_killed_client_is_listed_and_taken_up_once() {
    let network = Network::planned(&[]);
    let first = strict(&network.service(1, Policy::quick())).await;
    let second = strict(&network.service(2, Policy::quick())).await;
    let claim = first.next().await.expect("it is the first");
    let used = first.next().await.expect("it is the second");
    assert_eq!((claim.number(), used.number()), (1, 2));
    used.finish().await.expect("it is ours");

    let open = second.open_claims().await.expect("they can be listed");
    assert_eq!(open.iter().map(|claim| (claim.number, claim.is_free)).collect::<Vec<_>>(), [(1, false)]);
    let taken = second.take_up(open[0].clone()).await.expect("nobody else does");
    assert_eq!(taken.number(), 1);
    assert!(matches!(first.take_up(open[0].clone()).await, Err(SequenceError::Lost { number: 1 })));
    assert!(matches!(claim.finish().await, Err(SequenceError::Lost { number: 1 })));

    taken.give_up().await.expect("it is ours");
    let free = first.open_claims().await.expect("they can be listed");
    assert_eq!(free.iter().map(|claim| (claim.number, claim.is_free)).collect::<Vec<_>>(), [(1, true)]);
    first.take_up(free[0].clone()).await.expect("it is free").finish().await.expect("it is ours");
    assert_eq!(first.open_claims().await.expect("they can be listed"), []);
}

#[tokio::test(start_paused = true)]
async fn a_strict_sequence_finds_the_numbers_of_a_batch_whose_answer_was_lost() {
    let network = Network::planned(&[]);
    // Without retries below it, the sequence itself has to settle the doubt.
    let service = network.service(1, Policy::none());
    let sequence = strict(&service).await;
    for (fates, wanted) in [
        // A read, the batch, and a look that shows nothing of a claim.
        (vec![Fate::Fine, Fate::AnswerLost], 1),
        // The batch arrives after the claim was looked for, and before the same batch is sent again.
        (vec![Fate::Fine, Fate::Late, Fate::Fine, Fate::Fine, Fate::Fine, Fate::Slow], 2),
    ] {
        network.plan(&fates);
        let claim = sequence.next().await.expect("the doubt can be settled");
        assert_eq!(claim.number(), wanted);
        let open = sequence.open_claims().await.expect("they can be listed");
        assert_eq!(open.iter().map(|claim| claim.number).collect::<Vec<_>>(), [wanted]);
        claim.finish().await.expect("it is ours");
    }
    assert_eq!(value(&service).await, Some(Value::Int32(2)));
    assert_eq!(sequence.counts().in_doubt, 2);
}

/// The loop of the article, written as the article has it: `None` if the outcome of the merge is not known.
async fn article(service: &Service) -> Option<i64> {
    let table = service.table("identities").expect("it is a name");
    for _ in 0..50 {
        let Ok(found) = table.get(SCOPE, NAME).await else { continue };
        let result = match found {
            None => table.insert(Entity::new(SCOPE, NAME).with("Value", 1)).await.map(|_| 1),
            Some(entity) => {
                let next = entity.integer("Value")? + 1;
                let version = Condition::from(entity.etag.as_ref()?);
                let entity = Entity::new(SCOPE, NAME).with("Value", i32::try_from(next).ok()?);
                table.merge(entity, version).await.map(|_| next)
            }
        };
        match result {
            Ok(number) => return Some(number),
            Err(error) if error.has_status(409) || error.has_status(412) => continue,
            Err(Error::OutcomeUnknown(_) | Error::Refused(_) | Error::Lost(_)) => return None,
            Err(other) => panic!("{other}"),
        }
    }
    None
}

/// A number that a caller got, and when it asked and was answered.
#[derive(Debug, Clone, Copy)]
struct Got {
    asked: Instant,
    answered: Instant,
    number: i64,
}

/// No number twice, and a call that began after another one had ended has the larger number.
fn check_history(seed: u64, history: &[Got]) {
    let mut numbers = BTreeMap::new();
    for got in history {
        if let Some(other) = numbers.insert(got.number, got) {
            panic!("seed {seed}: {} was given out twice: {got:?}, {other:?}", got.number);
        }
    }
    let mut by_end: Vec<&Got> = history.iter().collect();
    by_end.sort_by_key(|got| got.answered);
    for later in history {
        let before = by_end.iter().take_while(|earlier| earlier.answered < later.asked);
        if let Some(largest) = before.map(|earlier| earlier.number).max() {
            assert!(largest < later.number, "seed {seed}: {later:?} began after {largest} was given out");
        }
    }
}

const SEEDS: u64 = 200;
const PROCESSES: u64 = 3;
const CALLERS: u64 = 3;
const NUMBERS: usize = 4;
/// Calls after which a caller has had so many errors that the sequence must be stuck.
const CALLS_MAX: usize = 500;

type History = Arc<Mutex<Vec<Got>>>;

/// A caller that wants some numbers, and sometimes does not wait for the answer.
async fn caller<F, N>(seed: u64, history: History, next: F)
where
    F: Fn() -> N,
    N: Future<Output = Option<i64>>,
{
    let mut chance = StdRng::seed_from_u64(seed);
    let mut got = 0;
    for call in 0.. {
        if got == NUMBERS {
            break;
        }
        assert!(call < CALLS_MAX, "seed {seed}: only {got} numbers after {call} calls");
        let asked = Instant::now();
        let patience = if chance.random_range(0..8) == 0 {
            Duration::from_millis(60)
        } else {
            Duration::from_secs(3600)
        };
        if let Ok(Some(number)) = tokio::time::timeout(patience, next()).await {
            history.lock().push(Got { asked, answered: Instant::now(), number });
            got += 1;
        }
        tokio::time::sleep(Duration::from_millis(chance.random_range(0..50))).await;
    }
}

async fn all(callers: Vec<tokio::task::JoinHandle<()>>) {
    for caller in callers {
        caller.await.expect("a caller does not panic");
    }
}

#[tokio::test(start_paused = true)]
async fn no_number_comes_twice_under_faults_beside_the_loop_of_the_article() {
    for seed in 0..SEEDS {
        let network = Network::faulty(seed, 20);
        let history = History::default();
        let mut callers = Vec::new();
        for process in 0..PROCESSES {
            let service = network.service(seed * 100 + process, Policy::quick());
            let Ok(sequence) = Sequence::open(&service, SCOPE, NAME, SequenceOptions::default()).await else {
                continue;
            };
            for number in 0..CALLERS {
                let sequence = sequence.clone();
                let next = move || {
                    let sequence = sequence.clone();
                    async move { sequence.next().await.ok() }
                };
                callers.push(tokio::spawn(caller(
                    seed * 1000 + process * 10 + number,
                    history.clone(),
                    next,
                )));
            }
        }
        let service = network.service(seed * 100 + 99, Policy::quick());
        let next = move || {
            let service = service.clone();
            async move { article(&service).await }
        };
        callers.push(tokio::spawn(caller(seed * 1000 + 999, history.clone(), next)));
        all(callers).await;
        check_history(seed, &history.lock());
    }
}

#[tokio::test(start_paused = true)]
async fn a_strict_sequence_leaves_no_number_without_an_owner_or_a_claim_under_faults() {
    for seed in 0..SEEDS {
        let network = Network::faulty(seed, 20);
        let (history, handed) = (History::default(), Arc::new(Mutex::new(BTreeSet::new())));
        let mut callers = Vec::new();
        for process in 0..PROCESSES {
            let service = network.service(seed * 100 + process, Policy::quick());
            let opened = StrictSequence::open(&service, SCOPE, NAME, SequenceOptions::default()).await;
            let Ok(sequence) = opened else { continue };
            for number in 0..CALLERS {
                let (sequence, handed) = (sequence.clone(), handed.clone());
                let next = move || {
                    let (sequence, handed) = (sequence.clone(), handed.clone());
                    async move {
                        let claim = sequence.next().await.ok()?;
                        let number = claim.number();
                        handed.lock().insert(number);
                        // Whether the claim goes or stays, the number is ours.
                        let _stays = claim.finish().await;
                        Some(number)
                    }
                };
                callers.push(tokio::spawn(caller(
                    seed * 1000 + process * 10 + number,
                    history.clone(),
                    next,
                )));
            }
        }
        all(callers).await;
        network.heal();
        // Requests that are still on their way arrive within this time.
        tokio::time::sleep(Duration::from_secs(60)).await;
        check_history(seed, &history.lock());
        let handed = handed.lock().clone();
        check_claims(seed, &network.service(7, Policy::quick()), handed).await;
    }
}

/// Each number up to the value of the counter was handed to a caller, or has a claim.
async fn check_claims(seed: u64, service: &Service, handed: BTreeSet<i64>) {
    let open = strict(service).await.open_claims().await.expect("nothing goes wrong any more");
    let last = match value(service).await {
        Some(Value::Int32(last)) => i64::from(last),
        other => panic!("seed {seed}: the counter is {other:?}"),
    };
    let known: BTreeSet<i64> = handed.into_iter().chain(open.iter().map(|claim| claim.number)).collect();
    assert_eq!(known, (1..=last).collect(), "seed {seed}: numbers with an owner or a claim, and all numbers");
}
