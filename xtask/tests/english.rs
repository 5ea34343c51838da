//! Comments, documents and names of tests are written in plain English.
//!
//! This test cannot tell good English from bad. It finds some words and forms that were often used here and that
//! readers had to read twice:
//!
//! | found | write |
//! |---|---|
//! | "Who asks first gets it." | "The process that asks first gets it." |
//! | "he", "his", "him" for a process, a server or a range | "it", "its" |
//! | "which is no key" ("there is no key" is right) | "which is not a key" |
//! | "for ever", "anew", "of whom", "the how manieth" | "forever", "again", "whose", "how often" |
//!
//! It reads all lines of sources and documents, and in the names of functions it takes `_` for a space.
//! `english/allowed.txt` lists the files that still break the rules. The list only gets shorter: a file that has
//! become clean must leave it.

use std::collections::BTreeSet;

use rangehold_testkit::allowed;
use rangehold_testkit::workspace::{root, sources};

/// The files that may break the rules, one on each line.
const ALLOWED: &str = include_str!("english/allowed.txt");
/// Endings of the files that are read.
const READ: [&str; 7] = ["rs", "md", "py", "js", "sql", "toml", "yml"];
/// Folders that hold nothing that was written here, and this test's own examples.
const SKIPPED: [&str; 3] = ["corpus", "artifacts", "english"];
/// Words that are wrong everywhere.
const WORDS: [&str; 6] = ["he", "his", "him", "himself", "anew", "manieth"];
/// Pairs of words that are wrong everywhere.
const PAIRS: [[&str; 2]; 4] = [["for", "ever"], ["of", "whom"], ["whatever", "becomes"], ["fn", "who"]];
/// Words that may follow "is no" and "are no".
const AFTER_NO: [&str; 9] =
    ["longer", "more", "less", "fewer", "better", "worse", "later", "greater", "different"];

/// The words of a line. An end of a sentence is a word of its own, `.`.
fn words(line: &str) -> Vec<String> {
    let is_name = line.contains("fn ");
    let line = if is_name { line.replace('_', " ") } else { line.to_owned() };
    let mut words = vec![String::new()];
    for character in line.chars() {
        match character {
            c if c.is_alphanumeric() || matches!(c, '_' | '\'') => {
                words.last_mut().expect("there is a first word").push(c);
            }
            '.' | '?' | '!' | ';' | ':' | ',' | '(' => words.extend([".".to_owned(), String::new()]),
            _ => words.push(String::new()),
        }
    }
    let trimmed = words.iter().map(|word| word.trim_matches('\'').to_owned());
    trimmed.filter(|word| !word.is_empty()).collect()
}

/// What is wrong in a line; `None` if nothing was found.
fn fault(line: &str) -> Option<String> {
    let words = words(line);
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    if let Some(word) = lower.iter().find(|word| WORDS.contains(&word.as_str())) {
        return Some(format!("{word:?}"));
    }
    for pair in lower.windows(2) {
        if PAIRS.iter().any(|wrong| pair == wrong) {
            return Some(format!("\"{} {}\"", pair[0], pair[1]));
        }
    }
    for (at, three) in lower.windows(3).enumerate() {
        let denies = matches!(three[0].as_str(), "is" | "are") && three[1] == "no";
        let there = lower[at.saturating_sub(2)..at].iter().any(|word| word == "there");
        if denies && !there && three[2] != "." && !AFTER_NO.contains(&three[2].as_str()) {
            return Some(format!("\"{} no {}\"", three[0], three[2]));
        }
    }
    let asks = line.contains('?');
    let begins = words.iter().find(|word| matches!(word.as_str(), "Who" | "Whoever"));
    begins.filter(|_| !asks).map(|word| format!("a sentence that begins with {word:?}"))
}

/// The files that are read.
fn files() -> Vec<String> {
    let is_read = |path: &String| {
        let mut parts = path.split('/');
        path != "xtask/tests/english.rs"
            && parts.all(|part| !part.starts_with('.') && !SKIPPED.contains(&part))
            && path.rsplit_once('.').is_some_and(|(_, ending)| READ.contains(&ending))
    };
    sources().expect("the repository can be listed").into_iter().filter(is_read).collect()
}

#[test]
fn comments_and_documents_keep_to_plain_forms() {
    let read = files();
    assert!(read.len() > 300, "only {} files were found below {}", read.len(), root().display());
    let mut broken = BTreeSet::new();
    for name in read {
        let text = std::fs::read_to_string(root().join(&name)).expect("the file is there, and is text");
        for (at, line) in text.lines().enumerate() {
            if let Some(fault) = fault(line) {
                println!("{name}:{}: {fault} in {:?}", at + 1, line.trim());
                broken.insert(name.clone());
            }
        }
    }
    allowed::compare(
        ALLOWED,
        &broken,
        "words are plain (see the first lines of this test, and what it printed)",
    );
}

#[test]
fn wrong_forms_are_found_and_right_ones_are_not() {
    for wrong in [
        "/// Who asks first gets it.",
        "// It is kept. Whoever opens it next ends it.",
        "/// An owner that he has judged",
        "# It lasts for ever",
        "is no key of it",
        "fn bytes_that_are_no_row_are_refused() {",
        "async fn who_asks_first_gets_it() {",
    ] {
        assert!(fault(wrong).is_some(), "{wrong}");
    }
    for right in [
        "/// Who asks first? The owner.",
        "// There is no key, and there really is no key.",
        "it is no longer there, and is not a key",
        "let this = the.other;",
        "if it is, no row is read",
    ] {
        assert_eq!(fault(right), None, "{right}");
    }
}
