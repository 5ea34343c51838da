//! `cargo xtask test`: everything that must hold, in one command; and `cargo xtask soak`, the long runs.
//!
//! The steps run in order, each prints how long it took, and a failed step does not keep the others
//! from running: one run shows all that is wrong. A duration is printed and never judged. What a step needs from a
//! registry it installs below the build directory; it names what must come from the operating system.

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
    /// Only what a change breaks most often: formatter, lints, documentation, tests, and a few of the longer steps.
    #[arg(long)]
    quick: bool,
}

/// Runs what takes longer than a test should: a thousand simulated clusters, all mistakes, long crash tests, measurements.
#[derive(clap::Args, Debug)]
pub(crate) struct SoakArguments {
    /// Only these runs; may be given several times.
    #[arg(long, value_parser = steps::soak_names())]
    only: Vec<String>,
}

/// Runs the steps and prints a table of their results.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let named = |names: &[String], name: &str| names.iter().any(|named| named == name);
    let mut table = Table::default();
    for step in steps::STEPS {
        let is_wanted = arguments.only.is_empty() || named(&arguments.only, step.name);
        let is_quick = !arguments.quick || steps::QUICK.contains(&step.name);
        if is_wanted && is_quick && !named(&arguments.skip, step.name) {
            table.run(step.name, step.what, || step.run());
        }
    }
    table.end()
}

/// Runs the long runs and prints a table of their results.
pub(crate) fn soak(arguments: &SoakArguments) -> Result<()> {
    let mut table = Table::default();
    for (name, words) in steps::SOAK {
        if arguments.only.is_empty() || arguments.only.iter().any(|only| only == name) {
            table.run(name, &format!("cargo xtask {}", words.join(" ")), || steps::xtask(words));
        }
    }
    table.end()
}

/// The results of the steps so far.
#[derive(Default)]
struct Table(Vec<(&'static str, Duration, Result<()>)>);

impl Table {
    fn run(&mut self, name: &'static str, what: &str, step: impl FnOnce() -> Result<()>) {
        println!("\n=== {name}: {what}");
        let begin = Instant::now();
        let result = step();
        if let Err(error) = &result {
            println!("{name} failed: {error:#}");
        }
        println!("--- {name} took {:.1} s", begin.elapsed().as_secs_f64());
        self.0.push((name, begin.elapsed(), result));
    }

    /// Prints all of them; an error names those that failed.
    fn end(self) -> Result<()> {
        println!("\n{:<12} {:>9}  result", "step", "seconds");
        for (name, took, result) in &self.0 {
            let word = if result.is_ok() { "passed" } else { "FAILED" };
            println!("{name:<12} {:>9.1}  {word}", took.as_secs_f64());
        }
        let failed: Vec<&str> =
            self.0.iter().filter(|(_, _, result)| result.is_err()).map(|(name, _, _)| *name).collect();
        let whole: Duration = self.0.iter().map(|(_, took, _)| *took).sum();
        println!("{:<12} {:>9.1}", "all", whole.as_secs_f64());
        println!("{} passed, {} failed", self.0.len() - failed.len(), failed.len());
        if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
    }
}
