//! What commands print: a text for people, and the same as JSON for programs.

use rangehold_shardmap::{KindOfMap, MapKind, Mapping, Shard, ShardKey, ShardMap};
use serde_json::{Value, json};

use crate::text_table::text_table;

/// The output of a command.
pub(super) struct Answer {
    pub(super) json: Value,
    pub(super) text: String,
    /// Why the program exits with a failure after it printed this.
    pub(super) failed: Option<String>,
}

impl Answer {
    pub(super) fn new(json: Value, text: String) -> Self {
        Self { json, text, failed: None }
    }

    /// The same output; with a reason in `failed`, the program exits with a failure.
    pub(super) fn or_failed(self, failed: Option<String>) -> Self {
        Self { failed, ..self }
    }
}

/// Mappings as rows of a table.
pub(super) fn mappings<M: KindOfMap>(mappings: &[Mapping<ShardKey>]) -> Answer {
    let rows: Vec<[String; 4]> = mappings
        .iter()
        .map(|mapping| {
            let status = if mapping.is_online() { "online" } else { "offline" };
            let lock = mapping.lock().map(|lock| format!("locked by {}", lock.owner)).unwrap_or_default();
            [keys::<M>(mapping), mapping.shard().location().to_string(), status.to_owned(), lock]
        })
        .collect();
    let json = mappings.iter().map(mapping_json::<M>).collect();
    Answer::new(Value::Array(json), text_table(["key", "shard", "status", ""], &rows))
}

/// Mappings as a sentence that begins with `verb`. The map says only of which kind they are.
pub(super) fn sentence<M: KindOfMap>(
    _: &ShardMap<ShardKey, M>,
    verb: &str,
    all: &[Mapping<ShardKey>],
) -> Answer {
    let line = |mapping: &Mapping<ShardKey>| {
        let status = if mapping.is_online() { "" } else { ", offline" };
        format!("{} on {}{status}", keys::<M>(mapping), mapping.shard().location())
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    let json = match all {
        [one] => mapping_json::<M>(one),
        several => Value::Array(several.iter().map(mapping_json::<M>).collect()),
    };
    Answer::new(json, format!("{verb}{}\n", lines.join(" and ")))
}

/// The keys of a mapping: one key, or `[low, high)`.
pub(super) fn keys<M: KindOfMap>(mapping: &Mapping<ShardKey>) -> String {
    if M::KIND == MapKind::List {
        return mapping.value().to_string();
    }
    let low = if mapping.low().is_min() { "start".to_owned() } else { mapping.low().to_string() };
    let high = mapping.high().map_or("end".to_owned(), ShardKey::to_string);
    format!("[{low}, {high})")
}

/// A mapping as JSON.
pub(super) fn mapping_json<M: KindOfMap>(mapping: &Mapping<ShardKey>) -> Value {
    let mut json = json!({
        "shard": mapping.shard().location().to_string(),
        "online": mapping.is_online(),
        "mapping": mapping.id().to_string(),
    });
    match M::KIND {
        MapKind::List => json["key"] = mapping.value().to_string().into(),
        MapKind::Range => {
            json["low"] = mapping.low().to_string().into();
            json["high"] = mapping.high().map(ShardKey::to_string).into();
        }
    }
    if let Some(lock) = mapping.lock() {
        // With the token anybody could change the mapping, so only its owner is told.
        json["lock"] = json!({ "owner": lock.owner, "until_us": lock.until });
    }
    json
}

/// A shard as JSON.
pub(super) fn shard_json(shard: &Shard) -> Value {
    json!({ "shard": shard.location().to_string(), "online": shard.is_online(), "id": shard.id().to_string() })
}
