//! Calls of the admin API about the map, and the texts that the commands print.

use std::fmt::Display;
use std::time::Duration;

use anyhow::Result;
use rangehold_map::script::Asked;
use serde_json::{Value, json};

use crate::admin::{ANSWER_WITHIN, AdminClient, encoded};
use crate::output::{View, cell, keys, list, name, note};
use crate::text_table::text_table;

/// How long a change may take. Before it begins, two ranges may get ready one after the other, for at most
/// half a minute each.
const CHANGE_WITHIN: Duration = Duration::from_secs(180);

/// Shows the ranges, and the server of each.
pub(super) fn show(view: &View) -> Result<()> {
    view.print(&view.admin.get("/v1/map", ANSWER_WITHIN)?, map_text);
    Ok(())
}

/// Asks the server for a change, and shows the result.
pub(super) fn change(view: &View, asked: &Asked) -> Result<()> {
    let word = |word: &dyn Display| json!(word.to_string());
    let (verb, body) = match asked {
        Asked::Split { range, at } => ("split", json!({ "at": word(at), "range": word(range) })),
        Asked::Merge { left, right } => ("merge", json!({ "left": word(left), "right": word(right) })),
        Asked::Move { range, to } => ("move", json!({ "range": word(range), "to": word(to) })),
        Asked::Offline(range) => ("offline", json!({ "range": word(range) })),
        Asked::Online(range) => ("online", json!({ "range": word(range) })),
    };
    let changed = view.admin.post(&format!("/v1/map/{verb}"), &body, CHANGE_WITHIN)?;
    view.print(&changed, changed_text);
    Ok(())
}

/// The map's entry of one range, in the form of an answer with the whole map.
pub(super) fn find(admin: &AdminClient, range: &str) -> Result<Value> {
    admin.get(&format!("/v1/map?range={}", encoded(range)), ANSWER_WITHIN)
}

/// Moves a range to the server `to`; `None` is the other server with the least load.
pub(crate) fn move_away(admin: &AdminClient, range: &str, to: Option<&str>) -> Result<Value> {
    let to = match to {
        Some(to) => to.to_owned(),
        None => {
            let found = find(admin, range)?;
            least_loaded_other(&admin.get("/v1/ranges", ANSWER_WITHIN)?, range, &found["ranges"][0])?
        }
    };
    admin.post("/v1/map/move", &json!({ "range": range, "to": to }), CHANGE_WITHIN)
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

/// Lists the rules that the map breaks. Fails if it breaks any.
pub(super) fn check(view: &View) -> Result<()> {
    let checked = view.admin.get("/v1/map/check", ANSWER_WITHIN)?;
    view.print(&checked, |checked| {
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

/// What a change did, for people.
pub(crate) fn changed_text(changed: &Value) -> String {
    let ranges: Vec<String> = list(&changed["ranges"]).iter().map(cell).collect();
    let done = format!(
        "done in map version {}: {}; writes were held for {} ms\n",
        changed["map_version"],
        ranges.join(", "),
        changed["held_for_ms"]
    );
    match changed["warning"].as_str() {
        Some(warning) => format!("{done}warning: {warning}\n"),
        None => done,
    }
}
