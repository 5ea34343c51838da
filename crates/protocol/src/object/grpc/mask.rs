//! Masks: which fields of a resource an update changes, and which of them a reply has.
//!
//! A path names a field, `labels`, or a field in it, `iam_config.public_access_prevention`, or one member of a map,
//! `labels.team`. What a path names is replaced by what the message has there, and removed if the message has nothing there. So a
//! path becomes a part of a patch of the JSON API; a whole field with members of its own is also
//! listed as one that is replaced, since a patch would merge its members.

use serde_json::{Map, Value};

use super::messages::FieldMask;
use crate::object::error::ObjectError;

/// A mask as the JSON API understands it.
#[derive(Debug, PartialEq)]
pub(super) enum Masked {
    /// `*`: the message is the whole resource.
    All,
    /// A patch, and the members of it that are replaced as wholes.
    Some(Map<String, Value>, Vec<String>),
}

/// The fields of a resource that has `members`, as `mask` names them.
pub(super) fn masked(mask: Option<&FieldMask>, members: &Map<String, Value>) -> Result<Masked, ObjectError> {
    let paths = mask.map_or(&[][..], |mask| &mask.paths);
    if paths.is_empty() {
        return Err(ObjectError::required("update_mask"));
    }
    if paths.iter().any(|path| path == "*") {
        return Ok(Masked::All);
    }
    let (mut patch, mut whole) = (Map::new(), Vec::new());
    for path in paths {
        let steps = json_path(path).ok_or_else(|| {
            ObjectError::invalid("update_mask", path, "Name fields of the resource, as labels or labels.KEY.")
        })?;
        let mut found = members.get(&steps[0]);
        for step in &steps[1..] {
            found = found.and_then(|value| value.get(step));
        }
        put(&mut patch, &steps, found.cloned().unwrap_or(Value::Null));
        if let [field] = &steps[..] {
            whole.push(field.clone());
        }
    }
    Ok(Masked::Some(patch, whole))
}

fn put(into: &mut Map<String, Value>, steps: &[String], value: Value) {
    match steps {
        [] => {}
        [last] => {
            into.insert(last.clone(), value);
        }
        [first, rest @ ..] => {
            let next = into.entry(first.as_str()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(next) = next {
                put(next, rest, value);
            }
        }
    }
}

/// The names in JSON of the fields of a path.
fn json_path(path: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let fields: Vec<&str> = match path.split_once('.') {
        // The members of these are the client's own names, which may have dots.
        Some((map @ ("labels" | "metadata"), member)) => vec![map, member],
        _ => path.split('.').collect(),
    };
    for (at, field) in fields.iter().enumerate() {
        if field.is_empty() {
            return None;
        }
        let own = at > 0 && matches!(fields[at - 1], "labels" | "metadata" | "custom");
        steps.push(if own {
            (*field).to_owned()
        } else {
            json_name(field, at.checked_sub(1).map(|up| fields[up]))
        });
    }
    Some(steps)
}

/// The name in JSON of a `field` that lies in the field `outer`.
fn json_name(field: &str, outer: Option<&str>) -> String {
    match (outer, field) {
        (None, "iam_config") => "iamConfiguration".to_owned(),
        (None, "kms_key") => "kmsKeyName".to_owned(),
        (None, "create_time") => "timeCreated".to_owned(),
        (None, "update_time") => "updated".to_owned(),
        (None, "delete_time") => "timeDeleted".to_owned(),
        (None, "finalize_time") => "timeFinalized".to_owned(),
        (None, "update_storage_class_time") => "timeStorageClassUpdated".to_owned(),
        (None, "retention_expire_time") => "retentionExpirationTime".to_owned(),
        (Some("encryption"), "default_kms_key") => "defaultKmsKeyName".to_owned(),
        (Some("retention_policy"), "retention_duration") => "retentionPeriod".to_owned(),
        (Some("soft_delete_policy"), "retention_duration") => "retentionDurationSeconds".to_owned(),
        _ => camel(field),
    }
}

fn camel(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut upper = false;
    for c in field.chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                out.extend(c.to_uppercase());
                upper = false;
            }
            c => out.push(c),
        }
    }
    out
}

