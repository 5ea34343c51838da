//! The manager of a trial: random changes of the map, some of them given up half-way as by a process that is
//! killed, and ended by the next.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_shardmap::{Code, Error, Mapping, MappingChange, RangeShardMap};

use rangehold_testkit::microseconds_since_1970;
use tokio_postgres::Client;

use super::faults::{CHANGES_BETWEEN, Faults};
use super::ledger::Ledger;
use super::places::enter;
use super::settling::settle;
use super::stalls::Spell;
use super::world::World;

/// How long a lock lasts whose holder was killed.
pub const LOCK_LEASE: Duration = Duration::from_millis(300);

/// What came of all changes.
#[derive(Debug, Default)]
pub struct Changed {
    pub done: usize,
    pub failed: usize,
    pub managers_killed: usize,
    pub outages: usize,
    pub comparisons: u64,
    /// Times in which keys went offline while a transaction was inside, which was ended by policy.
    pub drains: Vec<Spell>,
    pub faults: Faults,
    pub wrong: Vec<String>,
}

impl Changed {
    /// How many changes were made or tried.
    pub fn count(&self) -> usize {
        self.done + self.failed + self.managers_killed
    }
}

/// The change that is being made.
enum Change {
    Offline(Mapping<i64>),
    Online(Mapping<i64>),
    Move(Mapping<i64>, usize, bool),
    Split(Mapping<i64>, i64),
    Merge(Mapping<i64>, Mapping<i64>),
    Lock(Mapping<i64>),
}

impl Change {
    /// The mappings that it changes.
    fn mappings(&self) -> impl Iterator<Item = &Mapping<i64>> {
        let (one, other) = match self {
            Self::Offline(one)
            | Self::Online(one)
            | Self::Move(one, ..)
            | Self::Split(one, _)
            | Self::Lock(one) => (one, None),
            Self::Merge(left, right) => (left, Some(right)),
        };
        std::iter::once(one).chain(other)
    }

    /// One of its tenants.
    fn tenant(&self) -> i64 {
        *self.mappings().next().expect("each change is of a mapping").low()
    }

    /// Whether all mappings that it changes are among these.
    fn is_of(&self, mappings: &[Mapping<i64>]) -> bool {
        self.mappings().all(|one| mappings.iter().any(|there| there.id() == one.id()))
    }

    fn touches(&self, tenant: i64) -> bool {
        self.mappings()
            .any(|mapping| *mapping.low() <= tenant && mapping.high().is_none_or(|high| tenant < *high))
    }
}

/// Makes `count` changes, or fewer if something goes wrong. If `faults`, other things happen in between.
pub async fn run(world: &World, seed: u64, count: usize, faults: bool) -> Changed {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut changed, mut ledger) = (Changed::default(), Ledger::default());
    let mut map = world.open("manager 0").await;
    let mut outage: Option<tokio::task::JoinHandle<()>> = None;
    let mut next_fault = CHANGES_BETWEEN;
    changed.wrong = ledger.look(world, &map, |_, _| false).await;
    while changed.count() < count && changed.wrong.is_empty() {
        if faults && changed.count() >= next_fault {
            next_fault += CHANGES_BETWEEN;
            if let Some(outage) = outage.take() {
                outage.await.expect("an outage ends");
            }
            let disturbed = changed.faults.happen(world, &map, &mut random, &mut changed.wrong).await;
            let disturbed = |shard, tenant| disturbed.has(shard, tenant);
            changed.wrong.extend(ledger.look(world, &map, disturbed).await);
        }
        if outage.as_ref().is_none_or(tokio::task::JoinHandle::is_finished) && random.random_ratio(1, 25) {
            let shard = world.shards[random.random_range(0..world.shards.len())].clone();
            outage = Some(tokio::spawn(
                shard.suffer_outage(Duration::from_millis(random.random_range(100..1500))),
            ));
            changed.outages += 1;
        }
        let mappings = map.mappings().await.expect("the global map is never down");
        let Some(change) = choose(&mappings, &mut random) else { continue };
        world.hot.send_replace(change.tenant());
        let holder = if random.random_bool(0.5) { hold(world, &change).await } else { None };
        let from = microseconds_since_1970();
        let kill_after = random.random_ratio(1, 4).then(|| Duration::from_millis(random.random_range(0..60)));
        let finished = match kill_after {
            Some(after) => tokio::time::timeout(after, make(world, &map, &change)).await.ok(),
            None => Some(make(world, &map, &change).await),
        };
        let clean = matches!(finished, Some(Ok(())));
        match finished {
            Some(Ok(())) => changed.done += 1,
            // A manager that was killed amid `Lock` has left one, for as long as its lease.
            Some(Err(error)) if error.retry() || error.code() == Code::MappingLockOwnerMismatch => {
                changed.failed += 1
            }
            Some(Err(error)) if error.code() == Code::MappingDoesNotExist && changed.managers_killed > 0 => {
                // A manager that was killed may have sent its last commit, which took effect after the look above.
                let mappings = map.mappings().await.expect("the global map is never down");
                match change.is_of(&mappings) {
                    true => changed.wrong.push(format!("a change: {error:?}")),
                    false => changed.failed += 1,
                }
            }
            Some(Err(error)) => changed.wrong.push(format!("a change: {error:?}")),
            None => {
                changed.managers_killed += 1;
                map = world.open(&format!("manager {}", changed.managers_killed)).await;
            }
        }
        if clean && let Some(holder) = holder {
            changed.drains.push(Spell { from, to: microseconds_since_1970() });
            if holder.batch_execute("SELECT 1").await.is_ok() {
                changed.wrong.push("a transaction goes on whose key is offline".to_owned());
            }
        }
        if !clean {
            settle(&map, &mut changed.wrong).await;
        }
        let disturbed = |_, tenant| !clean && change.touches(tenant);
        changed.wrong.extend(ledger.look(world, &map, disturbed).await);
        // The writers get a word in between.
        tokio::time::sleep(Duration::from_millis(random.random_range(0..20))).await;
    }
    if let Some(outage) = outage {
        outage.await.expect("an outage ends");
    }
    settle(&map, &mut changed.wrong).await;
    changed.wrong.extend(ledger.look(world, &map, |_, _| false).await);
    changed.comparisons = ledger.comparisons;
    changed
}

