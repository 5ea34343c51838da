//! A mistake as a file: what it is, how soon it must be found, and a unified diff.
//!
//! ```text
//! A batch is acknowledged before it is durable.
//! within: 200 seeds
//!
//! --- a/crates/engine/src/range/write.rs
//! +++ b/crates/engine/src/range/write.rs
//! @@ -76,5 +76,4 @@
//! ...
//! ```
//!
//! The line numbers do not count. The old lines of a hunk are looked up as text, and the file must have them exactly
//! once. So a hunk still fits when the code around it moves, and it can never land at another place.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

/// A mistake made on purpose.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    /// The name of its file.
    pub(super) name: String,
    /// How many seeds may be run until one finds it.
    pub(super) seeds: u64,
    /// Whether only long runs show it.
    pub(super) long: bool,
    hunks: Vec<Hunk>,
}

/// One place where the code is changed.
#[derive(Debug, PartialEq, Eq)]
struct Hunk {
    /// The file, by its path in the repository.
    file: String,
    old: String,
    new: String,
}

impl Mutant {
    /// Reads the file of a mistake.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self> {
        let (head, diff) = text.split_once("\n--- a/").context("it has no diff")?;
        let (what, limit) =
            head.split_once("\nwithin: ").context("its second line is not `within: N seeds`")?;
        if what.trim().is_empty() {
            bail!("its first line does not say what the mistake is");
        }
        let limit = limit.trim_end();
        let (seeds, long) = match limit.strip_suffix(" long seeds") {
            Some(seeds) => (seeds, true),
            None => (limit.strip_suffix(" seeds").unwrap_or_default(), false),
        };
        let seeds = seeds.parse().with_context(|| {
            format!("its limit is {limit:?}, and not of the form `200 seeds` or `100 long seeds`")
        })?;
        let hunks = diff.split("\n--- a/").map(hunks).collect::<Result<Vec<_>>>()?;
        Ok(Self { name: name.to_owned(), seeds, long, hunks: hunks.into_iter().flatten().collect() })
    }

    /// The files that it changes, as they are with the mistake; `read` returns the text of a file as it is.
    pub(super) fn apply(&self, read: impl Fn(&str) -> Result<String>) -> Result<BTreeMap<String, String>> {
        let mut files = BTreeMap::new();
        for Hunk { file, old, new } in &self.hunks {
            let text = files.remove(file).map_or_else(|| read(file), Ok)?;
            match text.matches(old).count() {
                1 => files.insert(file.clone(), text.replacen(old, new, 1)),
                0 => bail!("{file} no longer has these lines:\n{old}"),
                times => bail!("{file} has these lines {times} times; give the hunk more of them:\n{old}"),
            };
        }
        Ok(files)
    }
}

/// The hunks of one file; `diff` begins with the path of this file.
fn hunks(diff: &str) -> Result<Vec<Hunk>> {
    let (file, diff) = diff.split_once('\n').context("its diff ends after the name of a file")?;
    let mut hunks: Vec<Hunk> = Vec::new();
    for line in diff.lines().skip(1) {
        if line.starts_with("@@ ") {
            hunks.push(Hunk { file: file.to_owned(), old: String::new(), new: String::new() });
            continue;
        }
        let hunk = hunks.last_mut().with_context(|| format!("a line is outside of a hunk: {line:?}"))?;
        let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        if !matches!(sign, " " | "-" | "+") {
            bail!("a line of a hunk begins with {sign:?}");
        }
        if sign != "+" {
            hunk.old.push_str(text);
            hunk.old.push('\n');
        }
        if sign != "-" {
            hunk.new.push_str(text);
            hunk.new.push('\n');
        }
    }
    Ok(hunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
A row is never written.
within: 100 long seeds

--- a/one.rs
+++ b/one.rs
@@ -7,3 +7,2 @@ fn write() {
 begin();
-put();
 end();
@@ -20,1 +19,1 @@
-three
+four
--- a/two.rs
+++ b/two.rs
@@ -1,1 +1,2 @@
 five
+
";

    fn applied(one: &str) -> Result<BTreeMap<String, String>> {
        let mutant = Mutant::parse("unwritten", PATCH)?;
        mutant.apply(|file| Ok(if file == "one.rs" { one } else { "five\n" }.to_owned()))
    }

    #[test]
    fn a_mistake_is_made_where_its_old_lines_are() {
        let mutant = Mutant::parse("unwritten", PATCH).unwrap();
        assert_eq!((mutant.name.as_str(), mutant.seeds, mutant.long), ("unwritten", 100, true));
        let files = applied("three\nbegin();\nput();\nend();\n").unwrap();
        assert_eq!(files["one.rs"], "four\nbegin();\nend();\n");
        assert_eq!(files["two.rs"], "five\n\n");
    }

    #[test]
    fn old_lines_that_are_gone_or_not_unique_are_refused() {
        for (one, why) in [
            (
                "three\nbegin();\nput_all();\nend();\n",
                "one.rs no longer has these lines:\nbegin();\nput();\nend();\n",
            ),
            (
                "three\nthree\nbegin();\nput();\nend();\n",
                "one.rs has these lines 2 times; give the hunk more of them:\nthree\n",
            ),
        ] {
            assert_eq!(applied(one).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn a_file_that_is_not_complete_is_refused() {
        for (from, to, why) in [
            ("A row is never written.\n", "\n", "its first line does not say what the mistake is"),
            ("within: 100 long seeds\n", "", "its second line is not `within: N seeds`"),
            (
                "100 long",
                "many",
                "its limit is \"many seeds\", and not of the form `200 seeds` or `100 long seeds`",
            ),
            ("--- a/", "in ", "it has no diff"),
            ("@@ -20,1 +19,1 @@\n-three", "*three", "a line of a hunk begins with \"*\""),
        ] {
            let text = PATCH.replace(from, to);
            assert_ne!(text, PATCH);
            assert_eq!(Mutant::parse("bad", &text).unwrap_err().to_string(), why);
        }
    }
}
