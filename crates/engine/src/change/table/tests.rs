//! Stories of changes as golden scripts, and all states that processes can reach together.
//!
//! `RANGEHOLD_BLESS=1 cargo nextest run -p rangehold-engine table` writes what the scripts say now into their files;
//! read the difference before you commit it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rangehold_map::script::golden;

use super::model::{How, Index, MapIs, NAMES, Serves, World};
use super::*;

/// Runs one command of a script; returns what it says.
///
/// | command | what happens |
/// |---|---|
/// | `begin` | a new world: `a` is to make a change, `b` and `c` know of it |
/// | `a walks`, `a walks 3` | `a` does one step, or three |
/// | `a walks to the end` | all that are left |
/// | `a fails` | its next step is not done |
/// | `a fails unheard` | its next step is done, and `a` hears that it failed |
/// | `a dies` | |
/// | `a opens the parents` | because the map says that the change is undone |
/// | `the lease is lost` | the server's |
/// | `retired for another change`, `that counts`, `that is undone` | the parents |
/// | `the store` | says what is there |
fn run(world: &mut World, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let who = words.first().and_then(|word| NAMES.iter().position(|name| name == word));
    match (who, &words[who.map_or(0, |_| 1)..]) {
        (None, ["begin"]) => *world = World::new(),
        (None, ["the", "store"]) => return world.tell(),
        (None, ["the", "lease", "is", "lost"]) => world.has_lease = false,
        (None, ["retired", "for", "another", "change", "that", how @ ..]) => {
            world.other = Some(how == ["counts"])
        }
        (Some(who), ["dies"]) => world.kill(who),
        (Some(who), ["opens", "the", "parents"]) => world.assign_parents(who),
        (Some(who), ["walks", "to", "the", "end"]) => {
            return world.go_on(who).into_iter().map(|(act, saw)| said(who, act, saw)).collect();
        }
        (Some(who), ["walks", steps @ ..]) => {
            let steps = steps.first().map_or(1, |steps| steps.parse().expect("a number of steps"));
            return (0..steps).map(|_| stepped(world, who, How::Works)).collect();
        }
        (Some(who), ["fails"]) => return stepped(world, who, How::Fails),
        (Some(who), ["fails", "unheard"]) => return stepped(world, who, How::FailsUnheard),
        _ => panic!("there is no command {command:?}"),
    }
    String::new()
}

fn stepped(world: &mut World, who: Index, how: How) -> String {
    let (act, saw) = world.step(who, how);
    said(who, act, saw)
}

fn said(who: Index, act: Act, saw: Saw) -> String {
    let saw = match saw {
        Saw::Worked => String::new(),
        Saw::Failed => " (failed)".to_owned(),
        Saw::Made(attempt) => format!(" (attempt {attempt})"),
        Saw::Row(Row::Absent) => " (not retired)".to_owned(),
        Saw::Row(Row::This) => " (retired by this change)".to_owned(),
        Saw::Row(row) => format!(" ({row:?})").to_lowercase(),
        Saw::Decided(None) => " (it says: undone)".to_owned(),
        Saw::Decided(Some(attempt)) => format!(" (it says: done by attempt {attempt})"),
        Saw::Map(Map::GoneOn) => " (it has gone on)".to_owned(),
        Saw::Map(_) => " (as it was)".to_owned(),
        Saw::Served => " (as it was; the heirs are served)".to_owned(),
        Saw::Lease(true) => " (it holds)".to_owned(),
        Saw::Lease(false) => " (it is lost)".to_owned(),
        Saw::Overtaken => " (it has gone on)".to_owned(),
        Saw::MapTooOld => " (it counts)".to_owned(),
    };
    format!("{}: {act}{saw}\n", NAMES[who])
}

/// Scripts, each with its name.
const SCRIPTS: [(&str, &str); 7] = [
    ("made", include_str!("scripts/made.golden")),
    ("crash", include_str!("scripts/crash.golden")),
    ("fails", include_str!("scripts/fails.golden")),
    ("lost-answer", include_str!("scripts/lost-answer.golden")),
    ("late", include_str!("scripts/late.golden")),
    ("another-change", include_str!("scripts/another-change.golden")),
    ("lease", include_str!("scripts/lease.golden")),
];

#[test]
fn the_stories_of_changes_are_told_as_in_the_golden_scripts() {
    for (name, script) in SCRIPTS {
        let mut world = World::new();
        let now = golden::replay(script, |command| run(&mut world, command));
        if std::env::var_os("RANGEHOLD_BLESS").is_some() {
            let path = format!("{}/src/change/table/scripts/{name}.golden", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, now).expect("the source folder can be written");
        } else {
            assert_eq!(now, script, "{name}");
        }
    }
}

