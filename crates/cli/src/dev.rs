//! `rangehold dev`: serves tables and objects from one process, which is the whole service.

mod announce;
mod secrets;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use rangehold_engine::store::{Store, StoreLocation, StoreOptions};
use rangehold_engine::{Clock, Node, Options, StepHook};
use rangehold_server::accounts::WELL_KNOWN_ACCOUNT;
use rangehold_server::admin::{Admin, token_in, token_of};
use rangehold_server::history::{HISTORY_DIRECTORY, History, HistoryOptions};
use rangehold_server::manager::{Manager, ManagerOptions};
use rangehold_server::metrics::Metrics;
use rangehold_server::object::{self, Access, Hosts, ObjectService};
use rangehold_server::table::{self, TableService};
use rangehold_server::tls::Certificate;
use rangehold_server::{Endpoints, Running, limits};
use rustix::fs::Mode;
use rustix::process;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

pub(crate) use self::announce::{ConnectionStringFlags, print_connection_strings};
use self::announce::{announce, url};
use self::secrets::Secrets;
use crate::chance;
use crate::config::{Config, Crash, DevFlags, Objects, Switch};
use crate::logs;

/// A thread looks for what has come at its sockets after so many polls of tasks, if it has always something to do. By default
/// these are 61. Then 40 queries that take turns of half a millisecond let a point read wait for 33 ms.
const POLLS_BETWEEN_LOOKS: u32 = 4;

/// Serves until SIGTERM or Ctrl-C, and then finishes the requests that are under way. A second signal ends the
/// process at once.
pub(crate) fn run(flags: DevFlags) -> Result<()> {
    let config = flags.resolve()?;
    logs::start(config.log_format)?;
    refuse_huge_pages();
    // What the process makes is for its own user: data, keys, tokens.
    process::umask(Mode::RWXG | Mode::RWXO);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .event_interval(POLLS_BETWEEN_LOOKS)
        .build()
        .context("cannot start")?;
    runtime.block_on(serve(flags, config))
}

/// Makes the process use small pages of memory. The allocator asks for pages of 2 MiB, and a page stays as
/// long as anything in it is used. With such pages a thousand ranges held three times the memory that they use.
/// Only Linux joins pages like this.
#[cfg(target_os = "linux")]
fn refuse_huge_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        warn!(%error, "the process may use more memory than --memory: huge pages could not be switched off");
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_huge_pages() {}

async fn serve(flags: DevFlags, config: Config) -> Result<()> {
    let mut signals = Signals::new()?;
    let Started { running, secrets, token } = start(&config).await?;
    announce(&config, &running, &token);
    loop {
        tokio::select! {
            () = signals.stop.asked() => break,
            _ = signals.hangup.recv() => secrets.read_again(&flags, true),
            () = tokio::time::sleep(limits::SECRETS_READ_AGAIN_EVERY) => secrets.read_again(&flags, false),
        }
    }
    info!("stopping: finishing the requests under way; a second signal ends the process at once");
    tokio::select! {
        closed = running.stop() => if closed {
            println!("Table service successfully closed");
        } else {
            warn!("the store could not be closed in time: acknowledged writes are safe, and the next start replays the log");
        },
        () = signals.stop.asked() => {
            warn!("a second signal ended the process: acknowledged writes are safe, and the next start replays the log");
            std::process::exit(1);
        }
    }
    Ok(())
}

/// A server that has started.
struct Started {
    running: Running,
    secrets: Secrets,
    /// The token of its admin endpoint.
    token: String,
}

async fn start(config: &Config) -> Result<Started> {
    // The sockets come first, so that a port in use is reported before the store is opened.
    let table_socket = bind(config.host, config.table_port, "--table-port").await?;
    let object_socket = bind_objects(config).await?;
    let admin_socket = bind(config.admin_host, config.admin_port, "--admin-port").await?;
    println!("Table service is starting at {}", url(config, table_socket.local_addr()?));

    let location = match &config.data {
        Some(directory) => StoreLocation::Directory(directory.clone()),
        None => StoreLocation::Memory,
    };
    let options =
        StoreOptions { unsafe_no_fsync: !config.fsync, disk_reserve_bytes: config.disk_reserve_bytes };
    let store = Store::open(&location, options)?;
    // After the store, which must find a new directory empty: the development certificate is kept in it.
    let secrets = Secrets::read(config)?;
    let acceptor = secrets.certificate.as_ref().map(Certificate::acceptor).transpose()?;
    let clock = Clock::system();
    let options = Options {
        servers: config.servers,
        load: config.profile.load.clone(),
        after_step: config.crash.map_or_else(StepHook::default, crash_after),
        ..Options::new(config.memory_bytes, clock.clone(), chance::seed()?)
    };
    let node = Node::open(store, options).await?;

    let token = admin_token(config)?;
    let metrics = Metrics::new();
    let tables = TableService::new(
        node.router().clone(),
        secrets.accounts.clone(),
        secrets.tokens.clone(),
        clock.clone(),
        table::Options {
            seed: chance::seed()?,
            memory_bytes: config.memory_bytes,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            profile: config.profile.clone(),
        },
        metrics.clone(),
    );
    let objects = match object_socket {
        Some((objects, socket)) => {
            Some((object_service(objects, &secrets, &node, clock, &tables, &metrics)?, socket))
        }
        None => None,
    };
    let manager = Manager::new(&node, tables.rehearsals(), manager_options(config));
    let history = history(config, &node)?;
    let admin = Admin::new(node.clone(), manager, &tables, metrics, Some(token.clone()), config.admin_host);
    let admin = admin.with_history(history).with_hosts(config.admin_hosts.clone());
    let (tables, admin) = ((tables, table_socket), (admin, admin_socket));
    let running = rangehold_server::serve(node, Endpoints { tables, objects, tls: acceptor, admin })?;
    Ok(Started { running, secrets, token })
}

