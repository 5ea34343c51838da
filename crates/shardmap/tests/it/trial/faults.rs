//! What happens to a map beside its changes: a database with two names, a restored copy, a shard that goes to another place
//! ([`Places`]), and managers that stop inside a transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;
use rangehold_shardmap::operation::{Step, When};
use rangehold_shardmap::{Code, Error, LookIn, Mapping, RangeShardMap};
use rangehold_testkit::microseconds_since_1970;

use super::places::{How, Places, restore, told};
use super::process::Stopped;
use super::settling::settle;
use super::stalls::Spell;
use super::world::{ShardServer, TENANTS, World};
use crate::support::faults::Faults as StepFaults;
use crate::support::roles::APPLICATION;

/// One of them happens after so many changes.
pub const CHANGES_BETWEEN: usize = 6;

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// A second name of a shard's database is added.
    SecondName,
    /// A copy of a shard, made from a backup, is attached and added.
    Copy,
    /// A shard goes to another database, with its keys online or offline.
    Place { online: bool },
    /// A manager stops inside the transaction of a step.
    Stop(Step),
}

/// All of them in turn. The short trial of the tests comes to the first four.
const FAULTS: [Fault; 15] = [
    Fault::Place { online: true },
    Fault::Stop(Step::LocalSource),
    Fault::SecondName,
    Fault::Copy,
    Fault::Stop(Step::GlobalBegin),
    Fault::Stop(Step::LocalTarget),
    Fault::Stop(Step::GlobalEnd),
    Fault::SecondName,
    Fault::Stop(Step::TakeOver),
    Fault::Copy,
    Fault::Stop(Step::TurnBack),
    Fault::Place { online: false },
    Fault::Stop(Step::UndoTarget),
    Fault::Stop(Step::UndoSource),
    Fault::Stop(Step::UndoEnd),
];

/// What a fault may have served for a moment, so that the ledger cannot judge it.
#[derive(Debug, Clone, Copy)]
pub enum Disturbed {
    Nothing,
    Shard(usize),
    /// From the first tenant to below the second.
    Tenants(i64, i64),
}

impl Disturbed {
    pub fn has(self, shard: usize, tenant: i64) -> bool {
        match self {
            Self::Nothing => false,
            Self::Shard(one) => one == shard,
            Self::Tenants(low, high) => (low..high).contains(&tenant),
        }
    }
}

/// What happened.
#[derive(Debug, Default)]
pub struct Faults {
    /// By name.
    pub counts: BTreeMap<String, usize>,
    /// When managers stood still.
    pub stops: Vec<Spell>,
    pub places: Places,
    next: usize,
    databases: usize,
}

impl Faults {
    /// The next of them. No server is down meanwhile. Adds what is wrong.
    pub async fn happen(
        &mut self,
        world: &World,
        map: &RangeShardMap<i64>,
        random: &mut StdRng,
        wrong: &mut Vec<String>,
    ) -> Disturbed {
        let fault = FAULTS[self.next % FAULTS.len()];
        self.next += 1;
        let shard = random.random_range(0..world.shards.len());
        // A manager that was killed may have left a lock.
        tokio::time::sleep(super::changes::LOCK_LEASE).await;
        let happened = match fault {
            Fault::SecondName => second_name(world, map, shard).await,
            Fault::Copy => self.copy(world, map, shard).await,
            Fault::Place { online } => {
                let how = How { online, by_last_name: random.random_bool(0.5) };
                self.place(world, map, random.random_range(0..TENANTS), how).await
            }
            Fault::Stop(step) => self.stop(world, map, step, random.random_range(0..TENANTS)).await,
        };
        settle(map, wrong).await;
        match happened {
            Ok(disturbed) => {
                *self.counts.entry(format!("{fault:?}")).or_default() += 1;
                disturbed
            }
            Err(error) => {
                wrong.push(format!("{fault:?}: {error}"));
                Disturbed::Nothing
            }
        }
    }

    /// A name that no other database of the trial has.
    fn new_database(&mut self) -> String {
        self.databases += 1;
        format!("shard_{}", self.databases)
    }

