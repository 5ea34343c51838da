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

/// Between commands and their output.
const RULE: &str = "----";

/// The text of a golden file, with its outputs replaced by what `run` says to each command line, from the
/// first to the last. Empty lines of an output are left out, since they would end it. Commands
/// without an output, as in a file that is being written, get theirs.
pub fn replay(file: &str, mut run: impl FnMut(&str) -> String) -> String {
    let mut out = String::with_capacity(file.len());
    // What the commands since the last empty line said, and whether their old output is being passed over.
    let (mut said, mut in_output) = (String::new(), false);
    for line in file.lines() {
        let is_empty = line.trim().is_empty();
        if is_empty {
            finish(&mut out, &mut said);
            in_output = false;
        }
        in_output |= line == RULE;
        if in_output {
            continue;
        }
        out.push_str(line);
        out.push('\n');
        if !is_empty && !line.starts_with('#') {
            let lines = run(line);
            said.extend(lines.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("{line}\n")));
        }
    }
    finish(&mut out, &mut said);
    out
}

fn finish(out: &mut String, said: &mut String) {
    if !said.is_empty() {
        out.push_str(RULE);
        out.push('\n');
        out.push_str(said);
        said.clear();
    }
}
