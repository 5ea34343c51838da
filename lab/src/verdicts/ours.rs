//! Workloads that the finder's numbers were not made with: what else people do to a range of keys.
//!
//! The second list was written after the finder had passed the first.

use rand::RngExt;
use rand::rngs::StdRng;

use super::keys::TENANT;
use super::stream::{
    Draw, Places, Requests, Zipf, about_ago, any, any_row, anywhere, at, at_time, chance, clocks,
    exponential, hashed, key, mirrored, mix, newest, normal, of_entities, read, up_to_ago, write,
};
use super::workload::Workload;

/// The first list.
pub(super) const FIRST: [Workload; 33] = [
    // Keys that move with time.
    Workload::new("prepend (reverse times)", &["prepend"], |_| write(mirrored(up_to_ago(0.0)))),
    Workload::new("prepend, 20 s late", &["prepend"], |_| write(mirrored(up_to_ago(20.0)))),
    Workload::new("prepend, 300 s late", &["prepend"], |_| write(mirrored(up_to_ago(300.0)))),
    Workload::new("append, late by exp(120 s)", &["append"], |_| write(about_ago(120.0))),
    Workload::new("append, 1800 s late", &["split"], |_| write(up_to_ago(1_800.0))).with_patience(400),
    Workload::new("append, restarted each 10 min", &["append"], |dice| {
        let phase = 600.0 * any(dice);
        write(move |_, now| at_time((now + phase) % 600.0))
    }),
    Workload::new("append 70 %, reads of the last minute", &["append"], |_| {
        mix(0.7, write(newest), read(up_to_ago(60.0)))
    }),
    Workload::new("append 60 %, reads of a fixed past", &["split"], |_| {
        mix(0.6, write(newest), read(fixed_past))
    }),
    Workload::new("append 66 %, reads of a fixed past", &["split"], |_| {
        mix(0.66, write(newest), read(fixed_past))
    }),
    Workload::new("append in batches of 100", &["append"], |_| of_entities(100, write(up_to_ago(1.0)))),
    Workload::new("5 tenants append, each half as much", &["split"], |_| {
        write(|dice, now| {
            let tenant = (exponential(dice) / std::f64::consts::LN_2) as u64;
            tenant.min(4) * TENANT + at_time(now)
        })
    }),
    Workload::new("append 60 %, one counter 40 %", &["split"], |_| mix(0.4, write(|_, _| 7), write(newest))),
    // Spots that move.
    Workload::new("walk through all keys in 25 s", &["append", "unclear"], |dice| read(walk(dice, 25.0))),
    Workload::new("walk through all keys in 10 s", &["append", "unclear"], |dice| read(walk(dice, 10.0))),
    Workload::new("walk through all keys in 40 s", &["append", "unclear"], |dice| read(walk(dice, 40.0))),
    Workload::new("spot that jumps each 20 s", &["unclear"], |dice| {
        let seed = dice.random();
        write(move |dice, now| at(hashed(seed, (now / 20.0) as u64) * 0.9 + 0.01 * any(dice)))
    }),
    Workload::new("one key 70 %, another each 15 s", &["hot-key", "unclear"], |dice| {
        let seed = dice.random();
        mix(0.7, write(move |_, now| at(hashed(seed, (now / 15.0) as u64))), write(anywhere))
    }),
    Workload::new("bell that drifts, slowly", &["split"], |_| write(bell(0.000_02))),
    Workload::new("bell that drifts, fast", &["append"], |_| write(bell(0.000_5))),
    Workload::new("left and right half by turns of 1 s", &["unclear"], |_| {
        write(|dice, now| at(0.5 * any(dice) + if (now as u64).is_multiple_of(2) { 0.0 } else { 0.5 }))
    }),
    // Keys that are hot.
    Workload::new("two keys 45 % each, at the ends", &["split"], |_| {
        write(|dice, _| match any(dice) {
            ..0.45 => at(0.0),
            0.45..0.9 => at(1.0),
            _ => at(0.01 + 0.98 * any(dice)),
        })
    }),
    Workload::new("one key 45 %, in the middle", &["hot-key"], |_| {
        mix(0.45, write(key(0.5)), write(anywhere))
    }),
    Workload::new("one partition 70 %, many rows", &["hot-key"], |_| {
        any_row(mix(0.7, write(key(0.3)), write(anywhere)))
    }),
    Workload::new("random ids, one tenant 70 %", &["split"], |dice| {
        let hot = dice.random_range(0..20);
        write(move |dice, _| {
            let tenant = if chance(dice, 0.7) { hot } else { dice.random_range(0..20) };
            tenant * TENANT + dice.random_range(0..TENANT)
        })
    }),
    Workload::new("three partitions", &["split"], |_| {
        Box::new(|dice, _| {
            let row = dice.random();
            Draw { row, ..Draw::write(at([0.1, 0.5, 0.9][dice.random_range(0..3)])) }
        })
    }),
    Workload::new("new users sign up, all are busy", &["split"], |_| {
        write(|dice, now| ((2_000.0 + now) * 1_000.0 * any(dice)) as u64)
    }),
    // Scans.
    Workload::new("scans of 100 rows, anywhere", &["split"], |_| {
        let scan = |dice: &mut StdRng, _| {
            let from = any(dice);
            Draw::scan(from, from + 0.001, 100)
        };
        mix(0.7, Box::new(scan), read(anywhere))
    }),
    Workload::new("scans of everything 70 %", &["scan"], |_| {
        mix(0.7, Box::new(|_, _| Draw::scan(0.0, 1.0, 1_000)), read(anywhere))
    }),
    Workload::new("scans to the end, from anywhere", &["scan"], |_| {
        Box::new(|dice, _| Draw::scan(any(dice), 1.0, 500))
    }),
    // Bursts.
    Workload::new("burst of 30 s in half the load", &["none"], |dice| write(burst(0.7, any(dice))))
        .with_pace(|now| if in_burst(now) { 1.7 } else { 0.4 }),
    Workload::new("burst of 30 s in full load", &["split"], |_| write(burst(0.6, 0.9)))
        .with_pace(|now| if in_burst(now) { 2.5 } else { 1.0 })
        .with_patience(450),
    // Slow ranges with a small cap.
    Workload::new("uniform, 90 requests/s", &["split"], |_| write(anywhere)).with_scale(0.03),
    Workload::new("append, 60 s late, 90 requests/s", &["append"], |_| write(up_to_ago(60.0)))
        .with_scale(0.03),
];

