//! The operations of the JSON API, and the paths at which they are.

use percent_encoding::percent_decode_str;

use super::Api;
use crate::object::error::ObjectError;

use Operation as Op;

/// An operation. Its name is that of the retry tests of Google's clients, where those have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::EnumIter)]
#[expect(missing_docs, reason = "the operations are those of the JSON API, with the same names")]
pub enum Operation {
    BucketsList,
    BucketsInsert,
    BucketsGet,
    BucketsPatch,
    BucketsUpdate,
    BucketsDelete,
    BucketsGetIamPolicy,
    BucketsSetIamPolicy,
    BucketsTestIamPermissions,
    BucketsGetStorageLayout,
    BucketsLockRetentionPolicy,
    BucketsRestore,
    BucketsRelocate,
    BucketAclList,
    BucketAclInsert,
    BucketAclGet,
    BucketAclPatch,
    BucketAclUpdate,
    BucketAclDelete,
    DefaultObjectAclList,
    DefaultObjectAclInsert,
    DefaultObjectAclGet,
    DefaultObjectAclPatch,
    DefaultObjectAclUpdate,
    DefaultObjectAclDelete,
    ObjectAclList,
    ObjectAclInsert,
    ObjectAclGet,
    ObjectAclPatch,
    ObjectAclUpdate,
    ObjectAclDelete,
    ObjectsList,
    ObjectsInsert,
    ObjectsGet,
    ObjectsPatch,
    ObjectsUpdate,
    ObjectsDelete,
    ObjectsCopy,
    ObjectsRewrite,
    ObjectsMove,
    ObjectsCompose,
    ObjectsRestore,
    ObjectsBulkRestore,
    ObjectsGetIamPolicy,
    ObjectsSetIamPolicy,
    ObjectsTestIamPermissions,
    ObjectsViewFullContext,
    NotificationsList,
    NotificationsInsert,
    NotificationsGet,
    NotificationsDelete,
    HmacKeyList,
    HmacKeyCreate,
    HmacKeyGet,
    HmacKeyUpdate,
    HmacKeyDelete,
    ServiceAccountGet,
    ManagedFoldersList,
    ManagedFoldersInsert,
    ManagedFoldersGet,
    ManagedFoldersDelete,
    ManagedFoldersUpdate,
    ManagedFoldersGetIamPolicy,
    ManagedFoldersSetIamPolicy,
    ManagedFoldersTestIamPermissions,
    FoldersList,
    FoldersInsert,
    FoldersGet,
    FoldersDelete,
    FoldersDeleteRecursive,
    FoldersRename,
    AnywhereCaches,
    RapidCaches,
    OperationsList,
    OperationsGet,
    OperationsCancel,
    OperationsAdvanceRelocate,
    Channels,
}

