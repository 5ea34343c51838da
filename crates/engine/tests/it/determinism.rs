//! Clock and seed decide everything: two runs with one seed write the same objects.

use std::time::Duration;

use crate::support::{
    ACCOUNT, TABLE, delete, memory, note_in_catalogue, open_gated, partition, put_all, simulated, soon, start,
};
use rangehold_engine::{Clock, Node, Options};
use tokio::runtime::RngSeed;
use tokio::time::sleep;

async fn work(server: &Node) {
    let value = "v".repeat(30_000);
    for i in 0..200 {
        let rows: Vec<String> = (0..8).map(|row| format!("{}", (i * 7 + row) % 50)).collect();
        let rows: Vec<(&str, &str)> = rows.iter().map(|row| (row.as_str(), value.as_str())).collect();
        put_all(server, &partition(&format!("p{}", i % 3)), &rows).await.unwrap();
        delete(server, "p1", &format!("{}", i % 9)).await.unwrap();
        sleep(Duration::from_millis(700)).await;
    }
    note_in_catalogue(server, TABLE).await;
    server.router().drop_table(ACCOUNT, TABLE, soon()).await.unwrap();
    sleep(Duration::from_secs(120)).await;
}

fn run(seed: u64) -> Vec<(String, u64)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .rng_seed(RngSeed::from_bytes(&seed.to_le_bytes()))
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = Options { seed, ..simulated(&Clock::manual(start())) };
        let (gate, server) = open_gated(&memory(), options).await;
        work(&server).await;
        server.close().await;
        gate.puts()
    })
}

#[test]
fn two_runs_of_one_seed_write_the_same() {
    let first = run(1);
    assert!(first.iter().filter(|(name, _)| name.contains("/compacted/")).count() > 5);
    let second = run(1);
    let differing = first.iter().zip(&second).find(|(a, b)| a != b);
    assert_eq!(differing, None);
    assert_eq!(first.len(), second.len());
    assert_ne!(run(2), first);
}
