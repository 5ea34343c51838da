//! `ranges`, `map` and `events`: what the ranges of a running server are, and changes of them.
//!
//! All of it goes through the admin API, whose JSON `--output json` passes on as it is.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::ask::{ANSWER_WITHIN, Asking};
use crate::text_table::text_table;

/// How long a change may take: two ranges get ready for it, one after the other, in half a minute each.
const CHANGE_WITHIN: Duration = Duration::from_secs(180);
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

/// `rangehold map ...`. Ranges are named r2, or r2@3 (refused unless it is in generation 3), or by a key
/// that they hold; keys are written as table/PartitionKey or table/"Partition Key".
#[derive(Debug, Subcommand)]
pub(crate) enum MapCommand {
    /// Show which range is where.
    Show(Showing),
    /// List the rules of the map that are broken; fails if there are any.
    Check(Showing),
    /// Cut a range in two, before the partition at KEY.
    Split {
        /// Where to cut, such as marathon/Full.
        key: String,
        /// Only if this range holds the key.
        #[arg(long)]
        range: Option<String>,
        #[command(flatten)]
        showing: Showing,
    },
    /// Make two neighbours one range.
    Merge {
        /// The range with the lower keys.
        left: String,
        /// The other.
        right: String,
        #[command(flatten)]
        showing: Showing,
    },
    /// Give a range to another server of the process.
    Move {
        /// The range.
        range: String,
        /// The server, such as s2.
        to: String,
        #[command(flatten)]
        showing: Showing,
    },
    /// Let a range refuse every request.
    Offline {
        /// The range.
        range: String,
        #[command(flatten)]
        showing: Showing,
    },
    /// Let a range that is offline serve again.
    Online {
        /// The range.
        range: String,
        #[command(flatten)]
        showing: Showing,
    },
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

/// Shows the map, or changes it.
pub(crate) fn map(command: &MapCommand) -> Result<()> {
    let (showing, verb, body) = match command {
        MapCommand::Show(showing) => {
            let map = showing.asking.get("/v1/map", ANSWER_WITHIN)?;
            showing.print(&map, map_text);
            return Ok(());
        }
        MapCommand::Check(showing) => return check(showing),
        MapCommand::Split { key, range, showing } => (showing, "split", json!({ "at": key, "range": range })),
        MapCommand::Merge { left, right, showing } => {
            (showing, "merge", json!({ "left": left, "right": right }))
        }
        MapCommand::Move { range, to, showing } => (showing, "move", json!({ "range": range, "to": to })),
        MapCommand::Offline { range, showing } => (showing, "offline", json!({ "range": range })),
        MapCommand::Online { range, showing } => (showing, "online", json!({ "range": range })),
    };
    let changed = showing.asking.post(&format!("/v1/map/{verb}"), &body, CHANGE_WITHIN)?;
    showing.print(&changed, changed_text);
    Ok(())
}

/// Moves a range to another server now: to `to`, or else to the one with the least load.
pub(crate) fn move_away(asking: &Asking, range: &str, to: Option<&str>) -> Result<Value> {
    let to = match to {
        Some(to) => to.to_owned(),
        None => least_loaded_other(&asking.get("/v1/ranges", ANSWER_WITHIN)?, range)?,
    };
    asking.post("/v1/map/move", &json!({ "range": range, "to": to }), CHANGE_WITHIN)
}

fn least_loaded_other(seen: &Value, range: &str) -> Result<String> {
    let id = range.split('@').next().unwrap_or(range);
    let Some(entry) = list(&seen["ranges"]).iter().find(|entry| entry["range"] == id) else {
        anyhow::bail!("there is no range {range}: see which there are with 'rangehold ranges'");
    };
    let cost = |server: &&Value| server["cost_per_s"].as_f64().unwrap_or(f64::INFINITY);
    let others = list(&seen["servers"]).iter().filter(|server| server["server"] != entry["server"]);
    match others.min_by(|a, b| cost(a).total_cmp(&cost(b))) {
        Some(server) => Ok(cell(&server["server"])),
        None => {
            anyhow::bail!("there is no other server to move {range} to: start the server with --servers 2")
        }
    }
}

fn check(showing: &Showing) -> Result<()> {
    let checked = showing.asking.get("/v1/map/check", ANSWER_WITHIN)?;
    showing.print(&checked, |checked| {
        let findings: Vec<String> = list(&checked["findings"]).iter().map(cell).collect();
        match findings.is_empty() {
            true => format!("version {}: every rule holds\n", checked["version"]),
            false => findings.join("\n") + "\n",
        }
    });
    match list(&checked["findings"]).len() {
        0 => Ok(()),
        broken => anyhow::bail!("the map breaks {broken} rules"),
    }
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
    pub(crate) fn print(&self, value: &Value, text: impl Fn(&Value) -> String) {
        match self.output {
            Output::Json => println!("{value:#}"),
            Output::Text => print!("{}", text(value)),
        }
    }
}

fn map_text(map: &Value) -> String {
    let rows: Vec<[String; 5]> = list(&map["ranges"])
        .iter()
        .map(|range| {
            [name(range), cell(&range["server"]), cell(&range["database"]), keys(range), note(range)]
        })
        .collect();
    let table = text_table(["range", "server", "database", "keys", ""], &rows);
    format!("version {}, next range {}\n{table}", map["version"], cell(&map["next_range"]))
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

fn changed_text(changed: &Value) -> String {
    let ranges: Vec<String> = list(&changed["ranges"]).iter().map(cell).collect();
    format!(
        "done in map version {}: {}; writes were held for {} ms\n",
        changed["map_version"],
        ranges.join(", "),
        changed["held_for_ms"]
    )
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
fn name(range: &Value) -> String {
    format!("{}@{}", cell(&range["range"]), cell(&range["generation"]))
}

fn keys(range: &Value) -> String {
    let high = range["high"].as_str().unwrap_or("end");
    format!("[{}, {high})", cell(&range["low"]))
}

fn note(range: &Value) -> String {
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
