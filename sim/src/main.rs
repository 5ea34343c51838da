//! Runs seeds of the simulation, one after another: one line of JSON for each, or its log.
//!
//! `cargo xtask sim` runs several of these side by side and adds up what they print.

use std::process::ExitCode;

use clap::Parser;
use rangehold_sim::faults::Fault;
use rangehold_sim::run::{Outcome, run, run_long, watch_panics};
use serde_json::json;

/// Runs seeds of the simulation.
#[derive(Parser)]
#[command(name = "rangehold-sim")]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// The distance from one seed to the next.
    #[arg(long, default_value_t = 1)]
    step: u64,
    /// Seeds below this one are run twice, and their logs compared.
    #[arg(long, default_value_t = 0)]
    twice_below: u64,
    /// Runs each seed for ten simulated minutes instead of one.
    #[arg(long)]
    long: bool,
    /// Prints the log of each run.
    #[arg(long)]
    log: bool,
    /// For programs: one line of JSON for each seed.
    #[arg(long)]
    json: bool,
    /// Ends at the first seed that fails.
    #[arg(long)]
    until_failed: bool,
    /// Prints the names of all fault switches.
    #[arg(long)]
    list_faults: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list_faults {
        for fault in Fault::ALL {
            println!("{fault}");
        }
        return ExitCode::SUCCESS;
    }
    watch_panics(false);
    if std::env::var_os("RUST_LOG").is_some() {
        tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .without_time()
            .with_writer(std::io::stderr)
            .init();
    }
    let mut failed = 0;
    for number in 0..arguments.seeds {
        let seed = arguments.from + number * arguments.step.max(1);
        let twice = seed < arguments.twice_below;
        let outcome = once_or_twice(if arguments.long { run_long } else { run }, seed, twice, arguments.log);
        if arguments.json {
            println!("{}", to_json(&outcome, twice));
        } else {
            println!("{outcome}");
        }
        failed += u64::from(!outcome.passed());
        if arguments.until_failed && failed > 0 {
            break;
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn once_or_twice(run: fn(u64, bool) -> Outcome, seed: u64, twice: bool, log: bool) -> Outcome {
    let mut outcome = run(seed, log);
    if twice {
        let again = run(seed, log);
        if again.digest != outcome.digest {
            outcome.findings.push(format!(
                "the second run has another log: {} events and {:016x}, first {} and {:016x}",
                again.digest.0, again.digest.1, outcome.digest.0, outcome.digest.1
            ));
        }
    }
    outcome
}

fn to_json(outcome: &Outcome, twice: bool) -> serde_json::Value {
    let faults: serde_json::Map<String, serde_json::Value> =
        outcome.faults.iter().map(|(fault, struck)| (fault.to_string(), (*struck).into())).collect();
    json!({
        "seed": outcome.seed,
        "twice": twice,
        "findings": outcome.findings,
        "requests": outcome.requests,
        "simulated_ms": u64::try_from(outcome.simulated.as_millis()).unwrap_or(u64::MAX),
        "undecided": outcome.undecided,
        "changes": outcome.changes,
        "planned": outcome.planned,
        "faults": faults,
    })
}
