//! Access control lists of buckets and objects.
//!
//! A list says which *entity* has which *role*. Most objects have one of the *predefined* lists, usually the one
//! that their bucket gives to new objects. It is stored by its name, because a thousand spelled-out lists would make
//! a page of a listing several times as long. A list that a client changed is spelled out.

mod json;

use serde::{Deserialize, Serialize};

use super::error::ObjectError;
use super::limits::ACL_ENTRIES_MAX;
use super::project::project_number;

pub use self::json::AclParent;

/// What an entity may do. The order of the variants is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Role {
    /// Read the object; list the bucket.
    Reader,
    /// Read and write the objects of the bucket. Not for objects.
    Writer,
    /// Also read and change the list.
    Owner,
}

impl Role {
    /// The role as clients write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reader => "READER",
            Self::Writer => "WRITER",
            Self::Owner => "OWNER",
        }
    }

    /// Reads a role as clients write it. `for_bucket` tells whether the list is for a bucket itself rather than for
    /// objects.
    pub fn parse(text: &str, for_bucket: bool) -> Result<Self, ObjectError> {
        match text {
            "READER" => Ok(Self::Reader),
            "WRITER" if for_bucket => Ok(Self::Writer),
            "OWNER" => Ok(Self::Owner),
            _ if for_bucket => Err(ObjectError::invalid("role", text, "Use READER, WRITER or OWNER.")),
            _ => Err(ObjectError::invalid("role", text, "Use READER or OWNER.")),
        }
    }
}

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AclEntry {
    /// `user-EMAIL`, `group-EMAIL`, `domain-NAME`, `project-owners-NUMBER` (or `editors`, `viewers`), `allUsers` or
    /// `allAuthenticatedUsers`.
    pub entity: String,
    /// What it may do.
    pub role: Role,
}

impl AclEntry {
    /// A line of a list. Fails if the entity does not have one of the known forms.
    pub fn new(entity: &str, role: Role) -> Result<Self, ObjectError> {
        check_entity(entity)?;
        Ok(Self { entity: with_project_number(entity), role })
    }

    fn of(entity: impl Into<String>, role: Role) -> Self {
        Self { entity: entity.into(), role }
    }

    /// Whether the entity is everybody, which public access prevention forbids.
    pub fn is_public(&self) -> bool {
        matches!(self.entity.as_str(), "allUsers" | "allAuthenticatedUsers")
    }
}

/// The entity as lists have it: a team of a project that is named by its id is named by its number, as the real service
/// translates it.
pub fn with_project_number(entity: &str) -> String {
    let team = entity.strip_prefix("project-").and_then(|rest| rest.split_once('-'));
    match team {
        Some((team @ ("owners" | "editors" | "viewers"), project)) => {
            format!("project-{team}-{}", project_number(project))
        }
        _ => entity.to_owned(),
    }
}

/// Checks that an entity has one of the known forms.
fn check_entity(entity: &str) -> Result<(), ObjectError> {
    let is_project = |rest: &str| {
        rest.split_once('-').is_some_and(|(team, number)| {
            matches!(team, "owners" | "editors" | "viewers") && !number.is_empty()
        })
    };
    let known = match entity.split_once('-') {
        Some(("user" | "group" | "domain", rest)) => !rest.is_empty(),
        Some(("project", rest)) => is_project(rest),
        _ => matches!(entity, "allUsers" | "allAuthenticatedUsers"),
    };
    match known {
        true => Ok(()),
        false => Err(ObjectError::invalid(
            "entity",
            entity,
            "Use user-EMAIL, group-EMAIL, domain-NAME, project-TEAM-NUMBER, allUsers or allAuthenticatedUsers.",
        )),
    }
}

/// The lists that have names. The order of the variants is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::EnumString)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum Predefined {
    /// The owner, and everybody with an account may read.
    AuthenticatedRead,
    /// The owner, and the owners of the bucket's project. For objects.
    BucketOwnerFullControl,
    /// The owner; the owners of the bucket's project may read. For objects.
    BucketOwnerRead,
    /// The owner alone.
    Private,
    /// The owner, and the teams of the project by their roles.
    ProjectPrivate,
    /// The owner, and everybody may read.
    PublicRead,
    /// The owner, and everybody may read and write. For buckets.
    PublicReadWrite,
}

