//! JSON bodies: how a patch is merged, and how a merged object becomes a type.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::{ErrorKind, ObjectError};

/// Merges `patch` into `target` (RFC 7396): members of objects one by one, `null` removes, all else replaces.
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { unreachable!("it was made an object above") };
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.remove(name);
            }
            _ => merge_patch(target.entry(name.as_str()).or_insert(Value::Null), value),
        }
    }
}

/// An object as a type whose fields all have defaults. The error names the member that does not fit.
pub fn typed<T: DeserializeOwned>(members: Map<String, Value>) -> Result<T, ObjectError> {
    let whole = match serde_json::from_value(Value::Object(members.clone())) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    for (name, value) in members {
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        if let Err(error) = serde_json::from_value::<T>(Value::Object(alone)) {
            return Err(ObjectError::invalid(&name, value, &format!("{error}.")));
        }
    }
    Err(ObjectError::new(ErrorKind::Invalid, whole.to_string()))
}

/// The body of a request: a JSON object. An empty body is an object without members.
pub fn body_object(body: &[u8]) -> Result<Map<String, Value>, ObjectError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(ObjectError::new(ErrorKind::ParseError, "Parse Error: the body is not a JSON object.")),
        Err(error) => Err(ObjectError::new(ErrorKind::ParseError, format!("Parse Error: {error}."))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patches_merge_as_the_standard_says() {
        // The examples of RFC 7396, appendix A, that have objects.
        for (mut target, patch, merged) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            merge_patch(&mut target, &patch);
            assert_eq!(target, merged);
        }
    }

    #[test]
    fn bodies_are_objects() {
        assert_eq!(body_object(b" \n"), Ok(Map::new()));
        for body in ["[]", "{", "5", "\u{0}"] {
            assert_eq!(body_object(body.as_bytes()).map_err(|error| error.kind), Err(ErrorKind::ParseError));
        }
    }
}