/// If keys are to go offline: a transaction inside that does nothing and does not end.
async fn hold(world: &World, change: &Change) -> Option<Client> {
    let Change::Offline(mapping) = change else { return None };
    enter(world, mapping).await
}

fn choose(mappings: &[Mapping<i64>], random: &mut StdRng) -> Option<Change> {
    let one = mappings[random.random_range(0..mappings.len())].clone();
    let width = one.high().expect("the map has an end") - one.low();
    match random.random_range(0..10) {
        0..=2 if one.is_online() => Some(Change::Offline(one)),
        0..=4 if !one.is_online() => Some(Change::Online(one)),
        // One of the two states must be offline.
        5..=6 => {
            let online = !one.is_online() && random.random_bool(0.7);
            Some(Change::Move(one, random.random_range(0..super::world::SHARDS), online))
        }
        7 if width > 1 => Some(Change::Split(one.clone(), one.low() + random.random_range(1..width))),
        8 => {
            let merges = |pair: &&[Mapping<i64>]| {
                pair[0].high() == Some(pair[1].low())
                    && pair[0].shard() == pair[1].shard()
                    && pair[0].is_online() == pair[1].is_online()
            };
            mappings
                .windows(2)
                .filter(merges)
                .nth(random.random_range(0..2))
                .map(|pair| Change::Merge(pair[0].clone(), pair[1].clone()))
        }
        9 => Some(Change::Lock(one)),
        _ => None,
    }
}

async fn make(world: &World, map: &RangeShardMap<i64>, change: &Change) -> Result<(), Error> {
    match change {
        Change::Offline(mapping) => map.offline(mapping).await.map(drop),
        Change::Online(mapping) => map.online(mapping).await.map(drop),
        Change::Move(mapping, shard, online) => {
            let shard = map.shard(&world.shards[*shard].location()).await?;
            let change = MappingChange { online: Some(*online), shard: Some(&shard) };
            map.update(mapping, change).await.map(drop)
        }
        Change::Split(mapping, at) => map.split(mapping, at).await.map(drop),
        Change::Merge(left, right) => map.merge(left, right).await.map(drop),
        Change::Lock(mapping) => {
            let token = map.new_token();
            let locked = map.lock(mapping, token, "the trial", LOCK_LEASE).await?;
            let refused = map.offline(&locked).await.err().map(|error| error.code());
            let unlocked = map.unlock(&locked, token).await.map(drop);
            // On a slow machine the lock may have ended meanwhile; then the mapping is another, too.
            if refused.is_none() {
                return Ok(());
            }
            assert!(
                refused.is_none_or(|code| code == Code::MappingLockOwnerMismatch || code.retry()),
                "{refused:?}"
            );
            unlocked
        }
    }
}