impl Predefined {
    /// Reads the value of the parameter `parameter`. `for_bucket` tells whether the list is for a bucket itself
    /// rather than for objects.
    pub fn parse(parameter: &str, text: &str, for_bucket: bool) -> Result<Self, ObjectError> {
        let allowed = |list: &Self| match list {
            Self::PublicReadWrite => for_bucket,
            Self::BucketOwnerFullControl | Self::BucketOwnerRead => !for_bucket,
            _ => true,
        };
        let hint = "Use private, projectPrivate, publicRead or authenticatedRead.";
        text.parse().ok().filter(allowed).ok_or_else(|| ObjectError::invalid(parameter, text, hint))
    }

    /// Reads the value of `x-goog-acl`, where the words are joined by `-`: `bucket-owner-read`.
    pub fn parse_header(text: &str, for_bucket: bool) -> Result<Self, ObjectError> {
        let mut words = text.split('-');
        let mut camel = words.next().unwrap_or_default().to_owned();
        for word in words {
            let mut letters = word.chars();
            camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            camel.push_str(letters.as_str());
        }
        Self::parse("x-goog-acl", &camel, for_bucket).map_err(|_| {
            ObjectError::invalid("x-goog-acl", text, "Use private, public-read or another name.")
        })
    }

    /// The lines of the list beside the owner's.
    fn others(self, project_number: u64) -> Vec<AclEntry> {
        let team = |team, role| AclEntry::of(format!("project-{team}-{project_number}"), role);
        match self {
            Self::Private => Vec::new(),
            Self::AuthenticatedRead => vec![AclEntry::of("allAuthenticatedUsers", Role::Reader)],
            Self::PublicRead => vec![AclEntry::of("allUsers", Role::Reader)],
            Self::PublicReadWrite => vec![AclEntry::of("allUsers", Role::Writer)],
            Self::BucketOwnerFullControl => vec![team("owners", Role::Owner)],
            Self::BucketOwnerRead => vec![team("owners", Role::Reader)],
            Self::ProjectPrivate => {
                vec![team("owners", Role::Owner), team("editors", Role::Owner), team("viewers", Role::Reader)]
            }
        }
    }
}

/// A list: by its name, or spelled out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Acl {
    /// A list that has a name, and the owner as [`Role::Owner`].
    Predefined(Predefined),
    /// All lines, the owner's too if there is one.
    Listed(Vec<AclEntry>),
}

impl Default for Acl {
    fn default() -> Self {
        Self::Predefined(Predefined::ProjectPrivate)
    }
}

impl Acl {
    /// All lines. `owner` is the entity that owns the object or bucket; a list for new objects has none.
    pub fn entries(&self, project_number: u64, owner: Option<&str>) -> Vec<AclEntry> {
        let named = match self {
            Self::Listed(entries) => return entries.clone(),
            Self::Predefined(named) => named.others(project_number),
        };
        let own = owner.filter(|owner| named.iter().all(|entry| entry.entity != *owner));
        let own = own.map(|owner| AclEntry::of(owner, Role::Owner));
        // Clients compare the order too: the teams of the project stand before the owner, and all others behind.
        match self {
            Self::Predefined(Predefined::ProjectPrivate) => named.into_iter().chain(own).collect(),
            _ => own.into_iter().chain(named).collect(),
        }
    }

    /// Whether everybody is among the entities.
    pub fn is_public(&self) -> bool {
        self.entries(0, None).iter().any(AclEntry::is_public)
    }

    /// The list that a client spelled out: lines with `entity` and `role`. Of several lines of one entity the
    /// strongest role counts. `for_bucket` tells whether the list is for a bucket itself rather than for objects.
    pub fn from_json(value: &serde_json::Value, for_bucket: bool) -> Result<Self, ObjectError> {
        let hint = "Write a list of objects with entity and role.";
        let lines = value.as_array().ok_or_else(|| ObjectError::invalid("acl", value, hint))?;
        let mut entries: Vec<AclEntry> = Vec::new();
        for line in lines {
            let text = |field| line.get(field).and_then(|text| text.as_str());
            let entity = text("entity").ok_or_else(|| ObjectError::required("entity"))?;
            let role = Role::parse(text("role").ok_or_else(|| ObjectError::required("role"))?, for_bucket)?;
            put(&mut entries, AclEntry::new(entity, role)?, Role::max);
        }
        check_length(&entries)?;
        Ok(Self::Listed(entries))
    }

