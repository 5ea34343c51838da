//! Workloads with keys as people write them, and at other rates. The finder's numbers, and its way to read keys as
//! numbers, were made without them.

use rand::RngExt;
use rand::rngs::StdRng;

use super::experiment::{append, tenants_append};
use super::keys::{self, TENANT};
use super::ours::clocks;
use super::workload::{Draw, Requests, SPACE, Workload, Zipf, any, at, at_time, chance, exponential};

/// A tenth of the usual rate and cap, 300 requests per second.
const SLOW: f64 = 0.1;
/// Ten times as much, 30,000 requests per second.
const FAST: f64 = 10.0;

/// All of them.
pub(super) const WORKLOADS: [Workload; 21] = [
    // Ids that begin with a time.
    Workload::new("UUIDv7, 300/s", &["append"], |_| append(0.0)).with_keys(keys::uuid7).with_scale(SLOW),
    Workload::new("ULID, up to 45 s late, 30,000/s", &["append"], |_| append(45.0))
        .with_keys(keys::ulid)
        .with_scale(FAST),
    Workload::new("snowflake ids, half is read again", &["append"], |_| {
        Box::new(|dice, now| {
            let age = if chance(dice, 0.5) { 0.0 } else { 90.0 * exponential(dice) };
            if age > 0.0 { Draw::read(at_time(now - age)) } else { Draw::write(at_time(now)) }
        })
    })
    .with_keys(keys::snowflake),
    Workload::new("log tail: reversed ticks, 300/s", &["prepend"], |_| {
        Box::new(|_, now| Draw::write(SPACE as u64 - at_time(now)))
    })
    .with_keys(keys::decimal)
    .with_scale(SLOW),
    Workload::new("UUIDv7, 2 clocks 90 s apart", &["append"], |dice| clocks(dice, 2, 90.0))
        .with_keys(keys::uuid7),
    Workload::new("ULID, 2 clocks 150 s apart", &["append"], |dice| clocks(dice, 2, 150.0))
        .with_keys(keys::ulid),
    Workload::new("ISO times, 2 clocks 240 s apart, 300/s", &["append"], |dice| clocks(dice, 2, 240.0))
        .with_keys(keys::time)
        .with_scale(SLOW),
    Workload::new("snowflake ids, 3 clocks 60 s apart", &["append"], |dice| clocks(dice, 3, 60.0))
        .with_keys(keys::snowflake),
    Workload::new("hex times, 3 clocks 80 s apart, 300/s", &["append"], |dice| clocks(dice, 3, 80.0))
        .with_scale(SLOW),
    // Tenants in front.
    Workload::new("20 tenants | time, Zipf 1.0, 30,000/s", &["split"], |_| tenants_zipf(20))
        .with_keys(keys::tenant_and_time)
        .with_scale(FAST),
    Workload::new("16 hashes | time, 300/s", &["split"], |_| tenants_append(16))
        .with_keys(keys::tenant_and_time)
        .with_scale(SLOW),
    Workload::new("3 tenants | time", &["split"], |_| tenants_append(3)).with_keys(keys::tenant_and_time),
    Workload::new("20 tenants | time, one has 80 %", &["append"], |dice| {
        let hot = dice.random_range(1..19u64);
        Box::new(move |dice, now| {
            let tenant = if chance(dice, 0.8) { hot } else { dice.random_range(0..20) };
            Draw::write(tenant * TENANT + at_time(now))
        })
    })
    .with_keys(keys::tenant_and_time),
    Workload::new("20 tenants | reversed count, one has 80 %", &["prepend"], |dice| {
        let hot = dice.random_range(1..19u64);
        Box::new(move |dice, now| {
            let tenant = if chance(dice, 0.8) { hot } else { dice.random_range(0..20) };
            Draw::write((tenant + 1) * TENANT - at_time(now))
        })
    })
    .with_keys(keys::tenant_and_count),
    Workload::new("200 tenants - counter, 300/s", &["split"], |_| tenants_count(200))
        .with_keys(keys::tenant_and_count)
        .with_scale(SLOW),
    Workload::new("200 tenants - counter, all is read", &["split"], |_| {
        let write = tenants_count(200);
        Box::new(move |dice, now| {
            if chance(dice, 0.2) {
                return write(dice, now);
            }
            let (tenant, share) = (dice.random_range(0..200), any(dice));
            Draw::read(tenant * TENANT + (share * count_of(tenant, now) as f64) as u64)
        })
    })
    .with_keys(keys::tenant_and_count),
    // Partitions that are a time, to the minute: all requests of a minute go to one partition.
    Workload::new("a partition for each minute", &["hot-key", "append", "unclear"], |dice| {
        let phase = 60.0 * any(dice);
        Box::new(move |dice, now| {
            let minute = ((now + phase) / 60.0).floor() * 60.0;
            Draw { row: dice.random(), ..Draw::write(at_time(minute)) }
        })
    })
    .with_keys(keys::time),
    Workload::new("20 tenants | time, one has 45 %", &["append"], |_| {
        Box::new(|dice, now| {
            let tenant = if chance(dice, 0.421) { 10 } else { dice.random_range(0..20) };
            Draw::write(tenant * TENANT + at_time(now - any(dice)))
        })
    })
    .with_keys(keys::tenant_and_time),
    Workload::new("compact times, 2 clocks 100 s apart", &["append"], |dice| clocks(dice, 2, 100.0))
        .with_keys(keys::compact_time),
    // Names, and a job that looks through them.
    Workload::new("random ids, 10 % scans of 2 %", &["split"], |_| {
        Box::new(|dice, _| {
            let from = any(dice);
            if chance(dice, 0.1) { Draw::scan(at(from), at(from + 0.02), 10) } else { Draw::write(at(from)) }
        })
    })
    .with_keys(keys::decimal),
    Workload::new("40 % append, 60 % Zipf on what is old, 300/s", &["split"], |_| {
        let zipf = Zipf::new(5_000, 0.9);
        Box::new(move |dice, now| {
            if chance(dice, 0.4) {
                return Draw::write(at_time(now));
            }
            Draw::read(at_time(-1e6 + zipf.draw(dice) as f64))
        })
    })
    .with_keys(keys::snowflake)
    .with_scale(SLOW),
];

/// Tenants that append, each as often as its rank says (exponent 1).
fn tenants_zipf(tenants: usize) -> Requests {
    let zipf = Zipf::new(tenants, 1.0);
    Box::new(move |dice, now| {
        // Tenants that are neighbours in rank are far apart in the key space.
        let tenant = zipf.draw(dice) * 7 % tenants;
        Draw::write(tenant as u64 * TENANT + at_time(now))
    })
}

/// Tenants of which each counts what it wrote.
fn tenants_count(tenants: u64) -> Requests {
    Box::new(move |dice: &mut StdRng, now| {
        let tenant = dice.random_range(0..tenants);
        Draw::write(tenant * TENANT + count_of(tenant, now))
    })
}

/// A tenant's counter: each began at a different number.
fn count_of(tenant: u64, now: f64) -> u64 {
    tenant * 977 % 1_000 * 1_000 + (15.0 * (now + 3_600.0)) as u64
}
