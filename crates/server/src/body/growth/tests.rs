//! The decisions about bodies, on times that the tests hand in.

use proptest::prelude::*;

use super::*;

/// What is shared, in these tests: large bodies may have 56,000 of it, and one account or address 42,000.
const SHARED: usize = 64_000;
/// The largest body.
const RESERVE: usize = 10_000;
const SECOND: Duration = Duration::from_secs(1);

fn sender(account: &str, address: u8) -> Sender {
    Sender { account: account.to_owned(), address: IpAddr::from([10, 0, 0, address]) }
}

fn begin(growth: &mut Growth, account: &str, address: u8) -> BodyId {
    growth.begin(Duration::ZERO, sender(account, address), false)
}

/// Asks for `bytes`; whether the body may go on at once.
fn grows(growth: &mut Growth, id: BodyId, bytes: usize) -> bool {
    growth.ask(Duration::ZERO, id, bytes);
    growth.decide(Duration::ZERO).contains(&id)
}

/// Fills all that large bodies may share, with bodies of four senders.
fn filled() -> (Growth, Vec<BodyId>) {
    let mut growth = Growth::new(SHARED, RESERVE);
    let bodies = (0..4).map(|number| {
        let id = begin(&mut growth, &number.to_string(), number);
        assert!(grows(&mut growth, id, SHARED / 8 * 7 / 4));
        id
    });
    let bodies = bodies.collect();
    (growth, bodies)
}

#[test]
fn only_the_finisher_goes_on_when_the_room_is_short_and_the_next_follows_when_it_is_complete() {
    let (mut growth, bodies) = filled();
    assert!(grows(&mut growth, bodies[1], 4_000), "the first that waits becomes the finisher");
    assert!(!grows(&mut growth, bodies[0], 4_000), "an older one has to wait for the finisher");
    assert!(!grows(&mut growth, bodies[2], 4_000));
    assert!(grows(&mut growth, bodies[1], 4_000));
    growth.complete(bodies[1]);
    assert_eq!(growth.decide(Duration::ZERO), [bodies[0]]);
    assert!(matches!(growth.state(bodies[2]), State::Waits(4_000)));
    growth.end(bodies[1]);
    assert!(growth.decide(Duration::ZERO).contains(&bodies[2]));
}

#[test]
fn an_account_and_an_address_have_three_quarters_at_most_and_others_go_past_them() {
    for (one, other) in [(("a", 1), ("a", 2)), (("a", 1), ("b", 1))] {
        let mut growth = Growth::new(SHARED, RESERVE);
        let first = begin(&mut growth, one.0, one.1);
        assert!(grows(&mut growth, first, 42_000));
        let second = begin(&mut growth, other.0, other.1);
        assert!(grows(&mut growth, second, 1), "as the finisher");
        let third = begin(&mut growth, other.0, other.1);
        assert!(!grows(&mut growth, third, 1));
        let stranger = begin(&mut growth, "c", 3);
        assert!(grows(&mut growth, stranger, 10_000));
    }
}

#[test]
fn a_young_body_does_not_take_the_rest_of_a_share_for_which_an_older_one_waits() {
    let mut growth = Growth::new(SHARED, RESERVE);
    let bodies: Vec<BodyId> = (0..4).map(|_| begin(&mut growth, "a", 1)).collect();
    assert!(grows(&mut growth, bodies[0], 41_000));
    assert!(grows(&mut growth, bodies[1], 2_000), "as the finisher, above the share");
    growth.end(bodies[0]);
    let filler = begin(&mut growth, "a", 1);
    assert!(grows(&mut growth, filler, 39_000));
    assert!(!grows(&mut growth, bodies[2], 2_000), "1,000 are left");
    assert!(!grows(&mut growth, bodies[3], 500), "and an older body waits for them");
}

#[test]
fn a_small_body_does_not_stand_in_line() {
    let (mut growth, bodies) = filled();
    assert!(grows(&mut growth, bodies[0], 1), "as the finisher");
    assert!(!grows(&mut growth, bodies[1], 1));
    let large = begin(&mut growth, "c", 9);
    assert!(!grows(&mut growth, large, 1));
    let small = growth.begin(Duration::ZERO, sender("c", 9), true);
    assert!(grows(&mut growth, small, 1));
}

#[test]
fn a_slow_finisher_is_refused_only_while_others_wait_and_then_the_next_one_finishes() {
    let large = BODY_SMALL_BYTES;
    let mut growth = Growth::new(8 * large, 2 * large);
    let slow = begin(&mut growth, "a", 1);
    assert!(grows(&mut growth, slow, 5 * large));
    assert_eq!(growth.refuse_slow(30 * SECOND), None, "nobody waits");
    let other = begin(&mut growth, "b", 2);
    assert!(grows(&mut growth, other, 2 * large));
    assert!(grows(&mut growth, slow, 1), "as the finisher");
    growth.ask(Duration::ZERO, other, large);
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
fn time_in_the_line_does_not_make_a_body_slow() {
    let large = BODY_SMALL_BYTES;
    let mut growth = Growth::new(8 * large, 2 * large);
    let bodies: Vec<BodyId> = (0..3).map(|number| begin(&mut growth, &number.to_string(), number)).collect();
    assert!(grows(&mut growth, bodies[0], 5 * large) && grows(&mut growth, bodies[1], 2 * large));
    assert!(grows(&mut growth, bodies[0], large), "as the finisher");
    growth.ask(Duration::ZERO, bodies[1], large);
    growth.ask(Duration::ZERO, bodies[2], large);
    assert_eq!(growth.decide(Duration::ZERO), []);
    growth.end(bodies[0]);
    assert_eq!(growth.decide(20 * SECOND), [bodies[1], bodies[2]]);
    growth.ask(20 * SECOND, bodies[2], 8 * large);
    assert_eq!(growth.refuse_slow(20 * SECOND), None, "the others waited for 20 s, and were read for none");
}

proptest! {
    /// Whatever arrives in whatever order: nothing holds more than the room, and as long as requests are answered
    /// every body becomes complete.
    #[test]
    fn every_body_becomes_complete(
        sizes in prop::collection::vec((1..=RESERVE, 0..3_u8, any::<bool>()), 1..60),
        steps in prop::collection::vec((any::<prop::sample::Index>(), 1..4_000_usize), 1..60),
    ) {
        let mut growth = Growth::new(SHARED, RESERVE);
        let mut left: BTreeMap<BodyId, usize> = BTreeMap::new();
        for (size, number, is_small) in sizes {
            left.insert(growth.begin(Duration::ZERO, sender(&number.to_string(), number), is_small), size);
        }
        for (which, chunk) in steps.iter().cycle() {
            let state = |id: &BodyId| growth.state(*id);
            let read: Vec<BodyId> = left.keys().filter(|id| matches!(state(id), State::Read(_))).copied().collect();
            let complete: Vec<BodyId> = left.keys().filter(|id| state(id) == State::Complete).copied().collect();
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
        prop_assert_eq!((growth.held, growth.accounts.len(), growth.addresses.len()), (0, 0, 0));
    }
}
