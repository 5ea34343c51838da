//! Moves that even out the load of the servers.
//!
//! A server is too busy when it is `relieve_from` times as busy as the mean; then it gives ranges
//! away until it is at `relieve_to`. The busiest server goes first and gives the least busy one the
//! largest range that fits: what it has to lose and what the other has room for. So the fewest
//! ranges move. Whatever fits, a range is never larger than half the distance between the two:
//! they cannot change places, and the same move is never worth making backwards.
//!
//! What does not fit may still help: of three equal ranges on one of two servers none fits the
//! *room* of the other, and the first one halves the distance. So where nothing fits, half the
//! distance alone is the bound.
//!
//! Load that moves is load whose caches are cold, so a tick moves a small share of it, `churn`, and
//! more only in an emergency. A range that moved stays for `cool_down`.
//!
//! *The floor.* A range that alone is more than a fair share cannot be helped by moves. It counts as
//! what its server has at least: nothing is moved away from beside it just because the mean is out of
//! reach, and the report says which range it is.

mod donor;
mod trade;

use std::cmp::Reverse;

use super::Balance;
use super::draft::{Churn, Draft, View};
use super::fleet::{Fleet, Level, Server};
use super::policy::Policy;
use super::report::{NoSplit, Reported};
use crate::range_map::Intent;

pub(super) fn balance(draft: &mut Draft<'_>) {
    let (mean, max) = (draft.fleet.mean(), draft.fleet.max());
    draft.balance = Balance { mean, max, max_after: max, floor: 0.0, emergency: false };
    if mean <= 0.0 {
        return;
    }
    report_floor(draft, mean);
    if max < draft.policy.calm_utilisation {
        if max > mean * draft.policy.relieve_from {
            draft.report.say(Reported::Calm { utilisation: max, from: draft.policy.calm_utilisation });
        }
        return;
    }
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
    let moving = |range: &&View<'_>| matches!(range.entry.intent, Some(Intent::Move { .. }));
    Churn::new(share, total, draft.ranges.iter().filter(moving).map(|range| range.rate).sum())
}

/// Says so if one range alone is more than a server's fair share.
fn report_floor(draft: &mut Draft<'_>, mean: f64) {
    let hottest = (draft.ranges.iter())
        .filter(|range| range.server.is_some_and(|server| draft.fleet.serves(server)))
        .max_by_key(|range| (Level(range.rate), Reverse(range.entry.id)));
    let largest = draft.fleet.serving().map(|(_, server)| server.capacity).fold(0.0, f64::max);
    let Some(range) = hottest.filter(|_| largest > 0.0) else {
        return;
    };
    let floor = range.rate / largest;
    draft.balance.floor = floor;
    if floor > mean * draft.policy.relieve_from {
        let why = range.seen.and_then(|seen| seen.cause.as_deref()).and_then(NoSplit::of);
        let (range, rate) = (range.entry.id, range.rate);
        draft.report.say(Reported::Floor { range, rate, mean: mean * largest, floor: floor / mean, why });
    }
}

/// The load at which a server is too busy: well above the mean, and above its hottest range alone.
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