/// The second list.
pub(super) const SECOND: [Workload; 10] = [
    Workload::new("append, 2 clocks 120 s apart", &["append"], |dice| write(clocks(dice, 2, 120.0))),
    Workload::new("append, 3 clocks 80 s apart", &["append"], |dice| write(clocks(dice, 3, 80.0))),
    Workload::new("prepend, 2 clocks 200 s apart", &["prepend"], |dice| {
        write(mirrored(clocks(dice, 2, 200.0)))
    }),
    Workload::new("append, and the past is filled in", &["split"], |_| {
        mix(0.5, write(newest), write(|_, now| at_time(-20_000_000.0 + 10.0 * now)))
    }),
    Workload::new("append and prepend", &["split"], |_| {
        let from_middle = |now| at_time(now) - at_time(0.0);
        mix(
            0.5,
            write(move |_, now| at(0.5) + from_middle(now)),
            write(move |_, now| at(0.5) - from_middle(now)),
        )
    }),
    Workload::new("uniform, 5 s on and 5 s off", &["split"], |_| write(anywhere))
        .with_pace(|now| if now % 10.0 < 5.0 { 2.0 } else { 0.0 }),
    Workload::new("random ids below half a minute", &["append", "unclear"], |dice| {
        write(ids_below(dice, 30.0))
    }),
    Workload::new("feed: 10 % append, reads of the newest", &["append"], |_| {
        mix(0.1, write(newest), read(about_ago(300.0)))
    }),
    Workload::new("append 80 % in time, 20 % up to 10 min late", &["append"], |_| {
        mix(0.8, write(newest), write(up_to_ago(600.0)))
    }),
    Workload::new("one row 30 %, scans around it", &["split", "scan"], |_| {
        Box::new(|dice, _| match any(dice) {
            ..0.3 => Draw::read(at(0.4)),
            0.3..0.35 => Draw::scan(0.38, 0.42, 40),
            _ => Draw::write(at(any(dice))),
        })
    }),
];

