//! Where things are: the repository, the build directory, the program under test.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow, bail};

/// Environment variable that names an already built program, instead of building one.
const PROGRAM_VARIABLE: &str = "RANGEHOLD_BIN";

/// The directory of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the testkit lies in the repository").to_path_buf()
}

/// The directory that cargo builds into.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// An empty directory below the build directory, for one command's files.
///
/// The results of an earlier run are removed: they are kept only until the next run.
pub fn scratch(name: &str) -> Result<PathBuf> {
    let path = target().join("xtask").join(name);
    empty(&path)?;
    // The power test compares paths as the kernel reports them.
    path.canonicalize().with_context(|| format!("cannot resolve {}", path.display()))
}

/// Makes `path` an empty directory.
pub fn empty(path: &Path) -> Result<()> {
    if path.exists() {
        std::fs::remove_dir_all(path).with_context(|| format!("cannot empty {}", path.display()))?;
    }
    std::fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
}

/// Which build of the program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Profile {
    /// The one profile for development and tests, with assertions.
    Dev,
    /// What users get: for figures only.
    Release,
}

impl Profile {
    /// Where cargo puts what it built.
    pub fn directory(self) -> PathBuf {
        target().join(match self {
            Self::Dev => "debug",
            Self::Release => "release",
        })
    }
}

/// Builds `rangehold`, and returns its path.
///
/// `RANGEHOLD_BIN` names a program built before, which is then used as it is.
pub fn program(profile: Profile) -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(PROGRAM_VARIABLE) {
        return Ok(PathBuf::from(program));
    }
    build(profile, "rangehold", ["--bin", "rangehold"], &[])
}

/// Builds a program (`["--bin", NAME]`) or an example (`["--example", NAME]`) of a package, and returns its path.
///
/// For development it has the features that the tests are built with: other features would build the libraries once
/// more. Cargo counts those of dev-dependencies only if a test or an example is asked for, so one small test is. The
/// release is built as users build it.
pub fn build(profile: Profile, package: &str, [kind, name]: [&str; 2], more: &[&str]) -> Result<PathBuf> {
    let mut build = Command::new(cargo());
    build.args(["build", "--quiet", kind, name]).args(more).current_dir(root());
    match profile {
        Profile::Dev => build.args(["--workspace", "--test", "floors"]),
        Profile::Release => build.args(["--release", "--package", package]),
    };
    run(&mut build)?;
    let directory = profile.directory();
    let directory = if kind == "--example" { directory.join("examples") } else { directory };
    Ok(directory.join(name))
}

/// The cargo that started us, or the one on the path.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// Runs a command to its end; an error names the command when it failed.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// How a program ends; an error is printed with its causes.
pub fn exit(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether a program of this name is on the path.
pub fn on_path(name: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

/// All files below a directory, by their path in it, with their lengths.
pub fn files(root: &Path) -> Result<BTreeMap<PathBuf, u64>> {
    files_without(root, &[])
}

/// All files of the repository by their paths in it, in their order, without what builds and installs have made.
pub fn sources() -> Result<Vec<String>> {
    let files = files_without(&root(), &[".git", "target", "node_modules", "__pycache__"])?;
    let text = |path: PathBuf| path.into_os_string().into_string();
    files.into_keys().map(|path| text(path).map_err(|path| anyhow!("{path:?} is not text"))).collect()
}

/// The files below a directory, but not those in folders of these names.
fn files_without(root: &Path, left_out: &[&str]) -> Result<BTreeMap<PathBuf, u64>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            let path = entry.path();
            if left_out.iter().any(|name| path.ends_with(name)) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                open.push(path);
                continue;
            }
            let inside = path.strip_prefix(root).expect("found below the root").to_owned();
            found.insert(inside, entry.metadata()?.len());
        }
    }
    Ok(found)
}

/// The space that the files below a directory take on the disk, in bytes. Files that are removed meanwhile do not
/// count.
pub fn bytes_on_disk(root: &Path) -> Result<u64> {
    let files = present(root).into_iter().filter(|entry| !entry.is_directory);
    Ok(files.map(|file| file.bytes_on_disk).sum())
}

/// A file or directory that was found.
#[derive(Clone, Debug)]
pub struct Present {
    /// Its path, from the directory in which it was looked for.
    pub path: PathBuf,
    /// Its length, in bytes; of a directory, 0.
    pub bytes: u64,
    /// The space that it takes on the disk, in bytes; of a directory, 0.
    pub bytes_on_disk: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// All files and directories below a directory whose files come and go meanwhile. What is removed before it is looked at
/// is left out.
pub fn present(root: &Path) -> Vec<Present> {
    let (mut found, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let (Ok(metadata), path) = (entry.metadata(), entry.path()) else { continue };
            let inside = path.strip_prefix(root).expect("found below the root").to_owned();
            let is_directory = metadata.is_dir();
            // In units of 512 bytes, which do not depend on the blocks of the file system.
            let (bytes, bytes_on_disk) =
                if is_directory { (0, 0) } else { (metadata.len(), metadata.blocks() * 512) };
            found.push(Present { path: inside, bytes, bytes_on_disk, is_directory });
            if is_directory {
                open.push(path);
            }
        }
    }
    found
}

/// Copies a directory and all that is in it.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for file in files(from)?.keys() {
        let target = to.join(file);
        std::fs::create_dir_all(target.parent().expect("a file lies in a directory"))?;
        std::fs::copy(from.join(file), target)?;
    }
    Ok(())
}

/// Whether two directories hold the same files with the same bytes; the error names the first that differs.
pub fn same_tree(left: &Path, right: &Path) -> Result<()> {
    let (left_files, right_files) = (files(left)?, files(right)?);
    for file in left_files.keys().chain(right_files.keys()) {
        let bytes = [left, right].map(|root| std::fs::read(root.join(file)).ok());
        if bytes[0].is_none() || bytes[0] != bytes[1] {
            let length = |bytes: &Option<Vec<u8>>| {
                bytes.as_ref().map_or("absent".into(), |bytes| format!("{} bytes", bytes.len()))
            };
            bail!(
                "{} differs: {} in {}, {} in {}",
                file.display(),
                length(&bytes[0]),
                left.display(),
                length(&bytes[1]),
                right.display()
            );
        }
    }
    Ok(())
}