/// All worlds that can be reached, each with how: the process that acted, and the world before.
struct Reached(HashMap<World, Option<(World, String)>>);

impl Reached {
    /// Lets every process do every step that it may do, fail, or die, in every order.
    fn explore(start: World, processes: usize) -> Self {
        let mut reached = HashMap::from([(start, None)]);
        let mut waiting = vec![start];
        while let Some(world) = waiting.pop() {
            for (what, next) in (0..processes).flat_map(|who| successors(world, who)) {
                if let Entry::Vacant(new) = reached.entry(next) {
                    new.insert(Some((world, what)));
                    waiting.push(next);
                }
            }
        }
        Self(reached)
    }

    /// How a world was reached, line by line.
    fn story(&self, world: &World) -> String {
        let (mut lines, mut at) = (vec![world.tell()], *world);
        while let Some((before, what)) = &self.0[&at] {
            lines.push(what.clone());
            at = *before;
        }
        lines.reverse();
        lines.join("\n")
    }
}

fn successors(world: World, who: Index) -> Vec<(String, World)> {
    let mut next = Vec::new();
    let mut with = |what: &str, act: &dyn Fn(&mut World)| {
        let mut after = world;
        act(&mut after);
        next.push((format!("{} {what}", NAMES[who]), after));
    };
    let process = &world.processes[who];
    let step = |world: &mut World, how| {
        world.step(who, how);
    };
    if world.is_walking(who) {
        let act = process.seen.next();
        with(&act.to_string(), &|world| step(world, How::Works));
        if !matches!(act, Act::End(_) | Act::Serve | Act::AskLease) {
            with(&format!("{act}: fails"), &|world| step(world, How::Fails));
        }
        // The map is written again and again until the store takes it, or refused before it is written.
        if !matches!(act, Act::PublishDone | Act::PublishUndone | Act::End(_) | Act::Serve | Act::AskLease) {
            with(&format!("{act}: fails unheard"), &|world| step(world, How::FailsUnheard));
        }
    }
    if process.is_alive && world.map == MapIs::Undone && !world.is_walking(who) {
        with("opens the parents, as the map says", &|world| world.assign_parents(who));
    }
    if process.is_alive {
        with("dies", &|world| world.kill(who));
    }
    next
}

#[test]
fn no_path_acknowledges_writes_for_parents_and_heirs_both() {
    let reached = Reached::explore(World::new(), 3);
    assert!(reached.0.len() > 10_000, "too few worlds to be all: {}", reached.0.len());
    for world in reached.0.keys() {
        let parents = world.acknowledges(Serves::Parents).is_some();
        let heirs = world.acknowledges(Serves::Heirs).is_some();
        let counts = matches!(world.record, Some(Some(_)));
        assert!(!(parents && heirs), "both are served:\n{}", reached.story(world));
        assert!(counts || !heirs, "heirs of a change that does not count:\n{}", reached.story(world));
        assert!(!counts || !parents, "parents of a change that counts:\n{}", reached.story(world));
        let is_done = matches!(world.map, MapIs::Done(_));
        assert!(!is_done || counts, "the map names heirs that do not count:\n{}", reached.story(world));
        let is_undone = matches!(world.map, MapIs::Undone | MapIs::Assigned(_));
        assert!(!is_undone || !counts, "the map names parents that were replaced:\n{}", reached.story(world));
    }
}

#[test]
fn from_every_state_a_walk_that_meets_no_failure_brings_the_change_to_its_end() {
    let reached = Reached::explore(World::new(), 2);
    for world in reached.0.keys() {
        let mut after = *world;
        after.kill(0);
        after.kill(1);
        after.go_on(2);
        assert_ne!(after.map, MapIs::Begun, "it is not brought to its end:\n{}", reached.story(world));
        if after.map == MapIs::Undone {
            assert!(!after.retired, "the parents stay retired:\n{}", reached.story(world));
        }
    }
}

#[test]
fn a_walk_that_comes_late_leaves_heirs_with_the_process_that_serves_them() {
    let reached = Reached::explore(World::new(), 2);
    for world in reached.0.keys() {
        let Some(server) = world.acknowledges(Serves::Heirs) else { continue };
        let mut after = *world;
        after.go_on(2);
        let now = after.acknowledges(Serves::Heirs);
        assert_eq!(now, Some(server), "the heirs were taken away:\n{}", reached.story(world));
    }
}

#[test]
fn every_walk_ends_whatever_it_sees() {
    let reached = Reached::explore(World::new(), 2);
    for world in reached.0.keys() {
        for who in 0..2 {
            let mut after = *world;
            after.go_on(who);
        }
    }
}
