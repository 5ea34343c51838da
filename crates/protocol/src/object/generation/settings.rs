//! What a client may set on an object.
//!
//! One type serves three forms: the stored row, the JSON of a request, and the merge of a patch. A patch is a JSON
//! merge patch (RFC 7396): fields that it does not name stay, `null` removes a field, and so it is with the members of
//! `metadata` and `contexts`. An insert is a patch of nothing, and an update a patch of nothing too.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::hold;
use crate::object::error::ObjectError;
use crate::object::limits::{CONTEXT_BYTES_MAX, CONTEXTS_MAX, METADATA_BYTES_MAX};
use crate::object::merge::{merge_patch, typed};
use crate::object::micros::Micros;

/// Whether a retention of one object can still be shortened. The order of the variants is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetentionMode {
    /// It can be shortened or removed by a request that says so.
    Unlocked,
    /// It can only be prolonged.
    Locked,
}

/// Until when an object is protected by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// Whether it can still be shortened.
    pub mode: RetentionMode,
    /// The end of the protection.
    pub retain_until_time: Micros,
}

/// The value of one context.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Context {
    /// The value itself.
    pub value: String,
    /// When the context was made. Set by the server.
    pub create_time: Micros,
    /// When the value was last changed. Set by the server.
    pub update_time: Micros,
}

/// Contexts: names and values by which listings can be filtered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Contexts {
    /// The contexts that clients made, by their names.
    pub custom: BTreeMap<String, Context>,
}

/// What a client may set on an object, and what stays as it is when the object is copied.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// `Cache-Control` of downloads.
    pub cache_control: Option<String>,
    /// `Content-Disposition` of downloads.
    pub content_disposition: Option<String>,
    /// `Content-Encoding` of the bytes as they are stored.
    pub content_encoding: Option<String>,
    /// `Content-Language` of downloads.
    pub content_language: Option<String>,
    /// `Content-Type`; downloads without one are `application/octet-stream`.
    pub content_type: Option<String>,
    /// A time that means something to the client. It can be moved on, and not back.
    pub custom_time: Option<Micros>,
    /// The client's own names and values.
    pub metadata: BTreeMap<String, String>,
    /// Contexts.
    pub contexts: Contexts,
    /// Protects the object until it is lifted. It is shown once it was set or lifted.
    #[serde(with = "hold")]
    pub temporary_hold: Option<bool>,
    /// Protects the object until it is lifted; the bucket's retention period counts from there.
    #[serde(with = "hold")]
    pub event_based_hold: Option<bool>,
    /// Protects the object until a time.
    pub retention: Option<Retention>,
}

/// The fields of a body that are settings. All others are read elsewhere, or are the server's own and are ignored.
const FIELDS: [&str; 11] = [
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "contentType",
    "customTime",
    "metadata",
    "contexts",
    "temporaryHold",
    "eventBasedHold",
    "retention",
];

impl Settings {
    /// Whether the object has a temporary hold.
    pub fn is_held_for_now(&self) -> bool {
        self.temporary_hold == Some(true)
    }

    /// Whether the object has an event-based hold.
    pub fn is_held_for_event(&self) -> bool {
        self.event_based_hold == Some(true)
    }

    /// These settings after the patch `body`. `now` becomes the time of contexts that it changes.
    pub fn patched(&self, body: &Map<String, Value>, now: Micros) -> Result<Self, ObjectError> {
        self.patched_with(body, &[], now)
    }

