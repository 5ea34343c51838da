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
//! there are processors. The profile is release: a debug build starts its own release build.

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

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use outcome::{Line, Outcome};
use rangehold_testkit::workspace;
use scenario::Scenario;

/// Runs the real planner through simulated hours of a large service.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only scenarios whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Stay in the profile that this was built in, even if it is slow.
    #[arg(long)]
    here: bool,
}

/// Runs the scenarios and reports; an error says which lines were missed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if cfg!(debug_assertions) && !arguments.here {
        return run_in_release(arguments);
    }
    let began = Instant::now();
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let scenarios: Vec<_> = scenario::ALL.into_iter().filter(|(name, _)| wanted(name)).collect();
    let outcomes = play(&scenarios);
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

/// Runs scenarios side by side, as many as there are processors. Their results come in the order of the scenarios, no
/// matter which one ended first.
fn play(scenarios: &[Scenario]) -> Vec<(&'static str, Outcome)> {
    let next = AtomicUsize::new(0);
    let played: Vec<OnceLock<Outcome>> = scenarios.iter().map(|_| OnceLock::new()).collect();
    let printing = Mutex::new(());
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        scenarios.get(index).map(|scenario| (index, scenario))
    };
    let work = || {
        while let Some((index, (name, scenario))) = take() {
            let began = Instant::now();
            let outcome = played[index].get_or_init(scenario);
            let _alone = printing.lock();
            outcome.lines.iter().for_each(print_line);
            eprintln!("{name}: {:.1} s", began.elapsed().as_secs_f64());
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| (0..processors).for_each(|_| drop(scope.spawn(work))));
    let names = scenarios.iter().map(|(name, _)| *name);
    names.zip(played).map(|(name, outcome)| (name, outcome.into_inner().expect("all were played"))).collect()
}

/// Starts the same task again, built with the release profile.
fn run_in_release(arguments: &Arguments) -> Result<()> {
    let mut command = std::process::Command::new(workspace::cargo());
    command.args(["run", "--quiet", "--release", "--package", "rangehold-lab", "--", "balance"]);
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
