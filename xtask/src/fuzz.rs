//! `cargo xtask fuzz`: coverage-guided fuzzing on the stable toolchain.
//!
//! `cargo fuzz` wants a nightly compiler, for the address sanitizer and a few unstable flags. A fuzzer needs only the
//! coverage to guide it. The coverage comes from an LLVM pass, which stable rustc runs too if it is asked to.
//! libFuzzer, compiled from its source by `libfuzzer-sys`, finds the counters by itself. Since nothing here is unsafe,
//! the address sanitizer has nothing to find.
//!
//! Measured with rustc 1.95: a target that panics behind four nested comparisons and a word of four letters is found
//! after 5 s with these flags, and not within 20 s without them.
//!
//! Inputs found here stay below the build directory. The small corpora in `fuzz/corpus/` are committed, and each run
//! begins with them.

use std::fs;
use std::iter;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use rangehold_testkit::workspace;

/// The targets: one binary of the crate `fuzz/` each.
const TARGETS: [&str; 13] = [
    "filter",
    "batch",
    "entity_json",
    "sas",
    "canonicalize",
    "token",
    "row",
    "multipart",
    "glob",
    "object_batch",
    "signed_url",
    "object_xml",
    "expression",
];

/// Makes rustc count the edges of the control flow and report comparisons, as libFuzzer reads them.
const COVERAGE_FLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Longest input, in bytes, and longest time for one, in seconds.
const INPUT_BYTES_MAX: u32 = 4_096;
const INPUT_SECONDS_MAX: u32 = 10;

/// Feeds the parsers inputs that reach new code.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// One of the targets; all of them when none is named.
    #[arg(value_parser = TARGETS)]
    target: Option<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 20)]
    seconds: u32,
}

/// Builds the targets and runs as many of them at once as there are cores; an error names those that failed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let binaries = build()?;
    let targets: Vec<&str> = arguments.target.as_deref().map_or(TARGETS.to_vec(), |target| vec![target]);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    // Each thread takes the next target, so a target that fails early does not leave a core idle.
    let next = AtomicUsize::new(0);
    let one_after_the_other = || {
        let mine = iter::from_fn(|| targets.get(next.fetch_add(1, Ordering::Relaxed)));
        mine.filter(|target| !passes(&binaries, target, arguments.seconds)).copied().collect::<Vec<_>>()
    };
    let failed = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(one_after_the_other)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect::<Vec<_>>()
    });
    if failed.is_empty() { Ok(()) } else { bail!("fuzz: {} failed", failed.join(", ")) }
}

/// Runs one target and prints its result; says whether it found nothing.
fn passes(binaries: &Path, target: &str, seconds: u32) -> bool {
    let result = fuzz(binaries, target, seconds);
    match &result {
        Ok(line) => println!("fuzz {target:<13} {line}"),
        Err(error) => println!("fuzz {target:<13} FOUND {error:#}"),
    }
    result.is_ok()
}

/// Builds all targets; returns the directory of the binaries.
fn build() -> Result<PathBuf> {
    let host = host()?;
    let target = workspace::target().join("fuzz");
    let mut build = Command::new(workspace::cargo());
    // Naming the target keeps the flags away from build scripts and macros, which run on the host.
    build
        .args(["build", "--quiet", "--locked", "--bins", "--target", &host])
        .current_dir(workspace::root().join("fuzz"))
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", COVERAGE_FLAGS);
    workspace::run(&mut build)?;
    Ok(target.join(host).join("debug"))
}

/// The triple of this machine, as rustc names it.
fn host() -> Result<String> {
    let output =
        Command::new("rustc").arg("-vV").stdin(Stdio::null()).output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| anyhow!("rustc -vV names no host"))
}

/// Runs one target; returns its closing numbers.
fn fuzz(binaries: &Path, target: &str, seconds: u32) -> Result<String> {
    let found = workspace::target().join("xtask/fuzz").join(target);
    let artifacts = workspace::target().join("xtask/fuzz-artifacts");
    let committed = workspace::root().join("fuzz/corpus").join(target);
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(binaries.join(target));
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-artifact_prefix={}/{target}-", artifacts.display()))
        .args(["-rss_limit_mb=2048", "-print_final_stats=1"])
        .arg(&found);
    if committed.is_dir() {
        command.arg(&committed);
    }
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {target}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        bail!("{}\n{}", output.status, lines[lines.len().saturating_sub(60)..].join("\n"));
    }
    Ok(summary(&text))
}

/// Executions and coverage, from the lines that libFuzzer prints.
fn summary(text: &str) -> String {
    let after = |line: &str, label: &str| {
        line.split_once(label).and_then(|(_, rest)| rest.split_whitespace().next().map(str::to_owned))
    };
    let stat = text.lines().find_map(|line| after(line, "number_of_executed_units:"));
    let edges = text.lines().rev().find_map(|line| after(line, " cov: "));
    let inputs = text.lines().rev().find_map(|line| after(line, " corp: "));
    let known = |value: Option<String>| value.unwrap_or_else(|| "?".into());
    format!("{:>9} runs, {:>5} edges, corpus {}", known(stat), known(edges), known(inputs))
}
