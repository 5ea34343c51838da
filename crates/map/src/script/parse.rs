//! Reads commands from lines.

use std::str::FromStr;

use super::command::{Asked, CauseName, Command, Observed, Profile, Step, Target};
use super::golden;
use super::key_name::{KeyName, TableName, TableRef};
use super::words::{Malformed, bytes, duration, malformed, number, words};
use crate::plan::Standing;
use crate::range::{Generation, ServerId};

/// A command of a script, and the number of its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The number of the line, counted from 1.
    pub number: usize,
    /// The command of this line.
    pub command: Command,
}

/// The commands of a script. An error names the line, counted from 1.
pub fn parse(script: &str) -> Result<Vec<Command>, Malformed> {
    Ok(parse_lines(script)?.into_iter().map(|line| line.command).collect())
}

/// The commands of a script with their lines. The outputs of a [golden file](super::golden) are left out.
pub fn parse_lines(script: &str) -> Result<Vec<Line>, Malformed> {
    let line = |(number, line): (usize, &str)| match line.parse() {
        Ok(command) => Ok(Line { number, command }),
        Err(Malformed(what)) => Err(Malformed(format!("line {number}: {what}"))),
    };
    golden::commands(script).map(line).collect()
}

impl FromStr for Command {
    type Err = Malformed;

    fn from_str(line: &str) -> Result<Self, Malformed> {
        let words = words(line);
        let Some((&name, arguments)) = words.split_first() else { return malformed(line, "a command") };
        match (name, arguments) {
            ("table", [table]) => match table.parse()? {
                TableName { account, table: TableRef::Name(name) } => Ok(Self::Table { account, name }),
                TableName { table: TableRef::Id(_), .. } => {
                    malformed(table, "the name of a table, such as marathon")
                }
            },
            ("server", [server, settings @ ..]) => server_command(server, settings),
            ("map", []) => Ok(Self::Map),
            ("check", []) => Ok(Self::Check),
            ("find", [key]) => Ok(Self::Find(key.parse()?)),
            ("begin", asked) => Ok(Self::Change { step: Step::Begin, asked: begun(line, asked)? }),
            ("done", [range]) => Ok(Self::Done(range.parse()?)),
            ("undo", [range]) => Ok(Self::Undo(range.parse()?)),
            ("observe", [range, settings @ ..]) => {
                Ok(Self::Observe { range: range.parse()?, observed: observed(settings)? })
            }
            ("wait", [time]) => Ok(Self::Wait(duration(time)?)),
            ("plan", []) => Ok(Self::Plan(Profile::default())),
            ("plan", [profile]) => Ok(Self::Plan(self::profile(profile)?)),
            ("execute", []) => Ok(Self::Execute(Profile::default())),
            ("execute", [profile]) => Ok(Self::Execute(self::profile(profile)?)),
            _ => match asked(&words)? {
                Some(asked) => Ok(Self::Change { step: Step::Whole, asked }),
                None => unknown(name),
            },
        }
    }
}

/// How each command is written, for error messages.
const USAGE: &[(&str, &str)] = &[
    ("table", "table NAME"),
    ("server", "server s2 [capacity=REQUESTS_PER_SECOND] [leaving|dead]"),
    ("map", "map"),
    ("check", "check"),
    ("find", "find KEY"),
    ("split", "split KEY, or split RANGE at KEY"),
    ("merge", "merge LEFT_RANGE RIGHT_RANGE"),
    ("move", "move RANGE to SERVER"),
    ("offline", "offline RANGE"),
    ("online", "online RANGE"),
    ("begin", "begin split..., begin merge... or begin move..."),
    ("done", "done RANGE"),
    ("undo", "undo RANGE"),
    ("observe", "observe RANGE rate=N [peak=N] [bytes=N] [crashes=N] [cause=CAUSE]"),
    ("wait", "wait TIME"),
    ("plan", "plan [fast|cloud]"),
    ("execute", "execute [fast|cloud]"),
];

fn unknown<T>(name: &str) -> Result<T, Malformed> {
    if let Some((_, usage)) = USAGE.iter().find(|(known, _)| *known == name) {
        return Err(Malformed(format!("{name} takes other words: {usage}")));
    }
    let known: Vec<&str> = USAGE.iter().map(|(known, _)| *known).collect();
    malformed(name, &format!("a command: there are {}", known.join(", ")))
}

