//! Moves that even out the load of the servers.
//!
//! A server is too busy if its load is above `relieve_from` times the mean. It then gives ranges away until
//! it is at `relieve_to`. The busiest server begins. It gives the least busy server the largest range that
//! *fits*: one with not more load than the giver has to lose, than the taker has room for, and than half the
//! distance between the two. So few ranges move, and the two servers do not change places, which would make
//! the same move worth making backwards.
//!
//! A range that does not fit may still help. If one of two servers has three equal ranges, none fits the
//! *room* of the other, but the first move halves the distance. So if nothing fits, half the distance is the
//! only bound. And if a server has two hot ranges and little else, one of the two goes, provided that its new
//! server ends well below the load that the old one had; the new server can then give its smaller ranges
//! away.
//!
//! After a move the caches are cold. So one tick moves only a small share of all load, `churn`, and more only
//! in an emergency. A range that has moved stays for `cool_down`.
//!
//! *The floor.* A range with more load than a server's fair share cannot be helped by moves. It gets a server
//! to itself, and that is as even as the load can be. Nothing is moved just because the mean cannot be
//! reached, and the report names the range. A service that is not busy does not report it.

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

/// The budget of this plan, without the load that is moving already.
fn churn(draft: &Draft<'_>) -> Churn {
    let policy = draft.policy;
    let share = if draft.balance.emergency { policy.churn_emergency } else { policy.churn };
    let total = draft.fleet.serving().map(|(_, server)| server.load).sum();
    let under_way = draft.under_way.iter().map(|index| &draft.ranges[*index]);
    let moving = under_way.filter(|range| matches!(range.entry.intent, Some(Intent::Move { .. })));
    Churn::new(share, total, moving.map(|range| range.rate).sum())
}

/// The greatest value of `figure` among the servers that serve.
fn most(fleet: &Fleet, figure: fn(&Server) -> f64) -> f64 {
    fleet.serving().map(|(_, server)| figure(server)).fold(0.0, f64::max)
}

/// The share of the largest server that the busiest range alone would use.
fn hottest_alone(fleet: &Fleet) -> f64 {
    most(fleet, |server| server.hottest) / most(fleet, |server| server.capacity)
}

/// Reports the busiest range if it alone has more load than a server's fair share.
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

/// The load from which a server is reported as too busy: well above the mean, and above its hottest range
/// alone.
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
