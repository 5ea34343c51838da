//! Golden files: scripts with what they said.
//!
//! ```text
//! # A comment.
//! split marathon/Half
//! map
//! ----
//! version 3: r1 is split into r2 [start, marathon/Half) and r3 [marathon/Half, end)
//! ...
//! ```
//!
//! Commands, a line `----`, and what they put out, up to the next empty line. A file is right if
//! [`replay`] gives it back as it is; to bless what a program says now is to store what `replay` gave.
//! A script that nobody has run yet is a golden file without outputs, so whoever reads one reads both.

use std::convert::Infallible;

/// Between commands and their output.
const RULE: &str = "----";

/// What a line of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Empty,
    Comment,
    Command,
    /// The rule, or below it.
    Output,
}

/// Each line, with its number, counted from 1.
fn parts(file: &str) -> impl Iterator<Item = (usize, &str, Part)> {
    let mut in_output = false;
    file.lines().enumerate().map(move |(index, line)| {
        let text = line.trim();
        in_output = !text.is_empty() && (in_output || line == RULE);
        let part = match text {
            _ if in_output => Part::Output,
            "" => Part::Empty,
            _ if text.starts_with('#') => Part::Comment,
            _ => Part::Command,
        };
        (index + 1, line, part)
    })
}

/// The command lines, each with its number, counted from 1.
pub(super) fn commands(file: &str) -> impl Iterator<Item = (usize, &str)> {
    parts(file).filter(|(_, _, part)| *part == Part::Command).map(|(number, line, _)| (number, line))
}

/// The text of a golden file, with its outputs replaced by what `run` says to each command line, from the
/// first to the last. Empty lines of an output are left out, since they would end it. Commands
/// without an output, as in a file that is being written, get theirs.
pub fn replay(file: &str, mut run: impl FnMut(&str) -> String) -> String {
    let (text, Ok(())) = replay_until(file, |_, line| Ok::<_, Infallible>(run(line)));
    text
}

/// The same up to the first command that fails, whose line is the last one before the outputs. `run` is
/// told the number of the line too.
pub fn replay_until<E>(
    file: &str,
    mut run: impl FnMut(usize, &str) -> Result<String, E>,
) -> (String, Result<(), E>) {
    let mut out = String::with_capacity(file.len());
    // What the commands since the last empty line said.
    let mut said = String::new();
    for (number, line, part) in parts(file) {
        match part {
            Part::Output => continue,
            Part::Empty => finish(&mut out, &mut said),
            Part::Comment | Part::Command => {}
        }
        out.push_str(line);
        out.push('\n');
        if part != Part::Command {
            continue;
        }
        match run(number, line) {
            Ok(lines) => {
                let lines = lines.lines().filter(|line| !line.trim().is_empty());
                said.extend(lines.map(|line| format!("{line}\n")));
            }
            Err(failed) => {
                finish(&mut out, &mut said);
                return (out, Err(failed));
            }
        }
    }
    finish(&mut out, &mut said);
    (out, Ok(()))
}

fn finish(out: &mut String, said: &mut String) {
    if !said.is_empty() {
        out.push_str(RULE);
        out.push('\n');
        out.push_str(said);
        said.clear();
    }
}
