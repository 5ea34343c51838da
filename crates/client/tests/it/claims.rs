//! Claims that are finished at the same time. The first goes alone, because no other waits yet, and the others go in one batch.

use std::sync::Arc;

use super::model::{Fate, Network};
use futures::future::join_all;
use rangehold_client::Policy;
use rangehold_client::sequence::{Claim, SequenceError, SequenceOptions, StrictSequence};

const SCOPE: &str = "orders";
const NAME: &str = "invoice";
const CLAIMS: i64 = 5;

async fn strict(network: &Arc<Network>, seed: u64) -> StrictSequence {
    // Without retries below it, the sequence itself has to settle each doubt.
    let service = network.service(seed, Policy::none());
    let options = SequenceOptions::default();
    StrictSequence::open(&service, SCOPE, NAME, options).await.expect("the table can be made")
}

async fn claims(sequence: &StrictSequence) -> Vec<Claim> {
    let mut claims = Vec::new();
    for _ in 0..CLAIMS {
        claims.push(sequence.next().await.expect("there is a number"));
    }
    claims
}

async fn open(sequence: &StrictSequence) -> Vec<i64> {
    let open = sequence.open_claims().await.expect("they can be listed");
    open.into_iter().map(|claim| claim.number).collect()
}

#[tokio::test(start_paused = true)]
async fn claims_that_are_finished_at_the_same_time_are_removed_by_two_requests() {
    let network = Network::planned(&[]);
    let sequence = strict(&network, 1).await;
    let claims = claims(&sequence).await;
    let before = network.sent().len();
    let finished = join_all(claims.into_iter().map(Claim::finish)).await;
    assert_eq!(network.sent().len() - before, 2);
    assert!(finished.iter().all(Result::is_ok), "{finished:?}");
    assert_eq!(open(&sequence).await, Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_another_took_up_is_lost_and_the_others_of_its_batch_are_finished() {
    let network = Network::planned(&[]);
    let (first, second) = (strict(&network, 1).await, strict(&network, 2).await);
    let claims = claims(&first).await;
    let left = second.open_claims().await.expect("they can be listed");
    let taken = second.take_up(left[3].clone()).await.expect("nobody else does");
    let finished = join_all(claims.into_iter().map(Claim::finish)).await;
    let lost: Vec<i64> = finished
        .iter()
        .filter_map(|finished| match finished {
            Err(SequenceError::Lost { number }) => Some(*number),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [taken.number()]);
    assert_eq!(finished.iter().filter(|finished| finished.is_ok()).count() as i64, CLAIMS - 1);
    assert_eq!(open(&first).await, [taken.number()]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_taken_up_in_the_same_process_may_meet_its_old_owner_in_a_batch() {
    let network = Network::planned(&[]);
    let sequence = strict(&network, 1).await;
    let mut claims = claims(&sequence).await;
    let left = sequence.open_claims().await.expect("they can be listed");
    claims.push(sequence.take_up(left[3].clone()).await.expect("it is open"));
    let finished = join_all(claims.into_iter().map(Claim::finish)).await;
    let lost = finished.iter().filter(|finished| matches!(finished, Err(SequenceError::Lost { number: 4 })));
    assert_eq!(lost.count(), 1, "{finished:?}");
    assert_eq!(finished.iter().filter(|finished| finished.is_ok()).count() as i64, CLAIMS);
    assert_eq!(open(&sequence).await, Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn claims_are_finished_although_the_answer_to_their_batch_is_lost() {
    for fate in [Fate::AnswerLost, Fate::RequestLost, Fate::Late, Fate::DoneAndRefused(500)] {
        let network = Network::planned(&[]);
        let sequence = strict(&network, 1).await;
        let claims = claims(&sequence).await;
        network.plan(&[Fate::Fine, fate]);
        let finished = join_all(claims.into_iter().map(Claim::finish)).await;
        assert!(finished.iter().all(Result::is_ok), "{fate:?}: {finished:?}");
        assert_eq!(open(&sequence).await, Vec::<i64>::new(), "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_others_are_finished_although_the_caller_that_sent_their_batch_is_dropped() {
    for fate in [Fate::KilledBefore, Fate::KilledAfter] {
        let network = Network::planned(&[]);
        let sequence = strict(&network, 1).await;
        let claims = claims(&sequence).await;
        network.plan(&[Fate::Fine, fate]);
        let mut callers: Vec<_> = claims.into_iter().map(|claim| tokio::spawn(claim.finish())).collect();
        callers.remove(0).await.expect("it does not panic").expect("it went alone");
        // Its request is on its way, and never answered.
        tokio::time::sleep(super::model::SLOW).await;
        callers.remove(0).abort();
        for caller in callers {
            caller.await.expect("it does not panic").expect("it is finished");
        }
        let left = open(&sequence).await;
        assert!(left.is_empty() || left == [2], "{fate:?}: {left:?}");
    }
}
