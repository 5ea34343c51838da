//! Workloads that the finder's numbers were not made with: what else people do to a range of keys.
//!
//! The second list was written after the finder had passed the first.

use rand::RngExt;
use rand::rngs::StdRng;

use super::experiment::append;
use super::keys::TENANT;
use super::workload::{
    Draw, Requests, SPACE, Workload, Zipf, any, at, at_time, chance, exponential, hashed, normal,
};

/// The first list.
pub(super) const FIRST: [Workload; 33] = [
    // Keys that move with time.
    Workload::new("prepend (reverse times)", &["prepend"], |_| prepend(0.0)),
    Workload::new("prepend, 20 s late", &["prepend"], |_| prepend(20.0)),
    Workload::new("prepend, 300 s late", &["prepend"], |_| prepend(300.0)),
    Workload::new("append, late by exp(120 s)", &["append"], |_| {
        Box::new(|dice, now| Draw::write(at_time(now - 120.0 * exponential(dice))))
    }),
    Workload::new("append, 1800 s late", &["split"], |_| append(1_800.0)).with_patience(400),
    Workload::new("append, restarted each 10 min", &["append"], |dice| {
        let phase = 600.0 * any(dice);
        Box::new(move |_, now| Draw::write(at_time((now + phase) % 600.0)))
    }),
    Workload::new("append 70 %, reads of the last minute", &["append"], |_| {
        Box::new(|dice, now| {
            if chance(dice, 0.7) {
                Draw::write(at_time(now))
            } else {
                Draw::read(at_time(now - 60.0 * any(dice)))
            }
        })
    }),
    Workload::new("append 60 %, reads of a fixed past", &["split"], |_| append_and_old_reads(0.6)),
    Workload::new("append 66 %, reads of a fixed past", &["split"], |_| append_and_old_reads(0.66)),
    Workload::new("append in batches of 100", &["append"], |_| {
        Box::new(|dice, now| Draw { entities: 100, ..Draw::write(at_time(now - any(dice))) })
    }),
    Workload::new("5 tenants append, each half as much", &["split"], |_| {
        Box::new(|dice, now| {
            let tenant = (exponential(dice) / std::f64::consts::LN_2) as u64;
            Draw::write(tenant.min(4) * TENANT + at_time(now))
        })
    }),
    Workload::new("append 60 %, one counter 40 %", &["split"], |_| {
        Box::new(|dice, now| Draw::write(if chance(dice, 0.4) { 7 } else { at_time(now) }))
    }),
    // Spots that move.
    Workload::new("walk through all keys in 25 s", &["append", "unclear"], |dice| walk(dice, 25.0)),
    Workload::new("walk through all keys in 10 s", &["append", "unclear"], |dice| walk(dice, 10.0)),
    Workload::new("walk through all keys in 40 s", &["append", "unclear"], |dice| walk(dice, 40.0)),
    Workload::new("spot that jumps each 20 s", &["unclear"], |dice| {
        let seed = dice.random();
        Box::new(move |dice, now| {
            let spot = hashed(seed, (now / 20.0) as u64);
            Draw::write(at(spot * 0.9 + 0.01 * any(dice)))
        })
    }),
    Workload::new("one key 70 %, another each 15 s", &["hot-key", "unclear"], |dice| {
        let seed = dice.random();
        Box::new(move |dice, now| {
            let hot = hashed(seed, (now / 15.0) as u64);
            Draw::write(at(if chance(dice, 0.7) { hot } else { any(dice) }))
        })
    }),
    Workload::new("bell that drifts, slowly", &["split"], |_| bell(0.000_02)),
    Workload::new("bell that drifts, fast", &["append"], |_| bell(0.000_5)),
    Workload::new("left and right half by turns of 1 s", &["unclear"], |_| {
        Box::new(|dice, now| {
            Draw::write(at(0.5 * any(dice) + if (now as u64).is_multiple_of(2) { 0.0 } else { 0.5 }))
        })
    }),
    // Keys that are hot.
    Workload::new("two keys 45 % each, at the ends", &["split"], |_| {
        Box::new(|dice, _| {
            let aim = any(dice);
            let end = if aim < 0.45 { 0.0 } else { 1.0 };
            Draw::write(at(if aim < 0.9 { end } else { 0.01 + 0.98 * any(dice) }))
        })
    }),
    Workload::new("one key 45 %, in the middle", &["hot-key"], |_| {
        Box::new(|dice, _| Draw::write(at(if chance(dice, 0.45) { 0.5 } else { any(dice) })))
    }),
    Workload::new("one partition 70 %, many rows", &["hot-key"], |_| {
        Box::new(|dice, _| {
            let place = if chance(dice, 0.7) { at(0.3) } else { at(any(dice)) };
            Draw { row: dice.random(), ..Draw::write(place) }
        })
    }),
    Workload::new("random ids, one tenant 70 %", &["split"], |dice| {
        let hot = dice.random_range(0..20u64);
        Box::new(move |dice, _| {
            let tenant = if chance(dice, 0.7) { hot } else { dice.random_range(0..20) };
            Draw::write(tenant * TENANT + dice.random_range(0..TENANT))
        })
    }),
    Workload::new("three partitions", &["split"], |_| {
        Box::new(|dice, _| Draw {
            row: dice.random(),
            ..Draw::write(at([0.1, 0.5, 0.9][dice.random_range(0..3)]))
        })
    }),
    Workload::new("new users sign up, all are busy", &["split"], |_| {
        Box::new(|dice, now| Draw::write(((2_000.0 + now) * 1_000.0 * any(dice)) as u64))
    }),
    // Scans.
    Workload::new("scans of 100 rows, anywhere", &["split"], |_| {
        Box::new(|dice, _| if chance(dice, 0.7) { scan(dice, 0.001, 100) } else { Draw::read(at(any(dice))) })
    }),
    Workload::new("scans of everything 70 %", &["scan"], |_| {
        Box::new(
            |dice, _| {
                if chance(dice, 0.7) { Draw::scan(0, at(1.0), 1_000) } else { Draw::read(at(any(dice))) }
            },
        )
    }),
    Workload::new("scans to the end, from anywhere", &["scan"], |_| {
        Box::new(|dice, _| Draw::scan(at(any(dice)), at(1.0), 500))
    }),
    // Bursts.
    Workload::new("burst of 30 s in half the load", &["none"], |dice| {
        let spot = any(dice);
        Box::new(move |dice, now| {
            let place = if in_burst(now) && chance(dice, 0.7) { spot + 0.001 * any(dice) } else { any(dice) };
            Draw::write(at(place))
        })
    })
    .with_pace(|now| if in_burst(now) { 1.7 } else { 0.4 }),
    Workload::new("burst of 30 s in full load", &["split"], |_| {
        Box::new(|dice, now| {
            let place = if in_burst(now) && chance(dice, 0.6) { 0.9 + 0.001 * any(dice) } else { any(dice) };
            Draw::write(at(place))
        })
    })
    .with_pace(|now| if in_burst(now) { 2.5 } else { 1.0 })
    .with_patience(450),
    // Slow ranges with a small cap.
    Workload::new("uniform, 90 requests/s", &["split"], |_| Box::new(|dice, _| Draw::write(at(any(dice)))))
        .with_scale(0.03),
    Workload::new("append, 60 s late, 90 requests/s", &["append"], |_| append(60.0)).with_scale(0.03),
];

