//! `matchGlob` of listings: which names a pattern matches.
//!
//! | in the pattern | matches |
//! |---|---|
//! | `*` | any characters but `/` |
//! | `**` | any characters |
//! | `**/` where a segment begins | any segments, or none: `**/a` matches `a` and `b/c/a` |
//! | `?` | one character but `/` |
//! | `[abc]`, `[a-z]` | one of these characters |
//! | `[!abc]`, `[^abc]` | one other character but `/` |
//! | `{a,b*}` | one of these patterns; they may hold braces themselves |
//! | `\` and a character | this character |
//!
//! Which patterns are refused, and with which texts, was recorded from the real service (the discussion of pull request
//! 2344 of fake-gcs-server has the recordings). The documentation of the service says what the others match. It does
//! not say whether a negated class matches `/`; here it does not.
//!
//! A pattern becomes a regular expression of the crate `regex`, whose time is linear in the name's length for every
//! pattern.

use std::fmt::Write as _;

use regex::{Regex, RegexBuilder};

/// Bytes of a pattern: as many as a name can have.
pub const GLOB_BYTES_MAX: usize = 1024;
/// Bytes that a compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// A pattern that was checked.
#[derive(Debug, Clone)]
pub struct Glob {
    regex: Regex,
    literal: String,
}

/// Why a pattern was refused, in the words of the real service where these are known: 400, `invalid`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GlobError(String);

impl Glob {
    /// Checks and compiles a pattern.
    ///
    /// # Errors
    /// [`GlobError`] for braces and brackets that do not match, classes that are empty or have a range in the wrong
    /// order, and patterns longer than [`GLOB_BYTES_MAX`].
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        if pattern.len() > GLOB_BYTES_MAX {
            let bytes = pattern.len();
            return Err(GlobError(format!(
                "Glob pattern has {bytes} bytes; the longest has {GLOB_BYTES_MAX}."
            )));
        }
        let mut reader = Reader { pattern, at: 0, open: Vec::new(), regex: String::from("^(?s:") };
        reader.read()?;
        reader.regex.push_str(")$");
        let regex = RegexBuilder::new(&reader.regex).size_limit(COMPILED_BYTES_MAX).build();
        let regex = regex.map_err(|_| GlobError("Glob pattern is too complex.".to_owned()))?;
        let literal = pattern.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default();
        Ok(Self { regex, literal: literal.to_owned() })
    }

    /// Whether the pattern matches the whole name.
    pub fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }

    /// The text with which every name that matches begins. A listing reads no other names.
    pub fn literal_prefix(&self) -> &str {
        &self.literal
    }
}

/// Reads a pattern from left to right, and writes the regular expression.
struct Reader<'a> {
    pattern: &'a str,
    /// The next character, in bytes.
    at: usize,
    /// Where the braces were opened that are open now.
    open: Vec<usize>,
    regex: String,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.pattern[self.at..].chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn accept(&mut self, text: &str) -> bool {
        let is_next = self.pattern[self.at..].starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    fn read(&mut self) -> Result<(), GlobError> {
        loop {
            let start = self.at;
            let Some(next) = self.next() else { break };
            match next {
                '*' => self.stars(start),
                '?' => self.regex.push_str("[^/]"),
                '[' => self.class(start)?,
                '{' => {
                    self.open.push(start);
                    self.regex.push_str("(?:");
                }
                ',' if !self.open.is_empty() => self.regex.push('|'),
                '}' if self.open.pop().is_some() => self.regex.push(')'),
                '}' => return Err(closing_brace(start)),
                ']' => {
                    return Err(GlobError(format!(
                        "Glob pattern had closing character class ']' at index {start} without any previous opening \
                         '['. Either add an opening '[' or use '\\]' to match ']'."
                    )));
                }
                // The real service accepts a backslash at the end.
                '\\' => {
                    let escaped = self.next().unwrap_or('\\');
                    put(&mut self.regex, escaped);
                }
                other => put(&mut self.regex, other),
            }
        }
        match self.open.last() {
            None => Ok(()),
            Some(start) => Err(GlobError(format!(
                "Glob pattern brace expansion opening '{{' at index {start} has no closing '}}'. Use '\\{{' to match \
                 a literal '{{'."
            ))),
        }
    }

    /// One star was read at `start`.
    fn stars(&mut self, start: usize) {
        if !self.accept("*") {
            self.regex.push_str("[^/]*");
            return;
        }
        while self.accept("*") {}
        let before = &self.pattern[..start];
        let begins_a_segment = before.is_empty() || before.ends_with('/');
        let segments = begins_a_segment && self.accept("/");
        self.regex.push_str(if segments { "(?:.*/)?" } else { ".*" });
    }

    /// A class whose bracket was read at `start`.
    fn class(&mut self, start: usize) -> Result<(), GlobError> {
        let unclosed = || {
            GlobError(format!(
                "Glob pattern character class has no closing ']' for opening '[' at index {start}. Either add a \
                 closing ']' or use '\\[' to match a literal '['."
            ))
        };
        let negated = self.accept("!") || self.accept("^");
        self.regex.push_str(if negated { "[^/" } else { "[" });
        let mut members = 0;
        // The last member, unless it is the end of a range, and whether a dash followed it.
        let (mut low, mut dash) = (None, false);
        loop {
            let at = self.at;
            let member = match self.next().ok_or_else(unclosed)? {
                ']' if members == 0 => {
                    return Err(GlobError(format!(
                        "Glob pattern character class at index {start} must have at least one character in it."
                    )));
                }
                ']' => break,
                '[' => {
                    return Err(GlobError(format!(
                        "Glob pattern character class does not support the unescaped '[' at index {at}. Use '\\[' to \
                         match '['."
                    )));
                }
                '}' if self.open.is_empty() => return Err(closing_brace(at)),
                '{' | '}' => return Err(unclosed()),
                ',' if !self.open.is_empty() => return Err(unclosed()),
                '-' if low.is_some() && !dash => {
                    dash = true;
                    continue;
                }
                '\\' => self.next().ok_or_else(unclosed)?,
                other => other,
            };
            members += 1;
            match low.filter(|_| dash) {
                Some(first) if first > member => {
                    return Err(GlobError(format!(
                        "Invalid range '{first}-{member}' in glob pattern character class."
                    )));
                }
                Some(_) => {
                    self.regex.push('-');
                    (low, dash) = (None, false);
                }
                None => low = Some(member),
            }
            put(&mut self.regex, member);
        }
        if dash {
            put(&mut self.regex, '-');
        }
        self.regex.push(']');
        Ok(())
    }
}

