//! `cargo xtask test`: everything that must hold, in one command.
//!
//! The steps run in order, each prints how long it took, and a failed step does not keep the others
//! from running: one run shows all that is wrong. What a step needs from a registry it installs below
//! the build directory; what must come from the operating system it names.

mod steps;
mod tools;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Runs formatter, lints, tests of all kinds, fuzzers and crash tests.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only these steps; may be given several times.
    #[arg(long, value_parser = steps::names())]
    only: Vec<String>,
    /// All but these steps; may be given several times.
    #[arg(long, value_parser = steps::names())]
    skip: Vec<String>,
}

/// Runs the steps and prints a table of what became of them.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut results: Vec<(&str, Duration, Result<()>)> = Vec::new();
    let whole = Instant::now();
    for step in steps::STEPS {
        let named = |names: &[String]| names.iter().any(|name| name == step.name);
        if (!arguments.only.is_empty() && !named(&arguments.only)) || named(&arguments.skip) {
            continue;
        }
        println!("\n=== {}: {}", step.name, step.what);
        let begin = Instant::now();
        let result = (step.run)();
        if let Err(error) = &result {
            println!("{} failed: {error:#}", step.name);
        }
        println!("--- {} took {:.1} s", step.name, begin.elapsed().as_secs_f64());
        results.push((step.name, begin.elapsed(), result));
    }
    println!("\n{:<12} {:>9}  result", "step", "seconds");
    for (name, took, result) in &results {
        let word = if result.is_ok() { "passed" } else { "FAILED" };
        println!("{name:<12} {:>9.1}  {word}", took.as_secs_f64());
    }
    let failed: Vec<&str> =
        results.iter().filter(|(_, _, result)| result.is_err()).map(|(name, _, _)| *name).collect();
    println!("{:<12} {:>9.1}", "all", whole.elapsed().as_secs_f64());
    println!("{} passed, {} failed", results.len() - failed.len(), failed.len());
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}
