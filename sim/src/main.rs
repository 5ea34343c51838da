//! Runs seeds of the simulation, one after another.

use std::process::ExitCode;

use clap::Parser;
use rangehold_sim::run::{run, watch_panics};

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
    /// Prints the log of each run.
    #[arg(long)]
    log: bool,
    /// Runs each seed twice and compares the logs.
    #[arg(long)]
    twice: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    watch_panics(false);
    if std::env::var_os("RUST_LOG").is_some() {
        tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .without_time()
            .with_writer(std::io::stderr)
            .init();
    }
    let mut failed = 0;
    for seed in arguments.from..arguments.from + arguments.seeds {
        let mut outcome = run(seed, arguments.log);
        if arguments.twice {
            let again = run(seed, arguments.log);
            if again.digest != outcome.digest {
                outcome.findings.push(format!("the second run differs: {again}"));
            }
        }
        println!("{outcome}");
        println!("    {:?}", outcome.faults);
        failed += u64::from(!outcome.passed());
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
