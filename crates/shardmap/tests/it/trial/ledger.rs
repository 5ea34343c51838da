//! A ledger of which shard has which key: the check that no statement ever ran on a shard that had lost its key.
//!
//! One driver makes all changes of the map, one after the other. So after each of them it is known for every
//! shard which tenants it does not serve, and that stays so until the next change is done. Every row written
//! leaves a trace, which a rollback does not take away. Hence: a tenant that a shard did not serve after one
//! change and does not serve after the next must have the same trace and the same rows there at both times,
//! unless that change itself may have served it for a moment (it was given up half-way), or the server lost
//! power in between, at which sequences jump.

use std::collections::BTreeMap;

use rangehold_shardmap::RangeShardMap;

use super::world::{TENANTS, World};
use crate::support::roles::OWNER;

/// What was seen of a tenant on a shard that does not serve it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    trace: i64,
    rows: i64,
    kills: u32,
}

/// What was seen after the last change.
#[derive(Debug, Default)]
pub struct Ledger {
    /// By shard and tenant; only what is not served.
    seen: BTreeMap<(usize, i64), Seen>,
    /// How many times something was compared.
    pub comparisons: u64,
}

const TRACES: &str = "SELECT t, coalesce(pg_sequence_last_value(('trace_' || t)::regclass), 0),
        (SELECT count(*) FROM events WHERE tenant = t) + (SELECT count(*) FROM guarded WHERE tenant = t)
    FROM unnest($1::bigint[]) t";

impl Ledger {
    /// Looks after a change. `disturbed` says which shards and tenants the change may have served for a
    /// moment. Gives what is wrong.
    pub async fn look(
        &mut self,
        world: &World,
        map: &RangeShardMap<i64>,
        disturbed: impl Fn(usize, i64) -> bool,
    ) -> Vec<String> {
        let mappings = map.mappings().await.expect("the global map is never down");
        let mut now = BTreeMap::new();
        for (index, shard) in world.shards.iter().enumerate() {
            let serves = |tenant: &i64| {
                mappings.iter().any(|mapping| {
                    mapping.is_online()
                        && *mapping.shard().location() == shard.location()
                        && mapping.low() <= tenant
                        && mapping.high().is_none_or(|high| tenant < high)
                })
            };
            let lost: Vec<i64> = (0..TENANTS).filter(|tenant| !serves(tenant)).collect();
            let before = shard.glimpse();
            let Ok(client) = shard.connect(OWNER).await else { continue };
            let Ok(rows) = client.query(TRACES, &[&lost]).await else { continue };
            if shard.was_down_since(before) {
                continue;
            }
            for row in rows {
                let seen = Seen { trace: row.get(1), rows: row.get(2), kills: shard.kills() };
                now.insert((index, row.get::<_, i64>(0)), seen);
            }
        }
        let mut wrong = Vec::new();
        for (&(shard, tenant), seen) in &now {
            let Some(before) = self.seen.get(&(shard, tenant)) else { continue };
            if before.kills != seen.kills || disturbed(shard, tenant) {
                continue;
            }
            self.comparisons += 1;
            if before != seen {
                wrong.push(format!(
                    "shard {shard} does not serve tenant {tenant}, but {before:?} became {seen:?}"
                ));
            }
        }
        self.seen = now;
        wrong
    }
}
