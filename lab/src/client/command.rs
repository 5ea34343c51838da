//! Commands that are killed and run again; here the one that moves a table.

use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rangehold_testkit::server::{Server, command};
use rangehold_testkit::sign::{ACCOUNT, KEY};
use serde_json::Value;

/// How long a command runs on after the journal grew, so that it is killed in the middle of something.
const MIDDLE: Duration = Duration::from_millis(150);
/// How often the journals are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The program, and the service that it speaks to.
pub(super) struct Rangehold {
    program: PathBuf,
    pub(super) connection: String,
}

/// What a command said in the end, and what it took.
pub(super) struct Moved {
    pub(super) count: u64,
    pub(super) hash: String,
    /// How often it was killed.
    pub(super) kills: usize,
    /// Of all runs together.
    pub(super) took: Duration,
}

/// A command that has ended.
pub(super) struct Ended {
    /// What its last run printed.
    pub(super) said: Value,
    /// How often it was killed.
    pub(super) kills: usize,
    /// Of all runs together.
    pub(super) took: Duration,
}

/// Runs a command until it ends. Before that it is killed `kills` times, each time when `wait` returns. `wait` is given the process
/// and the number of kills before; it returns `false` if the command ended first.
///
/// Fails if the last run fails, or if it does not print JSON.
pub(super) fn run_killed(
    start: impl Fn() -> Result<Child>,
    kills: usize,
    mut wait: impl FnMut(&mut Child, usize) -> Result<bool>,
) -> Result<Ended> {
    let began = Instant::now();
    let mut killed = 0;
    loop {
        let mut child = start()?;
        if killed < kills && wait(&mut child, killed)? {
            child.kill()?;
            child.wait()?;
            killed += 1;
            continue;
        }
        let Output { status, stdout, stderr } = child.wait_with_output()?;
        let took = began.elapsed();
        ensure!(status.success(), "the command failed: {}", String::from_utf8_lossy(&stderr));
        return Ok(Ended { said: serde_json::from_slice(&stdout)?, kills: killed, took });
    }
}

impl Moved {
    /// Entities in a second.
    pub(super) fn rate(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64()
    }
}

impl Rangehold {
    pub(super) fn new(program: &Path, server: &Server) -> Self {
        Self { program: program.to_owned(), connection: connection(server) }
    }

    /// Runs a command until it ends. Before that it is killed `kills` times, each time after a journal in `folder` has
    /// grown by two lines.
    pub(super) fn run(&self, line: &[&str], folder: Option<&Path>, kills: usize) -> Result<Moved> {
        let ended = run_killed(
            || self.start(line),
            if folder.is_some() { kills } else { 0 },
            |child, _| folder.map_or(Ok(false), |folder| wait_for_growth(child, folder)),
        );
        let Ended { said, kills, took } = ended.with_context(|| format!("{line:?}"))?;
        let count = said["count"].as_u64().context("a count")?;
        let hash = said["hash"].as_str().context("a hash")?.to_owned();
        Ok(Moved { count, hash, kills, took })
    }

    fn start(&self, line: &[&str]) -> Result<Child> {
        let mut command = command(&self.program);
        command
            .args(line)
            .args(["--output", "json"])
            .env("AZURE_STORAGE_CONNECTION_STRING", &self.connection);
        Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }
}

/// How a client reaches a server.
pub(super) fn connection(server: &Server) -> String {
    format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{}/{ACCOUNT}", server.address)
}

/// Waits until the journals have two more lines, and a little longer. `false` if the command ended before.
fn wait_for_growth(child: &mut Child, folder: &Path) -> Result<bool> {
    let before = lines(folder);
    while lines(folder) < before.max(1) + 2 {
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        thread::sleep(LOOK_EVERY);
    }
    thread::sleep(MIDDLE);
    Ok(child.try_wait()?.is_none())
}

/// The lines of all journals in a folder.
fn lines(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let journals = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"));
    journals.map(|path| std::fs::read_to_string(path).map_or(0, |text| text.lines().count())).sum()
}
