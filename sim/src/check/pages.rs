//! Pages of a table: a client that follows the tokens sees its rows in their order, and each lasting row once, no matter
//! where the pages end and what comes and goes meanwhile.

use std::collections::BTreeSet;

/// The PartitionKey and the RowKey of a row.
pub type Key = (String, String);

/// A walk through a table, page by page.
#[derive(Debug, Default)]
pub struct Walk {
    /// The rows of all pages, as they came.
    pub seen: Vec<Key>,
    /// Whether it reached the end: the last page had no token.
    pub ended: bool,
}

/// What is wrong with a walk, in words. The rows `lasting` were there all the time, and each row that `may_be_there`
/// accepts may have been.
pub fn check(walk: &Walk, lasting: &[Key], may_be_there: impl Fn(&Key) -> bool) -> Vec<String> {
    let mut findings = Vec::new();
    for pair in walk.seen.windows(2).filter(|pair| pair[0] >= pair[1]) {
        findings.push(format!("shows {:?} before {:?}", pair[0], pair[1]));
    }
    let seen: BTreeSet<&Key> = walk.seen.iter().collect();
    let passed = |key: &Key| walk.ended || walk.seen.last().is_some_and(|last| key < last);
    for key in lasting.iter().filter(|key| passed(key) && !seen.contains(key)) {
        findings.push(format!("does not show {key:?}"));
    }
    let known: BTreeSet<&Key> = lasting.iter().collect();
    for key in walk.seen.iter().filter(|key| !known.contains(key) && !may_be_there(key)) {
        findings.push(format!("shows {key:?}, which was never written"));
    }
    findings
}
