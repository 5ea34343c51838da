//! Workloads with keys as people write them, and at other rates. The finder's numbers, and its way to read keys as
//! numbers, were made without them.

use rand::RngExt;

use super::keys::{self, TENANT};
use super::stream::{
    Draw, Places, Requests, Zipf, about_ago, any, any_row, at, at_time, chance, clocks, mirrored, mix,
    newest, read, tenants, up_to_ago, write,
};
use super::workload::Workload;

/// A tenth of the usual rate and cap, 300 requests per second.
const SLOW: f64 = 0.1;
/// Ten times as much, 30,000 requests per second.
const FAST: f64 = 10.0;

/// All of them.
pub(super) const WORKLOADS: [Workload; 21] = [
    // Ids that begin with a time.
    Workload::new("UUIDv7, 300/s", &["append"], |_| write(up_to_ago(0.0)))
        .with_keys(keys::uuid7)
        .with_scale(SLOW),
    Workload::new("ULID, up to 45 s late, 30,000/s", &["append"], |_| write(up_to_ago(45.0)))
        .with_keys(keys::ulid)
        .with_scale(FAST),
    Workload::new("snowflake ids, half is read again", &["append"], |_| {
        mix(0.5, write(newest), read(about_ago(90.0)))
    })
    .with_keys(keys::snowflake),
    Workload::new("log tail: reversed ticks, 300/s", &["prepend"], |_| write(mirrored(newest)))
        .with_keys(keys::decimal)
        .with_scale(SLOW),
    Workload::new("UUIDv7, 2 clocks 90 s apart", &["append"], |dice| write(clocks(dice, 2, 90.0)))
        .with_keys(keys::uuid7),
    Workload::new("ULID, 2 clocks 150 s apart", &["append"], |dice| write(clocks(dice, 2, 150.0)))
        .with_keys(keys::ulid),
    Workload::new("ISO times, 2 clocks 240 s apart, 300/s", &["append"], |dice| {
        write(clocks(dice, 2, 240.0))
    })
    .with_keys(keys::time)
    .with_scale(SLOW),
    Workload::new("snowflake ids, 3 clocks 60 s apart", &["append"], |dice| write(clocks(dice, 3, 60.0)))
        .with_keys(keys::snowflake),
    Workload::new("hex times, 3 clocks 80 s apart, 300/s", &["append"], |dice| write(clocks(dice, 3, 80.0)))
        .with_scale(SLOW),
    // Tenants in front.
    Workload::new("20 tenants | time, Zipf 1.0, 30,000/s", &["split"], |_| {
        let zipf = Zipf::new(20, 1.0);
        // Tenants that are neighbours in rank are far apart in the key space.
        write(move |dice, now| (zipf.draw(dice) * 7 % 20) as u64 * TENANT + at_time(now))
    })
    .with_keys(keys::tenant_and_time)
    .with_scale(FAST),
    Workload::new("16 hashes | time, 300/s", &["split"], |_| write(tenants(16)))
        .with_keys(keys::tenant_and_time)
        .with_scale(SLOW),
    Workload::new("3 tenants | time", &["split"], |_| write(tenants(3))).with_keys(keys::tenant_and_time),
    Workload::new("20 tenants | time, one has 80 %", &["append"], |dice| {
        let tenants = one_of_twenty(0.8, dice.random_range(1..19));
        write(move |dice, now| tenants(dice, now) * TENANT + at_time(now))
    })
    .with_keys(keys::tenant_and_time),
    Workload::new("20 tenants | reversed count, one has 80 %", &["prepend"], |dice| {
        let tenants = one_of_twenty(0.8, dice.random_range(1..19));
        write(move |dice, now| (tenants(dice, now) + 1) * TENANT - at_time(now))
    })
    .with_keys(keys::tenant_and_count),
    Workload::new("200 tenants - counter, 300/s", &["split"], |_| counts_of_200())
        .with_keys(keys::tenant_and_count)
        .with_scale(SLOW),
    Workload::new("200 tenants - counter, all is read", &["split"], |_| {
        let read_again = read(|dice, now| {
            let (tenant, share) = (dice.random_range(0..200), any(dice));
            tenant * TENANT + (share * count_of(tenant, now) as f64) as u64
        });
        mix(0.2, counts_of_200(), read_again)
    })
    .with_keys(keys::tenant_and_count),
    // Partitions that are a time, to the minute: all requests of a minute go to one partition.
    Workload::new("a partition for each minute", &["hot-key", "append", "unclear"], |dice| {
        let phase = 60.0 * any(dice);
        any_row(write(move |_, now| at_time(((now + phase) / 60.0).floor() * 60.0)))
    })
    .with_keys(keys::time),
    Workload::new("20 tenants | time, one has 45 %", &["append"], |_| {
        let tenants = one_of_twenty(0.421, 10);
        write(move |dice, now| tenants(dice, now) * TENANT + at_time(now - any(dice)))
    })
    .with_keys(keys::tenant_and_time),
    Workload::new("compact times, 2 clocks 100 s apart", &["append"], |dice| write(clocks(dice, 2, 100.0)))
        .with_keys(keys::compact_time),
    // Names, and a job that looks through them.
    Workload::new("random ids, 10 % scans of 2 %", &["split"], |_| {
        Box::new(|dice, _| {
            let from = any(dice);
            if chance(dice, 0.1) { Draw::scan(from, from + 0.02, 10) } else { Draw::write(at(from)) }
        })
    })
    .with_keys(keys::decimal),
    Workload::new("40 % append, 60 % Zipf on what is old, 300/s", &["split"], |_| {
        let zipf = Zipf::new(5_000, 0.9);
        mix(0.4, write(newest), read(move |dice, _| at_time(-1e6 + zipf.draw(dice) as f64)))
    })
    .with_keys(keys::snowflake)
    .with_scale(SLOW),
];

/// One of twenty tenants, and the tenant `hot` with this chance more often.
fn one_of_twenty(share: f64, hot: u64) -> Places {
    Box::new(move |dice, _| if chance(dice, share) { hot } else { dice.random_range(0..20) })
}

/// Two hundred tenants of which each counts what it wrote.
fn counts_of_200() -> Requests {
    write(|dice, now| {
        let tenant = dice.random_range(0..200);
        tenant * TENANT + count_of(tenant, now)
    })
}

/// A tenant's counter: each began at a different number.
fn count_of(tenant: u64, now: f64) -> u64 {
    tenant * 977 % 1_000 * 1_000 + (15.0 * (now + 3_600.0)) as u64
}
