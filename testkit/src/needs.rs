//! What tests need of the machine besides Rust, and what happens where it is missing.
//!
//! `cargo test` must pass on a machine that has only Rust. So a test first asks whether the part that it needs is
//! there. If not, the test says so and ends. `cargo xtask test` sets [`ALL`]: then a missing part is a failure, and no
//! check can be lost unnoticed.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::{pooler, postgres};

/// The environment variable with the connection string of a table service that is not ours: Azurite, in CI.
pub const OTHER_SERVICE: &str = "RANGEHOLD_CLIENT_CONNECTION";

/// The environment variable with a Python that has the libraries of the recipes.
pub const RECIPES_PYTHON: &str = "RANGEHOLD_RECIPES_PYTHON";

/// The environment variable with the folder `node_modules` that has the libraries of the recipes.
pub const RECIPES_NODE: &str = "RANGEHOLD_RECIPES_NODE";

/// The environment variable with a Python that has Google's client of objects.
pub const GOOGLE_PYTHON: &str = "RANGEHOLD_GOOGLE_PYTHON";

/// The environment variable with the folder `node_modules` that has Google's client of objects.
pub const GOOGLE_NODE: &str = "RANGEHOLD_GOOGLE_NODE";

/// The environment variable under which every test must run.
pub const ALL: &str = "RANGEHOLD_TEST_ALL";

/// A part of the machine.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// The server's programs.
    PostgreSql,
    /// The pooler in front of it.
    PgBouncer,
    /// The program that gives another program a terminal.
    Script,
}

impl Part {
    fn is_there(self) -> bool {
        match self {
            Self::PostgreSql => postgres::installed().is_some(),
            Self::PgBouncer => Path::new(pooler::PROGRAM).is_file(),
            Self::Script => {
                // Other systems have programs of this name with other arguments.
                let said = Command::new("script").arg("--version").output();
                said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("util-linux"))
            }
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::PostgreSql => {
                "PostgreSQL; install Debian's package postgresql, or name its folder in RANGEHOLD_POSTGRES_BIN"
            }
            Self::PgBouncer => "pgbouncer; install Debian's package pgbouncer",
            Self::Script => "script of util-linux; install Debian's package bsdutils",
        }
    }
}

/// Whether all `parts` are there. If not, says on standard error which test is skipped and why.
///
/// # Panics
///
/// When a part is missing and [`ALL`] is set.
pub fn has(parts: &[Part]) -> bool {
    let Some(missing) = parts.iter().find(|part| !part.is_there()) else { return true };
    let current = std::thread::current();
    let test = current.name().unwrap_or("a test");
    assert!(std::env::var_os(ALL).is_none(), "{test} needs {}", missing.advice());
    // No macro is used here: the test harness hides what macros print when a test passes.
    let _unseen = writeln!(std::io::stderr(), "skipped: {test} needs {}", missing.advice());
    false
}

/// The value of [`OTHER_SERVICE`], [`RECIPES_PYTHON`], [`RECIPES_NODE`], [`GOOGLE_PYTHON`] or [`GOOGLE_NODE`], which
/// `cargo xtask test --only client` sets: it installs what stands behind them. If it is not set, says on standard error which test is skipped. Under [`ALL`] too, because the
/// step `client` runs these tests and fails if there are none.
pub fn given(variable: &str) -> Option<String> {
    let value = std::env::var(variable).ok();
    if value.is_none() {
        let current = std::thread::current();
        let test = current.name().unwrap_or("a test");
        let advice = format!("{variable}, which `cargo xtask test --only client` sets");
        let _unseen = writeln!(std::io::stderr(), "skipped: {test} needs {advice}");
    }
    value
}

/// Ends a test here, with a line that says so, where a part of the machine is missing.
///
/// ```ignore
/// needs!(PostgreSql, PgBouncer);
/// ```
#[macro_export]
macro_rules! needs {
    ($($part:ident),+) => {
        if !$crate::needs::has(&[$($crate::needs::Part::$part),+]) {
            return;
        }
    };
}