/// Two or three neighbouring partitions and nothing else, one of which has half of the load or more.
pub(super) const FEW: [Workload; 4] = [
    Workload::new("two neighbouring partitions, 50:50", &["split"], |_| few(&[0.5, 0.5])),
    Workload::new("two neighbouring partitions, 60:40", &["split"], |_| few(&[0.6, 0.4])),
    Workload::new("three neighbours, 20:30:50", &["split"], |_| few(&[0.2, 0.3, 0.5])),
    Workload::new("two neighbouring partitions, 80:20", &["hot-key"], |_| few(&[0.8, 0.2])),
];

/// What cannot be known after a minute: the load is even and steady until, much later, it goes elsewhere.
/// They are run to show it, and are not counted.
pub(super) const LIMITS: [Workload; 3] = [
    Workload::new("random ids below the minute", &["append", "unclear"], |dice| write(ids_below(dice, 60.0))),
    Workload::new("random ids below ten minutes", &["append", "unclear"], |dice| {
        write(ids_below(dice, 600.0))
    }),
    Workload::new("Zipf 0.99, other ranks each minute", &["split"], |dice| {
        let (zipf, seed, phase) = (Zipf::new(10_000, 0.99), dice.random::<u64>(), any(dice));
        write(move |dice, now| {
            let rank = zipf.draw(dice) as u64;
            at(hashed(seed.wrapping_add((now / 60.0 + phase) as u64), rank))
        })
    }),
];

/// Keys that begin with a time, to a period, and go on at random.
fn ids_below(dice: &mut StdRng, period: f64) -> Places {
    let phase = any(dice);
    Box::new(move |dice, now| (now / period + phase) as u64 * TENANT + dice.random_range(0..TENANT))
}

/// Times before the start.
fn fixed_past(dice: &mut StdRng, _: f64) -> u64 {
    at_time(-1_000.0 * any(dice))
}

/// Writes to neighbouring partitions with these shares, each of any row.
fn few(shares: &'static [f64]) -> Requests {
    let places = |dice: &mut StdRng, _| {
        let mut left = any(dice);
        let nth = shares.iter().take_while(|share| {
            left -= **share;
            left >= 0.0
        });
        at(0.5) + nth.count().min(shares.len() - 1) as u64
    };
    any_row(write(places))
}

/// A job that goes through all keys in order, again and again.
fn walk(dice: &mut StdRng, period: f64) -> Places {
    let phase = any(dice);
    Box::new(move |_, now| at((now / period + phase) % 1.0))
}

/// A bell of width 0.05 whose middle moves up by `speed` a second.
fn bell(speed: f64) -> Places {
    Box::new(move |dice, now| at(0.3 + speed * now + 0.05 * normal(dice)))
}

/// Even load, but while the burst lasts this share of it goes to a few keys at `spot`.
fn burst(share: f64, spot: f64) -> Places {
    Box::new(move |dice, now| {
        at(if in_burst(now) && chance(dice, share) { spot + 0.001 * any(dice) } else { any(dice) })
    })
}

fn in_burst(now: f64) -> bool {
    (40.0..70.0).contains(&now)
}
