//! A range whose requests bring down any server that has it, four seconds after the server begins to serve it.
//!
//! Asked for: at most two servers are lost; then this range is offline, and no other range is.

use std::collections::BTreeSet;

use super::{RANGES, TWO_HOURS, even};
use crate::balance::demand::{CELL, Demand};
use crate::balance::outcome::Outcome;
use crate::balance::world::{Setting, World};

const POISON: u64 = 777 * CELL;
const BEGINS: f64 = 600.0;
const KILLS_AFTER: f64 = 4.0;
const BACK_AFTER: f64 = 60.0;

pub(super) fn run(outcome: &mut Outcome) {
    let mut world = World::new(Setting::fast(14), Demand::new(&even(RANGES, 50.0, 15), 1));
    let mut lost = BTreeSet::new();
    let mut served_since = BEGINS;
    world.run(TWO_HOURS, |world| {
        let range = world.range_at(POISON);
        let server = world.flows[range].server as usize;
        let serves = world.servers[server].alive && f64::from(world.flows[range].opens) <= world.now;
        if !serves || !world.map.entries()[range].online || world.now < BEGINS {
            served_since = world.now;
        } else if world.now - served_since >= KILLS_AFTER {
            world.kill(server);
            lost.insert(server);
        }
        for server in 0..world.servers.len() {
            let state = &world.servers[server];
            if !state.alive && world.now >= state.died + BACK_AFTER {
                world.start(server);
            }
        }
    });
    let offline: Vec<_> =
        world.map.entries().iter().filter(|entry| !entry.online).map(|entry| entry.id).collect();
    let named = offline == [world.map.entries()[world.range_at(POISON)].id];
    let right = if named { ", the right one" } else { "" };
    outcome.ask(
        "at most 2 servers lost, then that range is offline and no other",
        lost.len() <= 2 && named,
        format!("{} servers lost; {} ranges offline{right}", lost.len(), offline.len()),
    );
}
