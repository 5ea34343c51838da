//! Many at once, and at random.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use rangehold_shardmap::operation::{Step, StepFault, When};
use rangehold_shardmap::{Code, Error, LookIn, ManagerOptions, MappingChange, RangeShardMap, Shard};

use super::world::{Ranges, check};
use crate::support::faults::Faults;

/// The keys that random changes touch.
const KEYS: i32 = 64;
/// Schedules in CI, on SQLite; PostgreSQL syncs each commit, and gets fewer unless `RANGEHOLD_SHARD_SCHEDULES` says more.
/// `docs/measurements.md` has both numbers.
const SCHEDULES: usize = 1_000;
const SCHEDULES_POSTGRES: usize = 60;

/// What each key is mapped to: a shard's place in the list, and whether it is online.
type Model = Vec<Option<(usize, bool)>>;

/// A random change, as a function of a mapping that holds a random key, and what it does to the model.
async fn random_change(
    map: &RangeShardMap<i32>,
    shards: &[Shard],
    model: &mut Model,
    chance: &mut StdRng,
) -> Result<(), Error> {
    let key = chance.random_range(0..KEYS);
    let to = chance.random_range(0..shards.len());
    let online = chance.random::<bool>();
    let Some(mapping) = map.try_lookup(&key, LookIn::Store).await? else {
        let high =
            (key..KEYS).take_while(|key| model[*key as usize].is_none()).take(9).last().unwrap_or(key) + 1;
        for at in key..high {
            model[at as usize] = Some((to, true));
        }
        return map.add(&key, Some(&high), &shards[to]).await.map(|_| ());
    };
    let (low, high) = (*mapping.low(), *mapping.high().unwrap());
    let set = |model: &mut Model, value: Option<(usize, bool)>| {
        for at in low..high {
            model[at as usize] = value;
        }
    };
    match chance.random_range(0..6) {
        0 if !mapping.is_online() => {
            set(model, None);
            map.delete(&mapping).await
        }
        1 if high - low > 1 => map.split(&mapping, &chance.random_range(low + 1..high)).await.map(|_| ()),
        2 => match map.try_lookup(&high, LookIn::Store).await {
            Ok(Some(right))
                if right.shard() == mapping.shard() && right.is_online() == mapping.is_online() =>
            {
                map.merge(&mapping, &right).await.map(|_| ())
            }
            _ => Ok(()),
        },
        3 if !mapping.is_online() || !online => {
            set(model, Some((to, online)));
            let to = MappingChange { online: Some(online), shard: Some(&shards[to]) };
            map.update(&mapping, to).await.map(|_| ())
        }
        _ => {
            let at = model[key as usize].unwrap().0;
            set(model, Some((at, online)));
            map.update(&mapping, MappingChange { online: Some(online), shard: None }).await.map(|_| ())
        }
    }
}

async fn seen(map: &RangeShardMap<i32>, shards: &[Shard]) -> Model {
    let mut model = vec![None; KEYS as usize];
    for mapping in map.mappings().await.unwrap() {
        let shard = shards.iter().position(|shard| shard == mapping.shard()).unwrap();
        for at in *mapping.low()..*mapping.high().unwrap() {
            model[at as usize] = Some((shard, mapping.is_online()));
        }
    }
    model
}

/// Where and how a schedule's operation fails.
fn random_fault(faults: &Faults, chance: &mut StdRng) {
    let step = Step::ALL[chance.random_range(0..Step::ALL.len())];
    let when = if chance.random() { When::Before } else { When::After };
    if [Step::TurnBack, Step::UndoTarget, Step::UndoSource, Step::UndoEnd].contains(&step) {
        let forward = [Step::LocalSource, Step::LocalTarget, Step::GlobalEnd];
        faults.break_step(forward[chance.random_range(0..3)]);
    }
    match chance.random_range(0..4) {
        0 => faults.fail(step, when, StepFault::Stays, 1 + chance.random_range(0..8)),
        1 => faults.fail(step, when, StepFault::MayPass, 1 + chance.random_range(0..3)),
        _ => faults.stop(step, when),
    }
}

