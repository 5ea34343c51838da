//! `docs/shards/parity.md` tells the truth: every behaviour has its line, and every test that a line names
//! is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The behaviours that have a line.
const BEHAVIOURS: u32 = 224;
/// The features without a test: those that we do not have.
const FEATURES_WITHOUT_MAX: usize = 3;
/// How many of all may have a reason in place of a test, on each store.
const REASONS_MAX: (usize, usize) = (25, 40);

/// All text of the tests, so that names can be looked for.
fn tests() -> String {
    fn read(folder: &Path, all: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                all.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = String::new();
    read(&crates.join("shardmap/tests"), &mut all);
    read(&crates.join("map/tests"), &mut all);
    all
}

/// Each feature that both have names its tests, and they are there.
#[test]
fn every_feature_has_a_test() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/shards/features.md");
    let (page, tests) = (fs::read_to_string(page).unwrap(), tests());
    let mut without = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let names: Vec<&str> = cells[2].split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            without.push(cells[0]);
        }
        for name in names {
            assert!(tests.contains(&format!("fn {name}(")), "{line} names {name}, which is not there");
        }
    }
    assert_eq!(without.len(), FEATURES_WITHOUT_MAX, "{without:?}");
}

#[test]
fn every_behaviour_has_a_test_or_a_reason() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/shards/parity.md");
    let page = fs::read_to_string(page).unwrap();
    let tests = tests();
    let mut lines = BTreeMap::new();
    let mut reasons = (0, 0);
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Ok(number) = cells[0].parse::<u32>() else { continue };
        assert!(lines.insert(number, line).is_none(), "{number} has two lines");
        for (store, cell) in [("PostgreSQL", cells[2]), ("SQLite", cells[3])] {
            let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
            if cell.starts_with("—") || names.is_empty() {
                assert!(cell.len() > 6, "{number} has neither a test nor a reason on {store}");
                if store == "SQLite" {
                    reasons.1 += 1
                } else {
                    reasons.0 += 1
                }
                continue;
            }
            for name in names {
                let function = name.rsplit("::").next().unwrap();
                assert!(
                    tests.contains(&format!("fn {function}(")),
                    "{number} names {name}, which is not there"
                );
            }
        }
    }
    let missing: Vec<u32> = (1..=BEHAVIOURS).filter(|number| !lines.contains_key(number)).collect();
    assert!(missing.is_empty(), "without a line: {missing:?}");
    assert!(reasons.0 <= REASONS_MAX.0 && reasons.1 <= REASONS_MAX.1, "{reasons:?}");
}
