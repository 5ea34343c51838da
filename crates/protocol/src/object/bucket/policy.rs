//! The IAM policy of a bucket: which members have which roles.
//!
//! A policy is replaced as a whole. Its etag says which policy a client has read, so that two clients that change it at
//! the same time do not undo each other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::object::error::{ErrorKind, ObjectError};
use crate::object::limits::POLICY_MEMBERS_MAX;
use crate::object::merge::typed;
use crate::object::policy::expression::Expression;

/// When a binding counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Expr {
    /// In the part of the Common Expression Language that [`expression`](crate::object::policy::expression) reads.
    pub expression: String,
    /// A short text for people.
    pub title: Option<String>,
    /// A longer text for people.
    pub description: Option<String>,
    /// Where the expression comes from.
    pub location: Option<String>,
}

/// Members that have a role.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Binding {
    /// For example `roles/storage.objectViewer`.
    pub role: String,
    /// For example `allUsers` or `serviceAccount:a@example.com`.
    pub members: Vec<String>,
    /// When it counts.
    pub condition: Option<Expr>,
}

/// A bucket's policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Policy {
    /// The form: 1, or 3 if there are conditions.
    pub version: u32,
    /// How often it was set. The etag is made of it.
    pub changes: u64,
    /// Its lines.
    pub bindings: Vec<Binding>,
}

/// What a client sends as a policy.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Sent {
    version: Option<u32>,
    etag: Option<String>,
    pub(super) bindings: Vec<Binding>,
}

impl Policy {
    /// The policy of a new bucket: the teams of its project have the roles that access control lists had given them.
    pub fn of_project(project: &str) -> Self {
        let binding = |role: &str, teams: &[&str]| Binding {
            role: format!("roles/storage.{role}"),
            members: teams.iter().map(|team| format!("{team}:{project}")).collect(),
            condition: None,
        };
        let bindings = vec![
            binding("legacyBucketOwner", &["projectEditor", "projectOwner"]),
            binding("legacyBucketReader", &["projectViewer"]),
        ];
        Self { version: 1, changes: 1, bindings }
    }

    /// The policy of something to which nobody gave one.
    pub fn empty() -> Self {
        Self { version: 1, changes: 0, bindings: Vec::new() }
    }

    /// The policy's entity tag.
    pub fn etag(&self) -> String {
        STANDARD.encode(self.changes.to_be_bytes())
    }

    /// The policy that a client sent, in the place of this one. `is_uniform` tells whether the bucket has uniform
    /// access, and `forbids_public` whether it prevents public access.
    pub fn replaced(
        &self,
        body: Map<String, Value>,
        is_uniform: bool,
        forbids_public: bool,
    ) -> Result<Self, ObjectError> {
        let sent: Sent = typed(body)?;
        if sent.etag.as_ref().is_some_and(|etag| !etag.is_empty() && *etag != self.etag()) {
            let message = "The policy was changed since it was read: its etag is another one. Read it again.";
            return Err(ObjectError::new(ErrorKind::ConditionNotMet, message).at("etag"));
        }
        let version = sent.version.unwrap_or(1).max(1);
        if !matches!(version, 1 | 3) {
            return Err(ObjectError::invalid("version", version, "Policies have version 1 or 3."));
        }
        if sent.bindings.iter().any(|binding| binding.condition.is_some()) {
            if !is_uniform {
                let message = "To set IAM conditions, enable uniform bucket-level access on the bucket.";
                return Err(ObjectError::new(ErrorKind::BucketRule, message));
            }
            if version < 3 {
                let hint = "A policy with conditions has a version of at least 3.";
                return Err(ObjectError::invalid("version", version, hint));
            }
        }
        for condition in sent.bindings.iter().filter_map(|binding| binding.condition.as_ref()) {
            Expression::parse(&condition.expression).map_err(|error| {
                ObjectError::invalid("bindings.condition", &condition.expression, &format!("{error}."))
            })?;
        }
        check_members(&sent.bindings, forbids_public)?;
        Ok(Self { version, changes: self.changes + 1, bindings: sent.bindings })
    }

    /// Whether a member has a role without conditions.
    pub fn grants(&self, member: &str, role: &str) -> bool {
        let fits = |binding: &&Binding| binding.role == role && binding.condition.is_none();
        self.bindings.iter().filter(fits).any(|binding| binding.members.iter().any(|one| one == member))
    }

    /// Whether everybody has some role.
    pub fn is_public(&self) -> bool {
        self.bindings.iter().flat_map(|binding| &binding.members).any(|member| is_public(member))
    }

