//! What each sender may do, under `--objects-auth`.
//!
//! An operation needs a permission with the name that IAM gives it, such as `storage.objects.get`. A sender has it
//!
//! 1. as an owner of the bucket's project (`"owns"` in the file of `--object-keys`),
//! 2. by a binding of the bucket's policy, if its condition holds,
//! 3. by a binding of a managed folder's policy, for the names below the folder,
//! 4. by an access control list of the bucket or object, unless the bucket has uniform access.
//!
//! With open access everybody has every permission.

use rangehold_map::Timestamp;
use rangehold_protocol::object::acl::{AclEntry, Role};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::bucket::policy::{Expr, Policy};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::folder::with_slash;
use rangehold_protocol::object::policy::expression::{Circumstances, Expression};
use rangehold_protocol::object::request::{Call, Operation as Op};

use super::ObjectService;
use super::access::Principal;
use super::exchange::Exchange;
use super::failure::Failure;

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
const LIST_FOLDERS: &str = "storage.folders.list";

impl ObjectService {
    /// Checks that the sender may do what `call` asks for.
    pub(super) async fn authorise(&self, exchange: &Exchange<'_>, call: &Call) -> Result<(), Failure> {
        if self.options.access.is_open() {
            return Ok(());
        }
        let object = Some(call.object.as_str()).filter(|name| !name.is_empty());
        match call.operation {
            Op::BucketsList | Op::BucketsInsert => {
                let project = exchange.query.required("project")?;
                Ok(owns(exchange, project, call.operation.name())?)
            }
            Op::HmacKeyList
            | Op::HmacKeyCreate
            | Op::HmacKeyGet
            | Op::HmacKeyUpdate
            | Op::HmacKeyDelete
            | Op::ServiceAccountGet => Ok(owns(exchange, &call.bucket, call.operation.name())?),
            // Everybody may ask which permissions it has.
            Op::BucketsTestIamPermissions
            | Op::ObjectsTestIamPermissions
            | Op::ManagedFoldersTestIamPermissions => Ok(()),
            Op::ManagedFoldersInsert
            | Op::ManagedFoldersGet
            | Op::ManagedFoldersDelete
            | Op::ManagedFoldersUpdate
            | Op::ManagedFoldersGetIamPolicy
            | Op::ManagedFoldersSetIamPolicy => {
                let bucket = self.bucket(&call.bucket).await?;
                self.permit_on(exchange, permission_of(call.operation), &bucket, Place::Folder(&call.id))
            }
            // The id of an upload is a secret of the one that began it.
            Op::ObjectsInsert if exchange.parameter("upload_id").is_some() => Ok(()),
            // The name may be in the body; then it is asked for when that was read.
            Op::ObjectsInsert => match exchange.parameter("name") {
                Some(name) => self.permit_write(exchange, &self.bucket(&call.bucket).await?, name).await,
                None => Ok(()),
            },
            Op::ObjectsCompose => {
                let bucket = self.bucket(&call.bucket).await?;
                self.permit_write(exchange, &bucket, &call.object).await?;
                self.permit(exchange, GET, &bucket, object).await
            }
            Op::ObjectsCopy | Op::ObjectsRewrite => {
                self.permit(exchange, GET, &self.bucket(&call.bucket).await?, object).await?;
                self.permit_write(exchange, &self.bucket(&call.to_bucket).await?, &call.to_object).await
            }
            Op::ObjectsMove => {
                let bucket = self.bucket(&call.bucket).await?;
                self.permit(exchange, DELETE, &bucket, object).await?;
                self.permit(exchange, GET, &bucket, object).await?;
                self.permit_write(exchange, &bucket, &call.to_object).await
            }
            // The name is in the body: it is asked for when that was read.
            Op::FoldersInsert => Ok(()),
            Op::FoldersGet | Op::FoldersDelete | Op::FoldersDeleteRecursive | Op::FoldersRename => {
                self.authorise_on_folder(exchange, call).await
            }
            // A deleted bucket has no row of its name, so its project must be asked for in another way.
            Op::BucketsRestore => {
                let bucket =
                    self.deleted_bucket(&call.bucket, exchange.query.required("generation")?).await?;
                self.permit(exchange, "storage.buckets.restore", &bucket, None).await
            }
            operation => {
                let bucket = self.bucket(&call.bucket).await?;
                self.permit(exchange, permission_of(operation), &bucket, object).await
            }
        }
    }

