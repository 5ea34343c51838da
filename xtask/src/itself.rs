//! This program, for the tasks that run other tasks.
//!
//! A build of the whole workspace may put another build of this program in its place: the same sources, with other
//! features of the libraries. The system then names the running program as deleted. So the path is kept at the start.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

static PROGRAM: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::current_exe().expect("a program that runs has a path"));

/// Keeps the path of this program. To be called before anything is built.
pub(crate) fn keep() {
    LazyLock::force(&PROGRAM);
}

/// Another task of this program, in a process of its own: its limits and its output are its own.
pub(crate) fn task(words: &[&str]) -> Command {
    let mut command = Command::new(&*PROGRAM);
    command.args(words);
    command
}