impl Operation {
    /// The operation's name, for example `storage.objects.get`.
    pub const fn name(self) -> &'static str {
        match self {
            Op::BucketsList => "storage.buckets.list",
            Op::BucketsInsert => "storage.buckets.insert",
            Op::BucketsGet => "storage.buckets.get",
            Op::BucketsPatch => "storage.buckets.patch",
            Op::BucketsUpdate => "storage.buckets.update",
            Op::BucketsDelete => "storage.buckets.delete",
            Op::BucketsGetIamPolicy => "storage.buckets.getIamPolicy",
            Op::BucketsSetIamPolicy => "storage.buckets.setIamPolicy",
            Op::BucketsTestIamPermissions => "storage.buckets.testIamPermissions",
            Op::BucketsGetStorageLayout => "storage.buckets.getStorageLayout",
            Op::BucketsLockRetentionPolicy => "storage.buckets.lockRetentionPolicy",
            Op::BucketsRestore => "storage.buckets.restore",
            Op::BucketsRelocate => "storage.buckets.relocate",
            Op::BucketAclList => "storage.bucket_acl.list",
            Op::BucketAclInsert => "storage.bucket_acl.insert",
            Op::BucketAclGet => "storage.bucket_acl.get",
            Op::BucketAclPatch => "storage.bucket_acl.patch",
            Op::BucketAclUpdate => "storage.bucket_acl.update",
            Op::BucketAclDelete => "storage.bucket_acl.delete",
            Op::DefaultObjectAclList => "storage.default_object_acl.list",
            Op::DefaultObjectAclInsert => "storage.default_object_acl.insert",
            Op::DefaultObjectAclGet => "storage.default_object_acl.get",
            Op::DefaultObjectAclPatch => "storage.default_object_acl.patch",
            Op::DefaultObjectAclUpdate => "storage.default_object_acl.update",
            Op::DefaultObjectAclDelete => "storage.default_object_acl.delete",
            Op::ObjectAclList => "storage.object_acl.list",
            Op::ObjectAclInsert => "storage.object_acl.insert",
            Op::ObjectAclGet => "storage.object_acl.get",
            Op::ObjectAclPatch => "storage.object_acl.patch",
            Op::ObjectAclUpdate => "storage.object_acl.update",
            Op::ObjectAclDelete => "storage.object_acl.delete",
            Op::ObjectsList => "storage.objects.list",
            Op::ObjectsInsert => "storage.objects.insert",
            Op::ObjectsGet => "storage.objects.get",
            Op::ObjectsPatch => "storage.objects.patch",
            Op::ObjectsUpdate => "storage.objects.update",
            Op::ObjectsDelete => "storage.objects.delete",
            Op::ObjectsCopy => "storage.objects.copy",
            Op::ObjectsRewrite => "storage.objects.rewrite",
            Op::ObjectsMove => "storage.objects.move",
            Op::ObjectsCompose => "storage.objects.compose",
            Op::ObjectsRestore => "storage.objects.restore",
            Op::ObjectsBulkRestore => "storage.objects.bulkRestore",
            Op::ObjectsGetIamPolicy => "storage.objects.getIamPolicy",
            Op::ObjectsSetIamPolicy => "storage.objects.setIamPolicy",
            Op::ObjectsTestIamPermissions => "storage.objects.testIamPermissions",
            Op::ObjectsViewFullContext => "storage.objects.viewFullContext",
            Op::NotificationsList => "storage.notifications.list",
            Op::NotificationsInsert => "storage.notifications.insert",
            Op::NotificationsGet => "storage.notifications.get",
            Op::NotificationsDelete => "storage.notifications.delete",
            Op::HmacKeyList => "storage.hmacKey.list",
            Op::HmacKeyCreate => "storage.hmacKey.create",
            Op::HmacKeyGet => "storage.hmacKey.get",
            Op::HmacKeyUpdate => "storage.hmacKey.update",
            Op::HmacKeyDelete => "storage.hmacKey.delete",
            Op::ServiceAccountGet => "storage.serviceaccount.get",
            Op::ManagedFoldersList => "storage.managedFolders.list",
            Op::ManagedFoldersInsert => "storage.managedFolders.insert",
            Op::ManagedFoldersGet => "storage.managedFolders.get",
            Op::ManagedFoldersDelete => "storage.managedFolders.delete",
            Op::ManagedFoldersUpdate => "storage.managedFolders.update",
            Op::ManagedFoldersGetIamPolicy => "storage.managedFolders.getIamPolicy",
            Op::ManagedFoldersSetIamPolicy => "storage.managedFolders.setIamPolicy",
            Op::ManagedFoldersTestIamPermissions => "storage.managedFolders.testIamPermissions",
            Op::FoldersList => "storage.folders.list",
            Op::FoldersInsert => "storage.folders.insert",
            Op::FoldersGet => "storage.folders.get",
            Op::FoldersDelete => "storage.folders.delete",
            Op::FoldersDeleteRecursive => "storage.folders.deleteRecursive",
            Op::FoldersRename => "storage.folders.rename",
            Op::AnywhereCaches => "storage.anywhereCaches",
            Op::RapidCaches => "storage.rapidCaches",
            Op::OperationsList => "storage.buckets.operations.list",
            Op::OperationsGet => "storage.buckets.operations.get",
            Op::OperationsCancel => "storage.buckets.operations.cancel",
            Op::OperationsAdvanceRelocate => "storage.buckets.operations.advanceRelocateBucket",
            Op::Channels => "storage.channels",
        }
    }
}

/// An operation with the names in its path, decoded. A name that the operation does not have is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// The bucket, or the source's bucket, or the project.
    pub bucket: String,
    /// The object, or the source's name.
    pub object: String,
    /// The bucket that gets a copy.
    pub to_bucket: String,
    /// The object that is made of the source.
    pub to_object: String,
    /// The entity of an access control list, or the id of a notification, key or folder.
    pub id: String,
}

/// A verb, a pattern and the operation. In a pattern, `B` stands for the bucket or project, `O` for the object, `C` and
/// `P` for the bucket and object that are written, `I` for an id; `*` stands for the rest of the path.
type Route = (&'static str, &'static str, Operation);

/// Paths of uploads.
const UPLOAD: [Route; 3] = [
    ("POST", "b/B/o", Op::ObjectsInsert),
    ("PUT", "b/B/o", Op::ObjectsInsert),
    ("DELETE", "b/B/o", Op::ObjectsInsert),
];

