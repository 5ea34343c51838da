//! Real PostgreSQL servers for tests: as many as a test asks for, on ports that the system chooses,
//! with fsync on, and nothing left behind.
//!
//! ```ignore
//! let server = PostgresServer::start();
//! server.create_database("shop");
//! let address = server.address("shop", roles::APPLICATION);
//! let (client, connection) = tokio_postgres::connect(&address, NoTls).await?;
//! server.kill();     // as a machine without power: the postmaster and every backend, by SIGKILL
//! server.restart();  // recovers from its log, on the same port
//! ```
//!
//! The programs are those of Debian's package `postgresql` (or of the folder that `RANGEHOLD_POSTGRES_BIN`
//! names). They refuse to run as root, so root starts them as the user `postgres`.
//!
//! `Drop` ends a server. A test that is killed can't drop anything, so a small guard process waits
//! until the pipe to the test closes, and then ends the server and removes its files.
//!
//! The postmaster is a child of the test, not of `pg_ctl`, so that the test can wait for a killed one at once. A dead
//! postmaster that no process has waited for keeps the next one from starting.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::ports::start_at_free_port;
use crate::roles;

/// The superuser of every server here; connections need no password. It makes roles and databases
/// ([`roles`](crate::roles)), and tests connect as others.
const SUPERUSER: &str = "postgres";
/// How often a server is started again that was refused.
const RESTARTS_MAX: usize = 5;
/// How often a server is asked whether it is ready, and how long between: two minutes at most, since a
/// busy machine recovers slowly.
const READY_TRIALS_MAX: usize = 2400;
const READY_PAUSE: Duration = Duration::from_millis(50);

/// What the guard of a server does with its folder.
const CLEAN_UP: &str = "[ -f \"$1/data/postmaster.pid\" ] && kill -QUIT \"$(head -n 1 \"$1/data/postmaster.pid\")\"; \
     rm -rf \"$1\"";

/// One server, with a data directory of its own.
pub struct PostgresServer {
    directory: tempfile::TempDir,
    port: u16,
    settings: Vec<(String, String)>,
    postmaster: Mutex<Option<Child>>,
    /// Ends the server if this process can't.
    guard: Option<Child>,
}

impl PostgresServer {
    /// A new server, ready for connections.
    pub fn start() -> PostgresServer {
        PostgresServer::start_with(&[])
    }

    /// A new server with settings of `postgresql.conf`, for instance `("ssl", "on")`.
    pub fn start_with(settings: &[(&str, &str)]) -> PostgresServer {
        let directory = tempfile::Builder::new().prefix("rangehold-pg-").tempdir().expect("a directory");
        if let Some((user, group)) = unprivileged() {
            chown(directory.path(), Some(user), Some(group)).expect("root may change the owner");
        }
        let settings = settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut server =
            PostgresServer { directory, port: 0, settings, postmaster: Mutex::new(None), guard: None };
        server.initialise();
        server.guard = Some(guard(CLEAN_UP, &[server.directory().as_os_str()]));
        start_at_free_port("PostgreSQL", |port| {
            server.port = port;
            if server.try_start() { Ok(()) } else { Err(server.log()) }
        });
        server.sql("postgres", roles::of_server());
        server
    }

    /// The port on 127.0.0.1; it stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How to connect to a database as a role, as `key=value` words.
    pub fn address(&self, database: &str, user: &str) -> String {
        format!("host=127.0.0.1 port={} user={user} dbname={database}", self.port)
    }

