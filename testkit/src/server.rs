//! The server under test: a process of its own, started, killed and stopped from outside.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::client::{Admin, Client, Credential};
use crate::http::{Connection, Request};
use crate::workspace::{Profile, program, scratch};

/// Longest wait for a server to say that it is ready.
const READY_WAIT: Duration = Duration::from_secs(60);
/// Longest wait for a server to end after it was asked to.
const STOP_WAIT: Duration = Duration::from_secs(60);
/// The unit in which the kernel reports processor times to programs, on all machines of today.
const TICKS_PER_SECOND: u64 = 100;
/// The line that tools wait for; the address follows.
const LISTENING: &str = "Table service is successfully listening at ";
/// The line that names the object service.
const OBJECTS: &str = "Objects: STORAGE_EMULATOR_HOST=";
/// The line that names the admin service.
const ADMIN: &str = "Admin is listening at ";

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The program `rangehold`.
    pub program: PathBuf,
    /// Its data directory.
    pub data: PathBuf,
    /// File that gets what the server prints; appended to.
    pub log: PathBuf,
    /// More arguments for `rangehold dev`.
    pub arguments: Vec<String>,
    /// More variables of its environment.
    pub environment: Vec<(String, OsString)>,
    /// A command that runs the server below it, such as strace with its options.
    pub wrapper: Vec<OsString>,
    /// The path of the admin endpoint that answers 200 when the server has started. `/livez` if it cannot become ready,
    /// for example on a full disk.
    pub started: &'static str,
}

impl Setup {
    /// A plain server on the directory `data`.
    pub fn new(program: &Path, data: &Path, log: &Path) -> Self {
        Self {
            program: program.to_owned(),
            data: data.to_owned(),
            log: log.to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            wrapper: Vec::new(),
            started: "/readyz",
        }
    }

    /// Builds the program, and sets up a server with these further arguments in a [scratch folder](scratch) of this
    /// name.
    pub fn fresh(profile: Profile, name: &str, arguments: &[&str]) -> Result<Self> {
        let (program, directory) = (program(profile)?, scratch(name)?);
        let setup = Self::new(&program, &directory.join("data"), &directory.join("server.log"));
        Ok(Self { arguments: arguments.iter().map(|&word| word.to_owned()).collect(), ..setup })
    }

    /// A path next to the data directory.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.data.with_file_name(name)
    }
}

/// A running server. Dropping it kills the process.
pub struct Server {
    child: Child,
    /// The server's process, which is not `child` when a wrapper runs it.
    process: Pid,
    /// Where the table service listens.
    pub address: SocketAddr,
    /// Where the object service listens.
    pub objects: SocketAddr,
    /// Where the admin service listens.
    pub admin: SocketAddr,
    /// From start to ready.
    pub start_time: Duration,
    data: PathBuf,
}

impl Server {
    /// Starts a server and waits until it is ready.
    ///
    /// Fails with the end of the log when the process ends first: a server that refuses its directory
    /// says why there.
    pub fn start(setup: &Setup) -> Result<Self> {
        let begin = Instant::now();
        let mut child = spawn(setup)?;
        let output = child.stdout.take().expect("standard output is piped");
        let addresses = watch(output, &setup.log)?;
        let process = Pid::from_child(&child);
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        let (start_time, data) = (Duration::ZERO, setup.data.clone());
        let (address, objects, admin) = (unknown, unknown, unknown);
        let mut server = Self { child, process, address, objects, admin, start_time, data };
        let address = || {
            addresses
                .recv_timeout(READY_WAIT)
                .map_err(|_| anyhow!("the server did not come up: {}", tail(&setup.log)))
        };
        (server.address, server.objects, server.admin) = (address()?, address()?, address()?);
        if !setup.wrapper.is_empty() {
            server.process = only_child(server.process)?;
        }
        server.wait_started(begin, setup.started).with_context(|| tail(&setup.log))?;
        server.start_time = begin.elapsed();
        Ok(server)
    }

    /// A client of the table service.
    pub fn client(&self) -> Client {
        Client::new(self.address, Credential::SharedKey)
    }

    /// A client of the admin service.
    pub fn admin_client(&self) -> Result<Admin> {
        Admin::new(self.admin, &self.data)
    }