/// The token of the settings; or that of the data directory; or one for the life of a server without a directory.
fn admin_token(config: &Config) -> Result<String> {
    if let Some(token) = &config.admin_token {
        return Ok(token.clone());
    }
    let random = chance::bytes()?;
    match &config.data {
        Some(directory) => token_in(directory, random).context("cannot keep the admin token"),
        None => Ok(token_of(random)),
    }
}

fn object_service(
    objects: &Objects,
    secrets: &Secrets,
    node: &Node,
    clock: Clock,
    tables: &TableService,
    metrics: &Arc<Metrics>,
) -> Result<ObjectService> {
    let options = object::Options {
        seed: chance::seed()?,
        secret_seed: chance::bytes()?,
        access: if objects.auth { Access::Checked(secrets.tokens.clone()) } else { Access::Open },
        keys: secrets.object_keys.clone(),
        hosts: Hosts::new(objects.hosts.clone()),
        retry_tests: objects.retry_tests,
        page_within: limits::PAGE_WITHIN,
        ageing_every: objects.tidied_every.unwrap_or(limits::AGEING_EVERY),
        audit_after_start: objects.tidied_every.unwrap_or(limits::BLOB_AUDIT_AFTER_START),
        audit_every: objects.tidied_every.unwrap_or(limits::BLOB_AUDIT_EVERY),
    };
    Ok(ObjectService::new(node, clock, options, tables, metrics.clone()))
}

fn history(config: &Config, node: &Node) -> Result<Option<History>> {
    if config.history_budget_bytes == 0 {
        return Ok(None);
    }
    let options = HistoryOptions {
        directory: config.data.as_ref().map(|directory| directory.join(HISTORY_DIRECTORY)),
        budget_bytes: config.history_budget_bytes,
        with_keys: config.history_keys,
        salt: chance::bytes()?,
    };
    Ok(Some(History::open(node, &options)))
}

/// Kills the process, as `kill -9` does, when the given step was reached often enough.
fn crash_after(crash: Crash) -> StepHook {
    let reached = AtomicU64::new(0);
    StepHook::new(move |step, _| {
        if step == crash.after && reached.fetch_add(1, Ordering::Relaxed) + 1 == crash.occurrence {
            // The process does not return from this call, so an error cannot be handled.
            let _ = process::kill_process(process::getpid(), process::Signal::KILL);
        }
        std::future::ready(())
    })
}

/// A key in a command that names no account belongs to the first one.
fn manager_options(config: &Config) -> ManagerOptions {
    let account = config.accounts.iter().next().map_or(WELL_KNOWN_ACCOUNT, |account| account.name.as_str());
    let options = ManagerOptions::new(config.profile.plan.clone(), &config.profile.load, account);
    ManagerOptions { plans: config.manager == Switch::On, ..options }
}

/// The socket of objects. If its port was not chosen and is in use, tables are served without objects: a second server on
/// one machine needs no flag for what it may not use.
async fn bind_objects(config: &Config) -> Result<Option<(&Objects, TcpListener)>> {
    let Some(objects) = &config.objects else { return Ok(None) };
    match bind(config.host, objects.port, "--object-port").await {
        Ok(socket) => Ok(Some((objects, socket))),
        Err(error) if objects.port_is_chosen => Err(error),
        Err(error) => {
            warn!("objects are not served: {error:#}");
            Ok(None)
        }
    }
}

async fn bind(host: IpAddr, port: u16, flag: &str) -> Result<TcpListener> {
    let address = SocketAddr::new(host, port);
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}: is another server running? choose another port by {flag}")
    })
}

/// The signals that the server handles: SIGTERM and Ctrl-C stop it, SIGHUP makes it read the accounts again.
struct Signals {
    stop: StopSignals,
    hangup: Signal,
}

struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        Ok(Self {
            stop: StopSignals {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
            },
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

impl StopSignals {
    /// Waits for a signal to stop.
    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
