//! Whether a sender has a permission, as the policies and lists of a bucket say. All of it is decided from what is given.
//!
//! A sender has a permission
//!
//! 1. as an owner of the bucket's project (`"owns"` in the file of `--object-keys`),
//! 2. by a binding of the bucket's policy, if its condition holds,
//! 3. by a binding of a managed folder's policy, for the names below the folder,
//! 4. by an access control list of the bucket or object, unless the bucket has uniform access.

use rangehold_map::Timestamp;
use rangehold_protocol::object::acl::{AclEntry, Role};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::bucket::policy::{Expr, Policy};
use rangehold_protocol::object::policy::expression::{Circumstances, Expression};
use rangehold_protocol::object::project::project_number;

use super::access::Principal;

/// The permission to write new objects.
pub(super) const CREATE: &str = "storage.objects.create";
/// The permission to delete objects; to replace one needs it too.
pub(super) const DELETE: &str = "storage.objects.delete";
/// The permission to read an object.
pub(super) const GET: &str = "storage.objects.get";
/// The permission to list objects.
pub(super) const LIST: &str = "storage.objects.list";
/// The permission to make a folder of a hierarchical namespace, or to rename one to its name.
pub(super) const CREATE_FOLDER: &str = "storage.folders.create";
/// The permission to list such folders.
pub(super) const LIST_FOLDERS: &str = "storage.folders.list";

/// What a permission is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// The bucket itself. A listing asks for the bucket.
    Bucket,
    /// An object, which need not exist.
    Object(&'a str),
    /// A managed folder.
    Folder(&'a str),
    /// A folder of a hierarchical namespace, with the slash at the end of its name.
    Directory(&'a str),
}

/// A question that policies answer.
pub(super) struct Asked<'a> {
    /// As IAM calls it, such as `storage.objects.get`.
    pub(super) permission: &'a str,
    /// What it is asked for.
    pub(super) place: Place<'a>,
    /// What the names begin with that a listing asks for.
    pub(super) list_prefix: Option<&'a str>,
    /// The time by which conditions are judged.
    pub(super) now: Timestamp,
}

/// Whether somebody has a permission by owning the project, by a policy, or by the list of the bucket.
pub(super) fn has(sender: &Principal, asked: &Asked<'_>, bucket: &Bucket) -> bool {
    let by_list = || {
        let role = match bucket.settings.uniform_access() {
            true => None,
            false => role_in(sender, &bucket.acl_entries()),
        };
        role.is_some_and(|role| {
            let role = match role {
                Role::Owner => "roles/storage.legacyBucketOwner",
                Role::Writer => "roles/storage.legacyBucketWriter",
                Role::Reader => "roles/storage.legacyBucketReader",
            };
            gives(role, asked.permission)
        })
    };
    sender.owns(&bucket.project)
        || grants(&bucket.policy, sender, asked, bucket)
        || asked.folders(bucket).any(|policy| grants(policy, sender, asked, bucket))
        || by_list()
}

/// Whether a binding of a policy gives the permission.
fn grants(policy: &Policy, sender: &Principal, asked: &Asked<'_>, bucket: &Bucket) -> bool {
    policy.bindings.iter().any(|binding| {
        gives(&binding.role, asked.permission)
            && binding.members.iter().any(|member| is_member(sender, member))
            && binding.condition.as_ref().is_none_or(|condition| asked.fits(condition, bucket))
    })
}

impl<'a> Asked<'a> {
    /// The policies of the managed folders in which the place lies. A listing lies in a folder if all that it can show does.
    fn folders<'b>(&self, bucket: &'b Bucket) -> impl Iterator<Item = &'b Policy> + use<'a, 'b> {
        let place = match self.place {
            Place::Object(name) | Place::Folder(name) | Place::Directory(name) => Some(name),
            Place::Bucket => self.list_prefix,
        };
        let of_place = move |folder: &str| place.is_some_and(|place| place.starts_with(folder));
        bucket.folder_policies.iter().filter(move |(folder, _)| of_place(folder)).map(|(_, policy)| policy)
    }

    /// Whether a condition holds. One that cannot be read, as a policy of an earlier release may have, never does.
    fn fits(&self, condition: &Expr, bucket: &Bucket) -> bool {
        let name = match self.place {
            Place::Bucket => format!("projects/_/buckets/{}", bucket.name),
            Place::Object(name) => format!("projects/_/buckets/{}/objects/{name}", bucket.name),
            Place::Folder(name) => format!("projects/_/buckets/{}/managedFolders/{name}", bucket.name),
            Place::Directory(name) => format!("projects/_/buckets/{}/folders/{name}", bucket.name),
        };
        let sort = match self.place {
            Place::Bucket => "storage.googleapis.com/Bucket",
            Place::Object(_) => "storage.googleapis.com/Object",
            Place::Folder(_) => "storage.googleapis.com/ManagedFolder",
            Place::Directory(_) => "storage.googleapis.com/Folder",
        };
        let of = Circumstances { now: self.now, name: &name, sort, list_prefix: self.list_prefix };
        Expression::parse(&condition.expression).is_ok_and(|expression| expression.holds(&of))
    }
}

