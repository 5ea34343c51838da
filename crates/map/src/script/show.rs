//! Shows the map as text.

use super::names::Names;
use crate::range_map::{Intent, RangeEntry, RangeMap};

/// The whole map: a line with its version, then a line for each range in the order of their keys.
///
/// ```text
/// version 4, next range r4
/// r2@1  s1  2-1-1  [start, marathon/Half)
/// r3@2  s2  3-1-1  [marathon/Half, end)    to be moved to s1
/// ```
pub fn show_map(map: &RangeMap, names: &Names) -> String {
    let rows: Vec<[String; 5]> = map.entries().iter().map(|entry| row(entry, names)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    let mut text = format!("version {}, next range {}\n", map.version(), map.next_range());
    for row in &rows {
        let line: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn row(entry: &RangeEntry, names: &Names) -> [String; 5] {
    [
        show_range(entry),
        entry.place.server.to_string(),
        entry.place.database.to_string(),
        names.range(&entry.keys),
        show_state(entry, names),
    ]
}

/// A range with its generation, as in commands: `r2@1`.
pub fn show_range(entry: &RangeEntry) -> String {
    format!("{}@{}", entry.id, entry.generation)
}

/// The intent of a range, or that it is offline. Mostly empty.
pub(super) fn show_state(entry: &RangeEntry, names: &Names) -> String {
    match &entry.intent {
        None if entry.online => String::new(),
        None => "offline".to_owned(),
        Some(Intent::Split { at, left, right }) => {
            format!("to be split at {} into {left} and {right}", names.name(at))
        }
        Some(Intent::Merge { right, into }) => format!("to be merged with {right} into {into}"),
        Some(Intent::MergeWith { left }) => format!("to be merged with {left}"),
        Some(Intent::Move { to }) => format!("to be moved to {}", to.server),
    }
}