/// The second list.
pub(super) const SECOND: [Workload; 10] = [
    Workload::new("append, 2 clocks 120 s apart", &["append"], |dice| clocks(dice, 2, 120.0)),
    Workload::new("append, 3 clocks 80 s apart", &["append"], |dice| clocks(dice, 3, 80.0)),
    Workload::new("prepend, 2 clocks 200 s apart", &["prepend"], |dice| {
        let clocks = clocks(dice, 2, 200.0);
        Box::new(move |dice, now| Draw::write(SPACE as u64 - clocks(dice, now).place))
    }),
    Workload::new("append, and the past is filled in", &["split"], |_| {
        Box::new(|dice, now| {
            Draw::write(at_time(if chance(dice, 0.5) { now } else { -20_000_000.0 + 10.0 * now }))
        })
    }),
    Workload::new("append and prepend", &["split"], |_| {
        Box::new(|dice, now| {
            let from = at_time(now) - at_time(0.0);
            let middle = at(0.5);
            Draw::write(if chance(dice, 0.5) { middle + from } else { middle - from })
        })
    }),
    Workload::new("uniform, 5 s on and 5 s off", &["split"], |_| {
        Box::new(|dice, _| Draw::write(at(any(dice))))
    })
    .with_pace(|now| if now % 10.0 < 5.0 { 2.0 } else { 0.0 }),
    Workload::new("random ids below half a minute", &["append", "unclear"], |dice| ids_below(dice, 30.0)),
    Workload::new("feed: 10 % append, reads of the newest", &["append"], |_| {
        Box::new(|dice, now| {
            if chance(dice, 0.1) {
                return Draw::write(at_time(now));
            }
            Draw::read(at_time(now - 300.0 * exponential(dice)))
        })
    }),
    Workload::new("append 80 % in time, 20 % up to 10 min late", &["append"], |_| {
        Box::new(|dice, now| {
            let late = if chance(dice, 0.8) { 0.0 } else { 600.0 * any(dice) };
            Draw::write(at_time(now - late))
        })
    }),
    Workload::new("one row 30 %, scans around it", &["split", "scan"], |_| {
        Box::new(|dice, _| {
            let aim = any(dice);
            if aim < 0.3 {
                Draw::read(at(0.4))
            } else if aim < 0.35 {
                Draw::scan(at(0.38), at(0.42), 40)
            } else {
                Draw::write(at(any(dice)))
            }
        })
    }),
];