    /// As [`patched`](Self::patched), but the members `whole` are replaced and not merged.
    pub fn patched_with(
        &self,
        body: &Map<String, Value>,
        whole: &[String],
        now: Micros,
    ) -> Result<Self, ObjectError> {
        let Value::Object(mut merged) = serde_json::to_value(self).expect("settings can be written as JSON")
        else {
            unreachable!("settings are an object in JSON");
        };
        for field in FIELDS {
            if let Some(patch) = body.get(field) {
                if whole.iter().any(|name| name == field) {
                    merged.remove(field);
                }
                merge_patch(merged.entry(field).or_insert(Value::Null), patch);
            }
        }
        // What was removed member by member is gone.
        if let Some(Value::Object(contexts)) =
            merged.get_mut("contexts").and_then(|all| all.get_mut("custom"))
        {
            contexts.retain(|_, context| context.get("value").is_some_and(|value| !value.is_null()));
        }
        if let Some(Value::Object(metadata)) = merged.get_mut("metadata") {
            metadata.values_mut().for_each(write_as_text);
        }
        if merged.get("retention") == Some(&Value::Object(Map::new())) {
            merged.remove("retention");
        }
        merged.retain(|_, value| !value.is_null());
        let mut settings: Self = typed(merged)?;
        settings.stamp_contexts(&self.contexts, now);
        settings.check()?;
        self.check_custom_time(&settings)?;
        Ok(settings)
    }

    /// The settings of a body on its own, as an insert and an update have them.
    pub fn from_body(body: &Map<String, Value>, now: Micros) -> Result<Self, ObjectError> {
        Self::default().patched(body, now)
    }

    /// The times of contexts are the server's.
    fn stamp_contexts(&mut self, old: &Contexts, now: Micros) {
        for (name, context) in &mut self.contexts.custom {
            let before = old.custom.get(name);
            context.create_time = before.map_or(now, |before| before.create_time);
            context.update_time = match before {
                Some(before) if before.value == context.value => before.update_time,
                _ => now,
            };
        }
    }

    fn check(&self) -> Result<(), ObjectError> {
        let bytes: usize = self.metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > METADATA_BYTES_MAX {
            let hint = "Names and values of custom metadata have at most 8192 bytes together.";
            return Err(ObjectError::invalid("metadata", format_args!("{bytes} bytes"), hint));
        }
        if self.contexts.custom.len() > CONTEXTS_MAX {
            let hint = "An object has at most 50 contexts.";
            return Err(ObjectError::invalid("contexts", self.contexts.custom.len(), hint));
        }
        for (name, context) in &self.contexts.custom {
            let lengths = 1..=CONTEXT_BYTES_MAX;
            if !lengths.contains(&name.len()) || !lengths.contains(&context.value.len()) {
                let hint = "Names and values of contexts have 1 to 256 bytes.";
                return Err(ObjectError::invalid("contexts", name, hint));
            }
        }
        Ok(())
    }

    fn check_custom_time(&self, new: &Self) -> Result<(), ObjectError> {
        match (self.custom_time, new.custom_time) {
            (Some(old), later) if later.is_none_or(|later| later < old) => {
                let given = later.map_or_else(|| "null".to_owned(), Micros::text);
                let hint = format!("It is {} and can be moved on only.", old.text());
                Err(ObjectError::invalid("customTime", given, &hint))
            }
            _ => Ok(()),
        }
    }
}