/// Which fields a reply has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Names in JSON of the members that it has, and paths of single checksums; `None` for all.
    members: Option<Vec<String>>,
    /// Whether it has lists and owners.
    in_full: bool,
}

impl Seen {
    /// Reads a mask. Without one a reply has everything but access control lists and owners, with `*` also those.
    pub(super) fn of(mask: Option<&FieldMask>) -> Self {
        let Some(mask) = mask.filter(|mask| !mask.paths.is_empty()) else { return Self::default() };
        let members: Vec<String> = mask.paths.iter().map(|path| seen_name(path)).collect();
        if members.iter().any(|member| member == "*") {
            return Self { members: None, in_full: true };
        }
        let in_full =
            members.iter().any(|name| matches!(name.as_str(), "acl" | "defaultObjectAcl" | "owner"));
        Self { members: Some(members), in_full }
    }

    /// The `projection` of the JSON API that has these fields.
    pub(super) fn projection(&self) -> &'static str {
        if self.in_full { "full" } else { "noAcl" }
    }

    /// Removes what is not asked for.
    pub(super) fn prune(&self, resource: &mut Value) {
        if let Value::Object(found) = resource {
            found.retain(|name, _| match name.as_str() {
                "crc32c" => self.has("checksums") || self.has("checksums.crc32c"),
                "md5Hash" => self.has("checksums") || self.has("checksums.md5_hash"),
                "projectNumber" => self.has("project"),
                name => self.has(name),
            });
        }
    }

    /// Whether it has a member.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members.as_ref().is_none_or(|members| members.iter().any(|member| member == name))
    }
}

/// What a path asks for: a member, by its name in JSON. The checksums are one field in messages and two members in JSON, so the
/// path of one of them stays whole.
fn seen_name(path: &str) -> String {
    match path.split_once('.') {
        Some(("checksums", _)) => path.to_owned(),
        Some((field, _)) => json_name(field, None),
        None => json_name(path, None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mask(paths: &[&str]) -> FieldMask {
        FieldMask { paths: paths.iter().map(|path| (*path).to_owned()).collect() }
    }

    #[test]
    fn a_mask_becomes_a_patch() {
        let resource = json!({"labels": {"a": "1", "b.c": "2"}, "iamConfiguration": {"publicAccessPrevention": "enforced"}});
        let members = resource.as_object().expect("an object");
        let paths =
            ["labels.b.c", "labels.x", "iam_config.public_access_prevention", "website", "storage_class"];
        let expected = json!({
            "labels": {"b.c": "2", "x": null},
            "iamConfiguration": {"publicAccessPrevention": "enforced"},
            "website": null,
            "storageClass": null,
        });
        match masked(Some(&mask(&paths)), members) {
            Ok(Masked::Some(patch, whole)) => {
                assert_eq!(Value::Object(patch), expected);
                assert_eq!(whole, ["website", "storageClass"]);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(masked(Some(&mask(&["*"])), members), Ok(Masked::All));
        assert!(masked(None, members).is_err());
        assert!(masked(Some(&mask(&["labels."])), members).is_err());
    }

    #[test]
    fn a_reply_has_the_fields_of_its_mask() {
        let resource = json!({"name": "o", "size": "1", "crc32c": "x", "md5Hash": "y", "updated": "t"});
        for (paths, expected) in [
            (&["name", "update_time"][..], json!({"name": "o", "updated": "t"})),
            (&["checksums.crc32c"][..], json!({"crc32c": "x"})),
            (&["checksums.md5_hash"][..], json!({"md5Hash": "y"})),
            (&["checksums"][..], json!({"crc32c": "x", "md5Hash": "y"})),
        ] {
            let mut seen = resource.clone();
            Seen::of(Some(&mask(paths))).prune(&mut seen);
            assert_eq!(seen, expected, "{paths:?}");
        }
        assert_eq!(Seen::of(Some(&mask(&["*"]))).projection(), "full");
        assert_eq!(Seen::of(None).projection(), "noAcl");
    }
}