/// Writes a character that stands for itself, inside a class and outside.
fn put(regex: &mut String, character: char) {
    write!(regex, "\\x{{{:x}}}", u32::from(character)).expect("a string takes all that is written");
}

fn closing_brace(at: usize) -> GlobError {
    GlobError(format!(
        "Glob pattern brace expansion closing '}}' at index {at} has no previous opening '{{'. Use '\\}}' to match a \
         literal '}}'."
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matching<'a>(pattern: &str, names: &[&'a str]) -> Vec<&'a str> {
        let glob = Glob::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let matching: Vec<&str> = names.iter().filter(|name| glob.matches(name)).copied().collect();
        assert!(matching.iter().all(|name| name.starts_with(glob.literal_prefix())), "{pattern}");
        matching
    }

    #[test]
    fn patterns_match_as_documented() {
        let names = ["foo/bar", "foo/baz", "foo/foobar", "foobar", "foo/a/b/bar"];
        for (pattern, expected) in [
            ("foo*bar", vec!["foobar"]),
            ("foo**bar", vec!["foo/bar", "foo/foobar", "foobar", "foo/a/b/bar"]),
            ("**/foobar", vec!["foo/foobar", "foobar"]),
            ("*/ba[rz]", vec!["foo/bar", "foo/baz"]),
            ("*/ba[!a-y]", vec!["foo/baz"]),
            ("*/ba[^r]", vec!["foo/baz"]),
            ("**/{foobar,baz}", vec!["foo/baz", "foo/foobar", "foobar"]),
            ("foo/{foo*,*baz}", vec!["foo/baz", "foo/foobar"]),
            ("foo/{b{ar,az},x}", vec!["foo/bar", "foo/baz"]),
            ("foo/**/bar", vec!["foo/bar", "foo/a/b/bar"]),
            ("foo/***", vec!["foo/bar", "foo/baz", "foo/foobar", "foo/a/b/bar"]),
            ("foo?bar", vec![]),
            ("foo[!x]bar", vec![]),
            ("foo[/]bar", vec!["foo/bar"]),
            ("foo{,/foo}bar", vec!["foo/foobar", "foobar"]),
            ("", vec![]),
        ] {
            assert_eq!(matching(pattern, &names), expected, "{pattern}");
        }
    }

    #[test]
    fn special_characters_can_be_matched() {
        let names = ["a*b", "a]b", "a-b", "a\\", "a,b", "a.b", "aéb", "a\nb", "{}", "a^b"];
        for (pattern, expected) in [
            (r"a\*b", vec!["a*b"]),
            (r"a[\]]b", vec!["a]b"]),
            ("a[x-]b", vec!["a-b"]),
            ("a[-x]b", vec!["a-b"]),
            ("a[+--]b", vec!["a-b", "a,b"]),
            (r"a\", vec![r"a\"]),
            ("a,b", vec!["a,b"]),
            ("a[,]b", vec!["a,b"]),
            ("a.b", vec!["a.b"]),
            ("a[à-ö]b", vec!["aéb"]),
            ("a?b", vec!["a*b", "a]b", "a-b", "a,b", "a.b", "aéb", "a\nb", "a^b"]),
            (r"\{\}", vec!["{}"]),
            (r"a[x^]b", vec!["a^b"]),
        ] {
            assert_eq!(matching(pattern, &names), expected, "{pattern}");
        }
    }

    /// Recorded texts.
    #[test]
    fn wrong_patterns_are_refused_in_the_words_of_the_real_service() {
        let unclosed = "Glob pattern character class has no closing ']' for opening '[' at index";
        let unopened = "Glob pattern brace expansion closing '}' at index";
        let brace = "Glob pattern brace expansion opening '{' at index";
        let empty = "Glob pattern character class at index 5 must have at least one character in it.";
        for (pattern, begins) in [
            ("test/[abc.jpg", format!("{unclosed} 5. Either add a closing ']' or use '\\[' to match a literal '['.")),
            ("test/[", format!("{unclosed} 5.")),
            ("é[abc", format!("{unclosed} 2.")),
            ("test/[{a}].jpg", format!("{unclosed} 5.")),
            ("test/{a,[}]}.jpg", format!("{unclosed} 8.")),
            ("test/{[a,b]}.jpg", format!("{unclosed} 6.")),
            ("test/{a,b.jpg", format!("{brace} 5 has no closing '}}'. Use '\\{{' to match a literal '{{'.")),
            ("test/{a,{b", format!("{brace} 8 ")),
            ("test/[].jpg", empty.to_owned()),
            ("test/[!].jpg", empty.to_owned()),
            ("test/[]a].jpg", empty.to_owned()),
            ("test/a}.jpg", format!("{unopened} 6 has no previous opening '{{'. Use '\\}}' to match a literal '}}'.")),
            ("test/[ab}.jpg", format!("{unopened} 8 ")),
            ("test/[z-a].jpg", "Invalid range 'z-a' in glob pattern character class.".to_owned()),
            ("test/[ω-α].jpg", "Invalid range 'ω-α' in glob pattern character class.".to_owned()),
            (
                "test/[[].jpg",
                "Glob pattern character class does not support the unescaped '[' at index 6. Use '\\[' to match '['."
                    .to_owned(),
            ),
            (
                "test/a].jpg",
                "Glob pattern had closing character class ']' at index 6 without any previous opening '['. Either add \
                 an opening '[' or use '\\]' to match ']'."
                    .to_owned(),
            ),
        ] {
            let error = Glob::new(pattern).expect_err(pattern).to_string();
            assert!(error.starts_with(&begins), "{pattern}: {error}");
        }
        for pattern in
            [r"test/a\", "test/{a,{b,c}}.jpg", r"test/\{a.jpg", r"test/[\a-b].jpg", "test/{a,[b]}.jpg"]
        {
            assert!(Glob::new(pattern).is_ok(), "{pattern}");
        }
        assert!(Glob::new(&"a".repeat(GLOB_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn every_pattern_of_the_longest_length_is_compiled_or_refused() {
        for unit in ["*", "?", "**/", "a**", "[!a]", "{a,b}", "é"] {
            let pattern = unit.repeat(GLOB_BYTES_MAX / unit.len());
            assert!(Glob::new(&pattern).is_ok(), "many of {unit}");
        }
        let half = GLOB_BYTES_MAX / 2;
        assert!(Glob::new(&format!("{}{}", "{".repeat(half), "}".repeat(half))).is_err(), "nested too deep");
    }

    proptest! {
        #[test]
        fn an_escaped_name_matches_itself_alone(name in "\\PC{0,12}", other in "\\PC{0,12}") {
            let pattern: String = name.chars().flat_map(|character| ['\\', character]).collect();
            let glob = Glob::new(&pattern).expect("everything is escaped");
            prop_assert!(glob.matches(&name));
            prop_assert_eq!(glob.matches(&other), name == other);
        }

        #[test]
        fn names_that_match_begin_with_the_literal_prefix(pattern in "[ab/*?\\[\\]{},\\\\!-]{0,8}", name in "[ab/]{0,6}") {
            if let Ok(glob) = Glob::new(&pattern) {
                prop_assert!(!glob.matches(&name) || name.starts_with(glob.literal_prefix()));
            }
        }
    }
}