    /// Checks that the sender may do what `call` asks for with a folder of a hierarchical namespace.
    async fn authorise_on_folder(&self, exchange: &Exchange<'_>, call: &Call) -> Result<(), Failure> {
        let bucket = self.bucket(&call.bucket).await?;
        let (name, to) = (with_slash(&call.id), with_slash(&call.to_object));
        let permission = permission_of(call.operation);
        self.permit_on(exchange, permission, &bucket, Place::Directory(&name))?;
        match call.operation {
            Op::FoldersRename => self.permit_on(exchange, CREATE_FOLDER, &bucket, Place::Directory(&to)),
            // The objects that lie in the folder are deleted too, and each is asked for.
            Op::FoldersDeleteRecursive => self.permit_on(exchange, DELETE, &bucket, Place::Object(&name)),
            _ => Ok(()),
        }
    }

    /// Checks that the sender may write an object: a new one or, if it may also delete, in the place of another.
    pub(super) async fn permit_write(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        name: &str,
    ) -> Result<(), Failure> {
        self.permit(exchange, CREATE, bucket, Some(name)).await?;
        match exchange.query.number("ifGenerationMatch")? {
            Some(0) => Ok(()),
            _ => self.permit(exchange, DELETE, bucket, Some(name)).await,
        }
    }

    /// Checks that the sender has a permission on a bucket, or on an object in it.
    pub(super) async fn permit(
        &self,
        exchange: &Exchange<'_>,
        permission: &str,
        bucket: &Bucket,
        object: Option<&str>,
    ) -> Result<(), Failure> {
        let place = object.map_or(Place::Bucket, Place::Object);
        if self.holds(exchange, permission, bucket, place) {
            return Ok(());
        }
        let sender = &exchange.principal;
        if let Some(name) = object.filter(|_| !bucket.settings.uniform_access()) {
            let generation = self.generation(bucket, name, exchange.generation()?).await;
            let entries =
                generation.map(|found| found.acl.entries(bucket.project_number, Some(&found.owner)));
            let role = entries.ok().and_then(|entries| role_in(sender, bucket, &entries));
            let allowed = match permission {
                GET => role.is_some(),
                "storage.objects.update"
                | "storage.objects.getIamPolicy"
                | "storage.objects.setIamPolicy" => role == Some(Role::Owner),
                _ => false,
            };
            if allowed {
                return Ok(());
            }
        }
        Err(refusal(sender, permission).into())
    }

    /// Checks that the sender has a permission on a place, without regard to the lists of objects.
    pub(super) fn permit_on(
        &self,
        exchange: &Exchange<'_>,
        permission: &str,
        bucket: &Bucket,
        place: Place<'_>,
    ) -> Result<(), Failure> {
        match self.holds(exchange, permission, bucket, place) {
            true => Ok(()),
            false => Err(refusal(&exchange.principal, permission).into()),
        }
    }

    /// Checks that the signer of a form may write an object, also in the place of another.
    pub(super) fn permit_signer(
        &self,
        exchange: &Exchange<'_>,
        signer: &Principal,
        bucket: &Bucket,
        name: &str,
    ) -> Result<(), Failure> {
        let asked = |permission| Asked {
            permission,
            place: Place::Object(name),
            list_prefix: None,
            now: exchange.now,
        };
        let missing = |permission: &&'static str| {
            !self.options.access.is_open() && !has(signer, &asked(permission), bucket)
        };
        match [CREATE, DELETE].into_iter().find(missing) {
            None => Ok(()),
            Some(permission) => Err(refusal(signer, permission).into()),
        }
    }

    /// Whether the sender has a permission on a place, without regard to the lists of objects.
    pub(super) fn holds(
        &self,
        exchange: &Exchange<'_>,
        permission: &str,
        bucket: &Bucket,
        place: Place<'_>,
    ) -> bool {
        let lists = matches!(permission, LIST | LIST_FOLDERS);
        let list_prefix = lists.then(|| exchange.parameter("prefix").unwrap_or_default());
        let asked = Asked { permission, place, list_prefix, now: exchange.now };
        self.options.access.is_open() || has(&exchange.principal, &asked, bucket)
    }
}

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
struct Asked<'a> {
    permission: &'a str,
    place: Place<'a>,
    /// What the names begin with that a listing asks for.
    list_prefix: Option<&'a str>,
    now: Timestamp,
}

