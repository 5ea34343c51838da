//! `cargo xtask balance`: does the planner keep a thousand servers evenly loaded?
//!
//! The real planner, and where load moves the real split finder, run on a virtual clock over a service
//! whose load is a matter of rates, not of requests ([`world`]). Twelve scenarios of two simulated hours
//! (the one of a million ranges is half an hour) have pass lines; some are run again, for a shorter time, with
//! other systems' rules, or with one of our mechanisms switched off, to be compared. Everything is seeded.
//!
//! Prints a table, writes `target/balance/report.json` and a page with pictures,
//! `target/balance/index.html`, and fails if a pass line is missed, or if all together take
//! longer than [`TIME_MAX`]. It runs on one core, in the release profile: a debug build starts itself anew
//! that way.

mod demand;
mod judge;
mod keys;
mod outcome;
mod page;
mod scenario;
mod trace;
mod world;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{server, workspace};
use outcome::{Line, Outcome};

/// What all scenarios may take: that it is at most ten minutes is a claim of this command.
///
/// It is judged by the processor time of the process. The scenarios run one after the other in one thread, so
/// that this is what they take on a machine with nothing else to do; elsewhere the clock on the wall would judge
/// the other programs.
const TIME_MAX: Duration = Duration::from_secs(600);

/// Runs the real planner through simulated hours of a large service.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only scenarios whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Stay in the profile this was built in, also if it is slow.
    #[arg(long)]
    here: bool,
}

/// Runs the scenarios and reports; an error says which lines were missed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if cfg!(debug_assertions) && !arguments.here {
        return run_in_release(arguments);
    }
    let began = Instant::now();
    let mut outcomes = Vec::new();
    for (name, scenario) in scenario::ALL {
        if arguments.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let began = Instant::now();
        let outcome = scenario();
        outcome.lines.iter().for_each(print_line);
        eprintln!("{name}: {:.1} s", began.elapsed().as_secs_f64());
        outcomes.push((name, outcome));
    }
    if arguments.only.is_none() && !cfg!(debug_assertions) {
        let line = time_line(server::processor_time("self")?);
        print_line(&line);
        outcomes.push((line.scenario, Outcome { lines: vec![line], ..Outcome::default() }));
    }
    let directory = workspace::target().join("balance");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    write(&directory.join("report.json"), &report(&outcomes)?)?;
    write(&directory.join("index.html"), &page::page(&outcomes))?;
    println!(
        "{:.0} s; pictures in {}",
        began.elapsed().as_secs_f64(),
        directory.join("index.html").display()
    );
    let missed =
        outcomes.iter().flat_map(|(_, outcome)| &outcome.lines).filter(|line| line.passed == Some(false));
    let missed: Vec<String> = missed.map(|line| format!("{}: {}", line.scenario, line.asked)).collect();
    if missed.is_empty() { Ok(()) } else { bail!("balance: missed {}", missed.join("; ")) }
}

fn time_line(used: Duration) -> Line {
    Line::new(
        "all",
        format!("<= {} s of processor time", TIME_MAX.as_secs()),
        format!("{:.0} s", used.as_secs_f64()),
        used <= TIME_MAX,
    )
}

/// Starts the same task again, built with the release profile.
fn run_in_release(arguments: &Arguments) -> Result<()> {
    let mut command = std::process::Command::new(workspace::cargo());
    command.args(["run", "--quiet", "--release", "--package", "xtask", "--", "balance"]);
    command.current_dir(workspace::root());
    if let Some(only) = &arguments.only {
        command.args(["--only", only]);
    }
    workspace::run(&mut command)
}

fn print_line(line: &Line) {
    let verdict = match line.passed {
        Some(true) => "pass",
        Some(false) => "MISS",
        None => "",
    };
    println!("{:<12} {:<72} {verdict:<5} {}", line.scenario, line.asked, line.seen);
}

fn report(outcomes: &[(&str, Outcome)]) -> Result<String> {
    let lines = outcomes.iter().flat_map(|(_, outcome)| &outcome.lines).map(|line| {
        serde_json::json!({
            "scenario": line.scenario, "asked": line.asked, "seen": line.seen, "passed": line.passed,
        })
    });
    let lines: Vec<serde_json::Value> = lines.collect();
    Ok(serde_json::to_string_pretty(&serde_json::json!({ "lines": lines }))? + "\n")
}

fn write(path: &std::path::Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
