//! Access control lists as documents.
//!
//! ```xml
//! <AccessControlList>
//!   <Owner><ID>user-a@example.com</ID></Owner>
//!   <Entries>
//!     <Entry><Scope type="UserByEmail"><EmailAddress>a@example.com</EmailAddress></Scope>
//!            <Permission>FULL_CONTROL</Permission></Entry>
//!   </Entries>
//! </AccessControlList>
//! ```
//!
//! The lists of the JSON API and of the XML API are the same: `FULL_CONTROL` is `OWNER`, and a scope is an entity. Accounts and
//! groups have no ids here, so an id is the rest of the entity: that of `project-owners-7` is itself.

use serde_json::{Value, json};

use super::tree::Element;
use super::writer::Writer;
use crate::object::acl::{AclEntry, Role};
use crate::object::error::ObjectError;

/// Scopes with a value: the type, the element of the value, and how the entity begins.
const SCOPES: [(&str, &str, &str); 5] = [
    ("UserByEmail", "EmailAddress", "user-"),
    ("GroupByEmail", "EmailAddress", "group-"),
    ("GroupByDomain", "Domain", "domain-"),
    ("UserById", "ID", "user-"),
    ("GroupById", "ID", "group-"),
];
/// Scopes without a value, and their entities.
const EVERYBODY: [(&str, &str); 2] =
    [("AllUsers", "allUsers"), ("AllAuthenticatedUsers", "allAuthenticatedUsers")];
/// How the entities of a project's teams begin. Their scope is a group by its id.
const TEAM: &str = "project-";

/// The document of a list. A list for new objects has no owner.
pub fn rendered(owner: Option<&str>, entries: &[AclEntry]) -> String {
    let mut writer = Writer::new("AccessControlList", "");
    if let Some(owner) = owner {
        writer.open("Owner");
        writer.text("ID", owner);
        writer.close();
    }
    writer.open("Entries");
    for entry in entries {
        writer.open("Entry");
        put_scope(&mut writer, &entry.entity);
        writer.text("Permission", permission(entry.role));
        writer.close();
    }
    writer.finish()
}

fn put_scope(writer: &mut Writer, entity: &str) {
    if let Some((sort, _)) = EVERYBODY.iter().find(|(_, known)| *known == entity) {
        writer.open_sort("Scope", sort);
        writer.close();
        return;
    }
    let known =
        SCOPES.iter().find_map(|(sort, element, begin)| Some((*sort, *element, entity.strip_prefix(begin)?)));
    let (sort, element, value) = known.unwrap_or(("GroupById", "ID", entity));
    writer.open_sort("Scope", sort);
    writer.text(element, value);
    writer.close();
}

/// Reads a document as the value of `acl` or `defaultObjectAcl` in the JSON API. `for_bucket` tells whether the list is for
/// a bucket itself rather than for objects, which have no permission to write.
///
/// # Errors
/// `ParseError` (`MalformedXML`) for another document, a scope or a permission that is not known.
pub fn read(body: &[u8], for_bucket: bool) -> Result<Value, ObjectError> {
    let root = Element::parse(body, "AccessControlList")?;
    root.only(&["Owner", "Entries"])?;
    let entries = root.child("Entries").map(|entries| entries.children.as_slice()).unwrap_or_default();
    let lines = entries.iter().map(|entry| {
        entry.only(&["Scope", "Permission"])?;
        let scope = entry.child("Scope").ok_or_else(|| entry.unexpected("no Scope"))?;
        let text = entry.text_of("Permission").unwrap_or_default();
        let role = role(text).filter(|role| for_bucket || *role != Role::Writer);
        let role = role.ok_or_else(|| entry.unexpected(text))?;
        Ok(json!({"entity": entity(scope)?, "role": role.name()}))
    });
    lines.collect::<Result<Vec<Value>, ObjectError>>().map(Value::from)
}

fn entity(scope: &Element) -> Result<String, ObjectError> {
    if let Some((_, entity)) = EVERYBODY.iter().find(|(sort, _)| *sort == scope.sort) {
        return Ok((*entity).to_owned());
    }
    let known = SCOPES.iter().find(|(sort, ..)| sort.eq_ignore_ascii_case(&scope.sort));
    let (_, element, begin) = known.ok_or_else(|| scope.unexpected(&scope.sort))?;
    let value = scope.text_of(element).ok_or_else(|| scope.unexpected("no value"))?;
    Ok(match value.starts_with(TEAM) {
        true => value.to_owned(),
        false => format!("{begin}{value}"),
    })
}

const fn permission(role: Role) -> &'static str {
    match role {
        Role::Reader => "READ",
        Role::Writer => "WRITE",
        Role::Owner => "FULL_CONTROL",
    }
}

fn role(permission: &str) -> Option<Role> {
    [Role::Reader, Role::Writer, Role::Owner].into_iter().find(|role| self::permission(*role) == permission)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_was_written_is_read_back() {
        let lines = [
            ("user-a@b", Role::Owner),
            ("group-c@d", Role::Reader),
            ("domain-e", Role::Writer),
            ("project-owners-7", Role::Owner),
            ("allUsers", Role::Reader),
            ("allAuthenticatedUsers", Role::Reader),
        ];
        let entries: Vec<AclEntry> = lines
            .iter()
            .map(|(entity, role)| AclEntry::new(entity, *role).expect("a known entity"))
            .collect();
        let document = rendered(Some("user-a@b"), &entries);
        assert!(
            document.contains("<Scope type=\"UserByEmail\"><EmailAddress>a@b</EmailAddress></Scope>"),
            "{document}"
        );
        assert!(
            document.contains("<Scope type=\"AllUsers\"></Scope><Permission>READ</Permission>"),
            "{document}"
        );
        let list = read(document.as_bytes(), true).expect("a list");
        let expected: Vec<Value> =
            lines.iter().map(|(entity, role)| json!({"entity": entity, "role": role.name()})).collect();
        assert_eq!(list, Value::from(expected));
        assert!(read(document.as_bytes(), false).is_err(), "an object has no writers");
    }

    #[test]
    fn unknown_scopes_and_permissions_are_refused() {
        let entry = |scope: &str, permission: &str| {
            format!(
                "<AccessControlList><Entries><Entry>{scope}<Permission>{permission}</Permission></Entry></Entries>\
                 </AccessControlList>"
            )
        };
        for (scope, permission) in [
            ("<Scope type=\"AllUsers\"/>", "ALL"),
            ("<Scope type=\"Nobody\"/>", "READ"),
            ("<Scope type=\"UserByEmail\"/>", "READ"),
            ("", "READ"),
        ] {
            assert!(read(entry(scope, permission).as_bytes(), true).is_err(), "{scope} {permission}");
        }
    }
}
