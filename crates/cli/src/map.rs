//! `map`: which range is where on a running server, and changes of that by hand.

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use crate::ask::{ANSWER_WITHIN, Asking};
use crate::ranges::{Showing, cell, keys, list, name, note};
use crate::text_table::text_table;

/// How long a change may take: two ranges get ready for it, one after the other, in half a minute each.
const CHANGE_WITHIN: Duration = Duration::from_secs(180);

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

/// Shows the map, or changes it.
pub(crate) fn run(command: &MapCommand) -> Result<()> {
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
