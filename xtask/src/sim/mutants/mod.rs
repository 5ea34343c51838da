//! Mistakes made on purpose: each of them must be found by the simulation.
//!
//! A mistake is a patch of the product, a file of `sim/mutants` ([`patch`]). The product itself knows nothing of it. The
//! sources are copied to a tree below the build directory, one mistake is made in this tree, the simulation is built
//! from there, and seeds run until one fails. Then the next mistake takes the place of this one.
//!
//! The tree is built into the same directory as everything else, so no library is built twice. Its crates have a version
//! of their own, since cargo tells the crates of two trees apart by their versions and not by their paths: it would
//! take a crate with a mistake for the real one. `docs/design/0010-mistakes-on-purpose.md` tells why it is done so.

mod patch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use self::patch::Mutant;
use super::Arguments;
use super::workers::{Seeds, Workers};
use rangehold_testkit::workspace::{self, root, target};

/// What the tree holds: all that the workspace's manifest names, and what the sources of the test kit include.
const COPIED: [&str; 8] =
    ["Cargo.toml", "Cargo.lock", "crates", "sim", "testkit", "lab", "xtask", "docs/shards/grants"];

/// Characters of a finding that are printed.
const TOLD_MAX: usize = 120;

/// Each mistake must be found within its number of seeds.
pub(super) fn find(arguments: &Arguments, jobs: u64) -> Result<()> {
    let mut unfound = Vec::new();
    println!("{:<25} {:>6} {:>5} {:>6}  how it was found", "mistake", "build", "seeds", "time");
    for mutant in mutants()? {
        if arguments.only.as_ref().is_some_and(|only| !mutant.name.contains(only.as_str())) {
            continue;
        }
        let began = Instant::now();
        let program = build(&mutant)?;
        let built = began.elapsed().as_secs();
        let seeds = Seeds { first: arguments.from, count: mutant.seeds, long: mutant.long };
        let (runs, finding) = first_finding(&Workers::start(&program, jobs, seeds, &[]))?;
        if finding.is_none() && runs < mutant.seeds {
            bail!("{} of {} seeds with {} were run: a process ended early", runs, mutant.seeds, mutant.name);
        }
        let took = began.elapsed().as_secs() - built;
        let how = finding.unwrap_or_else(|| {
            unfound.push(mutant.name.clone());
            "NOT FOUND".to_owned()
        });
        println!("{:<25} {built:>4} s {runs:>5} {took:>4} s  {how}", mutant.name);
    }
    if !unfound.is_empty() {
        bail!("these mistakes were not found: {}", unfound.join(", "));
    }
    Ok(())
}

/// How many seeds were run until one failed, and what was wrong with it.
fn first_finding(workers: &Workers) -> Result<(u64, Option<String>)> {
    let mut runs = 0;
    while let Some(run) = workers.next()? {
        runs += 1;
        if let Some(finding) = run.findings.first() {
            let line: String = finding.lines().next().unwrap_or_default().chars().take(TOLD_MAX).collect();
            return Ok((runs, Some(format!("seed {}: {line}", run.seed))));
        }
    }
    Ok((runs, None))
}

/// All mistakes, in the order of their names.
fn mutants() -> Result<Vec<Mutant>> {
    let folder = root().join("sim/mutants");
    let mut mutants = Vec::new();
    for path in workspace::files(&folder)?.into_keys() {
        let name = path.with_extension("").display().to_string();
        let text = std::fs::read_to_string(folder.join(&path))?;
        mutants.push(Mutant::parse(&name, &text).with_context(|| format!("sim/mutants/{}", path.display()))?);
    }
    Ok(mutants)
}

/// Builds the simulation with a mistake, and returns the path of a copy that the next build leaves alone.
fn build(mutant: &Mutant) -> Result<PathBuf> {
    let tree = target().join("xtask/mutants");
    let mut changed = changed(mutant)?;
    changed.insert("Cargo.toml".to_owned(), manifest()?);
    mirror(&tree, &changed)?;
    let (manifest, target) = (tree.join("Cargo.toml"), target());
    let (manifest, target) = (manifest.display().to_string(), target.display().to_string());
    super::build("sim-mutant", &["--manifest-path", &manifest, "--target-dir", &target])
}

/// The manifest of the workspace, with the version of the tree's crates.
fn manifest() -> Result<String> {
    const OURS: &str = concat!("\nversion = \"", env!("CARGO_PKG_VERSION"), "\"\n");
    let text = std::fs::read_to_string(root().join("Cargo.toml"))?;
    if text.matches(OURS).count() != 1 {
        bail!("Cargo.toml has not exactly one line {OURS:?}");
    }
    Ok(text.replace(OURS, "\nversion = \"0.0.0-mistake\"\n"))
}

/// The files that a mistake changes, with the mistake in them.
fn changed(mutant: &Mutant) -> Result<BTreeMap<String, String>> {
    let read = |file: &str| {
        std::fs::read_to_string(root().join(file)).with_context(|| format!("{file} cannot be read"))
    };
    mutant.apply(read).with_context(|| {
        format!(
            "sim/mutants/{}.patch does not fit: make the same mistake in the code as it is now",
            mutant.name
        )
    })
}

/// Makes `tree` the sources of the workspace with these files `changed`. A file that is right already is not written:
/// cargo builds again what was written.
fn mirror(tree: &Path, changed: &BTreeMap<String, String>) -> Result<()> {
    let mut wanted = BTreeSet::new();
    for name in COPIED {
        let path = root().join(name);
        if path.is_dir() {
            wanted.extend(workspace::files(&path)?.into_keys().map(|inside| Path::new(name).join(inside)));
        } else {
            wanted.insert(PathBuf::from(name));
        }
    }
    std::fs::create_dir_all(tree)?;
    for old in workspace::files(tree)?.into_keys().filter(|file| !wanted.contains(file)) {
        std::fs::remove_file(tree.join(old))?;
    }
    for file in wanted {
        let text = match file.to_str().and_then(|name| changed.get(name)) {
            Some(text) => text.clone().into_bytes(),
            None => std::fs::read(root().join(&file))?,
        };
        let copy = tree.join(file);
        if std::fs::read(&copy).ok().as_ref() != Some(&text) {
            std::fs::create_dir_all(copy.parent().expect("a file lies in a folder"))?;
            std::fs::write(&copy, text).with_context(|| format!("cannot write {}", copy.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_fits_the_code_as_it_is() {
        let mutants = mutants().unwrap();
        let wrong: Vec<String> = mutants
            .iter()
            .filter_map(|mutant| changed(mutant).err())
            .map(|error| format!("{error:#}"))
            .collect();
        assert!(manifest().unwrap().contains("0.0.0-mistake"));
        assert!(wrong.is_empty() && !mutants.is_empty(), "{}", wrong.join("\n"));
    }
}