/// A change of the map; `None` if the words are not one.
fn asked(words: &[&str]) -> Result<Option<Asked>, Malformed> {
    Ok(Some(match words {
        ["split", at] => {
            let at: KeyName = at.parse()?;
            Asked::Split { range: Target::Holding(at.clone()), at }
        }
        ["split", range, "at", at] => Asked::Split { range: range.parse()?, at: at.parse()? },
        ["merge", left, right] => Asked::Merge { left: left.parse()?, right: right.parse()? },
        ["move", range, "to", to] => Asked::Move { range: range.parse()?, to: server(to)? },
        ["offline", range] => Asked::Offline(range.parse()?),
        ["online", range] => Asked::Online(range.parse()?),
        _ => return Ok(None),
    }))
}

/// The change after `begin`. Offline and online cannot be begun, because they are done at once.
fn begun(line: &str, words: &[&str]) -> Result<Asked, Malformed> {
    match asked(words)? {
        Some(Asked::Offline(_) | Asked::Online(_)) => {
            malformed(line, "a change that can be begun: offline and online are done at once")
        }
        Some(asked) => Ok(asked),
        None => unknown(words.first().copied().filter(|&word| word != "begin").unwrap_or("begin")),
    }
}

fn server(word: &str) -> Result<ServerId, Malformed> {
    word.parse().map_err(|error: crate::range::NotAnId| Malformed(error.to_string()))
}

fn server_command(name: &str, settings: &[&str]) -> Result<Command, Malformed> {
    let (mut capacity, mut standing) = (None, Standing::Serving);
    for setting in settings {
        match setting.split_once('=') {
            Some(("capacity", value)) => capacity = Some(number(value)?),
            None if *setting == "leaving" => standing = Standing::Leaving,
            None if *setting == "dead" => standing = Standing::Dead,
            _ => return malformed(setting, "known of a server: say capacity=5000, leaving or dead"),
        }
    }
    Ok(Command::Server { server: server(name)?, capacity, standing })
}

fn observed(settings: &[&str]) -> Result<Observed, Malformed> {
    let mut observed = Observed::default();
    for setting in settings {
        match setting.split_once('=') {
            Some(("rate", value)) => observed.rate = number(value)?,
            Some(("peak", value)) => observed.peak = Some(number(value)?),
            Some(("bytes", value)) => observed.bytes = bytes(value)?,
            Some(("crashes", value)) => match value.parse() {
                Ok(crashes) => observed.crashes = crashes,
                Err(_) => return malformed(value, "a count, such as 2"),
            },
            Some(("cause", value)) => observed.cause = Some(value.parse()?),
            _ => return malformed(setting, "seen of a range: say rate=, peak=, bytes=, crashes= or cause="),
        }
    }
    Ok(observed)
}

impl FromStr for Target {
    type Err = Malformed;

    fn from_str(word: &str) -> Result<Self, Malformed> {
        let (id, generation) = match word.split_once('@') {
            Some((id, generation)) => (id, Some(generation)),
            None => (word, None),
        };
        let Ok(id) = id.parse() else {
            return match word.parse() {
                Ok(key) => Ok(Self::Holding(key)),
                // A word without a slash was probably not meant as a key.
                Err(_) if !word.contains('/') => {
                    malformed(word, "a range: write it as r2, r2@3, or as a key that it holds, marathon/Half")
                }
                Err(error) => Err(error),
            };
        };
        match generation.map(str::parse) {
            None => Ok(Self::Range { id, generation: None }),
            Some(Ok(generation)) => Ok(Self::Range { id, generation: Some(Generation(generation)) }),
            Some(Err(_)) => malformed(word, "a range in a generation: write it as r2@3"),
        }
    }
}

fn profile(word: &str) -> Result<Profile, Malformed> {
    word.parse().or_else(|_| malformed(word, "a profile: there are fast and cloud"))
}

impl FromStr for CauseName {
    type Err = Malformed;

    fn from_str(word: &str) -> Result<Self, Malformed> {
        match word.split_once(':') {
            None if word == "unclear" => Ok(Self::Unclear),
            Some(("split", at)) => Ok(Self::Split(at.parse()?)),
            Some(("append", share)) => Ok(Self::Append(number(share)?)),
            Some(("prepend", share)) => Ok(Self::Prepend(number(share)?)),
            Some(("scan", share)) => Ok(Self::Scan(number(share)?)),
            Some(("hot-key", rest)) => match rest.split_once(':') {
                Some((share, key)) => Ok(Self::HotKey(number(share)?, key.parse()?)),
                None => malformed(word, "a cause: write this one as hot-key:SHARE:KEY"),
            },
            _ => malformed(
                word,
                "a cause: there are split:KEY, hot-key:SHARE:KEY, append:SHARE, prepend:SHARE, scan:SHARE and unclear",
            ),
        }
    }
}
