//! The program behind `cargo xtask shards`.
//!
//! ```text
//! torture CHANGES SEED     changes and writers at once; fails if anything is wrong
//! pooled CHANGES SEED      the same with the first shard behind pgbouncer
//! ... CHANGES SEED waits   fails, too, if a statement waits too long
//! mutants CHANGES SEED     the same with each known mistake in the fence; fails if one is not found
//! measure                  what routing and the fence cost
//! measure cache            of that, only a warm cache
//! measure scale            of that, only what many mappings cost
//! python PYTHON            the program of tests/python-shards, by this Python, which has psycopg
//! ```

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "a test's program fails by panic")]

#[path = "../support/mod.rs"]
#[macro_use]
mod support;
#[path = "mod.rs"]
mod trial;

use std::process::ExitCode;

use support::mutants::{ONE_STATEMENT, no_share};

#[tokio::main]
async fn main() -> ExitCode {
    if trial::process::has_task().await {
        return ExitCode::SUCCESS;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [kind @ ("torture" | "pooled"), changes, seed, ref rest @ ..] if matches!(rest, [] | ["waits"]) => {
            let poolers = kind == "pooled";
            let mut report = trial::torture::run(number(seed), number(changes) as usize, "", poolers).await;
            if !rest.is_empty() {
                report.judge_waits();
            }
            println!("{report}");
            ExitCode::from(u8::from(!report.wrong.is_empty()))
        }
        ["mutants", changes, seed] => mutants(number(changes) as usize, number(seed)).await,
        ["measure"] => {
            trial::measure::run().await;
            ExitCode::SUCCESS
        }
        ["measure", "cache"] => {
            trial::measure::warm_cache().await;
            ExitCode::SUCCESS
        }
        ["measure", "scale"] => {
            trial::scale::run().await;
            ExitCode::SUCCESS
        }
        ["python", python] => {
            trial::python::run(python.as_ref()).await;
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!(
                "give one of: torture CHANGES SEED [waits], pooled CHANGES SEED [waits], mutants CHANGES SEED, measure, measure cache, \
                measure scale, python PYTHON"
            );
            ExitCode::FAILURE
        }
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

async fn mutants(changes: usize, seed: u64) -> ExitCode {
    let mut missed = 0;
    let known = [
        ("lock and check in one statement", ONE_STATEMENT.to_owned()),
        ("no FOR SHARE above READ COMMITTED", no_share()),
    ];
    for (name, sql) in known {
        let report = trial::torture::run(seed, changes, &sql, false).await;
        let changes = report.changed.count();
        match report.wrong.first() {
            Some(wrong) => println!("found after {changes} changes: {name}\n    {wrong}"),
            None => {
                missed += 1;
                println!("NOT found in {changes} changes: {name}");
            }
        }
    }
    ExitCode::from(u8::from(missed > 0))
}
