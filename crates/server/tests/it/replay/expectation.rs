//! Compares a reply with what a file says about it.
//!
//! An expected text becomes a regular expression: placeholders stand for what differs from run to run (times, ids,
//! ETags), and everything else must be the same. A difference is shown line by line with both texts, and the text of
//! the reply has placeholders too.

use regex::Regex;

use super::pair::{Body, Pair};
use crate::support::wire::Answer;

const GUID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const DATE_AND_TIME: &str = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}";
const DATE_AND_ENCODED_TIME: &str = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}%3A[0-9]{2}%3A[0-9]{2}";
/// A fraction of a second, without zeros at the end.
const CUT_FRACTION: &str = r"(\.[0-9]{0,6}[1-9])?";

/// What the placeholders of a reply stand for.
pub(crate) struct Expectation<'a> {
    pub(crate) base: &'a str,
    pub(crate) account: &'a str,
}

impl Expectation<'_> {
    /// Checks whether `answer` is what `pair` says. If it is not, returns how it differs.
    pub(crate) fn check(&self, pair: &Pair, answer: &Answer) -> Result<(), String> {
        let mut found = Vec::new();
        if answer.status != pair.status {
            found.push(format!("  status: expected {}, got {}", pair.status, answer.status));
        }
        for (name, expected) in &pair.expected_headers {
            let given = answer.header(name);
            let fits = match (expected, &given) {
                (None, given) => given.is_none(),
                (Some(_), None) => false,
                (Some(expected), Some(given)) => self.header_fits(expected, given),
            };
            if !fits {
                let [expected, given] =
                    [expected, &given].map(|value| value.as_deref().unwrap_or("(absent)"));
                found.push(format!("  header {name}: expected {expected}\n    got {given}"));
            }
        }
        if let Err(difference) = self.check_body(&pair.expected_body, answer) {
            found.push(difference);
        }
        match found.is_empty() {
            true => Ok(()),
            // Without the text of the error, the reader would have to guess why the status differs.
            false if pair.expected_body == Body::Free => {
                Err(format!("{}\n  body: {}", found.join("\n"), answer.body))
            }
            false => Err(found.join("\n")),
        }
    }

    fn header_fits(&self, expected: &str, given: &str) -> bool {
        match expected.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            Some(pattern) => whole(pattern).is_match(given),
            None => whole(&self.pattern(expected)).is_match(given),
        }
    }

    fn check_body(&self, expected: &Body, answer: &Answer) -> Result<(), String> {
        let body = answer.body.replace("\r\n", "\n");
        let mut body = body.trim_end_matches('\n');
        let xml = answer.header("content-type").is_some_and(|value| value.starts_with("application/xml"));
        if xml && answer.status < 400 {
            body = body.strip_prefix('\u{FEFF}').ok_or("  body: no byte order mark in front of the XML")?;
        }
        let (fits, expected) = match expected {
            Body::Free => return Ok(()),
            Body::Empty => (body.is_empty(), ""),
            Body::Contains(part) => (regex(&self.pattern(part)).is_match(body), part.as_str()),
            Body::Whole(text) => (whole(&self.pattern(text)).is_match(body), text.as_str()),
        };
        match fits {
            true => Ok(()),
            false => Err(show_difference(expected, &self.in_words_of_a_file(body))),
        }
    }

    /// The regular expression of an expected text.
    fn pattern(&self, template: &str) -> String {
        let mut pattern = regex::escape(template);
        for (placeholder, meaning) in self.meanings() {
            pattern = pattern.replace(&regex::escape(placeholder), &meaning);
        }
        pattern
    }

    /// Placeholders and their regular expressions. A placeholder that is a part of others comes after them.
    fn meanings(&self) -> [(&'static str, String); 8] {
        [
            ("{base}", regex::escape(self.base)),
            ("{account}", regex::escape(self.account)),
            ("{err}", r"\\nRequestId:{guid}\\nTime:{full7}".to_owned()),
            ("{errxml}", r"\nRequestId:{guid}\nTime:{full7}".to_owned()),
            ("{etag}", format!(r#"W/\\?"datetime'{DATE_AND_ENCODED_TIME}{CUT_FRACTION}Z'\\?""#)),
            ("{time7}", format!("{DATE_AND_TIME}{CUT_FRACTION}Z")),
            ("{full7}", format!(r"{DATE_AND_TIME}\.[0-9]{{7}}Z")),
            ("{guid}", GUID.to_owned()),
        ]
        .map(|(placeholder, meaning)| {
            (placeholder, meaning.replace("{guid}", GUID).replace("{full7}", &full7()))
        })
    }

    /// The text of a reply, with placeholders in place of what they stand for.
    fn in_words_of_a_file(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (placeholder, meaning) in self.meanings() {
            if placeholder != "{account}" {
                text = regex(&meaning).replace_all(&text, regex::NoExpand(placeholder)).into_owned();
            }
        }
        text
    }
}

fn full7() -> String {
    format!(r"{DATE_AND_TIME}\.[0-9]{{7}}Z")
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("{error}"))
}

fn whole(pattern: &str) -> Regex {
    regex(&format!("^(?:{pattern})$"))
}

/// Both texts, line by line. A line that only one of them has gets a mark.
fn show_difference(expected: &str, given: &str) -> String {
    let (expected, given): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), given.lines().collect());
    let mut shown = String::from("  body, expected (-) and got (+):");
    for at in 0..expected.len().max(given.len()) {
        match (expected.get(at), given.get(at)) {
            (Some(one), Some(other)) if one == other => shown += &format!("\n      {one}"),
            (one, other) => {
                shown += &one.map(|line| format!("\n    - {line}")).unwrap_or_default();
                shown += &other.map(|line| format!("\n    + {line}")).unwrap_or_default();
            }
        }
    }
    shown
}
