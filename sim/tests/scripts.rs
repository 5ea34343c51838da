//! Golden scripts of the map, on a simulated cluster: what the executor makes of their changes is what the
//! interpreter says, also where processes crash in the middle of them.

#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

use rangehold_engine::Step;
use rangehold_map::RangeEntry;
use rangehold_map::script::{Command, golden};
use rangehold_sim::chance::Chance;
use rangehold_sim::client::requests::{Name, Verb, change, entity, get};
use rangehold_sim::client::{Client, Told};
use rangehold_sim::events::Events;
use rangehold_sim::faults::{Fault, Weather};
use rangehold_sim::run::runtime;
use rangehold_sim::script::Script;
use rangehold_sim::world::{Size, World};

const MARATHON: &str = include_str!("../../crates/map/tests/scripts/marathon.txt");
const NUMBERED: &str = include_str!("../../crates/map/tests/scripts/numbered.txt");
/// Goes on from the end of `numbered.txt`.
const OFFLINE: &str = "offline numbered/0005\nmove numbered/0001 to s2\nonline numbered/0005\n";

/// The commands of a golden file, without what they said.
fn commands(file: &str) -> Vec<Command> {
    let mut commands = Vec::new();
    golden::replay(file, |line| {
        commands.push(line.parse().unwrap());
        String::new()
    });
    commands
}

/// Runs a script on three processes, each with one of its servers s1, s2 and s3. `trap` is a step at which a
/// process crashes once. Returns how many did.
fn run(file: &str, trap: Option<Step>) -> u64 {
    let seed = trap.map_or(1, |step| 2 + Step::ALL.iter().position(|other| *other == step).unwrap() as u64);
    runtime(seed).block_on(async {
        // Replies with errors are to be expected of processes that crash.
        let weather = Weather::only(Fault::CrashMidChange, 0.0);
        let size = Size { processes: 3, servers: 1, random: false, ..Size::default() };
        let world = World::begin(Chance::of_seed(seed), weather.clone(), Events::begin(false), size);
        let mut script = Script::new(&world);
        let mut client = Client::new(&world, "rows", None).only_once();
        for command in commands(file) {
            script.run(&command).await.unwrap_or_else(|error| panic!("with a crash at {trap:?}: {error:#}"));
            if let Command::Table { name, .. } = &command {
                write_rows(&mut client, name).await;
                trap.into_iter().for_each(|step| world.set_trap(step));
            }
        }
        let map = script.map().await.unwrap();
        assert_eq!(script.seen(&map), script.wanted(), "with a crash at {trap:?}");
        assert_eq!(map.check_homes(), [], "with a crash at {trap:?}");
        if trap.is_none() {
            let alone = script.alone().map();
            assert!(
                map.entries().iter().map(|entry| entry.id).eq(alone.entries().iter().map(|entry| entry.id))
            );
            // Only who takes a range that was offline begins a generation of which the map alone knows nothing.
            let differs = |(here, there): (&RangeEntry, &RangeEntry)| here.generation != there.generation;
            let differ = map.entries().iter().zip(alone.entries()).filter(|pair| differs(*pair)).count();
            assert_eq!(differ, file.matches("\nonline").count());
            assert_eq!(map.next_range(), alone.next_range());
        }
        for command in commands(file) {
            if let Command::Table { name, .. } = &command {
                read_rows(&mut client, name).await;
            }
        }
        assert_eq!(world.findings(), Vec::<String>::new(), "with a crash at {trap:?}");
        weather.count(Fault::CrashMidChange)
    })
}

/// A row in each partition that the scripts name, and in some between them.
fn rows(table: &str) -> impl Iterator<Item = Name> {
    let partitions = ["10km", "Full", "Half", "0001", "00035", "0004", "0006", "0009", "10", "2"];
    partitions.into_iter().map(move |partition| Name::new(table, partition, "row"))
}

async fn write_rows(client: &mut Client, table: &str) {
    for name in rows(table) {
        while !matches!(
            client.ask(change(Verb::Upsert, &name, 7, 0, None)).await.told(),
            Told::Answer(reply) if reply.status == 204
        ) {
            client.think(100, 300).await;
        }
    }
}

async fn read_rows(client: &mut Client, table: &str) {
    for name in rows(table) {
        let mut read = None;
        for _ in 0..100 {
            if let Told::Answer(reply) = client.ask(get(&name)).await.told() {
                read = entity(&reply).map(|entity| entity.value);
                break;
            }
            client.think(100, 300).await;
        }
        assert_eq!(read, Some(7), "{name:?}");
    }
}

#[test]
fn a_cluster_does_what_golden_scripts_say() {
    for script in [MARATHON, NUMBERED] {
        run(script, None);
    }
}

#[test]
fn a_range_is_offline_and_online_as_the_script_says() {
    run(&format!("{NUMBERED}\n{OFFLINE}"), None);
}

#[test]
fn a_script_is_done_whoever_crashes_in_the_middle() {
    let mut struck = 0;
    for step in Step::ALL {
        for script in [MARATHON, NUMBERED] {
            struck += run(script, Some(step));
        }
    }
    assert!(struck > Step::ALL.len() as u64, "{struck} crashes");
}
