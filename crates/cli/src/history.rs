//! `rangehold history`: shows the load on keys over time, as a heat map of characters.
//!
//! ```text
//!   requests from 18:20:00 to 18:30:00 UTC, 10 s in each column; the darkest is 1240/s
//!   start           |                          ..:  | 12
//!   marathon/Full   |   ..::--===+++**##%%@@@@%%##  | 48211
//!   marathon/Half   | ............................  | 902
//! ```

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use rangehold_map::Timestamp;
use rangehold_protocol::time::parse_iso;
use serde_json::Value;

use crate::admin::{ANSWER_WITHIN, encoded};
use crate::output::{View, cell, list};

/// The characters of the map, from no load to the greatest.
const SHADES: &[u8] = b" .:-=+*#%@";
/// The greatest number of columns.
const COLUMNS_MAX: u64 = 120;
/// The greatest number of characters that are shown of a key.
const KEY_CHARS_MAX: usize = 32;
/// The widths of a column, in seconds. The finest that keeps to [`COLUMNS_MAX`] is used.
const STEPS: [u64; 7] = [1, 10, 60, 600, 3_600, 21_600, 86_400];

/// `rangehold history`
#[derive(Debug, Args)]
pub(crate) struct HistoryFlags {
    #[command(flatten)]
    view: View,
    /// How many minutes to show, back from now.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_080))]
    minutes: u64,
    /// The figure to show.
    #[arg(long, value_name = "WHAT", default_value = "requests")]
    of: Figure,
    /// The lowest key to show, such as marathon/Half or marathon/*.
    #[arg(long, value_name = "KEY")]
    low: Option<String>,
    /// The key at which to end.
    #[arg(long, value_name = "KEY")]
    high: Option<String>,
    /// The greatest number of rows. Neighbouring keys with little load share one.
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=256))]
    rows: u64,
}

/// The figure that a cell shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// All requests: those that were answered, refused, or failed.
    Requests,
    /// Requests that only read.
    Reads,
    /// Requests that wrote.
    Writes,
    /// Entities that were looked at or written.
    Entities,
    /// Bytes that were read or written.
    Bytes,
    /// Requests that were refused to protect a range.
    Throttled,
    /// Requests that failed.
    Errors,
}

impl Figure {
    fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Entities => "entities",
            Self::Bytes => "bytes",
            Self::Throttled => "refused requests",
            Self::Errors => "failed requests",
        }
    }

    /// The figure of a cell, which the admin API writes as an array.
    fn of(self, cell: &Value) -> f64 {
        let number = |at: usize| cell[at].as_f64().unwrap_or(0.0);
        match self {
            Self::Requests => number(1) + number(2) + number(5) + number(6),
            Self::Reads => number(1),
            Self::Writes => number(2),
            Self::Entities => number(3),
            Self::Bytes => number(4),
            Self::Throttled => number(5),
            Self::Errors => number(6),
        }
    }
}

/// Shows the history.
pub(crate) fn show(history: &HistoryFlags) -> Result<()> {
    let seconds = history.minutes * 60;
    let step = STEPS.into_iter().find(|step| seconds / step <= COLUMNS_MAX).unwrap_or(STEPS[STEPS.len() - 1]);
    let mut path = format!("/v1/history?from=-{seconds}&step={step}&rows={}", history.rows);
    for (name, key) in [("low", &history.low), ("high", &history.high)] {
        if let Some(key) = key {
            path += &format!("&{name}={}", encoded(key));
        }
    }
    let answer = history.view.admin.get(&path, ANSWER_WITHIN)?;
    if answer["columns"].is_null() {
        bail!("the server's answer has no columns: is the server of another version?");
    }
    history.view.print(&answer, |answer| text(answer, history.of));
    Ok(())
}