/// The strongest role that somebody has in an access control list.
pub(super) fn role_in(sender: &Principal, entries: &[AclEntry]) -> Option<Role> {
    let fits = |entity: &str| match (entity, &sender.email) {
        ("allUsers", _) => true,
        ("allAuthenticatedUsers", email) => email.is_some(),
        (entity, Some(email)) => {
            let domain = email.rsplit('@').next();
            entity.strip_prefix("user-").is_some_and(|user| user == email)
                || entity.strip_prefix("domain-").is_some_and(|known| Some(known) == domain)
                || entity.strip_prefix("project-owners-").is_some_and(|number| {
                    sender.owned.iter().any(|project| project_number(project).to_string() == number)
                })
        }
        _ => false,
    };
    entries.iter().filter(|entry| fits(&entry.entity)).map(|entry| entry.role).max()
}

/// Whether a member of a binding is the sender.
fn is_member(sender: &Principal, member: &str) -> bool {
    let Some(email) = &sender.email else { return member == "allUsers" };
    match member.split_once(':') {
        None => matches!(member, "allUsers" | "allAuthenticatedUsers"),
        Some(("user" | "serviceAccount", known)) => known == email,
        Some(("domain", domain)) => email.rsplit('@').next() == Some(domain),
        Some(("projectOwner" | "projectEditor", project)) => sender.owns(project),
        Some(_) => false,
    }
}