on_both_stores! {
    /// Schedules of a change that fails or whose owner dies at a random step, and a random one who comes next
    /// and may die as well: the map is as before or as after, and the places of truth agree.
    async fn schedules(world) {
        let by_default = if world.is_postgres() { SCHEDULES_POSTGRES } else { SCHEDULES };
        let count = std::env::var("RANGEHOLD_SHARD_SCHEDULES").map_or(by_default, |text| text.parse().unwrap());
        let first = std::env::var("RANGEHOLD_SHARD_SEED").map_or(0, |text| text.parse().unwrap());
        let faults = Faults::default();
        let options = |seed| ManagerOptions { hook: faults.hook(), seed: Some(seed), ..world.options() };
        let ranges = Ranges::with(world, options(1)).await;
        let mut model: Model = vec![None; KEYS as usize];
        let mut deaths = 0;
        for seed in first..first + count as u64 {
            let mut chance = StdRng::seed_from_u64(seed);
            let mut after = model.clone();
            random_fault(&faults, &mut chance);
            let change = random_change(&ranges.map, &ranges.shards, &mut after, &mut chance);
            let done = faults.until_death(change).await;
            deaths += usize::from(done.is_none());
            // The one who comes next may die too, at whatever step.
            for _ in 0..chance.random_range(0..2) {
                faults.clear();
                world.sql(&world.place("global"), "update @global_operations set lease_until = 0");
                random_fault(&faults, &mut chance);
                let second = world.second_with(options(chance.next_u64())).await;
                deaths += usize::from(faults.until_death(second.recover_pending()).await.is_none());
            }
            faults.clear();
            world.sql(&world.place("global"), "update @global_operations set lease_until = 0");
            if chance.random() {
                for key in 0..KEYS {
                    let looked = ranges.map.get(&key).await;
                    assert!(
                        looked.as_ref().err().is_none_or(|error| error.code() == Code::MappingNotFoundForKey),
                        "seed {seed}: {looked:?}"
                    );
                }
            }
            let (_, failed) = ranges.manager.recover_pending().await.unwrap();
            assert!(failed.is_empty(), "seed {seed}: {failed:?}");
            check(&ranges.manager, &ranges.places).await;
            let now = seen(&ranges.map, &ranges.shards).await;
            assert!(now == model || now == after, "seed {seed}: {now:?} is neither {model:?} nor {after:?}");
            if matches!(done, Some(Ok(()))) {
                assert_eq!(now, after, "seed {seed}: it was acknowledged");
            }
            model = now;
        }
        assert!(deaths * 10 > count, "{deaths} deaths in {count} schedules");
    }

    /// Acceptance 155 to 172: several processes change one map at once and look keys up: only errors that the
    /// rules give, and the map stays whole.
    async fn many_managers_at_once(world) {
        let ranges = Ranges::new(world).await;
        let mut tasks = Vec::new();
        for task in 0..4u64 {
            let manager = world.second_with(ManagerOptions { lease: Duration::from_secs(60), ..world.options() }).await;
            let shards = ranges.shards.clone();
            tasks.push(tokio::spawn(async move {
                let map = manager.range_map::<i32>("ranges").await.unwrap();
                let mut chance = StdRng::seed_from_u64(task);
                let mut codes = BTreeSet::new();
                for _ in 0..25 {
                    // The task knows nothing of the changes by others.
                    let mut model: Model = vec![Some((0, true)); KEYS as usize];
                    let key = chance.random_range(0..KEYS);
                    let done = match map.lookup(&key, LookIn::CacheThenStore).await {
                        Ok(_) => random_change(&map, &shards, &mut model, &mut chance).await,
                        Err(_) => map.add(&key, Some(&KEYS.min(key + 6)), &shards[0]).await.map(|_| ()),
                    };
                    codes.extend(done.err().map(|error| error.code().to_string()));
                }
                codes
            }));
        }
        let mut codes = BTreeSet::new();
        for task in tasks {
            codes.extend(task.await.unwrap());
        }
        let allowed =
            ["MappingDoesNotExist", "MappingRangeAlreadyMapped", "InvalidArgument", "MappingIsNotOffline"];
        assert!(codes.iter().all(|code| allowed.contains(&code.as_str())), "{codes:?}");
        ranges.check().await;
    }
}
