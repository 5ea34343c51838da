//! Lifecycle rules as documents.
//!
//! ```xml
//! <Rule><Action><SetStorageClass>NEARLINE</SetStorageClass></Action><Condition><Age>30</Age></Condition></Rule>
//! ```

use serde_json::{Map, Value, json};

use super::tree::Element;
use super::writer::Writer;
use crate::object::bucket::lifecycle::Rule;
use crate::object::error::ObjectError;

/// How the text of a condition is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Number,
    Flag,
    Text,
    /// The element may come several times.
    Texts,
}

/// The elements of conditions, their fields in the JSON API, and their forms.
const CONDITIONS: [(&str, &str, Form); 13] = [
    ("Age", "age", Form::Number),
    ("CreatedBefore", "createdBefore", Form::Text),
    ("CustomTimeBefore", "customTimeBefore", Form::Text),
    ("DaysSinceCustomTime", "daysSinceCustomTime", Form::Number),
    ("DaysSinceNoncurrentTime", "daysSinceNoncurrentTime", Form::Number),
    ("IsLive", "isLive", Form::Flag),
    ("MatchesPrefix", "matchesPrefix", Form::Texts),
    ("MatchesSuffix", "matchesSuffix", Form::Texts),
    ("MatchesStorageClass", "matchesStorageClass", Form::Texts),
    ("NoncurrentTimeBefore", "noncurrentTimeBefore", Form::Text),
    ("NumberOfNewerVersions", "numNewerVersions", Form::Number),
    ("SizeAboveBytes", "sizeAboveBytes", Form::Number),
    ("SizeBelowBytes", "sizeBelowBytes", Form::Number),
];

/// The rules of a document as the field `lifecycle` of the JSON API; `null` if there are none.
pub(super) fn read(root: &Element) -> Result<Value, ObjectError> {
    root.only(&["Rule"])?;
    let rules: Vec<Value> = root.children.iter().map(rule).collect::<Result<_, _>>()?;
    Ok(if rules.is_empty() { Value::Null } else { json!({ "rule": rules }) })
}

fn rule(rule: &Element) -> Result<Value, ObjectError> {
    rule.only(&["Action", "Condition"])?;
    let action = rule.child("Action").ok_or_else(|| rule.unexpected("no Action"))?;
    let [kind] = action.children.as_slice() else { return Err(action.unexpected("not one action")) };
    let mut out = json!({ "action": { "type": kind.name }, "condition": condition(rule)? });
    if kind.name == "SetStorageClass" {
        out["action"]["storageClass"] = json!(kind.text());
    }
    Ok(out)
}

fn condition(rule: &Element) -> Result<Value, ObjectError> {
    let mut out = Map::new();
    for one in rule.child("Condition").iter().flat_map(|condition| &condition.children) {
        let known = CONDITIONS.iter().find(|(element, ..)| *element == one.name);
        let (_, field, form) = known.ok_or_else(|| rule.unexpected(&one.name))?;
        let text = one.text();
        let value = match form {
            Form::Number => json!(text.parse::<u64>().map_err(|_| one.unexpected(text))?),
            Form::Flag => json!(text.parse::<bool>().map_err(|_| one.unexpected(text))?),
            Form::Text => json!(text),
            Form::Texts => {
                let texts = out.entry(*field).or_insert_with(|| json!([]));
                texts.as_array_mut().expect("it was made a list").push(json!(text));
                continue;
            }
        };
        out.insert((*field).to_owned(), value);
    }
    Ok(out.into())
}

/// Writes a rule.
pub(super) fn put(writer: &mut Writer, rule: &Rule) {
    writer.open("Rule");
    writer.open("Action");
    let class = rule.action.storage_class.map_or("", |class| class.name());
    match rule.action.kind.as_deref() {
        Some("SetStorageClass") => writer.text("SetStorageClass", class),
        Some("AbortIncompleteMultipartUpload") => writer.text("AbortIncompleteMultipartUpload", ""),
        _ => writer.text("Delete", ""),
    }
    writer.close();
    writer.open("Condition");
    let fields = serde_json::to_value(&rule.condition).expect("conditions can be written as JSON");
    for (element, field, _) in CONDITIONS {
        match &fields[field] {
            Value::Null => {}
            Value::Array(texts) => texts.iter().for_each(|text| writer.text(element, &shown(text))),
            value => writer.text(element, &shown(value)),
        }
    }
    writer.close();
    writer.close();
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
