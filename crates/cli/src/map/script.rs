//! `rangehold map script`: runs a file of commands on the map of a running server, or on a map in memory.
//!
//! ```text
//! # Full and Half get servers of their own.
//! table marathon
//! split marathon/Full
//! split marathon/Half
//! move marathon/Half to s2
//! check
//! ```
//!
//! The language, its parser and the interpreter in memory are those of the golden tests
//! ([`rangehold_map::script`]). With `--dry-run` only that interpreter runs. A script may then invent loads
//! (`observe`) and ask what the planner would do with them (`plan`), and the output has the form of a golden
//! file. Without it, each command goes to a running server through the admin API, and the answers are printed
//! as `rangehold map` prints them.
//!
//! **The whole script is read before its first command runs.** So a misspelt word in the last line, or a
//! command that only `--dry-run` has, cannot leave the map half changed.

use std::io::Read;
use std::thread;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use rangehold_map::script::{Command, KeyName, Line, Live, MapScript, golden, parse_lines};
use serde_json::Value;

use super::calls;
use crate::output::{Format, View, cell, keys, list, name};

/// `rangehold map script ...`
#[derive(Debug, Args)]
pub(crate) struct Script {
    /// File with the commands, one on each line; `-` reads standard input.
    file: String,
    /// Run the commands on a new map in memory, without a server. Prints the script with its results.
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,
    #[command(flatten)]
    view: View,
}

impl Script {
    /// Runs the commands, up to the first that fails.
    pub(crate) fn run(&self) -> Result<()> {
        let text = read(&self.file)?;
        if self.dry_run {
            return in_memory(&text);
        }
        for (number, line, command) in live(&text)? {
            if self.view.output == Format::Text {
                println!("> {line}");
            }
            run_live(&self.view, command).with_context(|| format!("line {number}: {line}"))?;
        }
        Ok(())
    }
}

fn read(file: &str) -> Result<String> {
    if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read the script from standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("cannot read the script {file}"))
}

fn in_memory(text: &str) -> Result<()> {
    let mut script = MapScript::new();
    let (said, ended) = golden::replay_until(text, |number, line| {
        script.try_line(line).map_err(|why| anyhow!("line {number}: {why}"))
    });
    print!("{said}");
    ended
}

/// The commands for a running server, each with its line. Fails if a command is only for `--dry-run`.
fn live(text: &str) -> Result<Vec<(usize, Command, Live)>> {
    let lines = parse_lines(text).map_err(|why| anyhow!("{why}; no command was run"))?;
    let command = |Line { number, command }: Line| match command.clone().live() {
        Ok(live) => Ok((number, command, live)),
        Err(why) => Err(anyhow!("line {number}: {why}; no command was run: --dry-run runs this in memory")),
    };
    lines.into_iter().map(command).collect()
}

/// Runs one command on a running server.
fn run_live(view: &View, command: Live) -> Result<()> {
    match command {
        Live::Map => calls::show(view),
        Live::Check => calls::check(view),
        Live::Change(asked) => calls::change(view, &asked),
        Live::Find(key) => {
            let found = calls::find(&view.admin, &key.to_string())?;
            view.print(&found, |found| whereabouts(&key, found));
            Ok(())
        }
        Live::Table(table) => {
            let found = calls::find(&view.admin, &table.to_string())?;
            view.print(&found, |_| "there is such a table\n".to_owned());
            Ok(())
        }
        Live::Wait(time) => {
            #[expect(
                clippy::disallowed_methods,
                reason = "the script waits for a real server, in real time"
            )]
            thread::sleep(time);
            Ok(())
        }
    }
}

/// A sentence such as `marathon/Half is in r3@2 [marathon/Half, end) of s2`.
fn whereabouts(key: &KeyName, found: &Value) -> String {
    let ranges = list(&found["ranges"]).iter();
    ranges
        .map(|range| format!("{key} is in {} {} of {}\n", name(range), keys(range), cell(&range["server"])))
        .collect()
}
