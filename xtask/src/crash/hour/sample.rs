//! What the server uses at one moment: memory, files by their kind, and bytes on disk.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};
use std::time::Duration;

use anyhow::Result;

use rangehold_testkit::server::Server;
use rangehold_testkit::workspace::{self, Present};

/// Files in the log of a range that hold no write: the marks that shut out earlier writers.
pub(super) const FENCES: &str = "ranges/*/wal (marks)";
/// The directories of ranges, which count as a kind of file.
const DIRECTORIES: &str = "ranges/*";
/// The largest file of a log that is a mark: a seal and nothing before it.
const FENCE_BYTES_MAX: u64 = 32;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// Since the run began.
    pub(super) at: Duration,
    /// Memory that the process holds, in bytes.
    pub(super) resident: u64,
    /// The number of files of each kind.
    pub(super) files: BTreeMap<String, u64>,
    /// Space on the disk below each entry of the data directory, in bytes.
    pub(super) bytes: BTreeMap<String, u64>,
    /// Rows that the load keeps.
    pub(super) rows: u64,
}

impl Sample {
    /// What is used now.
    pub(super) fn take(server: &Server, data: &Path, at: Duration, rows: usize) -> Result<Self> {
        let mut sample =
            Self { at, resident: server.resident_bytes()?, rows: rows as u64, ..Self::default() };
        for Present { path, bytes, bytes_on_disk, is_directory } in workspace::present(data) {
            if let Some(kind) = kind(&path, bytes, is_directory) {
                *sample.files.entry(kind).or_default() += 1;
            }
            let top = path.components().next().map(name).unwrap_or_default();
            *sample.bytes.entry(top).or_default() += bytes_on_disk;
        }
        Ok(sample)
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: u64 =
            self.files.iter().filter(|(kind, _)| *kind != DIRECTORIES).map(|(_, count)| count).sum();
        let seconds = self.at.as_secs();
        write!(
            f,
            "{:>3}:{:02}  {} rows, {} MiB of memory, {files} files (",
            seconds / 60,
            seconds % 60,
            self.rows,
            self.resident >> 20,
        )?;
        let kinds = self.files.iter().filter(|(_, count)| **count > 1);
        let kinds: Vec<String> = kinds.map(|(kind, count)| format!("{kind} {count}")).collect();
        let folders = self.bytes.iter().filter(|(_, bytes)| **bytes >= 1 << 20);
        let folders: Vec<String> = folders.map(|(name, bytes)| format!("{name} {}", bytes >> 20)).collect();
        write!(f, "{}), MiB on disk: {}", kinds.join(", "), folders.join(", "))
    }
}

/// The kind of a file: its folders, with `*` for those that are numbered; `None` for a directory that is not counted.
fn kind(path: &Path, bytes: u64, is_directory: bool) -> Option<String> {
    let names: Vec<String> = path.components().map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match (names.as_slice(), is_directory) {
        (["ranges", _], true) => Some(DIRECTORIES.to_owned()),
        (_, true) => None,
        (["ranges", _, "wal", _], _) if bytes <= FENCE_BYTES_MAX => Some(FENCES.to_owned()),
        (["ranges", _, folder, ..], _) => Some(format!("ranges/*/{folder}")),
        _ => {
            let numbered = |name: &&str| name.contains(|letter: char| letter.is_ascii_digit());
            let names = names.iter().map(|name| if numbered(name) { "*" } else { name });
            Some(names.collect::<Vec<_>>().join("/"))
        }
    }
}

fn name(component: Component<'_>) -> String {
    component.as_os_str().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_kinds() {
        let of = |path: &str, bytes| kind(Path::new(path), bytes, false).expect("a file has a kind");
        assert_eq!(of("ranges/1-2-0/wal/00000000000000000003.sst", 224), "ranges/*/wal");
        assert_eq!(of("ranges/1-2-0/wal/00000000000000000001.sst", 32), FENCES);
        assert_eq!(of("ranges/1-2-0/compacted/01J9.sst", 32), "ranges/*/compacted");
        assert_eq!(of("changes/12/3", 100), "changes/*/*");
        assert_eq!(of("cluster/map/00012.json", 100), "cluster/map/*");
        assert_eq!(of("LOCK", 0), "LOCK");
    }

    #[test]
    fn of_directories_those_of_ranges_count() {
        assert_eq!(kind(Path::new("ranges/1-2-0"), 0, true).as_deref(), Some(DIRECTORIES));
        assert_eq!(kind(Path::new("ranges/1-2-0/wal"), 0, true), None);
        assert_eq!(kind(Path::new("cluster"), 0, true), None);
    }
}