    /// The folder with `data/` and the server's log; certificates may be laid here.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What the server has written to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory().join("log")).unwrap_or_default()
    }

    /// Makes an empty database, in which the roles have what a shard needs.
    pub fn create_database(&self, name: &str) {
        self.sql("postgres", &format!("CREATE DATABASE \"{name}\""));
        self.sql(name, &roles::of_shard(name));
    }

    /// Makes an empty database, in which the manager has what a global map needs, and no role has more.
    pub fn create_global_database(&self, name: &str) {
        self.sql("postgres", &format!("CREATE DATABASE \"{name}\""));
        self.sql(name, &roles::of_global_database(name));
    }

    /// Makes a copy of a database, as from a backup. Sessions of the database are ended.
    pub fn copy_database(&self, name: &str, copy: &str) {
        self.end_sessions(name);
        self.sql("postgres", &format!("CREATE DATABASE \"{copy}\" TEMPLATE \"{name}\""));
        self.sql(copy, &roles::of_shard(copy));
    }

    /// Makes a database from a backup of another one, whose sessions go on.
    pub fn restore_backup(&self, of: &str, to: &str) {
        self.sql("postgres", &format!("CREATE DATABASE \"{to}\""));
        let dump =
            Command::new(binaries().join("pg_dump")).args(["-d", &self.address(of, SUPERUSER)]).output();
        let dump = dump.expect("pg_dump starts");
        let errors = String::from_utf8_lossy(&dump.stderr);
        assert!(dump.status.success(), "pg_dump failed: {errors}");
        self.sql(to, &String::from_utf8_lossy(&dump.stdout));
        self.sql(to, &roles::of_shard(to));
    }

    /// Gives a database another name. Its sessions are ended.
    pub fn rename_database(&self, name: &str, to: &str) {
        self.end_sessions(name);
        self.sql("postgres", &format!("ALTER DATABASE \"{name}\" RENAME TO \"{to}\""));
    }

    fn end_sessions(&self, database: &str) {
        let of = format!("FROM pg_stat_activity WHERE datname = '{database}'");
        self.sql("postgres", &format!("SELECT pg_terminate_backend(pid) {of}"));
    }

    /// Runs SQL as the superuser, for setup that plain roles may not do.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.sql_as(SUPERUSER, database, sql)
    }

    /// Runs SQL through `psql`, each statement a transaction of its own, and gives what it printed
    /// (columns parted by `|`, no headings); panics when a statement fails.
    pub fn sql_as(&self, role: &str, database: &str, sql: &str) -> String {
        let output = self.psql(role, database, sql);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "psql refused {sql:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// The same, with failures for the caller to judge; they carry their SQLSTATE.
    pub fn psql(&self, role: &str, database: &str, sql: &str) -> Output {
        let mut psql = Command::new(binaries().join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-f", "-"])
            .args(["-d", &self.address(database, role)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("psql starts");
        psql.stdin.take().expect("a pipe").write_all(sql.as_bytes()).expect("psql reads");
        psql.wait_with_output().expect("psql ends")
    }

    /// Ends the server and all its backends at once, as a power failure of its machine would. What was committed is in
    /// its log. Does nothing if the server does not run.
    pub fn kill(&self) {
        let Some(mut postmaster) = self.running().take() else { return };
        let backends = children(Pid::from_child(&postmaster));
        // First the postmaster, so that it can't start new backends.
        postmaster.kill().expect("a child may be killed");
        for backend in backends {
            let _ = kill_process(backend, Signal::KILL);
        }
        postmaster.wait().expect("a child can be waited for");
    }

    /// Ends the server in an orderly way: open transactions are rolled back.
    pub fn stop(&self) {
        self.end(Signal::INT);
    }

    /// Starts the server again after [`kill`](PostgresServer::kill) or [`stop`](PostgresServer::stop), and
    /// waits until it has recovered.
    pub fn restart(&self) {
        // A killed backend may still hold the shared memory for a moment; then the start is refused.
        for _ in 0..RESTARTS_MAX {
            if self.try_start() {
                return;
            }
        }
        panic!("the server did not start again:\n{}", self.log());
    }

    /// Puts a file into the server's folder. It belongs to the server, and no other user can read it.
    pub fn place_file(&self, name: &str, text: &str) {
        let path = self.directory().join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
        if let Some((user, group)) = unprivileged() {
            chown(&path, Some(user), Some(group)).expect("root may change the owner");
        }
    }

    /// Restarts the server so that only connections over TLS are let in, by this method of `pg_hba.conf`.
    pub fn demand_tls(&self, certificate: &str, key: &str, method: &str) {
        self.sql("postgres", "ALTER SYSTEM SET ssl = on");
        self.place_file("data/server.crt", certificate);
        self.place_file("data/server.key", key);
        let rules = format!("hostssl all all 127.0.0.1/32 {method}\nhostnossl all all 127.0.0.1/32 reject\n");
        self.place_file("data/pg_hba.conf", &rules);
        self.stop();
        self.restart();
    }

    /// The process that started all others of the server, while it runs.
    pub fn postmaster(&self) -> Option<Pid> {
        self.running().as_ref().map(Pid::from_child)
    }

    fn running(&self) -> MutexGuard<'_, Option<Child>> {
        self.postmaster.lock().expect("no panic while it is held")
    }

    /// The signal says how: the words of PostgreSQL's documentation are "smart", "fast" and "immediate".
    fn end(&self, signal: Signal) {
        let Some(mut postmaster) = self.running().take() else { return };
        kill_process(Pid::from_child(&postmaster), signal).expect("a child may be signalled");
        postmaster.wait().expect("a child can be waited for");
    }

    fn data(&self) -> PathBuf {
        self.directory().join("data")
    }

    fn initialise(&self) {
        // It does not sync the new files: only what tests write must survive.
        let options = ["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
        let output = self.command("initdb").arg("-D").arg(self.data()).args(options).output();
        let output = output.expect("initdb starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "initdb failed: {errors}");
    }

    fn try_start(&self) -> bool {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.directory().join("log"));
        let log = log.expect("a log");
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
        command.arg("-k").arg(self.directory()).args(["-h", "127.0.0.1", "-N", "200"]);
        command.args(["-c", "fsync=on", "-c", "shared_buffers=32MB", "-c", "max_prepared_transactions=16"]);
        for (name, value) in &self.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.stdout(log.try_clone().expect("a second handle")).stderr(log);
        let mut postmaster = command.stdin(Stdio::null()).spawn().expect("postgres starts");
        for _ in 0..READY_TRIALS_MAX {
            if postmaster.try_wait().expect("a child can be waited for").is_some() {
                return false;
            }
            if self.is_ready(&postmaster) {
                *self.running() = Some(postmaster);
                return true;
            }
            pause();
        }
        panic!("the server is not ready:\n{}", self.log());
    }

    /// What the server says about itself in a file: the first line is its process, the eighth its status. An answer on its
    /// port would not tell: another server may have taken the port, and this one has not noticed yet.
    fn is_ready(&self, postmaster: &Child) -> bool {
        let said = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let line = |at: usize| said.lines().nth(at).map(str::trim);
        line(0) == Some(&postmaster.id().to_string()) && line(7) == Some("ready")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(binaries().join(program));
        command.current_dir(self.directory());
        if let Some((user, group)) = unprivileged() {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end(Signal::QUIT);
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
    }
}

/// A process that runs a script with these words when this process has ended: `cat` ends when the last writer of its
/// pipe does, which is this process.
pub(crate) fn guard(script: &str, words: &[&OsStr]) -> Child {
    Command::new("sh")
        .args(["-c", &format!("cat > /dev/null; {script}; exit 0"), "sh"])
        .args(words)
        .process_group(0) // a signal that ends the whole group of this test must not end the guard
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a guard starts")
}

/// The folder of the server's programs.
fn binaries() -> PathBuf {
    installed().expect("PostgreSQL is not installed; install Debian's package `postgresql`")
}

/// The folder of the server's programs, if they are installed: the newest version.
pub fn installed() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("RANGEHOLD_POSTGRES_BIN") {
        return Some(folder.into());
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).max()?;
    let folder = PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin"));
    folder.join("postgres").is_file().then_some(folder)
}

/// The user and group that run the servers when this process is root: those of `postgres`.
pub fn unprivileged() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("the list of users");
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let mut fields = line.expect("root needs a user `postgres`").split(':').skip(2);
    let mut number = || fields.next().and_then(|field| field.parse().ok()).expect("a number");
    Some((number(), number()))
}

fn pause() {
    std::thread::sleep(READY_PAUSE);
}

/// All processes that a process started and that still run.
fn children(parent: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(|&pid| parent_of(pid) == Some(parent)).collect()
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // "pid (name) state parent ...": the name may hold anything, so count from its end.
    let after_name = &stat[stat.rfind(')')? + 1..];
    Pid::from_raw(after_name.split_whitespace().nth(1)?.parse().ok()?)
}