/// Paths of downloads.
const DOWNLOAD: [Route; 2] = [("GET", "b/B/o/O", Op::ObjectsGet), ("HEAD", "b/B/o/O", Op::ObjectsGet)];

/// Paths of resources.
#[rustfmt::skip]
const JSON: [Route; 88] = [
    ("GET", "b", Op::BucketsList),
    ("POST", "b", Op::BucketsInsert),
    ("GET", "b/B", Op::BucketsGet),
    ("PATCH", "b/B", Op::BucketsPatch),
    ("PUT", "b/B", Op::BucketsUpdate),
    ("DELETE", "b/B", Op::BucketsDelete),
    ("GET", "b/B/iam", Op::BucketsGetIamPolicy),
    ("PUT", "b/B/iam", Op::BucketsSetIamPolicy),
    ("GET", "b/B/iam/testPermissions", Op::BucketsTestIamPermissions),
    ("GET", "b/B/storageLayout", Op::BucketsGetStorageLayout),
    ("POST", "b/B/lockRetentionPolicy", Op::BucketsLockRetentionPolicy),
    ("POST", "b/B/restore", Op::BucketsRestore),
    ("POST", "b/B/relocate", Op::BucketsRelocate),
    ("GET", "b/B/acl", Op::BucketAclList),
    ("POST", "b/B/acl", Op::BucketAclInsert),
    ("GET", "b/B/acl/I", Op::BucketAclGet),
    ("PATCH", "b/B/acl/I", Op::BucketAclPatch),
    ("PUT", "b/B/acl/I", Op::BucketAclUpdate),
    ("DELETE", "b/B/acl/I", Op::BucketAclDelete),
    ("GET", "b/B/defaultObjectAcl", Op::DefaultObjectAclList),
    ("POST", "b/B/defaultObjectAcl", Op::DefaultObjectAclInsert),
    ("GET", "b/B/defaultObjectAcl/I", Op::DefaultObjectAclGet),
    ("PATCH", "b/B/defaultObjectAcl/I", Op::DefaultObjectAclPatch),
    ("PUT", "b/B/defaultObjectAcl/I", Op::DefaultObjectAclUpdate),
    ("DELETE", "b/B/defaultObjectAcl/I", Op::DefaultObjectAclDelete),
    ("GET", "b/B/o/O/acl", Op::ObjectAclList),
    ("POST", "b/B/o/O/acl", Op::ObjectAclInsert),
    ("GET", "b/B/o/O/acl/I", Op::ObjectAclGet),
    ("PATCH", "b/B/o/O/acl/I", Op::ObjectAclPatch),
    ("PUT", "b/B/o/O/acl/I", Op::ObjectAclUpdate),
    ("DELETE", "b/B/o/O/acl/I", Op::ObjectAclDelete),
    ("GET", "b/B/o", Op::ObjectsList),
    ("POST", "b/B/o", Op::ObjectsInsert),
    ("POST", "b/B/o/bulkRestore", Op::ObjectsBulkRestore),
    ("GET", "b/B/o/O", Op::ObjectsGet),
    ("HEAD", "b/B/o/O", Op::ObjectsGet),
    ("PATCH", "b/B/o/O", Op::ObjectsPatch),
    ("PUT", "b/B/o/O", Op::ObjectsUpdate),
    ("DELETE", "b/B/o/O", Op::ObjectsDelete),
    ("POST", "b/B/o/O/copyTo/b/C/o/P", Op::ObjectsCopy),
    ("POST", "b/B/o/O/rewriteTo/b/C/o/P", Op::ObjectsRewrite),
    ("POST", "b/B/o/O/moveTo/o/P", Op::ObjectsMove),
    ("POST", "b/B/o/O/compose", Op::ObjectsCompose),
    ("POST", "b/B/o/O/restore", Op::ObjectsRestore),
    ("GET", "b/B/o/O/iam", Op::ObjectsGetIamPolicy),
    ("PUT", "b/B/o/O/iam", Op::ObjectsSetIamPolicy),
    ("GET", "b/B/o/O/iam/testPermissions", Op::ObjectsTestIamPermissions),
    ("GET", "b/B/o/O/viewFullContext", Op::ObjectsViewFullContext),
    ("POST", "b/B/o/watch", Op::Channels),
    ("GET", "b/B/notificationConfigs", Op::NotificationsList),
    ("POST", "b/B/notificationConfigs", Op::NotificationsInsert),
    ("GET", "b/B/notificationConfigs/I", Op::NotificationsGet),
    ("DELETE", "b/B/notificationConfigs/I", Op::NotificationsDelete),
    ("GET", "projects/B/hmacKeys", Op::HmacKeyList),
    ("POST", "projects/B/hmacKeys", Op::HmacKeyCreate),
    ("GET", "projects/B/hmacKeys/I", Op::HmacKeyGet),
    ("PUT", "projects/B/hmacKeys/I", Op::HmacKeyUpdate),
    ("DELETE", "projects/B/hmacKeys/I", Op::HmacKeyDelete),
    ("GET", "projects/B/serviceAccount", Op::ServiceAccountGet),
    ("GET", "b/B/managedFolders", Op::ManagedFoldersList),
    ("POST", "b/B/managedFolders", Op::ManagedFoldersInsert),
    ("GET", "b/B/managedFolders/I", Op::ManagedFoldersGet),
    ("DELETE", "b/B/managedFolders/I", Op::ManagedFoldersDelete),
    ("PATCH", "b/B/managedFolders/I", Op::ManagedFoldersUpdate),
    ("GET", "b/B/managedFolders/I/iam", Op::ManagedFoldersGetIamPolicy),
    ("PUT", "b/B/managedFolders/I/iam", Op::ManagedFoldersSetIamPolicy),
    ("GET", "b/B/managedFolders/I/iam/testPermissions", Op::ManagedFoldersTestIamPermissions),
    ("GET", "b/B/folders", Op::FoldersList),
    ("POST", "b/B/folders", Op::FoldersInsert),
    ("GET", "b/B/folders/I", Op::FoldersGet),
    ("DELETE", "b/B/folders/I", Op::FoldersDelete),
    ("POST", "b/B/folders/I/deleteRecursive", Op::FoldersDeleteRecursive),
    ("POST", "b/B/folders/I/renameTo/folders/P", Op::FoldersRename),
    ("GET", "b/B/anywhereCaches", Op::AnywhereCaches),
    ("POST", "b/B/anywhereCaches", Op::AnywhereCaches),
    ("GET", "b/B/anywhereCaches/*", Op::AnywhereCaches),
    ("POST", "b/B/anywhereCaches/*", Op::AnywhereCaches),
    ("PATCH", "b/B/anywhereCaches/*", Op::AnywhereCaches),
    ("GET", "b/B/rapidCaches", Op::RapidCaches),
    ("POST", "b/B/rapidCaches", Op::RapidCaches),
    ("GET", "b/B/rapidCaches/*", Op::RapidCaches),
    ("POST", "b/B/rapidCaches/*", Op::RapidCaches),
    ("PATCH", "b/B/rapidCaches/*", Op::RapidCaches),
    ("GET", "b/B/operations", Op::OperationsList),
    ("GET", "b/B/operations/I", Op::OperationsGet),
    ("POST", "b/B/operations/I/cancel", Op::OperationsCancel),
    ("POST", "b/B/operations/I/advanceRelocateBucket", Op::OperationsAdvanceRelocate),
    ("POST", "channels/stop", Op::Channels),
];

