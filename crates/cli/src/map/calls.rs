//! What the commands about the map ask of a server's admin API, and how its answers are printed.

use std::fmt::Display;
use std::time::Duration;

use anyhow::Result;
use rangehold_map::script::Asked;
use serde_json::{Value, json};

use crate::ask::{ANSWER_WITHIN, Asking, encoded};
use crate::ranges::{Showing, cell, keys, list, name, note};
use crate::text_table::text_table;

/// How long a change may take: two ranges get ready for it, one after the other, in half a minute each.
const CHANGE_WITHIN: Duration = Duration::from_secs(180);

/// Shows which range is where.
pub(super) fn show(showing: &Showing) -> Result<()> {
    showing.print(&showing.asking.get("/v1/map", ANSWER_WITHIN)?, map_text);
    Ok(())
}

/// Has a change carried out, and shows what came of it.
pub(super) fn change(showing: &Showing, asked: &Asked) -> Result<()> {
    let word = |word: &dyn Display| json!(word.to_string());
    let (verb, body) = match asked {
        Asked::Split { range, at } => ("split", json!({ "at": word(at), "range": word(range) })),
        Asked::Merge { left, right } => ("merge", json!({ "left": word(left), "right": word(right) })),
        Asked::Move { range, to } => ("move", json!({ "range": word(range), "to": word(to) })),
        Asked::Offline(range) => ("offline", json!({ "range": word(range) })),
        Asked::Online(range) => ("online", json!({ "range": word(range) })),
    };
    let changed = showing.asking.post(&format!("/v1/map/{verb}"), &body, CHANGE_WITHIN)?;
    showing.print(&changed, changed_text);
    Ok(())
}

/// The map's entry of one range, in an answer that is otherwise the whole map's.
pub(super) fn find(asking: &Asking, range: &str) -> Result<Value> {
    asking.get(&format!("/v1/map?range={}", encoded(range)), ANSWER_WITHIN)
}

/// Moves a range to another server now: to `to`, or else to the one with the least load.
pub(crate) fn move_away(asking: &Asking, range: &str, to: Option<&str>) -> Result<Value> {
    let to = match to {
        Some(to) => to.to_owned(),
        None => {
            let found = find(asking, range)?;
            least_loaded_other(&asking.get("/v1/ranges", ANSWER_WITHIN)?, range, &found["ranges"][0])?
        }
    };
    asking.post("/v1/map/move", &json!({ "range": range, "to": to }), CHANGE_WITHIN)
}

fn least_loaded_other(seen: &Value, range: &str, entry: &Value) -> Result<String> {
    let cost = |server: &&Value| server["cost_per_s"].as_f64().unwrap_or(f64::INFINITY);
    let others = list(&seen["servers"]).iter().filter(|server| server["server"] != entry["server"]);
    match others.min_by(|a, b| cost(a).total_cmp(&cost(b))) {
        Some(server) => Ok(cell(&server["server"])),
        None => {
            anyhow::bail!("there is no other server to move {range} to: start the server with --servers 2")
        }
    }
}

/// Lists the broken rules of the map, and fails if there are any.
pub(super) fn check(showing: &Showing) -> Result<()> {
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

fn changed_text(changed: &Value) -> String {
    let ranges: Vec<String> = list(&changed["ranges"]).iter().map(cell).collect();
    format!(
        "done in map version {}: {}; writes were held for {} ms\n",
        changed["map_version"],
        ranges.join(", "),
        changed["held_for_ms"]
    )
}
