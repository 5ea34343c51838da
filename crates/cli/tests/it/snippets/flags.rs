//! Commands and flags that pages name in the middle of a sentence: the program has them.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::{ended, rangehold};

/// Programs that pages name too, with flags of their own.
const OTHERS: [&str; 5] = ["cargo ", "gcloud ", "az ", "pip ", "npm "];

/// The flags of each command, by its words: `table export` has `--to` and more.
pub(super) type Flags = BTreeMap<String, BTreeSet<String>>;

/// The commands of the program with their flags, as `--help` tells them.
pub(super) fn flags() -> Flags {
    let (mut flags, mut open) = (Flags::new(), vec![String::new()]);
    while let Some(path) = open.pop() {
        let mut command = rangehold();
        command.args(path.split_whitespace()).arg("--help");
        let help = ended(command, "").said;
        open.extend(below(&help).map(|name| format!("{path} {name}").trim().to_owned()));
        flags.insert(path, named(&help).collect());
    }
    flags
}

/// The commands below the one that prints `help`.
fn below(help: &str) -> impl Iterator<Item = &str> {
    let (_, list) = help.split_once("\nCommands:\n").unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| {
        line.strip_prefix("  ")?.split_whitespace().next().filter(|_| line.as_bytes()[2] != b' ')
    });
    names.filter(|name| *name != "help")
}

/// The flags in a text, with one hyphen or two.
fn named(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| {
        c.is_whitespace() || matches!(c, '[' | ']' | '(' | ')' | ',' | '=' | '|' | '`' | ';')
    });
    let words = words.map(|word| word.trim_end_matches(['.', ':']));
    let is_flag = |word: &&str| {
        let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-').filter(|name| name.len() == 1));
        name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.ends_with('-'))
    };
    words.filter(is_flag).map(str::to_owned)
}

/// What a page names in code font that the program does not have.
pub(super) fn unknown(page: &str, flags: &Flags) -> Vec<String> {
    let prose = page.split("```").step_by(2);
    let words = prose.flat_map(|part| part.split('`').skip(1).step_by(2));
    words
        .filter(|word| !OTHERS.iter().any(|other| word.starts_with(other)))
        .filter_map(|word| fault(word, flags))
        .collect()
}

fn fault(code: &str, flags: &Flags) -> Option<String> {
    let line = code.strip_prefix("rangehold ").unwrap_or(code);
    let path = command(line, flags);
    if path.is_empty() && line.len() < code.len() && !line.starts_with('-') {
        return Some(format!("`{code}`: there is no such command"));
    }
    let mut known = flags.iter().filter(|(other, _)| path.is_empty() || **other == path);
    let unknown = named(line).find(|flag| !known.clone().any(|(_, flags)| flags.contains(flag)));
    let path = known.next().map_or("", |(path, _)| path);
    unknown.map(|flag| format!("`{code}`: `rangehold {path}` has no {flag}"))
}

/// The longest command with whose words the line begins.
fn command(line: &str, flags: &Flags) -> String {
    let mut path = String::new();
    for word in line.split_whitespace() {
        let longer = format!("{path} {word}").trim().to_owned();
        if !flags.contains_key(&longer) {
            break;
        }
        path = longer;
    }
    path
}

#[test]
fn every_command_that_tells_something_tells_it_to_programs() {
    // These two print nothing that a program could read in two forms.
    let others = ["dev", "completions"];
    let flags = flags();
    let has_none_below = |path: &str| !flags.keys().any(|other| other.starts_with(&format!("{path} ")));
    let last = flags.iter().filter(|(path, _)| !path.is_empty() && has_none_below(path));
    let without =
        last.filter(|(path, known)| !others.contains(&path.as_str()) && !known.contains("--output"));
    let without: Vec<&String> = without.map(|(path, _)| path).collect();
    assert!(without.is_empty(), "these commands have no --output: {without:?}");
}

#[test]
fn a_command_or_a_flag_that_is_gone_is_found() {
    let flags = flags();
    assert!(flags["table export"].contains("--parallel") && flags["object ls"].contains("-r"), "{flags:?}");
    let page = "`rangehold table export --from x` `rangehold tables` `--parallell` `object cp [-r] [-q] A` `cargo test --all`\n\
                ```sh\nrangehold x --y\n```\n`rangehold table import --from x` `--part-mib` `table` `rangehold`";
    assert_eq!(
        unknown(page, &flags),
        [
            "`rangehold table export --from x`: `rangehold table export` has no --from",
            "`rangehold tables`: there is no such command",
            "`--parallell`: `rangehold ` has no --parallell",
            "`object cp [-r] [-q] A`: `rangehold object cp` has no -q",
        ]
    );
}
