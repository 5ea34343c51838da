//! Lists of what may break a rule of this repository for now. Such a list only gets shorter.

use std::collections::BTreeSet;

/// Compares what breaks a rule with the list of what may: one name to a line, comments begin with `#`.
///
/// # Panics
///
/// If something breaks the rule and is not on the list, or if something on the list does not break it any more. `what`
/// describes the rule.
pub fn compare(list: &str, found: &BTreeSet<String>, what: &str) {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let allowed: BTreeSet<String> = lines.map(str::to_owned).collect();
    let new: Vec<&String> = found.difference(&allowed).collect();
    let gone: Vec<&String> = allowed.difference(found).collect();
    assert!(new.is_empty(), "these break the rule that {what}:\n{new:#?}");
    assert!(gone.is_empty(), "these hold to it by now; take them from the list:\n{gone:#?}");
}
