//! From an operation to the handler of its noun.

use rangehold_protocol::object::bucket::BodyMode;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::request::{Call, Operation as Op};

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::grants::Place;
use super::reply::Reply;

impl ObjectService {
    /// Carries an operation out, or a fault in its place.
    pub(super) async fn perform(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        is_media: bool,
        method: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        match self.ordered_fault(exchange, call.operation.name(), None) {
            None => self.run(exchange, call, is_media, method, body).await,
            Some(fault) if fault.is_early() => Ok(fault.spoil(Reply::empty(200))),
            Some(fault) => {
                let reply = self.run(exchange, call, is_media, method, body).await;
                reply.map(|reply| fault.spoil(reply))
            }
        }
    }

    /// Carries an operation out.
    async fn run(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        is_media: bool,
        method: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        self.authorise(exchange, call).await?;
        self.admit_call(exchange, call).await?;
        let (bucket, object) = (call.bucket.as_str(), call.object.as_str());
        match call.operation {
            Op::BucketsList => self.list_buckets(exchange).await,
            Op::BucketsInsert => self.insert_bucket(exchange, body).await,
            Op::BucketsGet => self.get_bucket(exchange, bucket).await,
            Op::BucketsPatch => {
                self.write_bucket(exchange, bucket, BodyMode::Patch { whole: exchange.whole }, body).await
            }
            Op::BucketsUpdate => self.write_bucket(exchange, bucket, BodyMode::Update, body).await,
            Op::BucketsDelete => self.delete_bucket(exchange, bucket).await,
            Op::BucketsLockRetentionPolicy => self.lock_retention(exchange, bucket).await,
            Op::BucketsRestore => self.restore_bucket(exchange, bucket).await,
            Op::BucketsGetIamPolicy => self.get_bucket_policy(exchange, bucket).await,
            Op::BucketsSetIamPolicy => self.set_bucket_policy(exchange, bucket, body).await,
            Op::BucketsTestIamPermissions => self.test_permissions(exchange, bucket, Place::Bucket).await,
            Op::ObjectsGetIamPolicy => self.get_object_policy(exchange, bucket, object).await,
            Op::ObjectsSetIamPolicy => self.set_object_policy(exchange, bucket, object, body).await,
            Op::ObjectsTestIamPermissions => {
                self.test_permissions(exchange, bucket, Place::Object(object)).await
            }
            Op::ManagedFoldersGetIamPolicy => self.get_folder_policy(exchange, bucket, &call.id).await,
            Op::ManagedFoldersSetIamPolicy => self.set_folder_policy(exchange, bucket, &call.id, body).await,
            Op::ManagedFoldersTestIamPermissions => {
                self.test_permissions(exchange, bucket, Place::Folder(&call.id)).await
            }
            Op::BucketsGetStorageLayout => self.bucket_layout(exchange, bucket).await,
            Op::BucketAclList
            | Op::BucketAclInsert
            | Op::BucketAclGet
            | Op::BucketAclPatch
            | Op::BucketAclUpdate
            | Op::BucketAclDelete => self.bucket_acl(exchange, call, false, body).await,
            Op::DefaultObjectAclList
            | Op::DefaultObjectAclInsert
            | Op::DefaultObjectAclGet
            | Op::DefaultObjectAclPatch
            | Op::DefaultObjectAclUpdate
            | Op::DefaultObjectAclDelete => self.bucket_acl(exchange, call, true, body).await,
            Op::ObjectAclList
            | Op::ObjectAclInsert
            | Op::ObjectAclGet
            | Op::ObjectAclPatch
            | Op::ObjectAclUpdate
            | Op::ObjectAclDelete => self.object_acl(exchange, call, body).await,
            Op::ObjectsList => self.list_objects(exchange, bucket).await,
            Op::ObjectsInsert => self.upload(exchange, bucket, method, body).await,
            Op::ObjectsGet if is_media || exchange.head.uri.path().starts_with("/download/") => {
                self.download(exchange, bucket, object).await
            }
            Op::ObjectsGet => self.get_object(exchange, bucket, object).await,
            Op::ObjectsPatch => {
                self.change_settings(
                    exchange,
                    bucket,
                    object,
                    BodyMode::Patch { whole: exchange.whole },
                    body,
                )
                .await
            }
            Op::ObjectsUpdate => self.change_settings(exchange, bucket, object, BodyMode::Update, body).await,
            Op::ObjectsDelete => self.delete_object(exchange, bucket, object).await,
            Op::ObjectsRestore => self.restore_object(exchange, bucket, object).await,
            Op::ObjectsCopy => self.copy(exchange, call, body).await,
            Op::ObjectsRewrite => self.rewrite(exchange, call, body).await,
            Op::ObjectsCompose => self.compose(exchange, call, body).await,
            Op::ObjectsMove => self.move_object(exchange, call).await,
            Op::NotificationsList => self.list_notifications(exchange, bucket).await,
            Op::NotificationsInsert => self.insert_notification(exchange, bucket, body).await,
            Op::NotificationsGet => self.get_notification(exchange, bucket, &call.id).await,
            Op::NotificationsDelete => self.delete_notification(exchange, bucket, &call.id).await,
            Op::HmacKeyList => self.list_hmac_keys(exchange, bucket).await,
            Op::HmacKeyCreate => self.create_hmac_key(exchange, bucket).await,
            Op::HmacKeyGet => self.get_hmac_key(exchange, bucket, &call.id).await,
            Op::HmacKeyUpdate => self.update_hmac_key(exchange, bucket, &call.id, body).await,
            Op::HmacKeyDelete => self.delete_hmac_key(exchange, bucket, &call.id).await,
            Op::ServiceAccountGet => self.service_account(exchange, bucket),
            Op::ManagedFoldersList => self.list_managed_folders(exchange, bucket).await,
            Op::ManagedFoldersInsert => self.insert_managed_folder(exchange, bucket, body).await,
            Op::ManagedFoldersGet => self.get_managed_folder(exchange, bucket, &call.id).await,
            Op::ManagedFoldersDelete => self.delete_managed_folder(exchange, bucket, &call.id).await,
            Op::ObjectsBulkRestore => self.bulk_restore(exchange, bucket, body).await,
            Op::ObjectsViewFullContext => self.full_context(exchange, bucket, object).await,
            Op::OperationsList => self.list_operations(exchange, bucket).await,
            Op::OperationsGet => self.get_operation(exchange, bucket, &call.id).await,
            Op::OperationsCancel => self.cancel_operation(exchange, bucket, &call.id).await,
            Op::FoldersList => self.list_folders(exchange, bucket).await,
            Op::FoldersInsert => self.insert_folder(exchange, bucket, body).await,
            Op::FoldersGet => self.get_folder(exchange, bucket, &call.id).await,
            Op::FoldersDelete => self.delete_folder(exchange, bucket, &call.id).await,
            Op::FoldersDeleteRecursive => self.delete_folder_recursively(exchange, bucket, &call.id).await,
            Op::FoldersRename => self.rename_folder(exchange, bucket, &call.id, &call.to_object).await,
            other => Err(ObjectError::not_implemented(other.name()).into()),
        }
    }

    /// A new object, in one of the forms in which its bytes can come.
    async fn upload(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        method: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        match (exchange.parameter("upload_id"), method, exchange.parameter("uploadType")) {
            (Some(_), "DELETE", _) => self.cancel_upload(exchange, bucket).await,
            (Some(_), ..) => self.continue_upload(exchange, bucket, body).await,
            (None, _, Some("media")) => self.insert_media(exchange, bucket, body).await,
            (None, _, Some("multipart")) => self.insert_multipart(exchange, bucket, body).await,
            (None, _, Some("resumable")) => self.begin_upload(exchange, bucket, body).await,
            (None, _, Some(other)) => {
                let hint = "Use media, multipart or resumable.";
                Err(ObjectError::invalid("uploadType", other, hint).into())
            }
            (None, _, None) => Err(ObjectError::required("uploadType").into()),
        }
    }
}
