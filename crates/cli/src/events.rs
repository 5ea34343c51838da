//! `rangehold events`: shows what happened to the ranges of a running server.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use crate::output::{Format, View, cell, list};

/// How long the server may take to answer: it waits for a new event, and then needs time to send it.
const EVENTS_WITHIN: Duration = Duration::from_secs(60);

/// `rangehold events`
#[derive(Debug, Args)]
pub(crate) struct EventsFlags {
    #[command(flatten)]
    view: View,
    /// Continue, and show events as they happen.
    #[arg(long)]
    follow: bool,
    /// Show only events with greater numbers than this.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
}

/// Shows the events, and with `--follow` those that come later.
pub(crate) fn show(flags: &EventsFlags) -> Result<()> {
    let mut after = flags.after;
    loop {
        let wait = if flags.follow { "" } else { "&wait=0" };
        let path = format!("/v1/events?after={after}{wait}");
        let answer = flags.view.admin.get(&path, EVENTS_WITHIN)?;
        for event in list(&answer["events"]) {
            after = event["number"].as_u64().unwrap_or(after);
            match flags.view.output {
                Format::Json => println!("{event}"),
                Format::Text => println!("{}", event_text(event)),
            }
        }
        if !flags.follow {
            return Ok(());
        }
    }
}

/// An event as one line.
pub(crate) fn event_text(event: &Value) -> String {
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
