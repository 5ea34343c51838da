//! Debian's pgbouncer in transaction mode between the tests and a server: each transaction may get another
//! session.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::ports::start_at_free_port;
use crate::postgres::{PostgresServer, guard, unprivileged};
use crate::roles;

/// Where Debian installs it.
pub(crate) const PROGRAM: &str = "/usr/sbin/pgbouncer";
/// How often it is asked whether it is ready, and how long between.
const READY_TRIALS_MAX: usize = 400;
const READY_PAUSE: Duration = Duration::from_millis(25);

/// One pooler; it ends when it is dropped, or when this process does (by the pipe that it reads).
pub struct Pooler {
    port: u16,
    process: Child,
    guard: Child,
    directory: tempfile::TempDir,
}

impl Pooler {
    /// Two sessions of the server for all its clients. The manager may ask its console (the database `pgbouncer`) for what it
    /// does.
    pub fn start(server: &PostgresServer) -> Pooler {
        Pooler::start_with(server, "")
    }

    /// The same with more lines in the section `[pgbouncer]` of its settings.
    pub fn start_with(server: &PostgresServer, more: &str) -> Pooler {
        start_at_free_port("pgbouncer", |port| Pooler::try_start(server, port, more))
    }

    /// Starts it at a port. If it ends, returns what it has noted.
    fn try_start(server: &PostgresServer, port: u16, more: &str) -> Result<Pooler, String> {
        let directory = tempfile::Builder::new().prefix("rangehold-bouncer-").tempdir().expect("a directory");
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {dir}/users\npool_mode = transaction\n\
             stats_users = {manager}\ndefault_pool_size = 2\nlogfile = {dir}/log\n{more}\n",
            server.port(),
            dir = directory.path().display(),
            manager = roles::MANAGER,
        );
        fs::write(directory.path().join("settings"), settings).expect("settings");
        let users: String = roles::ALL.iter().map(|role| format!("\"{role}\" \"\"\n")).collect();
        fs::write(directory.path().join("users"), users).expect("users");
        let mut command = Command::new(PROGRAM);
        command.args(["-q", "settings"]).current_dir(directory.path());
        if let Some((user, group)) = unprivileged() {
            command.uid(user).gid(group);
            chown(directory.path(), Some(user), Some(group)).expect("root may change the owner");
        }
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.expect("pgbouncer starts; install Debian's package `pgbouncer`");
        let id = process.id().to_string();
        let guard = guard(
            "kill -KILL \"$1\" 2> /dev/null; rm -rf \"$2\"",
            &[id.as_ref(), directory.path().as_os_str()],
        );
        let mut pooler = Pooler { port, process, guard, directory };
        if pooler.wait_until_ready() { Ok(pooler) } else { Err(pooler.log()) }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the pooler has noted.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Waits until the pooler notes that it listens; an answer on its port could come from another program. Returns `false` if the
    /// pooler has ended.
    fn wait_until_ready(&mut self) -> bool {
        let listens = format!("listening on 127.0.0.1:{}", self.port);
        for _ in 0..READY_TRIALS_MAX {
            if self.log().contains(&listens) {
                return true;
            }
            if self.process.try_wait().expect("a child can be waited for").is_some() {
                return false;
            }
            std::thread::sleep(READY_PAUSE);
        }
        panic!("pgbouncer is not ready:\n{}", self.log());
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
