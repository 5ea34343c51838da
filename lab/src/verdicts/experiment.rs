//! The thirteen workloads of the experiment that the finder's numbers come from.

use rand::RngExt;

use super::stream::{any, anywhere, at_time, key, mix, newest, read, tenants, up_to_ago, write, zipf};
use super::workload::Workload;

/// Keys of the Zipf workloads.
const KEYS: usize = 10_000;
/// Exponent that YCSB uses.
const EXPONENT: f64 = 0.99;
/// Seconds of appended keys that were there before the start.
const BEFORE: f64 = 1_000.0;

/// All of them.
pub(super) const WORKLOADS: [Workload; 13] = [
    Workload::new("uniform", &["split"], |_| write(anywhere)),
    Workload::new("Zipf 0.99, scrambled", &["split"], |dice| {
        write(zipf(KEYS, EXPONENT, Some(dice.random())))
    }),
    Workload::new("Zipf 0.99, ordered", &["split"], |_| write(zipf(KEYS, EXPONENT, None))),
    // Near an end of the range a cut beside the key takes a third of the load off.
    Workload::new("one key 60 %", &["hot-key", "split"], |dice| {
        mix(0.6, write(key(any(dice))), write(anywhere))
    }),
    // Keys are times; an entry comes up to so many seconds after its time.
    Workload::new("append", &["append"], |_| write(up_to_ago(0.0))),
    Workload::new("append, 1 s late", &["append"], |_| write(up_to_ago(1.0))),
    Workload::new("append, 5 s late", &["append"], |_| write(up_to_ago(5.0))),
    Workload::new("append, 20 s late", &["append"], |_| write(up_to_ago(20.0))),
    Workload::new("append, 60 s late", &["append"], |_| write(up_to_ago(60.0))),
    Workload::new("append, 300 s late", &["append"], |_| write(up_to_ago(300.0))),
    Workload::new("2 tenants append", &["split"], |_| write(tenants(2))),
    Workload::new("100 tenants append", &["split"], |_| write(tenants(100))),
    Workload::new("half append, half read", &["split"], |_| {
        mix(0.5, write(newest), read(|dice, now| at_time(any(dice) * (BEFORE + now) - BEFORE)))
    }),
];
