//! The rules of the queue, on tenants that the tests make up.

use proptest::prelude::*;

use super::*;

fn tenant(group: u64, member: u64) -> Tenant {
    Tenant { group, member }
}

/// Asks for `units`; whether the request gets them at once.
fn gets(queue: &mut Queue, ticket: Ticket, units: usize) -> bool {
    queue.ask(ticket, units);
    std::iter::from_fn(|| queue.next()).any(|served| served == ticket)
}

/// Requests of `tenant` ask for `units` each, until one has to wait. Returns all of them.
fn fill(queue: &mut Queue, tenant: Tenant, units: usize) -> Vec<Ticket> {
    let mut tickets = Vec::new();
    loop {
        let ticket = queue.enter(tenant);
        tickets.push(ticket);
        if !gets(queue, ticket, units) {
            return tickets;
        }
    }
}

#[test]
fn a_lone_tenant_leaves_an_eighth_of_its_group_and_its_group_an_eighth_of_the_room() {
    let mut queue = Queue::for_room(6_400);
    fill(&mut queue, tenant(1, 1), 1);
    assert_eq!(queue.held(), 4_900);
    fill(&mut queue, tenant(1, 2), 10);
    assert!((5_500..=5_600).contains(&queue.held()), "{}", queue.held());
}

#[test]
fn two_tenants_become_equal_when_the_first_gives_back() {
    let mut queue = Queue::for_room(15_000);
    let mut old = fill(&mut queue, tenant(1, 1), 10);
    fill(&mut queue, tenant(2, 1), 10);
    // The old tenant's requests end one by one, and it asks again each time.
    for _ in 0..old.len() {
        queue.leave(old.remove(0));
        let ticket = queue.enter(tenant(1, 1));
        queue.ask(ticket, 10);
        while queue.next().is_some() {}
        old.push(ticket);
        let young = queue.enter(tenant(2, 1));
        queue.ask(young, 10);
        while queue.next().is_some() {}
    }
    let (first, second) = (queue.groups[&1].held, queue.groups[&2].held);
    assert!(first.abs_diff(second) <= 200, "{first} and {second}");
}

#[test]
fn requests_of_one_tenant_are_served_by_age() {
    let mut queue = Queue::for_room(100);
    let first = queue.enter(tenant(1, 1));
    assert!(gets(&mut queue, first, 70));
    let (old, young) = (queue.enter(tenant(1, 1)), queue.enter(tenant(1, 1)));
    assert!(!gets(&mut queue, old, 50));
    assert!(!gets(&mut queue, young, 1), "an older request of its tenant waits");
    queue.leave(first);
    assert_eq!((queue.next(), queue.next()), (Some(old), Some(young)));
}

#[test]
fn nobody_is_passed_where_units_come_back_soon() {
    let mut queue = Queue::for_turns(8);
    let greedy = fill(&mut queue, tenant(1, 1), 3);
    assert_eq!(queue.held(), 6, "two of 3, and a third waits");
    let large = queue.enter(tenant(2, 1));
    assert!(!gets(&mut queue, large, 7));
    let small = queue.enter(tenant(1, 2));
    assert!(!gets(&mut queue, small, 1), "the turn is that of the large one, which was served less");
    queue.leave(greedy[0]);
    assert_eq!(queue.next(), None);
    queue.leave(greedy[1]);
    assert_eq!((queue.next(), queue.next()), (Some(large), Some(small)));
}

/// A client that asks, leaves and comes back has no advantage over one that stays in the line.
#[test]
fn to_leave_and_come_back_gives_no_turns_of_others() {
    let mut queue = Queue::for_turns(1);
    let stays = queue.enter(tenant(1, 1));
    queue.ask(stays, 1);
    let mut comes = queue.enter(tenant(2, 1));
    queue.ask(comes, 1);
    let mut costs = (0, 0);
    for _ in 0..1_000 {
        let ticket = queue.next().expect("both wait");
        if ticket == comes {
            costs.1 += 10;
            queue.charge(comes, 10);
            queue.leave(comes);
            comes = queue.enter(tenant(2, 1));
            queue.ask(comes, 1);
        } else {
            costs.0 += 1;
            queue.charge(stays, 1);
            queue.keep(stays, 0);
            queue.ask(stays, 1);
        }
    }
    assert!(
        costs.1 <= costs.0 * 2,
        "the one that stays had {}, the one that comes back {}",
        costs.0,
        costs.1
    );
}

