//! `rangehold status`: the state of a running server at a glance.

use anyhow::Result;
use serde_json::Value;

use crate::admin::ANSWER_WITHIN;
use crate::events::event_text;
use crate::output::{Format, View, cell, list};
use crate::ranges::verdicts;

/// The newest events that are shown to people.
const EVENTS: usize = 5;
const MIB: u64 = 1 << 20;

/// Shows the status: for programs as the admin API has it, and for people with the verdicts on hot ranges and with what happened
/// last.
pub(crate) fn show(view: &View) -> Result<()> {
    let status = view.admin.get("/v1/status", ANSWER_WITHIN)?;
    if view.output == Format::Json {
        println!("{status:#}");
        return Ok(());
    }
    let seen = view.admin.get("/v1/ranges", ANSWER_WITHIN)?;
    let happened = view.admin.get("/v1/events?after=0&wait=0", ANSWER_WITHIN)?;
    print!("{}", text(&status, &seen, &happened));
    Ok(())
}

fn text(status: &Value, seen: &Value, happened: &Value) -> String {
    let ranges = list(&status["ranges"]);
    let sum = |name: &str| ranges.iter().filter_map(|range| range[name].as_u64()).sum::<u64>();
    let offline = list(&seen["ranges"]).iter().filter(|range| range["online"] == false).count();
    let mut lines = vec![
        format!("version    {}", cell(&status["version"])),
        format!(
            "map        version {}; ranges: {} (offline: {offline}); servers: {}",
            cell(&status["map_version"]),
            list(&seen["ranges"]).len(),
            list(&seen["servers"]).len(),
        ),
        format!(
            "requests   {} reads, {} scans and {} writes since the ranges were opened, {} refused",
            sum("reads"),
            sum("scans"),
            sum("writes"),
            sum("refusals")
        ),
        format!("disk       {}", disk(status)),
    ];
    for file in list(&status["damaged_files"]) {
        lines.push(format!("damaged    {}", cell(file)));
    }
    lines.extend(headed("\nhot ranges:", verdicts(seen).collect()));
    let events = list(&happened["events"]);
    let newest = events.iter().skip(events.len().saturating_sub(EVENTS)).map(event_text);
    lines.extend(headed("\nwhat happened last:", newest.collect()));
    lines.join("\n") + "\n"
}

fn disk(status: &Value) -> String {
    let is_low = status["disk_low"] == true;
    match status["disk_free_bytes"].as_u64() {
        None => "none: everything is in memory".to_owned(),
        Some(free) if is_low => format!("{} MiB free: too few, so writes are refused", free / MIB),
        Some(free) => format!("{} MiB free", free / MIB),
    }
}

/// The lines below their heading; nothing if there are none.
fn headed(heading: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() { lines } else { [vec![heading.to_owned()], lines].concat() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_see_the_state_at_a_glance() {
        let status = json!({
            "version": "0.1.0",
            "map_version": 7,
            "ranges": [
                { "range": "r1", "reads": 10, "scans": 2, "writes": 5, "refusals": 0 },
                { "range": "r2", "reads": 1, "scans": 0, "writes": 3, "refusals": 4 },
            ],
            "disk_free_bytes": 5 << 20,
            "disk_low": true,
            "damaged_files": ["ranges/1-1-1/wal/3.sst"],
        });
        let seen = json!({
            "servers": [{}],
            "ranges": [
                { "range": "r1", "online": true, "load": { "verdict": { "sentence": "not split: scan" } } },
                { "range": "r2", "online": false, "load": {} },
            ],
        });
        let event = |number: u64| json!({ "number": number, "at": "now", "kind": "split", "ranges": ["r1"], "text": "two" });
        let happened = json!({ "events": (1..=7).map(event).collect::<Vec<_>>() });
        let shown = text(&status, &seen, &happened);
        let expected = "version    0.1.0
map        version 7; ranges: 2 (offline: 1); servers: 1
requests   11 reads, 2 scans and 8 writes since the ranges were opened, 4 refused
disk       5 MiB free: too few, so writes are refused
damaged    ranges/1-1-1/wal/3.sst

hot ranges:
r1: not split: scan

what happened last:
    3  now  split       r1  two
";
        assert!(shown.starts_with(expected), "{shown}");
        assert_eq!(shown.lines().count(), 15);
    }

    #[test]
    fn a_quiet_server_has_four_lines() {
        let status = json!({ "version": "0.1.0", "map_version": 1, "ranges": [], "disk_free_bytes": null });
        let shown = text(
            &status,
            &json!({ "servers": [{}], "ranges": [{ "online": true }] }),
            &json!({ "events": [] }),
        );
        assert_eq!(shown.lines().count(), 4, "{shown}");
        assert!(shown.contains("disk       none: everything is in memory\n"), "{shown}");
    }
}
