//! The decisions about bodies, on times that the tests hand in.

use proptest::prelude::*;

use super::*;

/// What is shared, in these tests: one tenant alone may have 49,000 of it.
const SHARED: usize = 64_000;
/// The largest body.
const RESERVE: usize = 10_000;
const SECOND: Duration = Duration::from_secs(1);

fn begin(growth: &mut Growth, account: u64) -> Ticket {
    growth.begin(Duration::ZERO, Tenant { group: account, member: 0 })
}

/// Asks for `bytes`; whether the body may go on at once.
fn grows(growth: &mut Growth, body: Ticket, bytes: usize) -> bool {
    growth.ask(Duration::ZERO, body, bytes);
    growth.decide(Duration::ZERO).contains(&body)
}

#[test]
fn only_the_finisher_goes_on_when_the_room_is_short_and_the_next_follows_when_it_is_complete() {
    let mut growth = Growth::new(SHARED, RESERVE);
    let bodies: Vec<Ticket> = (0..4).map(|_| begin(&mut growth, 1)).collect();
    assert!(grows(&mut growth, bodies[0], 49_000));
    assert!(grows(&mut growth, bodies[1], 4_000), "the first that waits becomes the finisher");
    assert!(!grows(&mut growth, bodies[0], 4_000), "an older one has to wait for the finisher");
    assert!(!grows(&mut growth, bodies[2], 4_000));
    assert!(grows(&mut growth, bodies[1], 4_000));
    growth.complete(bodies[1]);
    assert_eq!(growth.decide(Duration::ZERO), [bodies[0]]);
    assert!(matches!(growth.state(bodies[2]), State::Waits(4_000)));
    growth.complete(bodies[0]);
    assert_eq!(growth.decide(Duration::ZERO), [bodies[2]]);
}

#[test]
fn a_body_of_another_account_goes_past_those_that_wait() {
    let mut growth = Growth::new(SHARED, RESERVE);
    let (large, second, third) = (begin(&mut growth, 1), begin(&mut growth, 1), begin(&mut growth, 1));
    assert!(grows(&mut growth, large, 49_000));
    assert!(grows(&mut growth, second, 1), "as the finisher");
    assert!(!grows(&mut growth, third, 1));
    let stranger = begin(&mut growth, 2);
    assert!(grows(&mut growth, stranger, 10_000));
}

#[test]
fn a_slow_finisher_is_refused_only_while_others_wait_and_then_the_next_one_finishes() {
    let mut growth = Growth::new(SHARED, RESERVE);
    let slow = begin(&mut growth, 1);
    assert!(grows(&mut growth, slow, 49_000));
    assert_eq!(growth.refuse_slow(30 * SECOND), None, "nobody waits");
    assert!(grows(&mut growth, slow, 1), "as the finisher");
    let other = begin(&mut growth, 1);
    growth.ask(Duration::ZERO, other, 4_000);
    assert_eq!(growth.decide(Duration::ZERO), []);
    assert_eq!(growth.refuse_slow(2 * SECOND), None, "a pause of two seconds is allowed");
    assert_eq!(growth.refuse_slow(3 * SECOND), Some(slow), "what it brought before buys no time");
    assert_eq!(growth.state(slow), State::TooSlow);
    growth.ask(3 * SECOND, slow, 1);
    assert_eq!(growth.state(slow), State::TooSlow, "it does not come back");
    growth.end(slow);
    assert_eq!(growth.decide(31 * SECOND), [other]);
}

#[test]
fn a_slow_finisher_is_refused_before_older_slow_bodies_and_its_account_stands_back() {
    let mut growth = Growth::new(SHARED, RESERVE);
    let greedy: Vec<Ticket> = (0..50).map(|_| begin(&mut growth, 1)).collect();
    for body in &greedy {
        assert!(grows(&mut growth, *body, 1_000), "the last one as the finisher");
    }
    assert!(!grows(&mut growth, greedy[0], 5_000));
    let quiet = begin(&mut growth, 2);
    assert!(grows(&mut growth, quiet, 8_000));
    assert!(!grows(&mut growth, quiet, 8_000), "it needs the reserve, which the finisher has");
    assert_eq!(growth.refuse_slow(3 * SECOND), Some(greedy[49]), "all of the greedy ones have stopped");
    growth.end(greedy[49]);
    assert_eq!(
        growth.decide(3 * SECOND),
        [quiet],
        "the other account was served less than this one only without the reserve"
    );
}

