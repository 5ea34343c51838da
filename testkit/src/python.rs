//! Python with packages of PyPI, in an environment below the build directory.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{self, on_path, run, target};

/// A Python to make environments with.
pub fn python() -> Result<&'static str> {
    match ["python3", "python"].into_iter().find(|name| on_path(name)) {
        Some(name) => Ok(name),
        None => bail!("this needs Python 3.11 or later: install the package python3"),
    }
}

/// An environment with these packages, with spaces between them, made again if others are wanted; returns its Python.
pub fn environment(name: &str, packages: &str) -> Result<PathBuf> {
    let directory = target().join("xtask/environments").join(name);
    let (python, stamp) = (directory.join("bin/python"), directory.join("installed"));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == packages) {
        return Ok(python);
    }
    workspace::empty(&directory)?;
    run(Command::new(self::python()?).args(["-m", "venv"]).arg(&directory))
        .context("Python cannot make an environment: install the package python3-venv")?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(Command::new(&python).args(install).args(packages.split_whitespace()))?;
    fs::write(&stamp, packages)?;
    Ok(python)
}
