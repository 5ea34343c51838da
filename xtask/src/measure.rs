//! `cargo xtask measure`: runs a measurement and puts its output on the page `docs/measurements.md`.
//!
//! Figures that people copy by hand become outdated without notice. So each measurement has a block on the page,
//! between two marks that name it. This command runs the measurement and writes the block: the command, the day, the
//! revision, the machine, and what the run printed. People write the text around the blocks, which says what a figure
//! means and what we aim at; this command does not change it.
//!
//! A measurement that misses its aim ends with an error. Its block is written anyway, and says so.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::itself;
use rangehold_testkit::workspace;

/// Lines of one output that are put on the page, from its end: the result is there.
const LINES_MAX: usize = 120;

/// A measurement: its name on the page, and the arguments of `cargo xtask` that make it.
struct Measurement {
    name: &'static str,
    arguments: &'static [&'static str],
}

/// Every measurement on the page, in its order.
const MEASUREMENTS: &[Measurement] = &[
    measurement("sim", &["sim", "--seeds", "1000"]),
    measurement("mistakes", &["sim", "--mutants"]),
    measurement("crash", &["crash", "--rounds", "50"]),
    measurement("crash-changes", &["crash", "--changes"]),
    measurement("hour", &["crash", "--hour", "--minutes", "60"]),
    measurement("power", &["crash", "--power"]),
    measurement("power-objects", &["crash", "--power-objects", "--points", "100"]),
    measurement("handoff", &["handoff", "--release"]),
    measurement("space", &["space"]),
    measurement("ranges", &["ranges", "--release"]),
    measurement("scale", &["scale", "--release"]),
    measurement("neighbours", &["neighbours"]),
    measurement(
        "client",
        &[
            "client",
            "--release",
            "--minutes",
            "15",
            "--only",
            "moving",
            "--only",
            "sequence",
            "--only",
            "stress",
        ],
    ),
    measurement("client-objects", &["client", "--only", "objects"]),
    measurement("cloud", &["cloud"]),
    measurement("verdicts", &["verdicts"]),
    measurement("verdicts-cost", &["verdicts", "--cost"]),
    measurement("balance", &["balance"]),
    measurement("shards", &["shards"]),
    measurement("shards-cost", &["shards", "--measure", "--release"]),
];

const fn measurement(name: &'static str, arguments: &'static [&'static str]) -> Measurement {
    Measurement { name, arguments }
}

/// Runs measurements, and writes their output into docs/measurements.md.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Which measurements; all of them take hours.
    #[arg(required = true, value_parser = names())]
    names: Vec<String>,
    /// Take the output from this file, saved from a run of this revision on this machine, and run nothing.
    #[arg(long, value_name = "FILE")]
    saved: Option<PathBuf>,
}

fn names() -> Vec<&'static str> {
    MEASUREMENTS.iter().map(|measurement| measurement.name).collect()
}

/// Runs each measurement that is named and writes its block when it ends.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.saved.is_some() && arguments.names.len() > 1 {
        bail!("--saved is the output of one measurement, and {} are named", arguments.names.len());
    }
    for measurement in MEASUREMENTS.iter().filter(|it| arguments.names.iter().any(|name| name == it.name)) {
        let (output, end) = match &arguments.saved {
            Some(file) => {
                let output = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                (output, "a saved run".to_owned())
            }
            None => output_of(measurement.arguments)?,
        };
        write(measurement, &output, &end)?;
    }
    Ok(())
}

/// Runs `cargo xtask` with these arguments. Returns what it printed, and how long it took and how it ended.
fn output_of(arguments: &[&str]) -> Result<(String, String)> {
    let began = Instant::now();
    let mut child = itself::task(arguments).stdout(Stdio::piped()).spawn()?;
    let mut output = String::new();
    for line in BufReader::new(child.stdout.take().expect("its output is piped")).lines() {
        let line = line?;
        println!("{line}");
        output.push_str(&line);
        output.push('\n');
    }
    let ended = if child.wait()?.success() { "" } else { ", and ended with an error" };
    Ok((output, format!("took {:.0} s{ended}", began.elapsed().as_secs_f64())))
}

/// Writes the block of a measurement.
fn write(measurement: &Measurement, output: &str, end: &str) -> Result<()> {
    let page = page();
    let text = std::fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    let command = measurement.arguments.join(" ");
    let facts = [today(), format!("revision {}", revision()?), machine(), end.to_owned()].join(", ");
    let block = format!("`cargo xtask {command}`: {facts}\n\n```text\n{}```\n", last_lines(output));
    std::fs::write(&page, with_block(&text, measurement.name, &block)?)
        .with_context(|| format!("cannot write {}", page.display()))
}

fn page() -> PathBuf {
    workspace::root().join("docs/measurements.md")
}

/// The page with another text between the marks of this name.
fn with_block(page: &str, name: &str, block: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- measured: {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) =
        page.split_once(&begin).with_context(|| format!("the page has no line {begin:?}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("the page has no line {end:?}"))?;
    Ok(format!("{before}{begin}{block}{end}{after}"))
}

/// The end of an output, at most [`LINES_MAX`] lines.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let left_out = lines.len().saturating_sub(LINES_MAX);
    let head = if left_out > 0 { format!("({left_out} lines before)\n") } else { String::new() };
    lines[left_out..].iter().fold(head, |text, line| text + line.trim_end() + "\n")
}

fn today() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    output.map_or_else(
        |_| "day unknown".into(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// The revision that is measured; `-dirty` at its end says that there are changes that are not committed.
fn revision() -> Result<String> {
    let arguments = ["describe", "--always", "--dirty", "--exclude=*"];
    let output = Command::new("git").args(arguments).current_dir(workspace::root()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The number of cores, and the processor's name where the system tells it.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = name.map_or(std::env::consts::ARCH, |(_, name)| name);
    format!("{cores} cores of {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_block_for_each_measurement_and_no_other() {
        let text = std::fs::read_to_string(page()).unwrap();
        let blocks =
            text.lines().filter_map(|line| line.strip_prefix("<!-- measured: ")?.strip_suffix(" -->"));
        assert_eq!(blocks.collect::<Vec<_>>(), names());
        for name in names() {
            assert_ne!(with_block(&text, name, "").unwrap(), text, "the block of {name} is empty");
        }
    }

    #[test]
    fn a_block_replaces_the_one_before_and_nothing_else() {
        let page = "above\n<!-- measured: a -->\nold\n<!-- end of a -->\nbelow\n";
        let new = with_block(page, "a", "new\n").unwrap();
        assert_eq!(new, page.replace("old", "new"));
        let refused = with_block(page, "b", "new\n").unwrap_err().to_string();
        assert_eq!(refused, "the page has no line \"<!-- measured: b -->\\n\"");
    }

    #[test]
    fn of_a_long_output_the_end_is_kept() {
        let long: String = (0..LINES_MAX + 2).map(|number| format!("line {number} \n")).collect();
        let kept = last_lines(&long);
        assert!(kept.starts_with("(2 lines before)\nline 2\n"), "{kept}");
        assert!(kept.ends_with(&format!("\nline {}\n", LINES_MAX + 1)), "{kept}");
        assert_eq!(last_lines("a\nb"), "a\nb\n");
    }
}
