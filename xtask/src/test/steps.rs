//! The steps, in the order they run: what fails fastest comes first.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use super::tools;
use crate::itself;
use rangehold_testkit::azurite::Azurite;
use rangehold_testkit::client::TOKEN_FILE;
use rangehold_testkit::needs;
use rangehold_testkit::server::{Server, Setup};
use rangehold_testkit::workspace::{self, Profile, cargo, root, run};

/// One step.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    work: Work,
}

enum Work {
    Function(fn() -> Result<()>),
    /// Another task of this program, by the arguments of its command.
    Task(&'static [&'static str]),
}

impl Step {
    pub(super) fn run(&self) -> Result<()> {
        match self.work {
            Work::Function(function) => function(),
            Work::Task(words) => xtask(words),
        }
    }
}

/// The steps of `--quick`: what a change breaks most often.
pub(super) const QUICK: &[&str] =
    &["fmt", "clippy", "doc", "tests", "doctests", "raw", "verdicts", "rates", "sim"];

/// The long runs of `cargo xtask soak`: each name with the arguments of its command.
pub(super) const SOAK: &[(&str, &[&str])] = &[
    ("sim", &["sim", "--seeds", "1000"]),
    ("sim-long", &["sim", "--long", "--seeds", "100", "--twice", "5"]),
    ("mutants", &["sim", "--mutants"]),
    ("crash", &["crash", "--rounds", "50"]),
    ("objects", &["crash", "--objects", "--rounds", "50"]),
    ("changes", &["crash", "--changes"]),
    ("hour", &["crash", "--hour", "--minutes", "60"]),
    ("power", &["crash", "--power", "--points", "200"]),
    ("power-objects", &["crash", "--power-objects", "--points", "100"]),
    ("handoff", &["handoff", "--release"]),
    ("space", &["space"]),
    ("verdicts", &["verdicts"]),
    ("balance", &["balance"]),
    ("shards", &["shards", "--changes", "500", "--waits"]),
    ("ranges", &["ranges", "--release"]),
    ("cloud", &["cloud"]),
    ("rates", &["objects", "--rates", "live"]),
];

/// Settings of a server whose buckets bear a hundredth of what they bear in the cloud.
const SCALED_RATES: [&str; 4] = ["--profile", "cloud", "--rate-scale", "0.01"];
/// The modules of tests that the step `client` runs: those of the client and of the program.
const BEYOND_OURS: [&str; 5] = ["table::", "moving::", "bulk::", "azurite::", "snippets::"];

/// All steps.
pub(super) const STEPS: &[Step] = &[
    step("fmt", "every file is formatted", fmt),
    step("clippy", "no lint warns, in any target", clippy),
    step("deny", "licences, sources, bans and advisories of the libraries", deny),
    step("doc", "the documentation builds without warnings", doc),
    step("tests", "unit tests, properties, recorded examples", tests),
    step("doctests", "examples in the documentation", doctests),
    step("python", "Azure's Python SDK against a running server", python),
    step("python-host", "the same by the host's name, over TLS, with bearer tokens", python_host),
    step(
        "python-cloud",
        "a job over a hot partition and a range that moves with it, under --profile cloud",
        python_cloud,
    ),
    step("node", "Azure's JavaScript SDK against a running server", node),
    step("gcs-python", "Google's Python client against a running server", gcs_python),
    step("gcs-node", "Google's JavaScript client against a running server", gcs_node),
    step(
        "client",
        "the Rust client and its commands against Azurite, and the snippets of their pages",
        client,
    ),
    step("python-shards", "a Python program, routed and fenced by SQL functions alone", python_shards),
    step(
        "shards",
        "a map of PostgreSQL shards: changes, killed servers and managers, writers; 60 changes, and 60 with a pooler",
        shards,
    ),
    step("raw", "requests that no SDK sends, byte by byte", raw),
    task(
        "verdicts",
        "causes of load, and no useless splits, on 4 seeds of each workload",
        &["verdicts", "--seeds", "4"],
    ),
    task(
        "rates",
        "what buckets bear of load that doubles, by the form of their names",
        &["objects", "--rates", "simulated"],
    ),
    task("fuzz", "12 s for each parser", &["fuzz", "--seconds", "12"]),
    task("sim", "whole clusters from 60 seeds, with faults", &["sim", "--seeds", "60", "--twice", "6"]),
    task("crash", "kill -9 under load, 10 rounds", &["crash", "--rounds", "10"]),
    task("objects", "kill -9 while objects are written, 6 rounds", &["crash", "--objects", "--rounds", "6"]),
    task(
        "copies",
        "4,000 files up and down by commands that are killed, and every byte compared",
        &["client", "--only", "objects", "--files", "4000", "--python-files", "0"],
    ),
    task(
        "changes",
        "the process ends between any two steps of a split, merge or move",
        &["crash", "--changes"],
    ),
    task(
        "handoff",
        "30 changes of ranges under load, without an error",
        &["handoff", "--rounds", "10", "--at-once", "2"],
    ),
    task("power", "power loss at 60 moments", &["crash", "--power", "--points", "60"]),
    task(
        "power-objects",
        "power loss at 12 moments, while objects are written",
        &["crash", "--power-objects", "--points", "12"],
    ),
    task(
        "control",
        "the same without fsync, which must find losses",
        &["crash", "--power", "--points", "20", "--no-fsync"],
    ),
    task("damage", "damaged files are refused by name", &["crash", "--damage"]),
    task("disk-full", "the disk fills up and has room again", &["crash", "--disk-full"]),
    task("clock", "the wall clock steps back by an hour", &["crash", "--clock"]),
];

