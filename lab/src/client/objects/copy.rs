//! The command that copies, killed and run again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rangehold_testkit::http::{Connection, Request};
use rangehold_testkit::server::{Server, command};
use rangehold_testkit::workspace::run;
use serde_json::Value;

use super::files;
use crate::client::command::{Ended, Run, run_killed};

/// The parts of all files after which a command is killed: in its first run, and in its second one.
pub(super) const KILLED_AFTER: [f64; 2] = [0.2, 0.5];
/// How often it is looked how far a command is.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The counter of objects that were made.
const MADE: &str =
    "rangehold_requests_total{operation=\"storage.objects.insert\",response_type=\"Success\"} ";

/// The program, and the service that it speaks to.
pub(super) struct Service {
    program: PathBuf,
    objects: SocketAddr,
    admin: SocketAddr,
    /// Where the program remembers uploads.
    state: PathBuf,
}

/// What became of a copy.
pub(super) struct Copied {
    /// How often it was killed.
    pub(super) kills: usize,
    /// Of all runs together.
    pub(super) took: Duration,
    /// Files that the last run found at their target.
    pub(super) skipped: u64,
}

impl Service {
    pub(super) fn new(program: &Path, server: &Server, state: &Path) -> Self {
        let (objects, admin) = (server.objects, server.admin);
        Self { program: program.to_owned(), objects, admin, state: state.to_owned() }
    }

    pub(super) fn make_bucket(&self, bucket: &str) -> Result<()> {
        run(self.command(&["bucket", "create", &format!("gs://{bucket}")]).stdout(Stdio::null()))
    }

    /// Copies a folder into a bucket.
    pub(super) fn copy_up(&self, files: &Path, bucket: &str, count: u64) -> Result<Copied> {
        let files = files.to_str().context("the path is text")?;
        let before = self.objects_made()?;
        self.copy(files, &format!("gs://{bucket}"), count, || Ok(self.objects_made()? - before))
    }

    /// Copies the folder `files` of a bucket into a folder.
    pub(super) fn copy_down(&self, bucket: &str, to: &Path, count: u64) -> Result<Copied> {
        let target = format!("{}/", to.to_str().context("the path is text")?);
        self.copy(&format!("gs://{bucket}/files"), &target, count, || files::whole_below(to))
    }

    /// Copies, and is killed on the way. `there` counts the files that are at the target.
    fn copy(&self, from: &str, to: &str, count: u64, there: impl Fn() -> Result<u64>) -> Result<Copied> {
        let mut at_kill = 0;
        let command = || self.command(&["object", "cp", "-r", from, to, "--output", "json"]);
        let ended = run_killed(command, KILLED_AFTER.len(), |run, kills| {
            let wanted = (count as f64 * KILLED_AFTER[kills]) as u64;
            let reached = wait_for(run, wanted, &there)?;
            at_kill = reached.unwrap_or(at_kill);
            Ok(reached.is_some())
        });
        let Ended { said, kills, took } = ended.with_context(|| format!("cp -r {from} {to}"))?;
        let skipped = judge(&said, count, at_kill).with_context(|| format!("cp -r {from} {to}"))?;
        Ok(Copied { kills, took, skipped })
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = command(&self.program);
        command.args(line).env("STORAGE_EMULATOR_HOST", format!("http://{}", self.objects));
        command.env("XDG_STATE_HOME", &self.state);
        command
    }

    /// Objects that the server has made since it started.
    fn objects_made(&self) -> Result<u64> {
        let answer = Connection::open(self.admin)?.send(&Request::new("GET", "/metrics", &[], b""))?;
        ensure!(answer.status == 200, "/metrics was answered {}", answer.status);
        let made = answer.body.lines().find_map(|line| line.strip_prefix(MADE));
        Ok(made.map_or(Ok(0), str::parse)?)
    }
}

/// Waits until so many files are at the target, and returns how many there are; `None` if the command ended before.
fn wait_for(run: &mut Run, wanted: u64, there: &impl Fn() -> Result<u64>) -> Result<Option<u64>> {
    loop {
        let is_there = there()?;
        if run.has_ended()? {
            return Ok(None);
        }
        if is_there >= wanted {
            return Ok(Some(is_there));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Checks what the last run said: each file was copied or skipped, and what was at the target when the run before was killed was
/// skipped. Returns how many were skipped.
fn judge(said: &Value, count: u64, at_kill: u64) -> Result<u64> {
    let number = |name: &str| said[name].as_u64().with_context(|| format!("{name} is missing in {said}"));
    let (copied, skipped, failed) = (number("copied")?, number("skipped")?, number("failed")?);
    ensure!(failed == 0 && copied + skipped == count, "of {count} files it said {said}");
    ensure!(
        skipped >= at_kill,
        "{at_kill} files were at the target when it was killed, and the next run skipped only {skipped}"
    );
    Ok(skipped)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_last_run_that_lost_files_or_copied_them_again_is_found() {
        let said = |copied: u64, skipped: u64, failed: u64| json!({ "copied": copied, "bytes": 1024 * copied, "skipped": skipped, "failed": failed });
        assert_eq!(judge(&said(40, 60, 0), 100, 58).ok(), Some(60));
        let why = |said: &Value| judge(said, 100, 58).expect_err("it is wrong").to_string();
        assert!(why(&said(39, 60, 0)).starts_with("of 100 files it said "));
        assert!(why(&said(39, 60, 1)).starts_with("of 100 files it said "));
        assert_eq!(
            why(&said(50, 50, 0)),
            "58 files were at the target when it was killed, and the next run skipped only 50"
        );
        assert!(why(&json!({})).starts_with("copied is missing"));
    }
}
