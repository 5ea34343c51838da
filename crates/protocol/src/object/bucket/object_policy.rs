//! The IAM policies of objects: their access control lists in other words.

use serde_json::{Map, Value, json};

use super::Bucket;
use super::policy::Sent;
use crate::object::acl::{AclEntry, Role};
use crate::object::error::ObjectError;
use crate::object::merge::typed;
use crate::object::project::project_number;

/// The roles of an object's policy, and the roles of its list that say the same.
const OBJECT_ROLES: [(&str, Role); 2] =
    [("roles/storage.legacyObjectOwner", Role::Owner), ("roles/storage.legacyObjectReader", Role::Reader)];

/// An object's access control list as bindings of a policy.
pub fn bindings_of_acl(entries: &[AclEntry], bucket: &Bucket) -> Value {
    let binding = |(name, role): (&str, Role)| {
        let of_role = entries.iter().filter(|entry| entry.role == role);
        let members: Vec<String> = of_role.map(|entry| member_of(&entry.entity, bucket)).collect();
        (!members.is_empty()).then(|| json!({"role": name, "members": members}))
    };
    OBJECT_ROLES.into_iter().filter_map(binding).collect()
}

/// The lines of an access control list, as the JSON API has them, that say what the bindings of an object's policy say.
///
/// # Errors
/// `Invalid` for conditions, for roles that a list cannot give, and for members that it cannot name.
pub fn acl_of_bindings(body: Map<String, Value>, bucket: &Bucket) -> Result<Value, ObjectError> {
    let sent: Sent = typed(body)?;
    let mut lines = Vec::new();
    for binding in &sent.bindings {
        let known = OBJECT_ROLES.iter().find(|(name, _)| *name == binding.role);
        let (_, role) = known.ok_or_else(|| {
            let hint =
                "A policy of an object has the roles roles/storage.legacyObjectOwner and legacyObjectReader.";
            ObjectError::invalid("bindings.role", &binding.role, hint)
        })?;
        if let Some(condition) = &binding.condition {
            let hint = "A policy of an object has no conditions.";
            return Err(ObjectError::invalid("bindings.condition", &condition.expression, hint));
        }
        for member in &binding.members {
            lines.push(json!({"entity": entity_of(member, bucket)?, "role": role.name()}));
        }
    }
    Ok(lines.into())
}

/// The teams of a project: in members of bindings, and in entities of lists.
const TEAMS: [(&str, &str); 3] =
    [("projectOwner", "owners"), ("projectEditor", "editors"), ("projectViewer", "viewers")];

fn member_of(entity: &str, bucket: &Bucket) -> String {
    match entity.split_once('-') {
        Some(("user", email)) if email.ends_with(".gserviceaccount.com") => format!("serviceAccount:{email}"),
        Some((sort @ ("user" | "group" | "domain"), name)) => format!("{sort}:{name}"),
        Some(("project", rest)) => {
            let (team, number) = rest.split_once('-').unwrap_or((rest, ""));
            let sort = TEAMS.iter().find(|(_, known)| *known == team).map_or(team, |(sort, _)| sort);
            let is_own = number == bucket.project_number.to_string();
            format!("{sort}:{}", if is_own { bucket.project.as_str() } else { number })
        }
        _ => entity.to_owned(),
    }
}

fn entity_of(member: &str, bucket: &Bucket) -> Result<String, ObjectError> {
    let Some((sort, name)) = member.split_once(':') else { return Ok(member.to_owned()) };
    if let Some((_, team)) = TEAMS.iter().find(|(known, _)| *known == sort) {
        let number = if name == bucket.project { bucket.project_number } else { project_number(name) };
        return Ok(format!("project-{team}-{number}"));
    }
    match sort {
        "user" | "serviceAccount" => Ok(format!("user-{name}")),
        "group" | "domain" => Ok(format!("{sort}-{name}")),
        _ => Err(ObjectError::invalid(
            "bindings.members",
            member,
            "A list of an object cannot name this member.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use rangehold_map::key::BucketId;

    use super::*;
    use crate::object::acl::Acl;
    use crate::object::bucket::BucketParameters;
    use crate::object::micros::Micros;

    fn bucket() -> Bucket {
        let body = json!({"name": "photos"});
        let body = body.as_object().expect("an object");
        Bucket::insert(BucketId(1), "p", body, BucketParameters::default(), Micros::new(1)).expect("a bucket")
    }

    fn read(body: Value) -> Result<Value, ObjectError> {
        acl_of_bindings(body.as_object().expect("an object").clone(), &bucket())
    }

    #[test]
    fn a_list_and_the_policy_that_says_the_same_become_each_other() {
        let entries = Acl::default().entries(bucket().project_number, Some("user-a@b"));
        let bindings = bindings_of_acl(&entries, &bucket());
        assert_eq!(bindings[0]["members"], json!(["projectOwner:p", "projectEditor:p", "user:a@b"]));
        assert_eq!(bindings[1]["members"], json!(["projectViewer:p"]));
        let lines = read(json!({ "bindings": bindings })).expect("a list");
        let list = Acl::from_json(&lines, false).expect("a list").entries(0, None);
        assert!(list.len() == entries.len() && list.iter().all(|entry| entries.contains(entry)));
    }

    #[test]
    fn what_a_list_cannot_say_is_refused() {
        let owner = "roles/storage.legacyObjectOwner";
        for binding in [
            json!({"role": "roles/storage.objectViewer", "members": ["allUsers"]}),
            json!({"role": owner, "members": ["principal:x"]}),
            json!({"role": owner, "members": ["allUsers"], "condition": {"expression": "true"}}),
        ] {
            assert_eq!(
                read(json!({ "bindings": [binding] })).expect_err("a wrong binding").kind.status(),
                400
            );
        }
    }
}