    /// Starts a server and kills it after `life`, ready or not: a crash during recovery.
    pub fn start_and_kill(setup: &Setup, life: Duration) -> Result<()> {
        let mut child = spawn(setup)?;
        thread::sleep(life);
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Starts a server that must end by itself, before it is ready or soon after. It is an error if the server does
    /// not end, or does not end by `signal`.
    pub fn start_to_end(setup: &Setup, signal: Signal) -> Result<()> {
        let mut child = spawn(setup)?;
        wait_end(&mut child, signal)
    }

    /// Waits until the server ends by itself, by `signal`.
    pub fn wait_end(mut self, signal: Signal) -> Result<()> {
        wait_end(&mut self.child, signal)
    }

    fn wait_started(&self, begin: Instant, path: &str) -> Result<()> {
        loop {
            let request = Request::new("GET", path, &[], b"");
            let answer = Connection::open(self.admin).and_then(|mut connection| connection.send(&request));
            if answer.is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            if begin.elapsed() > READY_WAIT {
                bail!("the server at {} is not ready after {READY_WAIT:?}", self.admin);
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends the process at once, as `kill -9` does.
    pub fn kill(mut self) -> Result<()> {
        kill_process(self.process, Signal::KILL).context("cannot kill the server")?;
        self.child.wait()?;
        Ok(())
    }

    /// Stops the process where it is, as a machine that hangs does: it keeps its files and connections, and does
    /// nothing until [`Self::resume`]. [`Self::kill`] ends it all the same; [`Self::stop`] would wait in vain.
    pub fn pause(&self) -> Result<()> {
        kill_process(self.process, Signal::STOP).context("cannot pause the server")
    }

    /// Lets a process that was [paused](Self::pause) go on.
    pub fn resume(&self) -> Result<()> {
        kill_process(self.process, Signal::CONT).context("cannot let the server go on")
    }

    /// Asks the server to end and waits until it has; an error when it does not or fails.
    pub fn stop(mut self) -> Result<()> {
        kill_process(self.process, Signal::TERM).context("cannot stop the server")?;
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                if !status.success() {
                    bail!("the server ended with {status} after SIGTERM");
                }
                return Ok(());
            }
            if begin.elapsed() > STOP_WAIT {
                bail!("the server did not end within {STOP_WAIT:?} after SIGTERM");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The server's process.
    pub fn process(&self) -> Pid {
        self.process
    }

    /// Memory that the process holds, in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        resident_bytes(self.process)
    }

    /// The most memory that the process held at any time since it began, in bytes.
    pub fn peak_bytes(&self) -> Result<u64> {
        status_bytes(self.process, "VmHWM:")
    }

    /// Processor time that the process has used, in user mode and for it in the kernel.
    pub fn processor_time(&self) -> Result<Duration> {
        processor_time(self.process)
    }
}

/// Memory that a process holds, in bytes.
pub fn resident_bytes(process: Pid) -> Result<u64> {
    status_bytes(process, "VmRSS:")
}

/// A line of what the kernel says about a process; the kernel gives it in KiB.
fn status_bytes(process: Pid, label: &str) -> Result<u64> {
    let path = format!("/proc/{}/status", process.as_raw_nonzero());
    let status = std::fs::read_to_string(&path)?;
    let line = status.lines().find_map(|line| line.strip_prefix(label));
    let kib: u64 = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .and_then(|text| text.trim().parse().ok())
        .ok_or_else(|| anyhow!("no {label} in {path}"))?;
    Ok(kib * 1024)
}

/// Processor time that a process has used, in user mode and for it in the kernel.
pub fn processor_time(process: Pid) -> Result<Duration> {
    let path = format!("/proc/{}/stat", process.as_raw_nonzero());
    let text = std::fs::read_to_string(&path)?;
    // The name may hold anything, so count after it: the state is field 3, the times are 14 and 15.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
    let (Some(user), Some(kernel)) = (ticks(11), ticks(12)) else { bail!("no times in {path}") };
    Ok(Duration::from_millis((user + kernel) * 1_000 / TICKS_PER_SECOND))
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `kill` and `stop` the process is gone and has been waited for: another process may have its id.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _gone = kill_process(self.process, Signal::KILL);
            let _killed = self.child.wait();
        }
    }
}

fn wait_end(child: &mut Child, signal: Signal) -> Result<()> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            if status.signal() != Some(signal.as_raw()) {
                bail!("the server ended with {status}, not by {signal:?}");
            }
            return Ok(());
        }
        if begin.elapsed() > STOP_WAIT {
            child.kill()?;
            child.wait()?;
            bail!("the server did not end by itself within {STOP_WAIT:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// A command without the settings of the person or process that runs the test.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("RANGEHOLD_"))
    {
        command.env_remove(name);
    }
    command
}

fn spawn(setup: &Setup) -> Result<Child> {
    let mut words = setup.wrapper.clone();
    words.push(setup.program.clone().into());
    words.extend(
        [
            "dev",
            "--host",
            "127.0.0.1",
            "--table-port",
            "0",
            "--object-port",
            "0",
            "--admin-port",
            "0",
            "--data",
        ]
        .map(OsString::from),
    );
    words.push(setup.data.clone().into());
    words.extend(setup.arguments.iter().map(OsString::from));
    let log = File::options().create(true).append(true).open(&setup.log)?;
    command(&words[0])
        .args(&words[1..])
        .envs(setup.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot start {}", words[0].display()))
}

/// Copies the server's output to the log, and sends the addresses when they are printed: those of the
/// table service, the object service and the admin service, in this order.
fn watch(
    output: impl std::io::Read + Send + 'static,
    log: &Path,
) -> Result<std::sync::mpsc::Receiver<SocketAddr>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut log = File::options().create(true).append(true).open(log)?;
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _full = writeln!(log, "{line}");
            let after = [LISTENING, OBJECTS, ADMIN].iter().find_map(|label| line.strip_prefix(label));
            let address = after.and_then(|url| url.split_once("://")).map(|(_, address)| address.trim());
            if let Some(address) = address.and_then(|address| address.parse().ok()) {
                let _late = sender.send(address);
            }
        }
    });
    Ok(receiver)
}

/// The one child of a wrapper.
fn only_child(parent: Pid) -> Result<Pid> {
    let number = parent.as_raw_nonzero();
    let text = std::fs::read_to_string(format!("/proc/{number}/task/{number}/children"))?;
    text.split_whitespace()
        .next()
        .and_then(|text| text.parse().ok())
        .and_then(Pid::from_raw)
        .ok_or_else(|| anyhow!("the wrapper {number} has no child"))
}

/// All that a server printed.
pub fn text(log: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned()
}

/// The last lines of a log.
pub fn tail(log: &Path) -> String {
    let text = text(log);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// Gives a copy of a data directory the lock file of the original, as if it were the same directory later. With another
/// file a server would wait at its start, because its earlier process might still run.
pub fn keep_lock_file(original: &Path, copy: &Path) -> Result<()> {
    let lock = copy.join("LOCK");
    if lock.exists() {
        std::fs::remove_file(&lock)?;
        std::fs::hard_link(original.join("LOCK"), &lock)?;
    }
    Ok(())
}
