//! The thirteen workloads of the experiment that the finder's numbers come from.

use rand::RngExt;
use rand::rngs::StdRng;

use super::keys::TENANT;
use super::workload::{Draw, Requests, Workload, Zipf, any, at, at_time, chance, hashed};

/// Keys of the Zipf workloads.
const KEYS: usize = 10_000;
/// Exponent that YCSB uses.
const EXPONENT: f64 = 0.99;
/// Seconds of appended keys that were there before the start.
const BEFORE: f64 = 1_000.0;

/// All of them.
pub(super) const WORKLOADS: [Workload; 13] = [
    Workload::new("uniform", &["split"], |_| Box::new(|dice, _| Draw::write(at(any(dice))))),
    Workload::new("Zipf 0.99, scrambled", &["split"], |dice| zipf(Some(dice.random()))),
    Workload::new("Zipf 0.99, ordered", &["split"], |_| zipf(None)),
    Workload::new("one key 60 %", &["hot-key"], |dice| {
        let hot = any(dice);
        Box::new(move |dice, _| Draw::write(at(if chance(dice, 0.6) { hot } else { any(dice) })))
    }),
    Workload::new("append", &["append"], |_| append(0.0)),
    Workload::new("append, 1 s late", &["append"], |_| append(1.0)),
    Workload::new("append, 5 s late", &["append"], |_| append(5.0)),
    Workload::new("append, 20 s late", &["append"], |_| append(20.0)),
    Workload::new("append, 60 s late", &["append"], |_| append(60.0)),
    Workload::new("append, 300 s late", &["append"], |_| append(300.0)),
    Workload::new("2 tenants append", &["split"], |_| tenants_append(2)),
    Workload::new("100 tenants append", &["split"], |_| tenants_append(100)),
    Workload::new("half append, half read", &["split"], |_| {
        Box::new(|dice, now| {
            if chance(dice, 0.5) {
                return Draw::write(at_time(now));
            }
            Draw::read(at_time(any(dice) * (BEFORE + now) - BEFORE))
        })
    }),
];

fn zipf(scramble: Option<u64>) -> Requests {
    let zipf = Zipf::new(KEYS, EXPONENT);
    Box::new(move |dice, _| {
        let rank = zipf.draw(dice);
        Draw::write(at(match scramble {
            Some(seed) => hashed(seed, rank as u64),
            None => rank as f64 / KEYS as f64,
        }))
    })
}

/// Keys are times; an entry comes up to `late` seconds after its time.
pub(super) fn append(late: f64) -> Requests {
    Box::new(move |dice: &mut StdRng, now| Draw::write(at_time(now - late * any(dice))))
}

pub(super) fn tenants_append(tenants: u64) -> Requests {
    Box::new(move |dice, now| Draw::write(dice.random_range(0..tenants) * TENANT + at_time(now)))
}
