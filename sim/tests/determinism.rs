//! A seed run twice gives the same log, and another seed another one.

use rangehold_sim::run::run;

#[test]
fn a_seed_has_one_log() {
    let mut digests = Vec::new();
    for seed in 1..=6 {
        let (first, second) = (run(seed, false), run(seed, false));
        assert_eq!(first.digest, second.digest, "seed {seed}");
        assert_eq!(first.findings, Vec::<String>::new(), "seed {seed}");
        digests.push(first.digest);
    }
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 6);
}
