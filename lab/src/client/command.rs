//! Commands that are killed and run again; here the one that moves a table.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rangehold_testkit::server::{Server, command};
use rangehold_testkit::sign::{ACCOUNT, KEY};
use serde_json::Value;

/// How long a command runs on after the journal grew, so that it is killed in the middle of something.
const MIDDLE: Duration = Duration::from_millis(150);
/// How often it is looked whether the journals grew or a command ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The longest time of one run of a command; a million entities and a hundred thousand files need minutes.
const RUN_MAX: Duration = Duration::from_secs(30 * 60);

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

/// A run of a command. Dropping it kills the process.
pub(super) struct Run {
    child: Child,
    began: Instant,
    longest: Duration,
    stdout: Receiver<io::Result<Vec<u8>>>,
    stderr: Receiver<io::Result<Vec<u8>>>,
}

/// Runs a command until it ends. Before that it is killed `kills` times, each time when `wait` returns. `wait` is given the run
/// and the number of kills before; it returns `false` if the command ended first.
///
/// Fails if `wait` or the last run fails, if the last run does not print JSON, or if a run takes longer than 30 minutes. The command
/// has ended then.
pub(super) fn run_killed(
    command: impl Fn() -> Command,
    kills: usize,
    mut wait: impl FnMut(&mut Run, usize) -> Result<bool>,
) -> Result<Ended> {
    let began = Instant::now();
    let mut killed = 0;
    loop {
        let mut run = Run::start(command(), RUN_MAX)?;
        if killed < kills && wait(&mut run, killed)? {
            run.kill()?;
            killed += 1;
            continue;
        }
        let stdout = run.end()?;
        let took = began.elapsed();
        return Ok(Ended { said: serde_json::from_slice(&stdout)?, kills: killed, took });
    }
}

impl Run {
    fn start(mut command: Command, longest: Duration) -> Result<Self> {
        let began = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let stdout = read(child.stdout.take().expect("standard output is piped"));
        let stderr = read(child.stderr.take().expect("standard error is piped"));
        Ok(Self { child, began, longest, stdout, stderr })
    }

    /// Whether the command has ended by itself. An error if its time is over.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        if self.child.try_wait()?.is_some() {
            return Ok(true);
        }
        ensure!(self.began.elapsed() < self.longest, "the command still runs after {:?}", self.longest);
        Ok(false)
    }

    fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits until the command ends, and returns what it printed. An error if it failed.
    fn end(mut self) -> Result<Vec<u8>> {
        while !self.has_ended()? {
            thread::sleep(LOOK_EVERY);
        }
        let status = self.child.wait()?;
        let printed = |pipe: &Receiver<io::Result<Vec<u8>>>| -> Result<Vec<u8>> {
            let left = self.longest.saturating_sub(self.began.elapsed());
            Ok(pipe.recv_timeout(left).context("the command ended, and its output did not")??)
        };
        let (stdout, stderr) = (printed(&self.stdout)?, printed(&self.stderr)?);
        ensure!(status.success(), "the command failed: {}", String::from_utf8_lossy(&stderr));
        Ok(stdout)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Reads all that comes through a pipe, so that the command never waits for a reader.
fn read(mut pipe: impl Read + Send + 'static) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let result = pipe.read_to_end(&mut bytes).map(|_| bytes);
        let _killed = sender.send(result);
    });
    receiver
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
            || self.command(line),
            if folder.is_some() { kills } else { 0 },
            |run, _| folder.map_or(Ok(false), |folder| wait_for_growth(run, folder)),
        );
        let Ended { said, kills, took } = ended.with_context(|| format!("{line:?}"))?;
        let count = said["count"].as_u64().context("a count")?;
        let hash = said["hash"].as_str().context("a hash")?.to_owned();
        Ok(Moved { count, hash, kills, took })
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = command(&self.program);
        command
            .args(line)
            .args(["--output", "json"])
            .env("AZURE_STORAGE_CONNECTION_STRING", &self.connection);
        command
    }
}

/// How a client reaches a server.
pub(super) fn connection(server: &Server) -> String {
    format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{}/{ACCOUNT}", server.address)
}

/// Waits until the journals have two more lines, and a little longer. `false` if the command ended before.
fn wait_for_growth(run: &mut Run, folder: &Path) -> Result<bool> {
    let before = lines(folder);
    while lines(folder) < before.max(1) + 2 {
        if run.has_ended()? {
            return Ok(false);
        }
        thread::sleep(LOOK_EVERY);
    }
    thread::sleep(MIDDLE);
    Ok(!run.has_ended()?)
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

#[cfg(test)]
mod tests {
    use rangehold_testkit::workspace::scratch;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = command("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_command_that_prints_more_than_a_pipe_holds_goes_on_while_it_is_waited_for() {
        let written = scratch("lab-command").expect("there is a folder").join("written");
        let print = "printf '\"%01000000d\"' 0";
        let script = format!(
            "{print}; {print} >&2; [ -e {0} ] || {{ touch {0}; exec sleep 600; }}",
            written.display()
        );
        let wait_until_written = |run: &mut Run, _: usize| {
            while !written.exists() {
                ensure!(!run.has_ended()?, "it ended before it had printed all");
                thread::sleep(LOOK_EVERY);
            }
            Ok(true)
        };
        let Ended { said, kills, .. } =
            run_killed(|| shell(&script), 1, wait_until_written).expect("it ends");
        assert_eq!((said.as_str().map(str::len), kills), (Some(1_000_000), 1));
    }

    #[test]
    fn a_run_whose_time_is_over_is_an_error_and_its_process_is_gone() {
        let run = Run::start(shell("exec sleep 600"), Duration::ZERO).expect("it starts");
        let process = PathBuf::from(format!("/proc/{}", run.child.id()));
        assert!(process.exists());
        assert_eq!(run.end().expect_err("it sleeps").to_string(), "the command still runs after 0ns");
        assert!(!process.exists());
    }

    #[test]
    fn a_wait_that_fails_leaves_no_process() {
        let mut process = PathBuf::new();
        let wait = |run: &mut Run, _: usize| {
            process = format!("/proc/{}", run.child.id()).into();
            ensure!(!process.exists(), "it runs");
            Ok(true)
        };
        let error = run_killed(|| shell("exec sleep 600"), 1, wait).err().expect("the wait fails");
        assert_eq!((error.to_string().as_str(), process.exists()), ("it runs", false));
    }
}
