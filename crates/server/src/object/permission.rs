//! What each sender may do, under `--objects-auth`.
//!
//! An operation needs a permission with the name that IAM gives it, such as `storage.objects.get`. The [grants](super::grants) of
//! the bucket say whether the sender has it; here the lists of objects are read too. With open access everybody has every
//! permission.

use rangehold_protocol::object::acl::Role;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::folder::with_slash;
use rangehold_protocol::object::request::{Api, Call, Operation as Op};
use rangehold_protocol::object::rewrite;

use super::ObjectService;
use super::access::Principal;
use super::exchange::Exchange;
use super::failure::Failure;
use super::grants::{Asked, CREATE, CREATE_FOLDER, DELETE, GET, LIST, LIST_FOLDERS, Place, has, role_in};

impl ObjectService {
    /// Checks that the sender may do what `call` asks for.
    pub(super) async fn authorise(&self, exchange: &Exchange<'_>, call: &Call) -> Result<(), Failure> {
        match self.options.access.is_open() {
            true => Ok(()),
            // Boxed, so that requests with open access do not carry room for it.
            false => Box::pin(self.authorise_call(exchange, call)).await,
        }
    }

    async fn authorise_call(&self, exchange: &Exchange<'_>, call: &Call) -> Result<(), Failure> {
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
            | Op::ManagedFoldersUpdate
            | Op::ManagedFoldersGetIamPolicy
            | Op::ManagedFoldersSetIamPolicy => {
                let bucket = self.bucket(&call.bucket).await?;
                self.permit_on(exchange, permission_of(call.operation), &bucket, Place::Folder(&call.id))
            }
            Op::ManagedFoldersDelete => {
                let (bucket, place) = (self.bucket(&call.bucket).await?, Place::Folder(&call.id));
                self.permit_on(exchange, permission_of(call.operation), &bucket, place)?;
                // What lies in the folder loses the folder's policy, so that is a change of permissions.
                match exchange.query.flag("allowNonEmpty")? {
                    true => self.permit_on(
                        exchange,
                        permission_of(Op::ManagedFoldersSetIamPolicy),
                        &bucket,
                        place,
                    ),
                    false => Ok(()),
                }
            }
            // The id of an upload is a secret of the one that began it.
            Op::ObjectsInsert if exchange.parameter("upload_id").is_some() => Ok(()),
            // The name may be in the body; then it is asked for when that was read.
            Op::ObjectsInsert => match exchange.parameter("name") {
                Some(name) => self.permit_write(exchange, &self.bucket(&call.bucket).await?, name).await,
                None => Ok(()),
            },
            // The sources are in the body: they are asked for when that was read.
            Op::ObjectsCompose => {
                self.permit_write(exchange, &self.bucket(&call.bucket).await?, &call.object).await
            }
            Op::ObjectsCopy | Op::ObjectsRewrite => {
                let from = self.bucket(&call.bucket).await?;
                self.permit_of(exchange, GET, &from, object, source_generation(exchange, call)?).await?;
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
        self.permit_of(exchange, permission, bucket, object, exchange.generation()?).await
    }

    /// The same for this generation of the object, as each has a list of its own; without one, for the one that is live.
    pub(super) async fn permit_of(
        &self,
        exchange: &Exchange<'_>,
        permission: &str,
        bucket: &Bucket,
        object: Option<&str>,
        generation: Option<u64>,
    ) -> Result<(), Failure> {
        self.check_payer(exchange, bucket)?;
        let place = object.map_or(Place::Bucket, Place::Object);
        if self.holds(exchange, permission, bucket, place) {
            return Ok(());
        }
        let sender = &exchange.principal;
        if let Some(name) = object.filter(|_| !bucket.settings.uniform_access()) {
            let generation = self.generation(bucket, name, generation).await;
            let entries =
                generation.map(|found| found.acl.entries(bucket.project_number, Some(&found.owner)));
            let role = entries.ok().and_then(|entries| role_in(sender, &entries));
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
        Err(refusal(exchange, &exchange.principal, permission).into())
    }

    /// Checks that the sender has a permission on a place, without regard to the lists of objects.
    pub(super) fn permit_on(
        &self,
        exchange: &Exchange<'_>,
        permission: &str,
        bucket: &Bucket,
        place: Place<'_>,
    ) -> Result<(), Failure> {
        self.check_payer(exchange, bucket)?;
        match self.holds(exchange, permission, bucket, place) {
            true => Ok(()),
            false => Err(refusal(exchange, &exchange.principal, permission).into()),
        }
    }

    /// Checks that a request names the project that pays for it, if the requesters of the bucket pay. Those who own the bucket's
    /// project need not name one.
    pub(super) fn check_payer(&self, exchange: &Exchange<'_>, bucket: &Bucket) -> Result<(), ObjectError> {
        let requesters_pay = bucket.settings.billing.is_some_and(|billing| billing.requester_pays);
        if !requesters_pay || self.options.access.is_open() || exchange.principal.owns(&bucket.project) {
            return Ok(());
        }
        let in_header = || exchange.header("x-goog-user-project").filter(|project| !project.is_empty());
        match exchange.parameter("userProject").or_else(in_header) {
            None => Err(ObjectError::no_user_project()),
            // A sender without a name is nobody's member, and so not of that project either.
            Some(_) if exchange.principal.email.is_none() => {
                Err(refusal(exchange, &exchange.principal, "serviceusage.services.use"))
            }
            Some(_) => Ok(()),
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
            Some(permission) => Err(refusal(exchange, signer, permission).into()),
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
        false => Err(refusal(exchange, &exchange.principal, operation)),
    }
}

/// The generation of its source that a copy or a rewrite reads, if it names one. A rewrite goes on with the one that it began with.
fn source_generation(exchange: &Exchange<'_>, call: &Call) -> Result<Option<u64>, ObjectError> {
    let begun = match call.operation {
        Op::ObjectsRewrite => rewrite::Asked::of(call, &exchange.query)?.generation(),
        _ => None,
    };
    Ok(begun.or(exchange.query.number("sourceGeneration")?))
}

/// Why a sender may not do something. The XML API tells an anonymous one that the access is denied. The JSON API asks it to say
/// who it is.
fn refusal(exchange: &Exchange<'_>, sender: &Principal, permission: &str) -> ObjectError {
    match &sender.email {
        Some(email) => {
            let message = format!("{email} does not have {permission} access to the resource.");
            ObjectError::new(ErrorKind::Forbidden, message)
        }
        None => {
            let message = format!("Anonymous caller does not have {permission} access to the resource.");
            let kind =
                if exchange.api == Api::Xml { ErrorKind::Forbidden } else { ErrorKind::Unauthenticated };
            ObjectError::new(kind, message)
        }
    }
}
