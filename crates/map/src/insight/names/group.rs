//! Groups names by their prefixes.

use std::collections::BTreeMap;

use super::limits::PREFIX_FOLDERS_MAX;

/// A prefix with at least this share of all requests is looked at by itself.
const HEAVY: f64 = 0.1;
/// The part of a prefix's requests that must be in such prefixes below it.
const COVERED: f64 = 0.8;

/// The folders of names below a prefix: up to the next `/`, or all of the name.
pub(super) fn folders<'a>(prefix: &str, names: &[&'a str]) -> BTreeMap<&'a str, usize> {
    let mut folders = BTreeMap::new();
    for name in names {
        let rest = &name[prefix.len()..];
        let end = rest.find('/').map_or(name.len(), |at| prefix.len() + at + 1);
        *folders.entry(&name[..end]).or_default() += 1;
    }
    folders
}

/// The prefixes at which names differ: each has many names or folders below it. `all` is the number of all names.
pub(super) fn prefixes(prefix: &str, names: &[&str], all: usize, found: &mut Vec<String>) {
    let folders = folders(prefix, names);
    let is_heavy =
        |(folder, count): &(&&str, &usize)| folder.ends_with('/') && **count as f64 >= HEAVY * all as f64;
    let heavy: Vec<&str> = folders.iter().filter(is_heavy).map(|(folder, _)| *folder).collect();
    let covered: usize = heavy.iter().map(|folder| folders[folder]).sum();
    let is_deep = prefix.matches('/').count() >= PREFIX_FOLDERS_MAX;
    if is_deep || heavy.is_empty() || (covered as f64) < COVERED * names.len() as f64 {
        found.push(prefix.to_owned());
        return;
    }
    for folder in heavy {
        prefixes(folder, &below(folder, names), all, found);
    }
}

/// The names that begin with a prefix.
pub(super) fn below<'a>(prefix: &str, names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().filter(|name| name.starts_with(prefix)).collect()
}