/// Makes a number or a boolean a text, as the real service does with the client's own values. Other values stay.
fn write_as_text(value: &mut Value) {
    if matches!(value, Value::Number(_) | Value::Bool(_)) {
        *value = Value::String(value.to_string());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    const NOW: Micros = Micros::new(1_000_000);

    #[test]
    fn a_patch_changes_what_it_names_and_null_removes() {
        let first = body(json!({
            "contentType": "text/plain", "contentLanguage": "en", "metadata": {"a": "1", "b": "2"},
            "generation": "5", "kind": "storage#object"
        }));
        let old = Settings::from_body(&first, NOW).expect("good settings");
        assert_eq!(old.metadata.len(), 2);
        let patch = body(json!({"contentLanguage": null, "metadata": {"a": null, "c": "3"}}));
        let new = old.patched(&patch, NOW).expect("good settings");
        assert_eq!(new.content_type.as_deref(), Some("text/plain"));
        assert_eq!(new.content_language, None);
        assert_eq!(new.metadata.keys().collect::<Vec<_>>(), ["b", "c"]);
        let none = new.patched(&body(json!({"metadata": null})), NOW).expect("good settings");
        assert!(none.metadata.is_empty());
        let other = body(json!({"metadata": {"d": "4"}}));
        let whole = new.patched_with(&other, &["metadata".to_owned()], NOW).expect("good settings");
        assert_eq!(whole.metadata.keys().collect::<Vec<_>>(), ["d"]);
    }

    #[test]
    fn numbers_and_booleans_in_metadata_become_texts() {
        let first = body(json!({"metadata": {"a": 5, "b": true, "c": 1.5, "d": -7, "e": "x"}}));
        let old = Settings::from_body(&first, NOW).expect("good settings");
        let pairs: Vec<(&str, &str)> =
            old.metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("a", "5"), ("b", "true"), ("c", "1.5"), ("d", "-7"), ("e", "x")]);
        let patch = body(json!({"metadata": {"a": null, "b": false}}));
        let new = old.patched(&patch, NOW).expect("good settings");
        assert_eq!((new.metadata.get("a"), new.metadata["b"].as_str()), (None, "false"));
    }

    #[test]
    fn contexts_keep_their_times() {
        let set = |value: &str| body(json!({"contexts": {"custom": {"k": {"value": value}}}}));
        let first = Settings::from_body(&set("a"), NOW).expect("a context");
        let later = Micros::new(2_000_000);
        let same = first.patched(&set("a"), later).expect("a context");
        assert_eq!(same.contexts, first.contexts);
        let other = first.patched(&set("b"), later).expect("a context");
        let context = &other.contexts.custom["k"];
        assert_eq!((context.create_time, context.update_time), (NOW, later));
        for removal in [json!(null), json!({"k": null}), json!({"k": {"value": null}})] {
            let gone = first.patched(&body(json!({"contexts": {"custom": removal}})), later);
            assert!(gone.expect("no context").contexts.custom.is_empty(), "{removal}");
        }
    }

    #[test]
    fn a_retention_is_set_and_removed() {
        let set = json!({"retention": {"mode": "Locked", "retainUntilTime": "2030-01-01T00:00:00Z"}});
        let settings = Settings::from_body(&body(set), NOW).expect("a retention");
        assert_eq!(settings.retention.map(|retention| retention.mode), Some(RetentionMode::Locked));
        for remove in
            [json!({"retention": null}), json!({"retention": {"mode": null, "retainUntilTime": null}})]
        {
            assert_eq!(settings.patched(&body(remove), NOW).expect("none").retention, None);
        }
    }

    #[test]
    fn wrong_values_are_refused_by_the_name_of_their_field() {
        for (value, field) in [
            (json!({"contentType": 5}), "contentType"),
            (json!({"metadata": {"a": {"b": "c"}}}), "metadata"),
            (json!({"metadata": {"a": [1]}}), "metadata"),
            (json!({"metadata": 5}), "metadata"),
            (json!({"metadata": {"a": "x".repeat(9_000)}}), "metadata"),
            (json!({"customTime": "soon"}), "customTime"),
            (json!({"temporaryHold": "yes"}), "temporaryHold"),
            (json!({"contexts": {"custom": {"": {"value": "a"}}}}), "contexts"),
            (json!({"retention": {"mode": "Locked"}}), "retention"),
        ] {
            let error = Settings::from_body(&body(value), NOW).expect_err(field);
            assert_eq!((error.kind.status(), error.location.as_str()), (400, field), "{}", error.message);
        }
    }

    #[test]
    fn a_hold_that_was_lifted_is_known_and_one_that_never_was_is_not() {
        let hold = |on: bool| body(json!({"temporaryHold": on}));
        let held = Settings::from_body(&hold(true), NOW).expect("a hold");
        assert!(held.is_held_for_now() && held.event_based_hold.is_none());
        let lifted = held.patched(&hold(false), NOW).expect("no hold");
        assert_eq!((lifted.temporary_hold, lifted.is_held_for_now()), (Some(false), false));
    }

    #[test]
    fn a_custom_time_never_goes_back() {
        let set = |time: Value| body(json!({"customTime": time}));
        let old = Settings::from_body(&set(json!("2026-01-01T00:00:00Z")), NOW).expect("a time");
        assert!(old.patched(&set(json!("2026-01-02T00:00:00Z")), NOW).is_ok());
        assert!(old.patched(&set(json!("2025-01-01T00:00:00Z")), NOW).is_err());
        assert!(old.patched(&set(Value::Null), NOW).is_err());
    }
}