#[test]
fn tenants_that_left_are_forgotten() {
    let mut queue = Queue::for_room(10);
    let stays = queue.enter(tenant(0, 0));
    for number in 1..5_000 {
        let ticket = queue.enter(tenant(number, 1));
        queue.leave(ticket);
    }
    assert!(queue.members.len() <= REMEMBERED_MAX + 2);
    queue.leave(stays);
    assert_eq!((queue.members.len(), queue.groups.len(), queue.waiting.len()), (0, 0, 0));
}

proptest! {
    /// In whatever order requests come, ask and leave: nothing is given twice, the parts add up to the whole, and as
    /// long as requests leave, each one gets what it asks for.
    #[test]
    fn the_room_is_never_exceeded_and_no_request_waits_without_end(
        asks in prop::collection::vec((0..4_u64, 0..3_u64, 1..=100_usize), 1..80),
        leaving in prop::collection::vec(any::<prop::sample::Index>(), 80),
    ) {
        let mut queue = Queue::for_room(100);
        let (mut waiting, mut held) = (asks.len(), Vec::new());
        for (group, member, units) in asks {
            let ticket = queue.enter(tenant(group, member));
            queue.ask(ticket, units);
        }
        for which in leaving.iter().cycle() {
            while let Some(ticket) = queue.next() {
                waiting -= 1;
                held.push(ticket);
            }
            prop_assert!(queue.held() <= 100);
            prop_assert_eq!(queue.held(), queue.groups.values().map(|group| group.held).sum::<usize>());
            prop_assert_eq!(queue.held(), queue.requests.values().map(|request| request.held).sum::<usize>());
            if held.is_empty() {
                break;
            }
            queue.leave(held.swap_remove(which.index(held.len())));
        }
        prop_assert_eq!(waiting, 0);
    }

    /// Two groups take all that they can get, and keep it. A third one still gets something at once, and so does
    /// another tenant in one of the greedy groups.
    #[test]
    fn a_newcomer_gets_something_while_others_keep_what_they_have(
        units in prop::collection::vec(1..2_000_usize, 2),
    ) {
        let mut queue = Queue::for_room(1 << 20);
        for (group, units) in [(1, units[0]), (2, units[1])] {
            fill(&mut queue, tenant(group, 1), units);
        }
        let quiet = queue.enter(tenant(3, 1));
        prop_assert!(gets(&mut queue, quiet, 1_000));
        let neighbour = queue.enter(tenant(1, 2));
        prop_assert!(queue.groups[&1].held > (1 << 18) && gets(&mut queue, neighbour, 1_000));
    }

    /// While tenants wait, none is served more than the others: turns may cost what they like.
    #[test]
    fn no_tenant_is_above_its_share_while_another_waits(
        costs in prop::collection::vec(1..=50_u64, 6),
        turns in 1..4_usize,
    ) {
        let mut queue = Queue::for_turns(turns);
        let tenants = [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2)];
        let mut cost = BTreeMap::new();
        for ((group, member), its_cost) in tenants.into_iter().zip(costs) {
            // More than there are turns, so that each tenant always has one that waits.
            for _ in 0..4 {
                let ticket = queue.enter(tenant(group, member));
                queue.ask(ticket, 1);
                cost.insert(ticket, its_cost);
            }
        }
        let mut running = Vec::new();
        for _ in 0..300 {
            running.extend(std::iter::from_fn(|| queue.next()));
            prop_assert_eq!(running.len(), turns, "a turn is left over while others wait");
            let ticket = running.remove(0);
            queue.charge(ticket, cost[&ticket]);
            queue.keep(ticket, 0);
            queue.ask(ticket, 1);
        }
        let apart = |served: Vec<u64>| served.iter().max().zip(served.iter().min()).map_or(0, |(a, b)| a - b);
        // What is under way is charged at its end.
        let slack = 51 * turns as u64;
        prop_assert!(apart(queue.groups.values().map(|group| group.served).collect()) <= slack);
        for group in [1, 3] {
            let members = queue.members.iter().filter(|(tenant, _)| tenant.group == group);
            prop_assert!(apart(members.map(|(_, member)| member.served).collect()) <= slack);
        }
    }
}