/// Whether somebody has a permission by owning the project, by a policy, or by the list of the bucket.
fn has(sender: &Principal, asked: &Asked<'_>, bucket: &Bucket) -> bool {
    let by_list = || {
        let role = match bucket.settings.uniform_access() {
            true => None,
            false => role_in(sender, bucket, &bucket.acl_entries()),
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
fn role_in(sender: &Principal, bucket: &Bucket, entries: &[AclEntry]) -> Option<Role> {
    let fits = |entity: &str| match (entity, &sender.email) {
        ("allUsers", _) => true,
        ("allAuthenticatedUsers", email) => email.is_some(),
        (entity, Some(email)) => {
            let domain = email.rsplit('@').next();
            entity.strip_prefix("user-").is_some_and(|user| user == email)
                || entity.strip_prefix("domain-").is_some_and(|known| Some(known) == domain)
                || (entity.starts_with("project-owners-") && sender.owns(&bucket.project))
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

/// The permission that an operation on a bucket or object needs.
fn permission_of(operation: Op) -> &'static str {
    match operation {
        Op::ObjectsGet | Op::ObjectsViewFullContext => GET,
        Op::ObjectsList => LIST,
        Op::ObjectsDelete => DELETE,
        Op::ObjectsPatch | Op::ObjectsUpdate => "storage.objects.update",
        Op::ObjectsRestore | Op::ObjectsBulkRestore => "storage.objects.restore",
        Op::ObjectAclList | Op::ObjectAclGet | Op::ObjectsGetIamPolicy => "storage.objects.getIamPolicy",
        Op::ObjectsSetIamPolicy => "storage.objects.setIamPolicy",
        Op::FoldersList => LIST_FOLDERS,
        Op::FoldersInsert => CREATE_FOLDER,
        Op::FoldersGet => "storage.folders.get",
        Op::FoldersDelete | Op::FoldersDeleteRecursive => "storage.folders.delete",
        Op::FoldersRename => "storage.folders.rename",
        Op::ObjectAclInsert | Op::ObjectAclPatch | Op::ObjectAclUpdate | Op::ObjectAclDelete => {
            "storage.objects.setIamPolicy"
        }
        Op::BucketsGet | Op::BucketsGetStorageLayout | Op::NotificationsList | Op::NotificationsGet => {
            "storage.buckets.get"
        }
        Op::ManagedFoldersList => "storage.managedFolders.list",
        Op::ManagedFoldersGet => "storage.managedFolders.get",
        Op::ManagedFoldersInsert => "storage.managedFolders.create",
        Op::ManagedFoldersDelete => "storage.managedFolders.delete",
        Op::ManagedFoldersUpdate => "storage.managedFolders.update",
        Op::ManagedFoldersGetIamPolicy => "storage.managedFolders.getIamPolicy",
        Op::ManagedFoldersSetIamPolicy => "storage.managedFolders.setIamPolicy",
        Op::BucketsDelete => "storage.buckets.delete",
        Op::OperationsList => "storage.bucketOperations.list",
        Op::OperationsGet => "storage.bucketOperations.get",
        Op::OperationsCancel => "storage.bucketOperations.cancel",
        Op::BucketsGetIamPolicy
        | Op::BucketAclList
        | Op::BucketAclGet
        | Op::DefaultObjectAclList
        | Op::DefaultObjectAclGet => "storage.buckets.getIamPolicy",
        Op::BucketsSetIamPolicy
        | Op::BucketAclInsert
        | Op::BucketAclPatch
        | Op::BucketAclUpdate
        | Op::BucketAclDelete
        | Op::DefaultObjectAclInsert
        | Op::DefaultObjectAclPatch
        | Op::DefaultObjectAclUpdate
        | Op::DefaultObjectAclDelete => "storage.buckets.setIamPolicy",
        // All others change the bucket, or are refused by their names later.
        _ => "storage.buckets.update",
    }
}

pub(super) fn owns(exchange: &Exchange<'_>, project: &str, operation: &str) -> Result<(), ObjectError> {
    match exchange.principal.owns(project) {
        true => Ok(()),
        false => Err(refusal(&exchange.principal, operation)),
    }
}

fn refusal(sender: &Principal, permission: &str) -> ObjectError {
    match &sender.email {
        Some(email) => {
            let message = format!("{email} does not have {permission} access to the resource.");
            ObjectError::new(ErrorKind::Forbidden, message)
        }
        None => {
            let message = format!("Anonymous caller does not have {permission} access to the resource.");
            ObjectError::new(ErrorKind::Unauthenticated, message)
        }
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
    fn lists_count_unless_the_bucket_has_uniform_access() {
        let entries = [
            AclEntry::new("user-a@b", Role::Reader).unwrap(),
            AclEntry::new("domain-b", Role::Owner).unwrap(),
        ];
        let bucket = bucket("objectViewer", "user:x@y");
        assert_eq!(role_in(&sender(Some("a@b"), &[]), &bucket, &entries), Some(Role::Owner));
        assert_eq!(role_in(&sender(Some("a@c"), &[]), &bucket, &entries), None);
        assert_eq!(role_in(&sender(None, &[]), &bucket, &entries), None);
    }
}
