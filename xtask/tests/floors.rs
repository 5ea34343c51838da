//! The modules of each crate stand on floors: a module uses the modules below it and never one that uses it.
//!
//! This test reads all sources of the workspace. It finds every name that one module takes from another, also where
//! the name comes by way of a re-export, and looks at modules with the same parent. If `a` needs `b` and `b` needs
//! `a`, by whatever detour among their siblings, neither can be read or changed without the other. Such a circle
//! fails the test. A module and its own children may know each other, and tests may use everything.
//!
//! The second rule: all inherent `impl` blocks of a type lie in the folder where the type is defined. A reader who
//! looks for a method then has one folder to look through.
//!
//! `floors/allowed.txt` lists what breaks the rules today. The list only gets shorter: an entry that no longer
//! applies fails the test too.

#[path = "floors/circles.rs"]
mod circles;
#[path = "floors/impls.rs"]
mod impls;
#[path = "floors/names.rs"]
mod names;
#[path = "floors/tree.rs"]
mod tree;

use std::collections::BTreeSet;
use std::path::PathBuf;

use rangehold_testkit::allowed;
use rangehold_testkit::workspace::root;

use tree::Crate;

/// What is allowed to break the rules, one finding to a line.
const ALLOWED: &str = include_str!("floors/allowed.txt");

/// The root files of all crates of the workspace, with the names of the crates.
fn crate_roots() -> Vec<(String, PathBuf)> {
    let root = root();
    let crates = std::fs::read_dir(root.join("crates")).expect("the workspace has a folder crates");
    let mut folders: Vec<PathBuf> = crates.map(|entry| entry.expect("it can be listed").path()).collect();
    let others = ["sim", "xtask", "lab", "testkit"].map(|name| root.join(name));
    folders.extend(others.into_iter().filter(|folder| folder.is_dir()));
    folders.sort();
    let mut roots = Vec::new();
    for folder in folders {
        let name = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        let files = ["lib.rs", "main.rs"].map(|file| folder.join("src").join(file));
        roots.extend(files.into_iter().filter(|file| file.is_file()).map(|file| (name.clone(), file)));
    }
    roots
}

#[test]
fn modules_stand_on_floors_and_types_keep_their_methods_in_one_folder() {
    let mut found = BTreeSet::new();
    for (name, path) in crate_roots() {
        let tree = Crate::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        found.extend(circles::find(&tree).into_iter().map(|circle| format!("{name}: circle {circle}")));
        found.extend(impls::find(&tree).into_iter().map(|impls| format!("{name}: impl {impls}")));
    }
    allowed::compare(ALLOWED, &found, "modules stand on floors (see the first lines of this test)");
}