fn text(answer: &Value, figure: Figure) -> String {
    let step = answer["step_s"].as_u64().unwrap_or(1).max(1);
    let (from, to) = (seconds_of_day(&answer["from"]), seconds_of_day(&answer["to"]));
    let (rows, columns) = (list(&answer["rows"]), list(&answer["columns"]));
    let place = |column: &Value| index(&answer["from"], &column["at"], step);
    let width = columns.iter().map(place).max().map_or(0, |last| last + 1).max(index(
        &answer["from"],
        &answer["to"],
        step,
    ));
    let mut map = vec![vec![0.0; width]; rows.len()];
    for column in columns {
        for cell in list(&column["cells"]) {
            let row = cell[0].as_u64().and_then(|row| map.get_mut(usize::try_from(row).ok()?));
            if let Some(value) = row.and_then(|row| row.get_mut(place(column))) {
                *value += figure.of(cell);
            }
        }
    }
    let most = map.iter().flatten().copied().fold(0.0, f64::max);
    let per_second = rounded(most / step as f64);
    let mut text = format!(
        "{} from {from} to {to} UTC, {step} s in each column; the darkest is {per_second}/s\n",
        figure.name()
    );
    let labels: Vec<String> = rows.iter().map(|row| shortened(&cell(&row["low"]))).collect();
    let label_width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    for (label, row) in labels.iter().zip(&map) {
        let shades: String = row.iter().map(|value| shade(*value, most)).collect();
        let sum: f64 = row.iter().sum();
        text += &format!("{label:label_width$} |{shades}| {sum}\n");
    }
    if columns.iter().any(|column| column["spread"] == true) {
        text += "some columns were counted with other boundaries: their load is spread evenly over the keys it may belong to\n";
    }
    if let Some(trouble) = answer["trouble"].as_str() {
        text += &format!("the history is not being stored now: {trouble}\n");
    }
    text
}

/// The character of a value. It follows the logarithm, so that small values can be told from each other.
fn shade(value: f64, most: f64) -> char {
    if value <= 0.0 {
        return char::from(SHADES[0]);
    }
    let shades = (SHADES.len() - 1) as f64;
    let part = if most <= 1.0 { 1.0 } else { value.ln_1p() / most.ln_1p() };
    char::from(SHADES[((part * shades).ceil() as usize).clamp(1, SHADES.len() - 1)])
}

fn rounded(rate: f64) -> f64 {
    if rate >= 10.0 { rate.round() } else { (rate * 10.0).round() / 10.0 }
}

fn shortened(key: &str) -> String {
    match key.char_indices().nth(KEY_CHARS_MAX - 1) {
        Some((at, _)) if key.chars().count() > KEY_CHARS_MAX => format!("{}…", &key[..at]),
        _ => key.to_owned(),
    }
}

/// `18:20:00` of `2026-11-21T18:20:00Z`.
fn seconds_of_day(time: &Value) -> String {
    time.as_str().and_then(|time| time.get(11..19)).unwrap_or_default().to_owned()
}

/// How many steps lie between two times as the admin API writes them.
fn index(from: &Value, at: &Value, step: u64) -> usize {
    let seconds = |time: &Value| time.as_str().and_then(parse_iso).map(Timestamp::unix_seconds);
    let (Some(from), Some(at)) = (seconds(from), seconds(at)) else {
        return 0;
    };
    u64::try_from(at - from).ok().and_then(|seconds| usize::try_from(seconds / step).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_keys_and_columns_are_times() {
        let answer = json!({
            "from": "2026-02-28T23:59:40Z", "to": "2026-03-01T00:00:20Z", "step_s": 10,
            "rows": [{"low": "start"}, {"low": "marathon/Half"}],
            "columns": [
                {"at": "2026-02-28T23:59:40Z", "spread": true, "cells": [[0, 1, 0, 9, 9, 0, 0]]},
                {"at": "2026-03-01T00:00:00Z", "spread": false, "cells": [[1, 600, 300, 9, 9, 60, 40]]},
            ],
        });
        assert_eq!(
            text(&answer, Figure::Requests),
            "requests from 23:59:40 to 00:00:20 UTC, 10 s in each column; the darkest is 100/s\n\
             start         |.   | 1\n\
             marathon/Half |  @ | 1000\n\
             some columns were counted with other boundaries: their load is spread evenly over the keys it may belong to\n"
        );
        assert!(text(&answer, Figure::Throttled).contains("|  @ | 60\n"));
    }

    #[test]
    fn keys_are_encoded_for_the_query_and_shortened_for_the_map() {
        assert_eq!(encoded("marathon/\"10 km\""), "marathon%2F%2210%20km%22");
        assert_eq!(shortened("marathon/Half"), "marathon/Half");
        assert_eq!(shortened(&"é".repeat(40)).chars().count(), KEY_CHARS_MAX);
    }

    #[test]
    fn times_are_subtracted_over_months_and_leap_days() {
        let days = |from: &str, to: &str| index(&json!(from), &json!(to), 86_400);
        assert_eq!(index(&json!("2026-12-31T23:59:59Z"), &json!("2027-01-01T00:00:00Z"), 1), 1);
        assert_eq!(days("2028-02-28T00:00:00Z", "2028-03-01T00:00:00Z"), 2);
        assert_eq!(days("2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"), 1);
        assert_eq!(index(&json!("soon"), &json!("2026-03-01T00:00:00Z"), 1), 0);
    }
}