/// The routes of an API.
pub(super) fn routes(api: Api) -> impl Iterator<Item = Route> {
    let routes: &'static [Route] = match api {
        Api::Json => &JSON,
        Api::Upload => &UPLOAD,
        Api::Download => &DOWNLOAD,
        Api::Batch | Api::Xml => &[],
    };
    routes.iter().copied()
}

/// The call of `operation` if the segments of a path fit its pattern. Fails if a name in it is not UTF-8.
pub(super) fn matched(
    operation: Operation,
    pattern: &str,
    segments: &[&str],
) -> Result<Option<Call>, ObjectError> {
    let wanted: Vec<&str> = pattern.split('/').collect();
    let is_open = wanted.last() == Some(&"*");
    let fits = |(wanted, given): (&&str, &&str)| match *wanted {
        "*" => true,
        "B" | "O" | "C" | "P" | "I" => !given.is_empty(),
        literal => literal == *given,
    };
    let long_enough = if is_open { segments.len() >= wanted.len() } else { segments.len() == wanted.len() };
    if !long_enough || !wanted.iter().zip(segments).all(fits) {
        return Ok(None);
    }
    let name = |letter: &str| match wanted.iter().position(|one| *one == letter) {
        None => Ok(String::new()),
        Some(at) => percent_decode_str(segments[at])
            .decode_utf8()
            .map(|name| name.into_owned())
            .map_err(|_| ObjectError::invalid("path", segments[at], "Percent-encode UTF-8.")),
    };
    Ok(Some(Call {
        operation,
        bucket: name("B")?,
        object: name("O")?,
        to_bucket: name("C")?,
        to_object: name("P")?,
        id: name("I")?,
    }))
}