const fn step(name: &'static str, what: &'static str, function: fn() -> Result<()>) -> Step {
    Step { name, what, work: Work::Function(function) }
}

const fn task(name: &'static str, what: &'static str, words: &'static [&'static str]) -> Step {
    Step { name, what, work: Work::Task(words) }
}

/// The names of all steps.
pub(super) fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// The names of the long runs.
pub(super) fn soak_names() -> Vec<&'static str> {
    SOAK.iter().map(|(name, _)| *name).collect()
}

fn fmt() -> Result<()> {
    run(cargo_at_root().args(["fmt", "--all", "--check"]))?;
    run(cargo_at_root().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

fn clippy() -> Result<()> {
    run(cargo_at_root().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// The advisories are a database that is fetched. If it cannot be reached, the rest is checked.
fn deny() -> Result<()> {
    let deny = tools::cargo_deny()?;
    let command = |checks: &[&str]| {
        let mut command = Command::new(&deny);
        command.args(["--workspace", "--all-features", "check", "--hide-inclusion-graph"]).args(checks);
        command.current_dir(root());
        command
    };
    run(&mut command(&["bans", "licenses", "sources"]))?;
    let fetched = Command::new(&deny).args(["fetch", "db"]).current_dir(root()).output()?;
    if fetched.status.success() {
        run(&mut command(&["advisories"]))
    } else {
        println!("the advisories were not checked: their database cannot be reached");
        Ok(())
    }
}

fn doc() -> Result<()> {
    let mut doc = cargo_at_root();
    run(doc.args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Runs tests with nextest if it is installed, since it runs test binaries side by side; else with cargo. A test that
/// needs something that this machine does not have fails: nothing is skipped here.
fn tests() -> Result<()> {
    let mut tests = cargo_at_root();
    tests.env(needs::ALL, "1");
    if workspace::on_path("cargo-nextest") {
        return run(tests.args(["nextest", "run", "--workspace", "--no-fail-fast"]));
    }
    run(tests.args(["test", "--workspace", "--all-targets", "--no-fail-fast"]))
}

fn doctests() -> Result<()> {
    run(cargo_at_root().args(["test", "--quiet", "--workspace", "--doc"]))
}

fn python() -> Result<()> {
    let runner = suite("python")?.join("run.py");
    with_server("python", &[], |server, _| run_script(&runner, server.address, &[]))
}

/// Addresses the server as the cloud is addressed: by the host's name, over TLS, with bearer tokens.
fn python_host() -> Result<()> {
    let runner = suite("python")?.join("run.py");
    with_server("python-host", &["--tls", "self-signed", "--oauth", "claims-only"], |server, _| {
        run_script(&runner, server.address, &["--style".as_ref(), "host".as_ref()])
    })
}

/// With the SDK's default retries, which must be enough; readers of the hot partition have ten. The job has ranges cut and
/// moved by the admin API. The manager is off: while it moved a range, the job's own moves and its client without retries
/// would be refused.
fn python_cloud() -> Result<()> {
    let runner = suite("python")?.join("cloud.py");
    let settings = ["--profile", "cloud", "--servers", "4", "--manager", "off"];
    with_server("python-cloud", &settings, |server, data| {
        let (admin, token_file) = (server.admin.to_string(), data.join(TOKEN_FILE));
        run_script(&runner, server.address, &[admin.as_ref(), token_file.as_os_str()])
    })
}

/// The suite starts servers of its own where it needs TLS.
fn node() -> Result<()> {
    let suite = suite("js")?;
    tools::npm_ci(&suite)?;
    with_server("node", &[], |server, _| {
        run(Command::new("node")
            .arg("--test")
            .current_dir(&suite)
            .env(
                "RANGEHOLD_TABLE_ENDPOINT",
                format!("http://{}/{}", server.address, rangehold_testkit::client::ACCOUNT),
            )
            .env("RANGEHOLD_BIN", workspace::program(Profile::Dev)?))
    })
}

fn gcs_python() -> Result<()> {
    let runner = root().join("tests/gcs/python/run.py");
    with_server("gcs-python", &[], |server, _| run_script(&runner, server.objects, &[]))?;
    // The same client, and more than a bucket bears.
    with_server("gcs-rates", &SCALED_RATES, |server, _| {
        run_script(&runner, server.objects, &["--scaled-rates".as_ref(), "test_rates".as_ref()])
    })
}

fn gcs_node() -> Result<()> {
    let suite = root().join("tests/gcs/js");
    tools::npm_ci(&suite)?;
    let node = |server: &Server| {
        let mut node = Command::new("node");
        node.arg("--test").current_dir(&suite);
        node.env("STORAGE_EMULATOR_HOST", format!("http://{}", server.objects));
        node
    };
    with_server("gcs-node", &[], |server, _| run(&mut node(server)))?;
    with_server("gcs-node-rates", &SCALED_RATES, |server, _| {
        run(node(server).arg("rates.test.js").env("RANGEHOLD_SCALED_RATES", "1"))
    })
}

/// The tests that need a service that is not ours, and the snippets of pages. The step `tests` runs those against ours
/// that can be run without Azurite and without the libraries of the recipes.
fn client() -> Result<()> {
    let directory = root().join("tests/azurite");
    tools::npm_ci(&directory)?;
    // The recipes for JavaScript and for Google's clients use what the suites for them use.
    let (python, js) = (tools::recipes()?, suite("js")?);
    tools::npm_ci(&js)?;
    let (google_python, google_js) = (tools::google_python()?, root().join("tests/gcs/js"));
    tools::npm_ci(&google_js)?;
    let azurite = Azurite::start(&directory)?;
    // With the features of the whole workspace no library is built once more.
    let tests = |more: &[&str]| {
        let mut tests = cargo_at_root();
        tests.args(["test", "--quiet", "--workspace", "--test", "it", "--"]).args(BEYOND_OURS).args(more);
        tests.env(needs::OTHER_SERVICE, &azurite.connection).env(needs::RECIPES_PYTHON, &python);
        tests.env(needs::RECIPES_NODE, js.join("node_modules"));
        tests.env(needs::GOOGLE_PYTHON, &google_python);
        tests.env(needs::GOOGLE_NODE, google_js.join("node_modules"));
        tests
    };
    let listed = tests(&["--list"]).output()?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    for module in BEYOND_OURS {
        ensure!(
            listed.lines().any(|line| line.starts_with(module)),
            "there are no tests in {module}:\n{listed}"
        );
    }
    run(&mut tests(&[]))
}

/// Against servers that it starts; the driver comes from PyPI.
fn python_shards() -> Result<()> {
    crate::shards::python(&tools::psycopg()?)
}

fn shards() -> Result<()> {
    xtask(&["shards", "--changes", "60"])?;
    xtask(&["shards", "--changes", "200", "--mutants"])
}

fn raw() -> Result<()> {
    let runner = suite("raw")?.join("run.py");
    with_server("raw", &[], |server, _| run_script(&runner, server.address, &[]))
}

fn cargo_at_root() -> Command {
    let mut command = Command::new(cargo());
    command.current_dir(root());
    command
}

/// Another task of this program.
pub(super) fn xtask(words: &[&str]) -> Result<()> {
    run(itself::task(words).current_dir(root()))
}

fn suite(name: &str) -> Result<PathBuf> {
    let path = root().join("tests/azure-sdk").join(name);
    if !path.is_dir() {
        bail!("there is no suite at {}", path.display());
    }
    Ok(path)
}

/// Runs the Python runner of one suite. The runner installs what it needs from PyPI in `target/`.
fn run_script(runner: &Path, address: SocketAddr, arguments: &[&OsStr]) -> Result<()> {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let mut command = Command::new(tools::python()?);
    run(command.arg(runner).args([host, port]).args(arguments).current_dir(root()))
}

/// Runs a suite against a fresh server with its data directory; the server must then end in good order.
fn with_server(
    name: &str,
    arguments: &[&str],
    suite: impl FnOnce(&Server, &Path) -> Result<()>,
) -> Result<()> {
    let setup = Setup::fresh(Profile::Dev, &format!("suite-{name}"), arguments)?;
    let server = Server::start(&setup)?;
    suite(&server, &setup.data)?;
    server.stop()?;
    no_panic(&setup.log)
}

/// A panic of one request does not end the server, but its message is in the log.
fn no_panic(log: &Path) -> Result<()> {
    let text = rangehold_testkit::server::text(log);
    match text.lines().find(|line| line.contains("panicked at")) {
        Some(line) => bail!("the server panicked: {line}"),
        None => Ok(()),
    }
}