#[test]
fn of_slow_bodies_the_one_that_holds_the_most_is_refused() {
    let mut growth = Growth::new(SHARED, RESERVE);
    let slow: Vec<Ticket> = (0..4).map(|_| begin(&mut growth, 1)).collect();
    for (body, bytes) in slow.iter().zip([1, 20_000, 20_000, 1_000]) {
        assert!(grows(&mut growth, *body, bytes));
    }
    let finisher = growth.begin(3 * SECOND, Tenant { group: 1, member: 0 });
    growth.ask(3 * SECOND, finisher, 9_000);
    assert_eq!(growth.decide(3 * SECOND), [finisher]);
    growth.ask(3 * SECOND, slow[0], 9_000);
    assert_eq!(growth.decide(3 * SECOND), []);
    assert_eq!(growth.refuse_slow(4 * SECOND), Some(slow[1]), "the older one of two");
}

#[test]
fn slow_bodies_of_an_account_that_holds_little_are_left_alone() {
    let mut growth = Growth::new(SHARED, RESERVE);
    let quiet = begin(&mut growth, 1);
    assert!(grows(&mut growth, quiet, 100));
    let greedy: Vec<Ticket> = (0..48).map(|_| begin(&mut growth, 2)).collect();
    for body in &greedy {
        assert!(grows(&mut growth, *body, 1_000));
    }
    growth.ask(Duration::ZERO, greedy[0], 5_000);
    let refused = growth.decide(Duration::ZERO);
    assert_eq!(refused, [greedy[0]], "as the finisher");
    growth.ask(Duration::ZERO, greedy[1], 6_000);
    assert_eq!(growth.decide(Duration::ZERO), []);
    assert_eq!(growth.refuse_slow(3 * SECOND), Some(greedy[0]));
    growth.end(greedy[0]);
    assert_eq!(growth.decide(3 * SECOND), [greedy[1]]);
}

#[test]
fn time_in_the_line_does_not_make_a_body_slow() {
    let mut growth = Growth::new(SHARED, RESERVE);
    let bodies: Vec<Ticket> = (0..3).map(|_| begin(&mut growth, 1)).collect();
    assert!(grows(&mut growth, bodies[0], 49_000));
    assert!(grows(&mut growth, bodies[0], 1_000), "as the finisher");
    growth.ask(Duration::ZERO, bodies[1], 1_000);
    growth.ask(Duration::ZERO, bodies[2], 1_000);
    assert_eq!(growth.decide(Duration::ZERO), []);
    growth.end(bodies[0]);
    assert_eq!(growth.decide(20 * SECOND), [bodies[1], bodies[2]]);
    growth.ask(20 * SECOND, bodies[2], SHARED);
    assert_eq!(growth.refuse_slow(20 * SECOND), None, "the others waited for 20 s, and were read for none");
}

proptest! {
    /// Whatever arrives in whatever order: nothing holds more than the room, and as long as requests are answered
    /// every body becomes complete.
    #[test]
    fn every_body_becomes_complete(
        sizes in prop::collection::vec((1..=RESERVE, 0..3_u64, 0..2_u64), 1..60),
        steps in prop::collection::vec((any::<prop::sample::Index>(), 1..4_000_usize), 1..60),
    ) {
        let mut growth = Growth::new(SHARED, RESERVE);
        let mut left: BTreeMap<Ticket, usize> = BTreeMap::new();
        for (size, group, member) in sizes {
            left.insert(growth.begin(Duration::ZERO, Tenant { group, member }), size);
        }
        for (which, chunk) in steps.iter().cycle() {
            let state = |id: &Ticket| growth.state(*id);
            let read: Vec<Ticket> = left.keys().filter(|id| matches!(state(id), State::Read(_))).copied().collect();
            let complete: Vec<Ticket> = left.keys().filter(|id| state(id) == State::Complete).copied().collect();
            // A request is answered now and then, and at the latest when nothing else can happen.
            if !complete.is_empty() && (read.is_empty() || chunk % 5 == 0) {
                let id = complete[which.index(complete.len())];
                growth.end(id);
                left.remove(&id);
            } else if !read.is_empty() {
                let id = read[which.index(read.len())];
                let bytes = left[&id].min(*chunk);
                if bytes == 0 {
                    growth.complete(id);
                } else {
                    growth.ask(Duration::ZERO, id, bytes);
                    left.insert(id, left[&id] - bytes);
                }
            } else {
                prop_assert!(left.is_empty(), "{} bodies wait for each other", left.len());
                break;
            }
            growth.decide(Duration::ZERO);
        }
        prop_assert_eq!(growth.queue.held(), 0);
    }
}
