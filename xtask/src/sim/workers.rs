//! The processes that run the seeds, side by side and one after the other.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Seeds that one process runs before another takes its place: a process keeps some 3 MB of each, and ten times as
/// much of a long one.
const SEEDS_OF_A_PROCESS: u64 = 400;
const LONG_SEEDS_OF_A_PROCESS: u64 = 40;
/// A run that prints nothing for this time is ended and named: it hangs. The time is far above what the longest run
/// takes on a busy machine, so it does not judge speed. A second is usual, and ten for a long run.
const SILENCE_MAX: Duration = Duration::from_secs(1_800);

/// Which seeds are run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeds {
    pub(super) first: u64,
    pub(super) count: u64,
    /// Each for ten simulated minutes.
    pub(super) long: bool,
}

/// The result of one seed.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) seed: u64,
    pub(super) twice: bool,
    pub(super) findings: Vec<String>,
    pub(super) requests: u64,
    pub(super) simulated_ms: u64,
    pub(super) undecided: u64,
    /// Changes of ranges at random.
    pub(super) changes: u64,
    /// Splits, merges and moves by the manager.
    pub(super) planned: [u64; 3],
    /// Switches that were on, with how often they struck.
    pub(super) faults: BTreeMap<String, u64>,
}

/// Processes that run the seeds between them. Dropping them ends them.
pub(super) struct Workers {
    jobs: Vec<Arc<Job>>,
    lines: Receiver<String>,
}

/// The seeds that one worker runs, one after the other: one seed of every `step` seeds.
struct Job {
    program: PathBuf,
    more: Vec<String>,
    step: u64,
    /// Seeds that one process runs at most.
    seeds_max: u64,
    running: Mutex<Running>,
}

enum Running {
    Not,
    Now(Child),
    /// Nothing is to be started any more.
    Ended,
}

impl Job {
    /// Runs `seeds` seeds from `first` on, and sends what is printed of each.
    fn run(&self, first: u64, seeds: u64, lines: &Sender<String>) -> Result<()> {
        for done in (0..seeds).step_by(self.seeds_max as usize) {
            let numbers = [first + done * self.step, self.step, self.seeds_max.min(seeds - done)];
            let Some(output) = self.start(numbers)? else { return Ok(()) };
            let mut ran = 0;
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                ran += 1;
                if lines.send(line).is_err() {
                    return Ok(());
                }
            }
            let [from, step, seeds] = numbers;
            if !self.end(Running::Not) {
                return Ok(());
            }
            if ran < seeds {
                bail!("a process ended in seed {}, or just before it", from + ran * step);
            }
        }
        Ok(())
    }

    /// Starts a process; `None` if none is to be started any more.
    fn start(&self, numbers: [u64; 3]) -> Result<Option<ChildStdout>> {
        let mut running = self.running.lock().expect("nobody panics with it");
        if matches!(*running, Running::Ended) {
            return Ok(None);
        }
        let [from, step, seeds] = numbers.map(|number| number.to_string());
        let mut child = Command::new(&self.program)
            .args(["--json", "--from", &from, "--step", &step, "--seeds", &seeds])
            .args(&self.more)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let output = child.stdout.take();
        *running = Running::Now(child);
        Ok(output)
    }

    /// Ends the process that is running, which may have ended by itself. Whether more may be started.
    fn end(&self, next: Running) -> bool {
        let mut running = self.running.lock().expect("nobody panics with it");
        if let Running::Now(child) = &mut *running {
            let _ = child.kill();
            let _ = child.wait();
        }
        if matches!(*running, Running::Ended) {
            return false;
        }
        *running = next;
        true
    }
}

impl Workers {
    /// Starts the seeds in `jobs` processes; each process is given `more` arguments.
    pub(super) fn start(program: &Path, jobs: u64, seeds: Seeds, more: &[&str]) -> Self {
        let Seeds { first, count, long } = seeds;
        let (sender, lines) = channel();
        let more: Vec<String> =
            more.iter().copied().chain(long.then_some("--long")).map(str::to_owned).collect();
        let jobs = jobs.min(count);
        let started = (0..jobs).map(|number| {
            let job = Arc::new(Job {
                program: program.to_owned(),
                more: more.clone(),
                step: jobs,
                seeds_max: if long { LONG_SEEDS_OF_A_PROCESS } else { SEEDS_OF_A_PROCESS },
                running: Mutex::new(Running::Not),
            });
            // Each process gets every `jobs`-th seed.
            let seeds = (count - number).div_ceil(jobs);
            let (first, sender, its) = (first + number, sender.clone(), Arc::clone(&job));
            std::thread::spawn(move || {
                if let Err(error) = its.run(first, seeds, &sender) {
                    eprintln!("{error:#}");
                }
            });
            job
        });
        Self { jobs: started.collect(), lines }
    }

    /// The next seed that was run; `None` when all have.
    pub(super) fn next(&self) -> Result<Option<Run>> {
        match self.lines.recv_timeout(SILENCE_MAX) {
            Ok(line) => Run::parse(&line).map(Some),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => Ok(None),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                bail!("no seed ended within {SILENCE_MAX:?}: one of them hangs")
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for job in &self.jobs {
            job.end(Running::Ended);
        }
    }
}

impl Run {
    fn parse(line: &str) -> Result<Self> {
        let json: Value = serde_json::from_str(line).with_context(|| format!("not a result: {line}"))?;
        let number = |name: &str| json[name].as_u64().with_context(|| format!("no {name} in {line}"));
        let findings = json["findings"].as_array().context("no findings")?;
        let faults = json["faults"].as_object().context("no faults")?;
        let planned =
            serde_json::from_value(json["planned"].clone()).context("no counts of what was planned")?;
        Ok(Self {
            seed: number("seed")?,
            twice: json["twice"].as_bool().unwrap_or(false),
            findings: findings.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            requests: number("requests")?,
            simulated_ms: number("simulated_ms")?,
            undecided: number("undecided")?,
            changes: number("changes")?,
            planned,
            faults: faults
                .iter()
                .map(|(name, struck)| (name.clone(), struck.as_u64().unwrap_or(0)))
                .collect(),
        })
    }
}
