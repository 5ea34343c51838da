//! `ranges` and `events`: what the ranges of a running server are, and what became of them.
//!
//! All of it goes through the admin API, whose JSON `--output json` passes on as it is.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::ask::{ANSWER_WITHIN, Asking};
use crate::text_table::text_table;

/// How long the server may keep who asks for events waiting, with time for the answer.
const EVENTS_WITHIN: Duration = Duration::from_secs(60);

/// How things are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Tables and sentences.
    Text,
    /// What the admin API answers; of events, one to a line.
    Json,
}

/// Which server, and how what it says is printed.
#[derive(Debug, Args)]
pub(crate) struct Showing {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// For people or for programs.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// `rangehold ranges`
#[derive(Debug, Args)]
pub(crate) struct Ranges {
    #[command(flatten)]
    showing: Showing,
    /// What queries looked at and returned, by their kind, since the server was started.
    #[arg(long)]
    queries: bool,
}

/// `rangehold events`
#[derive(Debug, Args)]
pub(crate) struct Following {
    #[command(flatten)]
    showing: Showing,
    /// Go on showing events as they happen.
    #[arg(long)]
    follow: bool,
    /// Only events with greater numbers.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
}

/// Shows the ranges and their load, or the kinds of queries.
pub(crate) fn show(Ranges { showing, queries }: &Ranges) -> Result<()> {
    if *queries {
        let counted = showing.asking.get("/v1/queries", ANSWER_WITHIN)?;
        showing.print(&counted, queries_text);
        return Ok(());
    }
    let seen = showing.asking.get("/v1/ranges", ANSWER_WITHIN)?;
    showing.print(&seen, ranges_text);
    Ok(())
}

/// Shows events, and those that follow.
pub(crate) fn events(following: &Following) -> Result<()> {
    let mut after = following.after;
    loop {
        let wait = if following.follow { "" } else { "&wait=0" };
        let path = format!("/v1/events?after={after}{wait}");
        let answer = following.showing.asking.get(&path, EVENTS_WITHIN)?;
        for event in list(&answer["events"]) {
            after = event["number"].as_u64().unwrap_or(after);
            match following.showing.output {
                Output::Json => println!("{event}"),
                Output::Text => println!("{}", event_text(event)),
            }
        }
        if !following.follow {
            return Ok(());
        }
    }
}

impl Showing {
    /// Whether it is printed for people.
    pub(crate) fn is_text(&self) -> bool {
        self.output == Output::Text
    }

    pub(crate) fn print(&self, value: &Value, text: impl Fn(&Value) -> String) {
        match self.output {
            Output::Json => println!("{value:#}"),
            Output::Text => print!("{}", text(value)),
        }
    }
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
    for range in list(&seen["ranges"]) {
        if let Some(sentence) = range["load"]["verdict"]["sentence"].as_str() {
            text += &format!("\n{}: {sentence}\n", cell(&range["range"]));
        }
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

fn event_text(event: &Value) -> String {
    let held = event["held_for_ms"].as_f64().map(|ms| format!(" (writes held for {ms} ms)"));
    let ranges: Vec<String> = list(&event["ranges"]).iter().map(cell).collect();
    format!(
        "{:>5}  {}  {:10}  {}  {}{}",
        cell(&event["number"]),
        cell(&event["at"]),
        cell(&event["kind"]),
        ranges.join(","),
        cell(&event["text"]),
        held.unwrap_or_default()
    )
}

/// Such as `r2@3`.
pub(crate) fn name(range: &Value) -> String {
    format!("{}@{}", cell(&range["range"]), cell(&range["generation"]))
}

pub(crate) fn keys(range: &Value) -> String {
    let high = range["high"].as_str().unwrap_or("end");
    format!("[{}, {high})", cell(&range["low"]))
}

pub(crate) fn note(range: &Value) -> String {
    match range["doing"].as_str() {
        Some(doing) => doing.to_owned(),
        None if range["online"] == false => "offline".to_owned(),
        None => String::new(),
    }
}

/// A value as it stands in a table; nothing for null.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
