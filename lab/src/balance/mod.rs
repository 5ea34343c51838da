//! `cargo xtask balance`: does the planner keep a thousand servers evenly loaded?
//!
//! The real planner runs on a virtual clock, with the real split finder in the scenarios in which load moves. The
//! service below them has load as rates, not as requests ([`world`]). Twelve scenarios of two simulated hours (the one
//! of a million ranges is half an hour) have pass lines. Some are run again for a shorter time, with other systems'
//! rules or with one of our mechanisms switched off, for comparison. Everything is seeded.
//!
//! Prints a table, writes `target/balance/report.json` and a page with pictures,
//! `target/balance/index.html`, and fails if a pass line is missed.
//! How long it took is printed and never judged. Each scenario runs in one thread, and as many run side by side as
//! there are processors. `cargo xtask` builds the release profile for it.

mod demand;
mod judge;
mod keys;
mod outcome;
mod page;
mod parts;
mod scenario;
mod trace;
mod watched;
mod world;

pub(crate) use outcome::Curve;
pub(crate) use page::draw_curves;

use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rangehold_testkit::workspace;
use serde_json::json;

use crate::cores::on_all_cores;
use outcome::{Line, Outcome};
use scenario::Scenario;

/// Runs the real planner through simulated hours of a large service.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only scenarios whose name contains this.
    #[arg(long)]
    only: Option<String>,
}

/// Runs the scenarios and reports; an error says which lines were missed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let began = Instant::now();
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let scenarios: Vec<_> = scenario::ALL.into_iter().filter(|(name, _)| wanted(name)).collect();
    let outcomes = play(&scenarios);
    let lines: Vec<&Line> = outcomes.iter().flat_map(|outcome| &outcome.lines).collect();
    let (directory, report) = (workspace::target().join("balance"), json!({ "lines": lines }));
    let page = directory.join("index.html");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    write(&directory.join("report.json"), &(serde_json::to_string_pretty(&report)? + "\n"))?;
    write(&page, &page::page(&outcomes))?;
    println!("{:.0} s; pictures in {}", began.elapsed().as_secs_f64(), page.display());
    let missed = lines.iter().filter(|line| line.passed == Some(false));
    let missed: Vec<String> = missed.map(|line| format!("{}: {}", line.scenario, line.asked)).collect();
    if missed.is_empty() { Ok(()) } else { bail!("balance: missed {}", missed.join("; ")) }
}

/// Runs scenarios side by side. Their results come in the order of the scenarios, no matter which one ended first.
fn play(scenarios: &[Scenario]) -> Vec<Outcome> {
    let printing = Mutex::new(());
    on_all_cores(scenarios, |(name, scenario)| {
        let began = Instant::now();
        let mut outcome = Outcome::new(name);
        scenario(&mut outcome);
        let _alone = printing.lock();
        for line in &outcome.lines {
            println!("{:<12} {:<72} {:<5} {}", line.scenario, line.asked, line.verdict(), line.seen);
        }
        eprintln!("{name}: {:.1} s", began.elapsed().as_secs_f64());
        outcome
    })
}

fn write(path: &std::path::Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
