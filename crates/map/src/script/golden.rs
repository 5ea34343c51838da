//! Golden files: scripts with their expected output.
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
//! After some commands comes a line `----`, then their output up to the next empty line. A test replays the
//! file with [`replay`] and compares the result with the file; to accept a new output, store the result. A
//! script that was never run is a golden file without outputs.

use std::convert::Infallible;

/// Between commands and their output.
const RULE: &str = "----";

/// What a line of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Empty,
    Comment,
    Command,
    /// The line `----`, or below it.
    Output,
}

/// Each line with its number, counted from 1, and its part.
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

/// The text of a golden file, with its outputs replaced by what `run` returns for each command line. Empty
/// lines are left out of an output, because they would end it. Commands that have no output in the file yet
/// get one.
pub fn replay(file: &str, mut run: impl FnMut(&str) -> String) -> String {
    let (text, Ok(())) = replay_until(file, |_, line| Ok::<_, Infallible>(run(line)));
    text
}

/// As [`replay`], but stops at the first command that fails. `run` also gets the number of the line.
pub fn replay_until<E>(
    file: &str,
    mut run: impl FnMut(usize, &str) -> Result<String, E>,
) -> (String, Result<(), E>) {
    let mut out = String::with_capacity(file.len());
    // The output of the commands since the last empty line.
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
