//! Front ends that hear no news of the map for an hour, while load drifts and ranges move.
//!
//! Each request goes to the server that the front end's own map names, and the server says by the ranges that
//! it holds whether the key is one of them. After a refusal the front end reads the map and asks once
//! more; the router of the service would go on for a while, but what is refused twice is an error here. Two
//! such front ends are run:
//!
//! * one that *works* all through its hour. It keeps the map that it read after a refusal, so that it goes
//!   wrong about once for each plan that moved something. Its share of wrong first tries is what is asked
//!   for: were all front ends as deaf, it would be that of the service;
//! * one that *slept*: it asks by a map of an hour ago and forgets each map that it reads, so that nothing
//!   saves it from the next wrong try. All its requests are to be answered nevertheless.
//!
//! For front ends that do hear news, the share that is misrouted while the news travels is calculated.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_map::RangeMap;

use crate::balance::demand::Place;
use crate::balance::keys::Rows;
use crate::balance::outcome::{Outcome, percent};
use crate::balance::scenario::TWO_HOURS;
use crate::balance::world::World;

/// How long no news comes.
const DEAF: f64 = 3_600.0;
/// Front ends that share the requests of the service.
const FRONT_ENDS: f64 = 100.0;
/// Requests of one front end that are under way together, and so were routed by one map.
const IN_FLIGHT: usize = 64;
/// Requests of the front end that slept.
const REQUESTS: usize = 1_000_000;
/// How long it takes until a front end that hears news knows of a change.
const HEARD_AFTER: f64 = 1.0;
/// The greatest share of requests that may go to a wrong server first.
const MISROUTED_MAX: f64 = 4e-5;

/// See the module.
pub(super) struct OldMaps {
    works: Option<FrontEnd>,
    slept: Option<FrontEnd>,
    dice: StdRng,
}

/// A front end with a map of its own, and the results of its requests.
struct FrontEnd {
    map: RangeMap,
    rows: Rows,
    asked: f64,
    /// First tries that went to a server that does not hold the key; each is asked again once.
    misrouted: usize,
    /// Requests that were refused again.
    errors: usize,
}

impl OldMaps {
    pub(super) fn new() -> Self {
        Self { works: None, slept: None, dice: StdRng::seed_from_u64(23) }
    }

    /// Lets the front end that works send its requests until the next step, once the deaf hour has begun.
    pub(super) fn step(&mut self, world: &World) {
        if world.now < TWO_HOURS - DEAF {
            return;
        }
        self.slept.get_or_insert_with(|| FrontEnd::new(world));
        let works = self.works.get_or_insert_with(|| FrontEnd::new(world));
        works.work(world, &mut self.dice);
    }

    /// What was seen in the hour, and then the requests of the front end that slept until now.
    pub(super) fn conclude(mut self, outcome: &mut Outcome, world: &World) {
        let works = self.works.take().expect("the run is longer than the deaf hour");
        let mut slept = self.slept.take().expect("the run is longer than the deaf hour");
        for _ in 0..REQUESTS {
            let place = world.demand.place_of(self.dice.random());
            slept.ask(world, [place], &world.map);
        }
        works.worked(outcome, world);
        slept.woke(outcome);
    }
}

impl FrontEnd {
    fn new(world: &World) -> Self {
        Self { map: world.map.clone(), rows: Rows::new(), asked: 0.0, misrouted: 0, errors: 0 }
    }

    /// Sends its share of the requests of one step. With the current map no request goes wrong, so requests that
    /// follow a refusal are only counted and not drawn.
    fn work(&mut self, world: &World, dice: &mut StdRng) {
        let all = world.demand.whole() * world.setting.step / FRONT_ENDS;
        let before = self.asked;
        while self.map.version() != world.map.version() && self.asked - before < all {
            let places: [Place; IN_FLIGHT] = std::array::from_fn(|_| world.demand.place_of(dice.random()));
            if self.ask(world, places, &world.map) > 0 {
                self.map = world.map.clone();
            }
        }
        self.asked = before + all;
    }

    /// Asks for places, all by the map it has, and once more by the map `read` where that was wrong. Returns
    /// how often it was.
    fn ask<const COUNT: usize>(&mut self, world: &World, places: [Place; COUNT], read: &RangeMap) -> usize {
        let mut wrong = 0;
        for place in places {
            let key = self.rows.key(place);
            if holds(world, &self.map, key, place) {
                continue;
            }
            wrong += 1;
            self.errors += usize::from(!holds(world, read, key, place));
        }
        self.asked += COUNT as f64;
        self.misrouted += wrong;
        wrong
    }

    fn worked(&self, outcome: &mut Outcome, world: &World) {
        let share = self.misrouted as f64 / self.asked;
        // Requests to a range go wrong from its change until the news of it.
        let trace = &world.trace;
        let travelling = trace.churn.iter().sum::<f64>() * HEARD_AFTER / trace.totals.0;
        outcome.ask(
            "no news for an hour: misrouted < 0.004 %, errors 0",
            self.misrouted > 0 && share.max(travelling) < MISROUTED_MAX && self.errors == 0,
            format!(
                "{} of {:.0} million, {} errors; of those who hear news {}; {} moves under drift",
                self.misrouted,
                self.asked / 1e6,
                self.errors,
                percent(travelling),
                trace.moves
            ),
        );
    }

    fn woke(&self, outcome: &mut Outcome) {
        let (retried, errors) = (percent(self.misrouted as f64 / self.asked), self.errors);
        outcome.ask(
            "by a map of an hour ago: every request is answered, after one retry at most",
            self.misrouted > 0 && errors == 0,
            format!("{retried} of {REQUESTS} needed the retry, {errors} errors"),
        );
    }
}

/// Whether the server that a map names for a key holds it.
fn holds(world: &World, map: &RangeMap, key: &[u8], place: Place) -> bool {
    map.lookup(key).is_some_and(|entry| world.holds(entry.place.server, place))
}
