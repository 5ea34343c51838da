//! A short trial: changes of a map, killed managers and servers, and writers through every door at once. The
//! long one and the mutants are `cargo xtask shards`.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_runs_on_a_shard_that_has_lost_the_key() {
    rangehold_testkit::needs!(PostgreSql);
    let report = crate::trial::torture::run(1, 25, "").await;
    println!("{report}");
    assert!(report.wrong.is_empty(), "{report}");
    assert!(report.changed.comparisons > 0 && report.written.counts.contains_key("Single: Written"));
}
