//! The pages of this repository name things that exist: links lead to files, and the code map of `ARCHITECTURE.md`
//! to modules.

use std::collections::BTreeSet;

use rangehold_testkit::workspace::{root, sources};

fn all_files() -> Vec<String> {
    sources().expect("the repository can be listed")
}

fn pages() -> Vec<(String, String)> {
    let names = all_files().into_iter().filter(|path| path.ends_with(".md"));
    names
        .map(|name| (name.clone(), std::fs::read_to_string(root().join(name)).expect("the page is there")))
        .collect()
}

/// What stands between `open` and the next `close`, each time.
fn between<'a>(text: &'a str, open: &str, close: char) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|rest| rest.split_once(close)).map(|(inner, _)| inner).collect()
}

/// The words in code font outside of code blocks.
fn code_words(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn links_lead_to_files_that_exist() {
    let mut dead = Vec::new();
    for (name, text) in pages() {
        let folder = root().join(&name).parent().expect("a page lies in a folder").to_path_buf();
        for link in between(&text, "](", ')') {
            let path = link.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains("://") && !folder.join(path).exists() {
                dead.push(format!("{name}: {link}"));
            }
        }
    }
    assert!(dead.is_empty(), "links to nothing:\n{}", dead.join("\n"));
}

#[test]
fn the_readme_is_short_enough_to_be_read() {
    const LINES_MAX: usize = 150;
    let text = std::fs::read_to_string(root().join("README.md")).expect("the page is there");
    let lines = text.lines().count();
    assert!(
        lines <= LINES_MAX,
        "README.md has {lines} lines: move some to a page of docs/, {LINES_MAX} are the most"
    );
}

#[test]
fn paths_in_code_font_exist() {
    const FOLDERS: [&str; 8] = ["crates/", "docs/", "sim/", "xtask/", "lab/", "testkit/", "tests/", "fuzz/"];
    let mut dead = Vec::new();
    for (name, text) in pages() {
        for word in code_words(&text) {
            let is_path =
                FOLDERS.iter().any(|folder| word.starts_with(folder)) && !word.contains([' ', '*', '<']);
            if is_path && !root().join(word).exists() {
                dead.push(format!("{name}: {word}"));
            }
        }
    }
    // Paths of other repositories, whose sources the page names.
    dead.retain(|line| !line.starts_with("docs/compatibility.md: tests/"));
    assert!(dead.is_empty(), "paths to nothing:\n{}", dead.join("\n"));
}

#[test]
fn the_code_map_names_modules_that_exist() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page is there");
    let (_, map) = text.split_once("## Code map").expect("the page has a code map");
    let (map, _) = map.split_once("\n## ").expect("the code map ends");
    let (files, mut dead) = (all_files(), Vec::new());
    for item in map.split("\n* **`").skip(1) {
        let (folder, prose) = item.split_once("`**").expect("an item begins with a folder");
        let prose = prose.split("\n\n").next().unwrap_or_default();
        let inside = files.iter().filter_map(|file| file.strip_prefix(folder)?.strip_prefix('/'));
        let mut names = BTreeSet::new();
        for path in inside {
            names.extend(path.split('/'));
            names.extend(path.rsplit('/').next().and_then(|file| file.strip_suffix(".rs")));
        }
        for word in code_words(prose) {
            if !word.trim_end_matches('/').split('/').all(|part| names.contains(part)) {
                dead.push(format!("{folder}: {word}"));
            }
        }
    }
    assert!(dead.is_empty(), "the code map names what does not exist:\n{}", dead.join("\n"));
}

#[test]
fn the_code_map_has_every_folder_of_the_workspace() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page is there");
    let manifests =
        all_files().into_iter().filter_map(|file| file.strip_suffix("/Cargo.toml").map(str::to_owned));
    let missing: Vec<String> =
        manifests.filter(|folder| !text.contains(&format!("\n* **`{folder}`**"))).collect();
    assert!(missing.is_empty(), "not on the code map: {}", missing.join(", "));
}