/// What cannot be known after a minute: the load is even and steady until, much later, it goes elsewhere.
/// They are run to show it, and are not counted.
pub(super) const LIMITS: [Workload; 3] = [
    Workload::new("random ids below the minute", &["append", "unclear"], |dice| ids_below(dice, 60.0)),
    Workload::new("random ids below ten minutes", &["append", "unclear"], |dice| ids_below(dice, 600.0)),
    Workload::new("Zipf 0.99, other ranks each minute", &["split"], |dice| {
        let (zipf, seed, phase) = (Zipf::new(10_000, 0.99), dice.random::<u64>(), any(dice));
        Box::new(move |dice, now| {
            let rank = zipf.draw(dice) as u64;
            Draw::write(at(hashed(seed.wrapping_add((now / 60.0 + phase) as u64), rank)))
        })
    }),
];

/// Keys that begin with a time, to a period, and go on at random.
fn ids_below(dice: &mut StdRng, period: f64) -> Requests {
    let phase = any(dice);
    Box::new(move |dice, now| {
        Draw::write((now / period + phase) as u64 * TENANT + dice.random_range(0..TENANT))
    })
}

/// Times from several clocks, each behind the one before.
pub(super) fn clocks(dice: &mut StdRng, clocks: u64, apart: f64) -> Requests {
    let start = 1e7 * any(dice);
    Box::new(move |dice, now| Draw::write(at_time(start + now - apart * dice.random_range(0..clocks) as f64)))
}

fn prepend(late: f64) -> Requests {
    Box::new(move |dice, now| Draw::write(SPACE as u64 - at_time(now - late * any(dice))))
}

fn append_and_old_reads(share: f64) -> Requests {
    Box::new(move |dice, now| {
        if chance(dice, share) {
            Draw::write(at_time(now))
        } else {
            Draw::read(at_time(-1_000.0 * any(dice)))
        }
    })
}

/// A job that reads all keys in order, again and again.
fn walk(dice: &mut StdRng, period: f64) -> Requests {
    let phase = any(dice);
    Box::new(move |_, now| Draw::read(at((now / period + phase) % 1.0)))
}

/// A bell of width 0.05 whose middle moves up by `speed` a second.
fn bell(speed: f64) -> Requests {
    Box::new(move |dice, now| Draw::write(at(0.3 + speed * now + 0.05 * normal(dice))))
}

fn scan(dice: &mut StdRng, width: f64, entities: u32) -> Draw {
    let from = any(dice);
    Draw::scan(at(from), at(from + width), entities)
}

fn in_burst(now: f64) -> bool {
    (40.0..70.0).contains(&now)
}