/// Whether a role has a permission. A role that is not known has none.
fn gives(role: &str, permission: &str) -> bool {
    let short = permission.strip_prefix("storage.").unwrap_or_default();
    match role.strip_prefix("roles/storage.").unwrap_or_default() {
        "admin" => true,
        "folderAdmin" | "objectAdmin" => {
            let of = short.split_once('.').map_or(short, |(of, _)| of);
            matches!(of, "objects" | "folders" | "managedFolders")
        }
        "objectUser" => {
            short.starts_with("objects.")
                || short.starts_with("folders.")
                || (short.starts_with("managedFolders.") && !short.ends_with("IamPolicy"))
        }
        "objectViewer" => {
            let (of, done) = short.split_once('.').unwrap_or_default();
            matches!(of, "objects" | "folders" | "managedFolders") && matches!(done, "get" | "list")
        }
        "objectCreator" => matches!(short, "objects.create" | "folders.create" | "managedFolders.create"),
        "bucketViewer" => matches!(short, "buckets.get" | "buckets.list"),
        "legacyBucketReader" => {
            matches!(short, "buckets.get" | "objects.list" | "managedFolders.get" | "managedFolders.list")
        }
        "legacyBucketWriter" => {
            matches!(short, "buckets.get" | "objects.list" | "objects.create" | "objects.delete")
                || (short.starts_with("managedFolders.") && !short.ends_with("IamPolicy"))
        }
        "legacyBucketOwner" => {
            (short.starts_with("buckets.") && short != "buckets.delete")
                || short.starts_with("bucketOperations.")
                || short.starts_with("managedFolders.")
                || matches!(short, "objects.list" | "objects.create" | "objects.delete")
        }
        "legacyObjectReader" => short == "objects.get",
        "legacyObjectOwner" => {
            matches!(
                short,
                "objects.get" | "objects.update" | "objects.getIamPolicy" | "objects.setIamPolicy"
            )
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rangehold_map::key::BucketId;
    use rangehold_protocol::object::bucket::BucketParameters;
    use rangehold_protocol::object::bucket::policy::Binding;
    use rangehold_protocol::object::micros::Micros;
    use serde_json::json;

    use super::*;

    fn sender(email: Option<&str>, owned: &[&str]) -> Principal {
        Principal {
            email: email.map(str::to_owned),
            owned: owned.iter().map(|&project| project.to_owned()).collect(),
        }
    }

    fn bucket(role: &str, member: &str) -> Bucket {
        let body = json!({"name": "photos"});
        let body = body.as_object().expect("an object");
        let mut bucket =
            Bucket::insert(BucketId(1), "p", body, BucketParameters::default(), Micros::new(1)).unwrap();
        let (role, members) = (format!("roles/storage.{role}"), vec![member.to_owned()]);
        bucket.policy.bindings = vec![Binding { role, members, condition: None }];
        bucket
    }

    fn asked<'a>(permission: &'a str, place: Place<'a>, list_prefix: Option<&'a str>) -> Asked<'a> {
        Asked { permission, place, list_prefix, now: Timestamp::from_unix_seconds(1_000_000_000) }
    }

    fn has(sender: &Principal, permission: &str, bucket: &Bucket) -> bool {
        super::has(sender, &asked(permission, Place::Object("a/1"), None), bucket)
    }

    #[test]
    fn an_owner_of_the_project_has_everything_and_a_stranger_nothing() {
        let bucket = bucket("objectViewer", "user:x@y");
        for permission in [GET, CREATE, "storage.buckets.delete"] {
            assert!(has(&sender(Some("a@b"), &["p"]), permission, &bucket));
            assert!(!has(&sender(Some("a@b"), &["q"]), permission, &bucket));
            assert!(!has(&sender(None, &[]), permission, &bucket));
        }
    }

    #[test]
    fn a_binding_gives_its_members_what_the_role_has() {
        let somebody = sender(Some("a@b"), &[]);
        for member in ["user:a@b", "serviceAccount:a@b", "domain:b", "allUsers", "allAuthenticatedUsers"] {
            assert!(has(&somebody, GET, &bucket("objectViewer", member)), "{member}");
            assert!(!has(&somebody, CREATE, &bucket("objectViewer", member)), "{member}");
        }
        assert!(has(&sender(None, &[]), GET, &bucket("objectViewer", "allUsers")));
        assert!(!has(&sender(None, &[]), GET, &bucket("objectViewer", "allAuthenticatedUsers")));
    }

    #[test]
    fn a_binding_with_a_condition_counts_where_the_condition_holds() {
        let somebody = sender(Some("a@b"), &[]);
        let with = |expression: &str| {
            let mut bucket = bucket("objectViewer", "allUsers");
            let expression = expression.to_owned();
            bucket.policy.bindings[0].condition = Some(Expr { expression, ..Expr::default() });
            bucket
        };
        for (expression, expected) in [
            ("resource.name.startsWith('projects/_/buckets/photos/objects/a/')", true),
            ("resource.name.startsWith('projects/_/buckets/photos/objects/b/')", false),
            ("resource.type == 'storage.googleapis.com/Object'", true),
            ("request.time < timestamp('2001-09-09T01:46:41Z')", true),
            ("request.time < timestamp('2001-09-09T01:46:40Z')", false),
            ("not understood", false),
        ] {
            assert_eq!(has(&somebody, GET, &with(expression)), expected, "{expression}");
        }
        let listing =
            with("api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('a/')");
        for (prefix, expected) in [("a/b", true), ("a/", true), ("a", false), ("", false)] {
            let asked = asked(LIST, Place::Bucket, Some(prefix));
            assert_eq!(super::has(&somebody, &asked, &listing), expected, "{prefix}");
        }
    }

    #[test]
    fn a_policy_of_a_managed_folder_counts_below_the_folder() {
        let somebody = sender(Some("a@b"), &[]);
        let mut bucket = bucket("objectViewer", "user:x@y");
        let (role, members) = ("roles/storage.objectViewer".to_owned(), vec!["user:a@b".to_owned()]);
        let policy =
            Policy { bindings: vec![Binding { role, members, condition: None }], ..Policy::default() };
        bucket.folder_policies.insert("a/".to_owned(), policy);
        for (permission, place, prefix, expected) in [
            (GET, Place::Object("a/1"), None, true),
            (GET, Place::Object("ab"), None, false),
            (CREATE, Place::Object("a/1"), None, false),
            (LIST, Place::Bucket, Some("a/b"), true),
            (LIST, Place::Bucket, Some("a"), false),
            ("storage.managedFolders.get", Place::Folder("a/b/"), None, true),
            ("storage.buckets.get", Place::Bucket, None, false),
        ] {
            let asked = asked(permission, place, prefix);
            assert_eq!(super::has(&somebody, &asked, &bucket), expected, "{permission} {place:?}");
        }
    }

    #[test]
    fn the_strongest_role_that_a_list_gives_counts() {
        let entries = [
            AclEntry::new("user-a@b", Role::Reader).unwrap(),
            AclEntry::new("domain-b", Role::Owner).unwrap(),
        ];
        assert_eq!(role_in(&sender(Some("a@b"), &[]), &entries), Some(Role::Owner));
        assert_eq!(role_in(&sender(Some("a@c"), &[]), &entries), None);
        assert_eq!(role_in(&sender(None, &[]), &entries), None);
        let owners = AclEntry::new("project-owners-q", Role::Owner).unwrap();
        assert_eq!(role_in(&sender(Some("a@c"), &["q"]), std::slice::from_ref(&owners)), Some(Role::Owner));
        assert_eq!(role_in(&sender(Some("a@c"), &["p"]), &[owners]), None);
    }
}
