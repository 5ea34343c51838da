//! `rangehold ranges`: shows the ranges of a running server and their load.

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use crate::admin::ANSWER_WITHIN;
use crate::output::{View, cell, keys, list, name, note};
use crate::text_table::text_table;

/// `rangehold ranges`
#[derive(Debug, Args)]
pub(crate) struct RangesFlags {
    #[command(flatten)]
    view: View,
    /// Show what queries looked at and returned since the server started, by kind of query.
    #[arg(long)]
    queries: bool,
}

/// Shows the ranges and their load, or the kinds of queries.
pub(crate) fn show(RangesFlags { view, queries }: &RangesFlags) -> Result<()> {
    if *queries {
        let counted = view.admin.get("/v1/queries", ANSWER_WITHIN)?;
        view.print(&counted, queries_text);
        return Ok(());
    }
    let seen = view.admin.get("/v1/ranges", ANSWER_WITHIN)?;
    view.print(&seen, ranges_text);
    Ok(())
}

fn ranges_text(seen: &Value) -> String {
    let servers: Vec<[String; 6]> = list(&seen["servers"])
        .iter()
        .map(|server| {
            let part = server["utilisation"].as_f64().unwrap_or(0.0) * 100.0;
            [
                cell(&server["server"]),
                cell(&server["ranges"]),
                cell(&server["requests_per_s"]),
                cell(&server["cost_per_s"]),
                format!("{part:.0} %"),
                if server["ended"] == true { "lost its lease".to_owned() } else { String::new() },
            ]
        })
        .collect();
    let ranges: Vec<[String; 8]> = list(&seen["ranges"]).iter().map(range_row).collect();
    let mut text = text_table(["server", "ranges", "requests/s", "cost/s", "busy", ""], &servers);
    text.push('\n');
    text += &text_table(["range", "server", "keys", "requests/s", "bytes", "owed", "state", ""], &ranges);
    for verdict in verdicts(seen) {
        text += &format!("\n{verdict}\n");
    }
    let report = list(&seen["manager"]["planned"]["report"]);
    if !report.is_empty() {
        text += "\nthe last plan:\n";
    }
    for line in report {
        text += &format!("  {}\n", cell(line));
    }
    if seen["manager"]["plans"] == false {
        text += "\nnothing is split, merged or moved by itself: the manager is off\n";
    }
    text
}

/// The verdicts on hot ranges, such as `r1: not split: ...`.
pub(crate) fn verdicts(seen: &Value) -> impl Iterator<Item = String> {
    list(&seen["ranges"]).iter().filter_map(|range| {
        let sentence = range["load"]["verdict"]["sentence"].as_str()?;
        Some(format!("{}: {sentence}", cell(&range["range"])))
    })
}

fn queries_text(counted: &Value) -> String {
    const COUNTS: [&str; 6] = ["answers", "looked_at", "returned", "ranges", "servers", "tokens"];
    let rows: Vec<[String; 7]> = list(counted)
        .iter()
        .map(|kind| {
            let counts = COUNTS.map(|count| cell(&kind["counts"][count]));
            let [answers, looked_at, returned, ranges, servers, tokens] = counts;
            [cell(&kind["kind"]), answers, looked_at, returned, ranges, servers, tokens]
        })
        .collect();
    text_table(["kind of query", "answers", "looked at", "returned", "ranges", "servers", "tokens"], &rows)
}

fn range_row(range: &Value) -> [String; 8] {
    let load = &range["load"];
    [
        name(range),
        cell(&range["server"]),
        keys(range),
        cell(&load["requests_per_s"]),
        cell(&load["bytes"]),
        cell(&load["borrowed_bytes"]),
        cell(&load["state"]),
        note(range),
    ]
}