    /// The policy as a reply. `resource` is its `resourceId`, for example `projects/_/buckets/b`.
    pub fn json(&self, resource: &str) -> Value {
        let binding = |binding: &Binding| {
            let mut line = json!({"role": binding.role, "members": binding.members});
            if let Some(condition) = &binding.condition {
                let mut condition = serde_json::to_value(condition).expect("texts can be written as JSON");
                let members = condition.as_object_mut().expect("a struct is an object");
                members.retain(|_, value| !value.is_null());
                line["condition"] = condition;
            }
            line
        };
        json!({
            "kind": "storage#policy",
            "resourceId": resource,
            "version": self.version,
            "etag": self.etag(),
            "bindings": self.bindings.iter().map(binding).collect::<Vec<_>>(),
        })
    }
}

fn is_public(member: &str) -> bool {
    matches!(member, "allUsers" | "allAuthenticatedUsers")
}

fn check_members(bindings: &[Binding], forbids_public: bool) -> Result<(), ObjectError> {
    let members = || bindings.iter().flat_map(|binding| &binding.members);
    if members().count() > POLICY_MEMBERS_MAX {
        return Err(ObjectError::invalid(
            "bindings",
            members().count(),
            "A policy has at most 1500 members.",
        ));
    }
    for binding in bindings {
        let is_known = ["roles/", "projects/", "organizations/"];
        if !is_known.iter().any(|start| binding.role.starts_with(start)) {
            let hint = "Roles begin with roles/, projects/ or organizations/.";
            return Err(ObjectError::invalid("bindings.role", &binding.role, hint));
        }
    }
    for member in members() {
        if !is_public(member) && !member.contains(':') {
            let hint = "Members are allUsers, allAuthenticatedUsers, or a sort and a name joined by ':'.";
            return Err(ObjectError::invalid("bindings.members", member, hint));
        }
        if forbids_public && is_public(member) {
            let message = "The member bindings allUsers and allAuthenticatedUsers are not allowed since public \
                           access prevention is enforced.";
            return Err(ObjectError::new(ErrorKind::BucketRule, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(policy: &Policy, body: Value, is_uniform: bool) -> Result<Policy, ObjectError> {
        policy.replaced(body.as_object().expect("an object").clone(), is_uniform, false)
    }

    #[test]
    fn a_policy_replaces_only_the_one_that_was_read() {
        let first = Policy::of_project("p");
        let body =
            |etag: &str| json!({"etag": etag, "bindings": [{"role": "roles/a", "members": ["allUsers"]}]});
        let second = set(&first, body(&first.etag()), false).expect("the etag is right");
        assert!(second.is_public() && second.grants("allUsers", "roles/a"));
        let stale = set(&second, body(&first.etag()), false).expect_err("the etag is old");
        assert_eq!(stale.kind.status(), 412);
        let forbidden = second.replaced(body("").as_object().expect("an object").clone(), false, true);
        assert_eq!(forbidden.expect_err("public access is prevented").kind.status(), 412);
    }

    #[test]
    fn conditions_need_uniform_access_and_version_3() {
        let policy = Policy::of_project("p");
        let condition = json!({"title": "always", "expression": "true"});
        let binding = json!({"role": "roles/a", "members": ["user:a@b"], "condition": condition});
        let body = |version: u32| json!({"version": version, "bindings": [binding]});
        let error = set(&policy, body(3), false).expect_err("not uniform");
        assert_eq!(error.kind.status(), 412);
        assert!(error.message.contains("enable uniform bucket-level access"));
        let error = set(&policy, body(1), true).expect_err("version 1");
        assert_eq!(error.kind.status(), 400);
        assert!(error.message.contains("at least 3"));
        let mut unknown = body(3);
        unknown["bindings"][0]["condition"]["expression"] = json!("resource.size == '5'");
        let error = set(&policy, unknown, true).expect_err("not understood");
        assert_eq!(error.kind.status(), 400);
        assert!(error.message.contains("at character 10"), "{}", error.message);
        let set = set(&policy, body(3), true).expect("a policy");
        assert!(!set.grants("user:a@b", "roles/a"));
        assert_eq!(set.json("projects/_/buckets/b")["bindings"][0]["condition"], condition);
    }

    #[test]
    fn wrong_members_and_roles_are_refused() {
        for binding in [
            json!({"role": "viewer", "members": ["allUsers"]}),
            json!({"role": "roles/a", "members": ["everybody"]}),
            json!({"role": 5}),
        ] {
            let error = set(&Policy::of_project("p"), json!({"bindings": [binding]}), false);
            assert_eq!(error.expect_err("a wrong binding").kind.status(), 400, "{binding}");
        }
    }
}
