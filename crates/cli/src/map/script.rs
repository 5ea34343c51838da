//! `map script`: a file of commands, for the map of a running server or for one in memory.
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
//! The language, its parser and the machine that runs it in memory are those of the golden tests
//! ([`rangehold_map::script`]). With `--dry-run` nothing but that machine is used: loads may be invented
//! (`observe`), and what the planner would do with them is said (`plan`), in the form of a golden file. Without
//! it, each command goes to a running server through the admin API, and what comes back is printed as
//! `rangehold map` prints it.
//!
//! **A script is read before it is begun.** A word that is misspelt in the last line, or a command that a
//! running service has no use for, shall not leave a map behind that is half changed.

use std::io::Read;
use std::thread;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use rangehold_map::script::{Command, KeyName, Line, Live, MapScript, golden, parse_lines};
use serde_json::Value;

use super::calls;
use crate::ranges::{Showing, cell, keys, list, name};

/// `rangehold map script ...`
#[derive(Debug, Args)]
pub(crate) struct Script {
    /// The commands, one a line; `-` reads them from standard input.
    file: String,
    /// Run it on a new map in memory, without any server, and print the script with what came of it.
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,
    #[command(flatten)]
    showing: Showing,
}

impl Script {
    /// Runs the commands up to the first that fails.
    pub(crate) fn run(&self) -> Result<()> {
        let text = read(&self.file)?;
        if self.dry_run {
            return in_memory(&text);
        }
        for (number, line, command) in live(&text)? {
            if self.showing.is_text() {
                println!("> {line}");
            }
            give(&self.showing, command).with_context(|| format!("line {number}: {line}"))?;
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

/// The commands as a running service is given them, each with its line.
fn live(text: &str) -> Result<Vec<(usize, Command, Live)>> {
    let lines = parse_lines(text).map_err(|why| anyhow!("{why}; nothing was begun"))?;
    let command = |Line { number, command }: Line| match command.clone().live() {
        Ok(live) => Ok((number, command, live)),
        Err(why) => Err(anyhow!("line {number}: {why}; nothing was begun: --dry-run runs this in memory")),
    };
    lines.into_iter().map(command).collect()
}

/// Gives one command to the service.
fn give(showing: &Showing, command: Live) -> Result<()> {
    match command {
        Live::Map => calls::show(showing),
        Live::Check => calls::check(showing),
        Live::Change(asked) => calls::change(showing, &asked),
        Live::Find(key) => {
            let found = calls::find(&showing.asking, &key.to_string())?;
            showing.print(&found, |found| whereabouts(&key, found));
            Ok(())
        }
        Live::Table(table) => {
            let found = calls::find(&showing.asking, &table.to_string())?;
            showing.print(&found, |_| "there is such a table\n".to_owned());
            Ok(())
        }
        Live::Wait(time) => {
            #[expect(clippy::disallowed_methods, reason = "the time of a real service goes by by itself")]
            thread::sleep(time);
            Ok(())
        }
    }
}

/// Such as `marathon/Half is in r3@2 [marathon/Half, end) of s2`.
fn whereabouts(key: &KeyName, found: &Value) -> String {
    let ranges = list(&found["ranges"]).iter();
    ranges
        .map(|range| format!("{key} is in {} {} of {}\n", name(range), keys(range), cell(&range["server"])))
        .collect()
}