    /// A copy is refused as the shard and as an empty one. As a shard of its own it has no keys.
    async fn copy(
        &mut self,
        world: &World,
        map: &RangeShardMap<i64>,
        shard: usize,
    ) -> Result<Disturbed, String> {
        let (server, copy) = (world.shards[shard].clone(), self.new_database());
        restore(world, shard, &copy).await;
        let place = server.places(&copy).swap_remove(0);
        is_refused("a copy is attached", map.manager().recovery().attach(&place, None).await)?;
        is_refused("a copy is added", map.create_shard(&place).await)?;
        let added = map.create_shard_from_copy(&place).await.map_err(told)?;
        let client = server.connect_to(&copy, APPLICATION).await.map_err(|error| error.to_string())?;
        for tenant in 0..TENANTS {
            let sql = format!("SELECT __shard_management.enter('tenants', {tenant})");
            let entered = client.batch_execute(&sql).await;
            let code = entered.err().and_then(|error| error.code().map(|code| code.code().to_owned()));
            if code.as_deref() != Some("RH001") {
                return Err(format!("tenant {tenant} enters a copy: {code:?}"));
            }
        }
        map.delete_shard(&added).await.map_err(told)?;
        Ok(Disturbed::Nothing)
    }

    /// The shard of a tenant goes to another database.
    async fn place(
        &mut self,
        world: &World,
        map: &RangeShardMap<i64>,
        tenant: i64,
        how: How,
    ) -> Result<Disturbed, String> {
        let (mapping, new) = (map.lookup(&tenant, LookIn::Store).await.map_err(told)?, self.new_database());
        let is_its = |shard: &Arc<ShardServer>| shard.location() == *mapping.shard().location();
        let shard = world.shards.iter().position(is_its).ok_or("a mapping has a shard")?;
        self.places.change(world, map, shard, &new, how).await?;
        Ok(Disturbed::Shard(shard))
    }

    /// A manager stops inside the transaction of a step, while it changes a tenant's mapping. Another one waits until it can
    /// change the same mapping, and then the stopped one goes on.
    async fn stop(
        &mut self,
        world: &World,
        map: &RangeShardMap<i64>,
        step: Step,
        tenant: i64,
    ) -> Result<Disturbed, String> {
        world.hot.send_replace(tenant);
        let mapping = map.lookup(&tenant, LookIn::Store).await.map_err(told)?;
        let moves = matches!(step, Step::LocalTarget | Step::UndoTarget);
        let mapping = match (moves, mapping.is_online()) {
            (true, true) => map.offline(&mapping).await.map_err(told)?,
            (false, false) => map.online(&mapping).await.map_err(told)?,
            _ => mapping,
        };
        if step == Step::TakeOver {
            abandon(world, &mapping).await;
        }
        let from = microseconds_since_1970();
        let stopped = Stopped::start(world.reach.global(), step, tenant).await;
        let Some(stopped) = stopped else { return Err("the manager ended and did not stop".to_owned()) };
        let mut wrong = Vec::new();
        settle(map, &mut wrong).await;
        let found = map.lookup(&tenant, LookIn::Store).await.map_err(told)?;
        let changed = if found.is_online() { map.offline(&found).await } else { map.online(&found).await };
        self.stops.push(Spell { from, to: microseconds_since_1970() });
        stopped.goes_on().await;
        changed.map_err(told)?;
        match wrong.pop() {
            Some(wrong) => Err(wrong),
            None => Ok(Disturbed::Tenants(*mapping.low(), *mapping.high().expect("the map has an end"))),
        }
    }
}

/// A second name is refused, whatever one says that it is.
async fn second_name(world: &World, map: &RangeShardMap<i64>, shard: usize) -> Result<Disturbed, String> {
    let server = &world.shards[shard];
    for place in server.places(&server.database()) {
        if place == server.location() {
            continue;
        }
        is_refused("a second name is added", map.create_shard(&place).await)?;
        is_refused("a second name is added as a copy", map.create_shard_from_copy(&place).await)?;
        is_refused("a second name is attached", map.manager().recovery().attach(&place, None).await)?;
    }
    Ok(Disturbed::Nothing)
}

/// An operation on the mapping, whose owner is dead.
async fn abandon(world: &World, mapping: &Mapping<i64>) {
    let faults = StepFaults::default();
    faults.stop(Step::GlobalBegin, When::After);
    let map = world.reach.manage("a manager that dies", faults.hook()).await;
    let _ = faults.until_death(map.offline(mapping)).await;
    tokio::time::sleep(super::world::LEASE).await;
}

fn is_refused<T>(what: &str, done: Result<T, Error>) -> Result<(), String> {
    match done {
        Ok(_) => Err(format!("{what}, and it is not refused")),
        Err(error)
            if error.code() == Code::ShardNotValid || error.code() == Code::ShardLocationAlreadyExists =>
        {
            Ok(())
        }
        Err(error) => Err(format!("{what}: {error:?}")),
    }
}
