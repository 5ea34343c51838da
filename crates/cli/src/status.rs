//! `rangehold status`: the state of a running server at a glance.

use anyhow::Result;
use serde_json::Value;

use crate::admin::ANSWER_WITHIN;
use crate::events::event_text;
use crate::output::{Format, View, cell, list};
use crate::ranges::verdicts;

/// The newest events that are shown to people.
const EVENTS: usize = 5;
/// The accounts that are shown to people.
const ACCOUNTS: usize = 8;
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
        format!("version    {}{}", cell(&status["version"]), uptime(status)),
        format!("tables     {}; tables: {}", place(status, "tables"), count(&status["tables"])),
        format!("objects    {}; buckets: {}", place(status, "objects"), count(&status["buckets"])),
        format!("admin      {}", place(status, "admin")),
        format!("accounts   {}", accounts(status)),
        format!("memory     {}", memory(status)),
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

fn uptime(status: &Value) -> String {
    status["uptime_s"].as_u64().map(|seconds| format!(", up for {}", lasted(seconds))).unwrap_or_default()
}

/// A time in its two greatest units, such as `3 h 12 min`.
fn lasted(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

fn place(status: &Value, service: &str) -> String {
    status["addresses"][service].as_str().map_or_else(|| "not served".to_owned(), |url| format!("at {url}"))
}

/// A count, which may have ended at a limit or not have been made.
fn count(count: &Value) -> String {
    match count["number"].as_u64() {
        None => "not known now".to_owned(),
        Some(number) if count["at_least"] == true => format!("at least {number}"),
        Some(number) => number.to_string(),
    }
}

fn accounts(status: &Value) -> String {
    let all = list(&status["accounts"]);
    let one = |account: &Value| format!("{} (tables: {})", cell(&account["name"]), count(&account["tables"]));
    let mut shown: Vec<String> = all.iter().take(ACCOUNTS).map(one).collect();
    if all.len() > ACCOUNTS {
        shown.push(format!("and {} more", all.len() - ACCOUNTS));
    }
    shown.join(", ")
}

fn memory(status: &Value) -> String {
    let memory = &status["memory"];
    let mib = |name: &str| memory[name].as_u64().map(|bytes| bytes / MIB);
    let budget = mib("budget_bytes").map(|mib| format!("{mib} MiB for caches and buffers (--memory)"));
    let held = mib("resident_bytes").map(|mib| format!("{mib} MiB held by the process"));
    budget.into_iter().chain(held).collect::<Vec<_>>().join("; ")
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
            "uptime_s": 11_520,
            "addresses": { "tables": "https://127.0.0.1:10002", "objects": null, "admin": "http://127.0.0.1:10080" },
            "memory": { "budget_bytes": 512 << 20, "resident_bytes": 93 << 20 },
            "accounts": [
                { "name": "one", "tables": { "number": 9_999, "at_least": false } },
                { "name": "two", "tables": { "number": 1, "at_least": true } },
            ],
            "tables": { "number": 10_000, "at_least": true },
            "buckets": null,
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
        let expected = "version    0.1.0, up for 3 h 12 min
tables     at https://127.0.0.1:10002; tables: at least 10000
objects    not served; buckets: not known now
admin      at http://127.0.0.1:10080
accounts   one (tables: 9999), two (tables: at least 1)
memory     512 MiB for caches and buffers (--memory); 93 MiB held by the process
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
        assert_eq!(shown.lines().count(), 20);
    }

    #[test]
    fn a_quiet_server_has_nine_lines() {
        let status = json!({ "version": "0.1.0", "map_version": 1, "ranges": [], "disk_free_bytes": null });
        let shown = text(
            &status,
            &json!({ "servers": [{}], "ranges": [{ "online": true }] }),
            &json!({ "events": [] }),
        );
        assert_eq!(shown.lines().count(), 9, "{shown}");
        assert!(shown.contains("disk       none: everything is in memory\n"), "{shown}");
    }

    #[test]
    fn many_accounts_are_not_all_shown() {
        let exactly = json!({ "number": 0, "at_least": false });
        let account = |number: u64| json!({ "name": format!("account{number}"), "tables": exactly });
        let shown = |most: u64| accounts(&json!({ "accounts": (1..=most).map(account).collect::<Vec<_>>() }));
        assert!(shown(8).ends_with("account8 (tables: 0)"), "{}", shown(8));
        assert!(shown(10).ends_with("account8 (tables: 0), and 2 more"), "{}", shown(10));
    }

    #[test]
    fn times_are_told_in_two_units() {
        let told = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 1_000_000].map(lasted);
        let expected =
            ["0 s", "59 s", "1 min 0 s", "59 min 59 s", "1 h 0 min", "23 h 59 min", "1 d 0 h", "11 d 13 h"];
        assert_eq!(told, expected);
    }
}
