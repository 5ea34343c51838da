//! One damaged file: its range answers with an error that names the file, and the others are served.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{get, options, partition, put};
use rangehold_engine::store::{Store, StoreError, StoreLocation, StoreOptions};
use rangehold_engine::{Clock, Node, OpenError, ReadError, WriteError, with_causes};
use rangehold_map::Change;
use tokio::time::sleep;

pub(crate) async fn open(directory: &Path) -> Result<Node, OpenError> {
    let location = StoreLocation::Directory(directory.to_owned());
    // A node that was dropped gives up its directory only when its tasks have noticed that.
    let store = loop {
        match Store::open(&location, StoreOptions::default()) {
            Err(StoreError::Locked { .. }) => sleep(Duration::from_millis(50)).await,
            opened => break opened.unwrap(),
        }
    };
    Node::open(store, options(&Clock::system())).await
}

/// Two ranges: the left one holds the catalogue and the partition "1", the right one the partition "9". Returns the
/// directories of their databases.
async fn two_ranges(directory: &Path) -> [PathBuf; 2] {
    let node = open(directory).await.unwrap();
    for key in ["1", "9"] {
        put(&node, key, "row", "v").await.unwrap();
    }
    let map = node.executor().maps().current();
    let entry = &map.entries()[0];
    let at = partition("5").as_bytes().to_vec();
    let split = Change::Split { range: entry.id, generation: entry.generation, at };
    node.executor().carry_out(&split).await.unwrap();
    put(&node, "9", "row", "after").await.unwrap();
    let map = node.executor().maps().current();
    node.close().await;
    [0, 1].map(|index| directory.join(format!("ranges/{}", map.entries()[index].place.database)))
}

/// Flips one bit in the middle of a file. Returns the bytes as they were.
pub(crate) fn flip(file: &Path) -> Vec<u8> {
    let middle = fs::read(file).unwrap().len() / 2;
    flip_at(file, middle)
}

fn flip_at(file: &Path, at: usize) -> Vec<u8> {
    let whole = fs::read(file).unwrap();
    let mut damaged = whole.clone();
    damaged[at] ^= 1;
    fs::write(file, damaged).unwrap();
    whole
}

pub(crate) fn newest(directory: &Path) -> PathBuf {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).max().unwrap()
}

/// The segments of the journal, oldest first. Their directory has another name after each opening.
fn segments(directory: &Path) -> Vec<PathBuf> {
    let files = |directory: PathBuf| fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = files(directory.join("journal")).flat_map(files).collect();
    found.retain(|file| file.extension().is_some_and(|ending| ending == "segment"));
    found.sort();
    found
}

/// Where a file holds the text for the last time.
fn find_last(file: &Path, text: &str) -> Option<usize> {
    fs::read(file).unwrap().windows(text.len()).rposition(|window| window == text.as_bytes())
}

/// Damages a file at one place. The errors then have `name` in them.
async fn check(directory: &Path, damaged: &Path, at: usize, name: &str) {
    let whole = flip_at(damaged, at);
    let node = open(directory).await.unwrap();
    assert!(get(&node, "1", "row").await.unwrap().is_some(), "{name}");
    put(&node, "1", "other", "v").await.unwrap();
    let read = get(&node, "9", "row").await;
    assert!(
        matches!(&read, Err(ReadError::Damaged(damage)) if with_causes(damage).contains(name)),
        "{name}: {read:?}"
    );
    let written = put(&node, "9", "row", "v").await;
    assert!(matches!(written, Err(WriteError::Damaged(_))), "{name}: {written:?}");
    let troubles: Vec<String> = node.statistics().troubles.iter().map(ToString::to_string).collect();
    assert!(troubles.len() == 1 && troubles[0].contains(name), "{troubles:?}");

    // When the file is back, the manager's next look opens the range.
    let file = segments(directory).into_iter().find(|segment| segment.file_name() == damaged.file_name());
    fs::write(file.unwrap_or(damaged.to_owned()), whole).unwrap();
    node.executor().mend().await.unwrap();
    assert_eq!(get(&node, "9", "row").await.unwrap().unwrap(), "after");
    assert_eq!(node.statistics().troubles, []);
    node.close().await;
}

#[tokio::test]
async fn a_range_with_a_damaged_manifest_is_told_of_and_the_others_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let [_, right] = two_ranges(directory.path()).await;
    let manifest = newest(&right.join("manifest"));
    let middle = fs::read(&manifest).unwrap().len() / 2;
    check(directory.path(), &manifest, middle, manifest.file_name().unwrap().to_str().unwrap()).await;
}

#[tokio::test]
async fn a_range_with_a_damaged_fence_is_told_of_and_the_others_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let [_, right] = two_ranges(directory.path()).await;
    // An opening puts an empty file into the log, which shuts out the opening before. The node crashes after that.
    drop(open(directory.path()).await.unwrap());
    let segments: Vec<PathBuf> = segments(directory.path());
    let log = format!("{}/wal/", right.strip_prefix(directory.path()).unwrap().to_str().unwrap());
    let segment = segments.iter().rfind(|segment| find_last(segment, &log).is_some()).unwrap();
    // The path stands again behind the record, and the seal before that.
    let path_at = find_last(segment, &log).unwrap();
    let name =
        String::from_utf8(fs::read(segment).unwrap()[path_at..path_at + log.len() + 24].to_vec()).unwrap();
    check(directory.path(), segment, path_at - 10, &name).await;
}

#[tokio::test]
async fn without_the_catalogue_a_node_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let [left, _] = two_ranges(directory.path()).await;
    let manifest = newest(&left.join("manifest"));
    flip(&manifest);
    let refused = with_causes(&open(directory.path()).await.err().unwrap());
    assert!(refused.contains(manifest.file_name().unwrap().to_str().unwrap()), "{refused}");
}
