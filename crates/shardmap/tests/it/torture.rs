//! A short trial: changes of a map, killed managers and servers, and writers through every door at once. The
//! long one and the mutants are `cargo xtask shards`.

use crate::trial;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_runs_on_a_shard_that_has_lost_the_key() {
    rangehold_testkit::needs!(PostgreSql);
    // The processes of the trial are this test again.
    if trial::process::has_task().await {
        return;
    }
    let report = trial::torture::run(1, 25, "", false).await;
    println!("{report}");
    assert!(report.wrong.is_empty(), "{report}");
    assert!(report.changed.comparisons > 0 && report.counts.contains_key("Single: Written"));
    assert!(report.changed.faults.counts.contains_key("Place { online: true }"), "{report}");
}
