//! Requests that change several names at once.

use serde_json::{Value as Json, json};

use super::{Described, ObjectName, request, with_json};
use crate::client::http::Request;
use crate::client::sas::percent_encoded;

/// Moves the generation `source` of `from` to another name of its bucket, on the condition that this name has the
/// generation `if_generation`.
pub fn move_to(from: &ObjectName, source: u64, to: &ObjectName, if_generation: Option<u64>) -> Request {
    let condition = if_generation.map(|generation| format!("&ifGenerationMatch={generation}"));
    let (from, to, condition) = (from.target(), percent_encoded(&to.name), condition.unwrap_or_default());
    request("POST", format!("{from}/moveTo/o/{to}?ifSourceGenerationMatch={source}{condition}"))
}

/// Composes objects of the same bucket, each of which must have this generation, and removes them.
pub fn compose_away(sources: &[(&str, u64)], described: Described<'_>) -> Request {
    let sources: Vec<Json> = sources
        .iter()
        .map(|(name, generation)| {
            json!({"name": name, "objectPreconditions": {"ifGenerationMatch": generation.to_string()}})
        })
        .collect();
    let resource = described.resource();
    let body = json!({"sourceObjects": sources, "destination": resource, "deleteSourceObjects": true});
    let (to, condition) = (described.to.target(), described.condition());
    with_json("POST", format!("{to}/compose?{condition}"), &body)
}