    /// The list with `entry` in the place of an older line of the same entity.
    pub fn with(
        &self,
        entry: AclEntry,
        project_number: u64,
        owner: Option<&str>,
    ) -> Result<Self, ObjectError> {
        let mut entries = self.entries(project_number, owner);
        put(&mut entries, entry, |_, new| new);
        check_length(&entries)?;
        Ok(Self::Listed(entries))
    }

    /// The list without the line of `entity`; `None` if it has none.
    pub fn without(&self, entity: &str, project_number: u64, owner: Option<&str>) -> Option<Self> {
        let mut entries = self.entries(project_number, owner);
        let before = entries.len();
        entries.retain(|entry| entry.entity != entity);
        (entries.len() < before).then_some(Self::Listed(entries))
    }
}

/// Puts a line; if its entity has one already, `choose` decides from the old and the new role.
fn put(entries: &mut Vec<AclEntry>, entry: AclEntry, choose: impl Fn(Role, Role) -> Role) {
    match entries.iter_mut().find(|old| old.entity == entry.entity) {
        Some(old) => old.role = choose(old.role, entry.role),
        None => entries.push(entry),
    }
}

fn check_length(entries: &[AclEntry]) -> Result<(), ObjectError> {
    match entries.len() > ACL_ENTRIES_MAX {
        true => Err(ObjectError::invalid("acl", entries.len(), "A list has at most 100 entries.")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_list_has_its_owner_once() {
        let acl = Acl::default();
        let entities = |entries: Vec<AclEntry>| -> Vec<String> {
            entries.into_iter().map(|entry| format!("{} {}", entry.entity, entry.role.name())).collect()
        };
        assert_eq!(
            entities(acl.entries(7, Some("user-a@b"))),
            [
                "project-owners-7 OWNER",
                "project-editors-7 OWNER",
                "project-viewers-7 READER",
                "user-a@b OWNER"
            ]
        );
        assert_eq!(entities(acl.entries(7, Some("project-owners-7"))).len(), 3);
        assert_eq!(entities(Acl::Predefined(Predefined::Private).entries(7, Some("user-a@b"))).len(), 1);
        assert_eq!(
            entities(Acl::Predefined(Predefined::PublicRead).entries(7, Some("user-a@b"))),
            ["user-a@b OWNER", "allUsers READER"]
        );
    }

    #[test]
    fn lines_are_put_and_removed() {
        let acl = Acl::Predefined(Predefined::Private);
        let public = AclEntry::new("allUsers", Role::Reader).expect("a known entity");
        let with = acl.with(public, 7, Some("user-a@b")).expect("two lines");
        assert!(with.is_public() && !acl.is_public());
        assert_eq!(with.entries(7, None).len(), 2);
        let without = with.without("allUsers", 7, None).expect("it was there");
        assert_eq!(without.without("allUsers", 7, None), None);
        let team = |project: &str| {
            let line = AclEntry::new(&format!("project-viewers-{project}"), Role::Reader);
            line.expect("a known entity").entity
        };
        assert_eq!(team("17"), "project-viewers-17");
        assert_eq!(team("my-project"), format!("project-viewers-{}", project_number("my-project")));
        for entity in ["", "user-", "project-x-1", "everybody", "project-owners-"] {
            assert!(AclEntry::new(entity, Role::Reader).is_err(), "{entity}");
        }
    }

    #[test]
    fn names_of_lists_are_read_in_both_forms() {
        let parse = |text, for_bucket| Predefined::parse("predefinedAcl", text, for_bucket).ok();
        assert_eq!(parse("projectPrivate", true), Some(Predefined::ProjectPrivate));
        assert_eq!(parse("publicReadWrite", false), None);
        assert_eq!(parse("bucketOwnerRead", true), None);
        let header = Predefined::parse_header("bucket-owner-full-control", false);
        assert_eq!(header, Ok(Predefined::BucketOwnerFullControl));
        assert!(Predefined::parse_header("friends", false).is_err());
    }
}
