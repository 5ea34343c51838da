//! Moves that even out the load of the servers.
//!
//! A server is too busy when it is `relieve_from` times as busy as the mean; then it gives ranges
//! away until it is at `relieve_to`. The busiest server goes first and gives the least busy one the
//! largest range that fits: what it has to lose and what the other has room for. So the fewest
//! ranges move. Nor is it larger than half the distance between the two: so they cannot change
//! places, and the same move is not worth making backwards.
//!
//! What does not fit may still help: of three equal ranges on one of two servers none fits the
//! *room* of the other, and the first one halves the distance. So where nothing fits, half the
//! distance alone is the bound. And where a server has two hot ranges and otherwise next to nothing, one of
//! the two goes if the server that gets it ends well below where the other was: it can then give
//! its lesser ranges away.
//!
//! Load that moves is load whose caches are cold, so a tick moves a small share of it, `churn`, and
//! more only in an emergency. A range that moved stays for `cool_down`.
//!
//! *The floor.* A range that alone is more than a fair share cannot be helped by moves. It gets its
//! server to itself, which is as even as it can be; then nothing is moved just because the mean is out
//! of reach, and the report says which range it is. Where nothing would move anyway it says nothing: of
//! a service with one request a minute one range has all, and that is in nobody's way.

mod donor;
mod trade;

use super::Balance;
use super::draft::{Churn, Draft};
use super::fleet::{Fleet, Server};
use super::policy::Policy;
use super::report::{NoSplit, Reported};
use crate::range_map::Intent;

pub(super) fn balance(draft: &mut Draft<'_>) {
    let (mean, max) = (draft.fleet.mean(), draft.fleet.max());
    draft.balance = Balance { mean, max, max_after: max, floor: 0.0, emergency: false };
    if mean <= 0.0 {
        return;
    }
    draft.balance.floor = hottest_alone(&draft.fleet);
    if max < draft.policy.calm_utilisation {
        if max > mean * draft.policy.relieve_from {
            draft.report.say(Reported::Calm { utilisation: max, from: draft.policy.calm_utilisation });
        }
        return;
    }
    report_floor(draft, mean);
    draft.balance.emergency = is_emergency(&draft.fleet, draft.policy, mean);
    draft.churn = churn(draft);
    let donors = donor::donors(draft, mean);
    let traded = trade::trade(draft, donors, mean);
    draft.churn = traded.churn;
    for chosen in traded.moves {
        draft.move_range(chosen.range, chosen.to);
        draft.report.say(chosen.line);
    }
    for line in traded.stuck {
        draft.report.say(line);
    }
    draft.balance.max_after = draft.fleet.max();
}

/// The budget of this plan, less the load that is moving already.
fn churn(draft: &Draft<'_>) -> Churn {
    let policy = draft.policy;
    let share = if draft.balance.emergency { policy.churn_emergency } else { policy.churn };
    let total = draft.fleet.serving().map(|(_, server)| server.load).sum();
    let under_way = draft.under_way.iter().map(|index| &draft.ranges[*index]);
    let moving = under_way.filter(|range| matches!(range.entry.intent, Some(Intent::Move { .. })));
    Churn::new(share, total, moving.map(|range| range.rate).sum())
}

/// The greatest of a figure over the servers that serve.
fn most(fleet: &Fleet, figure: fn(&Server) -> f64) -> f64 {
    fleet.serving().map(|(_, server)| figure(server)).fold(0.0, f64::max)
}

/// What the busiest range alone uses of the largest server.
fn hottest_alone(fleet: &Fleet) -> f64 {
    most(fleet, |server| server.hottest) / most(fleet, |server| server.capacity)
}

/// Says so if one range alone is more than a server's fair share.
fn report_floor(draft: &mut Draft<'_>, mean: f64) {
    let floor = draft.balance.floor;
    if floor <= mean * draft.policy.relieve_from {
        return;
    }
    let rate = most(&draft.fleet, |server| server.hottest);
    let largest = most(&draft.fleet, |server| server.capacity);
    let Some(range) = draft.ranges.iter().find(|range| range.rate == rate && range.server().is_some()) else {
        return;
    };
    let why = range.seen.and_then(|seen| seen.cause.as_deref()).and_then(NoSplit::of);
    let range = range.entry.id;
    draft.report.say(Reported::Floor { range, rate, mean: mean * largest, floor: floor / mean, why });
}

/// The load at which a server is worth a word: well above the mean, and above its hottest range alone.
fn too_busy(server: &Server, policy: &Policy, mean: f64) -> f64 {
    let spread = policy.relieve_from / policy.relieve_to;
    (mean * server.capacity * policy.relieve_from).max(server.hottest * spread)
}

fn is_emergency(fleet: &Fleet, policy: &Policy, mean: f64) -> bool {
    fleet.serving().any(|(_, server)| {
        let used = server.utilisation();
        let grave = used > mean * policy.emergency_over_mean || used > policy.emergency_utilisation;
        grave && server.load > too_busy(server, policy, mean)
    })
}
