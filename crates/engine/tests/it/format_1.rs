//! This release still reads and writes storage format 1, as the first release with that format wrote it.
//!
//! The `README.md` of the fixture describes it. Each test works on a copy.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{get, options, put, rows};
use rangehold_engine::store::{Store, StoreLocation, StoreOptions};
use rangehold_engine::{Clock, Node, ReadError};
use rangehold_map::key::table_prefix;
use rangehold_map::{Key, KeyRange};

/// Rows by key, each with the CRC-32 of its value.
type Rows = BTreeMap<Vec<u8>, u32>;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1")
}

fn copy_into(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_into(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

async fn open(directory: &Path) -> Node {
    let location = StoreLocation::Directory(directory.to_owned());
    let store = Store::open(&location, StoreOptions::default()).unwrap();
    Node::open(store, options(&Clock::system())).await.unwrap()
}

/// All rows that are served. The notes that keep dropped tables refused are deleted after a while, so they are left
/// out.
async fn served(server: &Node) -> Rows {
    let all = rows(server, &KeyRange::whole()).await.unwrap();
    all.into_iter()
        .filter(|(key, _)| !matches!(Key::decode(key), Ok(Key::DroppedTable { .. })))
        .map(|(key, value)| (key, crc32fast::hash(&value)))
        .collect()
}

/// How many tables are dropped by the catalogue. Checks that each of them is refused.
async fn dropped_tables(server: &Node) -> usize {
    let mut dropped = 0;
    for (key, _) in rows(server, &KeyRange::whole()).await.unwrap() {
        if let Ok(Key::DroppedTable { account, table }) = Key::decode(&key) {
            let keys = KeyRange::prefix(&table_prefix(&account, table));
            let refused = rows(server, &keys).await;
            assert!(matches!(refused, Err(ReadError::TableDropped)), "{refused:?}");
            dropped += 1;
        }
    }
    dropped
}

/// The rows that `rows.txt` lists.
fn expected() -> Rows {
    let text = fs::read_to_string(fixture().join("rows.txt")).unwrap();
    let rows = text.lines().map(|line| {
        let (key, check) = line.split_once(' ').unwrap();
        let digit = |at: usize| u8::from_str_radix(&key[at..at + 2], 16).unwrap();
        ((0..key.len()).step_by(2).map(digit).collect(), u32::from_str_radix(check, 16).unwrap())
    });
    rows.collect()
}

fn listed(rows: &Rows) -> String {
    rows.iter().fold(String::new(), |mut text, (key, check)| {
        key.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        writeln!(text, " {check:08x}").unwrap();
        text
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_is_found_and_new_ones_stay() {
    let directory = tempfile::tempdir().unwrap();
    copy_into(&fixture().join("data"), directory.path());
    let node = open(directory.path()).await;
    let found = served(&node).await;
    assert!(found == expected(), "rows in place of those of rows.txt:\n{}", listed(&found));
    assert_eq!(dropped_tables(&node).await, 1);
    put(&node, "new", "row", "value").await.unwrap();
    node.close().await;

    let node = open(directory.path()).await;
    assert_eq!(get(&node, "new", "row").await.unwrap().unwrap(), "value");
    let mut found = served(&node).await;
    found.remove(&crate::support::partition("new").key("row")).unwrap();
    assert!(found == expected());
    node.close().await;
}
