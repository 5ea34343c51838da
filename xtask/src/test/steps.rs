//! The steps, in the order they run: what fails fastest comes first.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::tools;
use crate::server::{Server, Setup};
use crate::workspace::{self, cargo, root, run};

/// One step.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) run: fn() -> Result<()>,
}

/// All steps.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "every file is formatted",
        run: fmt,
    },
    Step {
        name: "clippy",
        what: "no lint warns, in any target",
        run: clippy,
    },
    Step {
        name: "deny",
        what: "licences, sources, bans and advisories of the libraries",
        run: deny,
    },
    Step {
        name: "doc",
        what: "the documentation builds without warnings",
        run: doc,
    },
    Step {
        name: "tests",
        what: "unit tests, properties, recorded examples",
        run: tests,
    },
    Step {
        name: "doctests",
        what: "examples in the documentation",
        run: doctests,
    },
    Step {
        name: "python",
        what: "Azure's Python SDK against a running server",
        run: python,
    },
    Step {
        name: "node",
        what: "Azure's JavaScript SDK against a running server",
        run: node,
    },
    Step {
        name: "raw",
        what: "requests that no SDK sends, byte by byte",
        run: raw,
    },
    Step {
        name: "fuzz",
        what: "20 s for each parser",
        run: fuzz,
    },
    Step {
        name: "crash",
        what: "kill -9 under load, 10 rounds",
        run: crash,
    },
    Step {
        name: "power",
        what: "power loss at 60 moments",
        run: power,
    },
    Step {
        name: "control",
        what: "the same without fsync, which must find losses",
        run: control,
    },
    Step {
        name: "damage",
        what: "damaged files are refused by name",
        run: damage,
    },
    Step {
        name: "disk-full",
        what: "the disk fills up and has room again",
        run: disk_full,
    },
    Step {
        name: "clock",
        what: "the wall clock steps back by an hour",
        run: clock,
    },
];

/// The names of all steps.
pub(super) fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

fn fmt() -> Result<()> {
    run(cargo_at_root().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    run(cargo_at_root().args([
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

/// The advisories are a database that is fetched; where it cannot be reached, the rest is checked.
fn deny() -> Result<()> {
    let deny = tools::cargo_deny()?;
    let command = |checks: &[&str]| {
        let mut command = Command::new(&deny);
        command
            .args(["--workspace", "--all-features", "check", "--hide-inclusion-graph"])
            .args(checks);
        command.current_dir(root());
        command
    };
    run(&mut command(&["bans", "licenses", "sources"]))?;
    let fetched = Command::new(&deny)
        .args(["fetch", "db"])
        .current_dir(root())
        .output()?;
    if fetched.status.success() {
        run(&mut command(&["advisories"]))
    } else {
        println!("the advisories were not checked: their database cannot be reached");
        Ok(())
    }
}

fn doc() -> Result<()> {
    let mut doc = cargo_at_root();
    run(doc
        .args(["doc", "--quiet", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings"))
}

/// By nextest where it is installed, since it runs test binaries side by side; else by cargo.
fn tests() -> Result<()> {
    if workspace::on_path("cargo-nextest") {
        return run(cargo_at_root().args(["nextest", "run", "--workspace", "--no-fail-fast"]));
    }
    run(cargo_at_root().args(["test", "--workspace", "--all-targets", "--no-fail-fast"]))
}

fn doctests() -> Result<()> {
    run(cargo_at_root().args(["test", "--quiet", "--workspace", "--doc"]))
}

fn python() -> Result<()> {
    let suite = suite("python")?;
    let python = tools::virtual_environment("python", &suite.join("requirements.txt"))?;
    with_server("python", |server| {
        run(Command::new(&python)
            .arg(suite.join("run.py"))
            .args([server.address.ip().to_string(), server.address.port().to_string()])
            .current_dir(&suite))
    })
}

fn node() -> Result<()> {
    let suite = suite("js")?;
    tools::npm_ci(&suite)?;
    with_server("node", |server| {
        run(Command::new("node")
            .arg("--test")
            .current_dir(&suite)
            .env("RANGEHOLD_HOST", server.address.ip().to_string())
            .env("RANGEHOLD_PORT", server.address.port().to_string()))
    })
}

/// These need nothing but Python's own library.
fn raw() -> Result<()> {
    let suite = suite("raw")?;
    let python = tools::python()?;
    with_server("raw", |server| {
        for file in fs::read_dir(&suite)? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "py") {
                run(Command::new(python)
                    .arg(&path)
                    .args([server.address.ip().to_string(), server.address.port().to_string()])
                    .current_dir(&suite))?;
            }
        }
        Ok(())
    })
}

fn fuzz() -> Result<()> {
    xtask(&["fuzz", "--seconds", "20"])
}

fn crash() -> Result<()> {
    xtask(&["crash", "--rounds", "10"])
}

fn power() -> Result<()> {
    xtask(&["crash", "--power", "--points", "60"])
}

fn control() -> Result<()> {
    xtask(&["crash", "--power", "--points", "20", "--no-fsync"])
}

fn damage() -> Result<()> {
    xtask(&["crash", "--damage"])
}

fn disk_full() -> Result<()> {
    xtask(&["crash", "--disk-full"])
}

fn clock() -> Result<()> {
    xtask(&["crash", "--clock"])
}

fn cargo_at_root() -> Command {
    let mut command = Command::new(cargo());
    command.current_dir(root());
    command
}

/// Another command of this program, in a process of its own: its limits and its output are its own.
fn xtask(words: &[&str]) -> Result<()> {
    run(Command::new(std::env::current_exe()?)
        .args(words)
        .current_dir(root()))
}

fn suite(name: &str) -> Result<std::path::PathBuf> {
    let path = root().join("tests/azure-sdk").join(name);
    if !path.is_dir() {
        bail!("there is no suite at {}", path.display());
    }
    Ok(path)
}

/// Runs a suite against a fresh server, which must then end in good order.
fn with_server(name: &str, suite: impl FnOnce(&Server) -> Result<()>) -> Result<()> {
    let program = workspace::program()?;
    let directory = workspace::scratch(&format!("suite-{name}"))?;
    let server = Server::start(&Setup::new(
        &program,
        &directory.join("data"),
        &directory.join("server.log"),
    ))?;
    suite(&server)?;
    server.stop()?;
    no_panic(&directory.join("server.log"))
}

/// A panic of one request does not end the server, but its message is in the log.
fn no_panic(log: &Path) -> Result<()> {
    let text = crate::server::text(log);
    match text.lines().find(|line| line.contains("panicked at")) {
        Some(line) => bail!("the server panicked: {line}"),
        None => Ok(()),
    }
}
