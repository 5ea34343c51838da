//! The processes of a trial beside the first one: two that write, and managers that stop.
//!
//! Each is this program again, with its task in an environment variable. A process that writes prints a line for each
//! attempt. It reads which tenant is hot, and ends when there is nothing more to read.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rangehold_shardmap::operation::{Step, StepFault, StepHook, When};
use rangehold_shardmap::{Location, LookIn, MappingChange};
use rustix::process::{Pid, Signal, getpid, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::attempt::Attempt;
use super::stuck;
use super::world::Reach;
use super::writers;

/// The task of a process.
const TASK: &str = "RANGEHOLD_TRIAL_TASK";
/// The test that does the task, if the program is that of the tests.
const TEST: &str = "torture::no_statement_runs_on_a_shard_that_has_lost_the_key";
/// How many writers a process has.
const WRITERS: i32 = 4;
/// Ends the writers.
pub const NO_MORE: i64 = -1;
/// How often one looks whether a process stands still or has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Does the task of this process, if it has one.
pub async fn has_task() -> bool {
    let Ok(task) = std::env::var(TASK) else { return false };
    match task.split(' ').collect::<Vec<_>>()[..] {
        ["write", global, first, seed] => {
            write(place(global), first.parse().expect("a number"), seed.parse().expect("a number")).await
        }
        ["stop", global, step, tenant] => stop(place(global), step, tenant.parse().expect("a key")).await,
        _ => panic!("{task:?} is not a task"),
    }
    true
}

fn place(text: &str) -> Location {
    Location::parse(text).expect("a place")
}

fn start(task: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a program that runs has a path"));
    command.args(["--exact", TEST, "--nocapture"]).env(TASK, task).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A process that writes.
pub struct Writing {
    child: Child,
    attempts: JoinHandle<Vec<Attempt>>,
}

impl Writing {
    /// `hot` says where writers find trouble. The process ends after [`NO_MORE`]. `stuck` hears of attempts that wait too
    /// long.
    pub fn start(
        global: &Location,
        number: i32,
        seed: u64,
        mut hot: watch::Receiver<i64>,
        stuck: mpsc::UnboundedSender<String>,
    ) -> Self {
        let task = format!("write {global} {} {seed}", number * WRITERS);
        let mut child = start(&task).spawn().expect("this program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        tokio::spawn(async move {
            while hot.changed().await.is_ok() {
                let tenant = *hot.borrow_and_update();
                if tenant == NO_MORE {
                    return;
                }
                if stdin.write_all(format!("{tenant}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let attempts = tokio::spawn(async move {
            let mut attempts = Vec::new();
            while let Ok(Some(line)) = lines.next_line().await {
                attempts.extend(Attempt::read(&line));
                if let Some(attempt) = stuck::read(&line) {
                    let _ = stuck.send(attempt);
                }
            }
            attempts
        });
        Self { child, attempts }
    }

    /// All that it did.
    pub async fn ended(mut self) -> Vec<Attempt> {
        let attempts = self.attempts.await.expect("lines are read");
        assert!(self.child.wait().await.expect("it can be waited for").success(), "a writer failed");
        attempts
    }
}

async fn write(global: Location, first: i32, seed: u64) {
    let reach = Arc::new(Reach::new(global));
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (first..first + WRITERS)
        .map(|number| tokio::spawn(writers::run(reach.clone(), number, seed, stop.clone())))
        .collect();
    let of_lines = reach.clone();
    let reading = tokio::task::spawn_blocking(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            of_lines.hot.store(line.parse().expect("a key"), Ordering::Relaxed);
        }
    });
    reading.await.expect("lines are read");
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("a writer ends");
    }
}

/// A manager that stops itself by SIGSTOP, inside the transaction of a step.
pub struct Stopped(Child);

impl Stopped {
    /// Returns when it stands still. `None` if it ended before, because something was in its way.
    pub async fn start(global: &Location, step: Step, tenant: i64) -> Option<Self> {
        let task = format!("stop {global} {step:?} {tenant}");
        let mut child = start(&task).stdout(Stdio::null()).spawn().expect("this program starts");
        let stat = format!("/proc/{}/stat", child.id()?);
        while child.try_wait().expect("it can be asked").is_none() {
            let text = std::fs::read_to_string(&stat).unwrap_or_default();
            if text.rsplit(')').next().is_some_and(|after| after.trim_start().starts_with('T')) {
                return Some(Self(child));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        None
    }

    /// Lets it go on, to its end.
    pub async fn goes_on(mut self) {
        let pid = self.0.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).expect("it lives");
        kill_process(pid, Signal::CONT).expect("a child may be signalled");
        assert!(self.0.wait().await.expect("it can be waited for").success(), "a stopped manager failed");
    }
}

/// Whether a step belongs to an operation that is undone.
fn goes_back(step: Step) -> bool {
    matches!(step, Step::TurnBack | Step::UndoTarget | Step::UndoSource | Step::UndoEnd)
}

/// Changes the mapping of a tenant, and stops once before the commit of a step.
async fn stop(global: Location, step: &str, tenant: i64) {
    let step = Step::ALL.into_iter().find(|one| format!("{one:?}") == step).expect("a step");
    let stopped = AtomicBool::new(false);
    let hook = StepHook::new(move |moment| {
        let here = moment.when == When::Before && moment.step == step;
        if here && !stopped.swap(true, Ordering::Relaxed) {
            kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
        }
        let fails = goes_back(step) && moment.when == When::Before && moment.step == Step::GlobalEnd;
        async move { if fails { Err(StepFault::Stays) } else { Ok(()) } }
    });
    let map = Reach::new(global).manage("a manager that stops", hook).await;
    if step == Step::TakeOver {
        let _ = map.manager().recover_pending().await;
        return;
    }
    let Ok(mapping) = map.lookup(&tenant, LookIn::Store).await else { return };
    // Another process may have ended the operation meanwhile, so any outcome is right.
    if mapping.is_online() {
        let _ = map.offline(&mapping).await;
        return;
    }
    let shards = map.shards().await.unwrap_or_default();
    if let Some(shard) = shards.iter().find(|shard| *shard != mapping.shard()) {
        let change = MappingChange { online: Some(true), shard: Some(shard) };
        let _ = map.update(&mapping, change).await;
    }
}
