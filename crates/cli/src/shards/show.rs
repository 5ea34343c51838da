//! What commands print: a text, and the same as JSON.

use rangehold_shardmap::{KindOfMap, MapKind, Mapping, Shard, ShardKey};
use serde_json::{Value, json};

use crate::text_table::text_table;

/// An answer.
pub(super) struct Shown {
    pub(super) json: Value,
    pub(super) text: String,
    /// Why the program fails although it has an answer.
    pub(super) failed: Option<String>,
}

impl Shown {
    pub(super) fn new(json: Value, text: String) -> Self {
        Self { json, text, failed: None }
    }

    pub(super) fn or_failed(self, failed: Option<String>) -> Self {
        Self { failed, ..self }
    }
}

/// Mappings as rows of a table.
pub(super) fn mappings<M: KindOfMap>(mappings: &[Mapping<ShardKey>]) -> Shown {
    let rows: Vec<[String; 4]> = mappings
        .iter()
        .map(|mapping| {
            let status = if mapping.is_online() { "online" } else { "offline" };
            let lock = mapping.lock().map(|lock| format!("locked by {}", lock.owner)).unwrap_or_default();
            [keys::<M>(mapping), mapping.shard().location().to_string(), status.to_owned(), lock]
        })
        .collect();
    let json = mappings.iter().map(mapping_json::<M>).collect();
    Shown::new(Value::Array(json), text_table(["key", "shard", "status", ""], &rows))
}

/// A key, or `[low, high)`.
pub(super) fn keys<M: KindOfMap>(mapping: &Mapping<ShardKey>) -> String {
    if M::KIND == MapKind::List {
        return mapping.value().to_string();
    }
    let low = if mapping.low().is_min() { "start".to_owned() } else { mapping.low().to_string() };
    let high = mapping.high().map_or("end".to_owned(), ShardKey::to_string);
    format!("[{low}, {high})")
}

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
        json["lock"] =
            json!({ "owner": lock.owner, "until_us": lock.until, "token": lock.token.0.to_string() });
    }
    json
}

/// A shard by itself.
pub(super) fn shard_json(shard: &Shard) -> Value {
    json!({ "shard": shard.location().to_string(), "online": shard.is_online(), "id": shard.id().to_string() })
}
