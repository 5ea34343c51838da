//! From an operation to the handler of its noun.

use std::future::ready;

use futures::future::BoxFuture;
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
        let work = self.run(exchange, call, is_media, method, body);
        self.under_fault(exchange, call.operation.name(), work).await
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
        self.handler(exchange, call, is_media, method, body).await
    }

    /// The handler of an operation. It is boxed, because each request would carry room for the largest of them otherwise, and
    /// copy it from caller to caller.
    fn handler<'a>(
        &'a self,
        exchange: &'a Exchange<'_>,
        call: &'a Call,
        is_media: bool,
        method: &'a str,
        body: &'a mut RequestBody,
    ) -> BoxFuture<'a, Result<Reply, Failure>> {
        let (bucket, object) = (call.bucket.as_str(), call.object.as_str());
        match call.operation {
            Op::BucketsList => Box::pin(self.list_buckets(exchange)),
            Op::BucketsInsert => Box::pin(self.insert_bucket(exchange, body)),
            Op::BucketsGet => Box::pin(self.get_bucket(exchange, bucket)),
            Op::BucketsPatch => {
                Box::pin(self.write_bucket(exchange, bucket, BodyMode::Patch { whole: exchange.whole }, body))
            }
            Op::BucketsUpdate => Box::pin(self.write_bucket(exchange, bucket, BodyMode::Update, body)),
            Op::BucketsDelete => Box::pin(self.delete_bucket(exchange, bucket)),
            Op::BucketsLockRetentionPolicy => Box::pin(self.lock_in_test(exchange, bucket)),
            Op::BucketsRestore => Box::pin(self.restore_bucket(exchange, bucket)),
            Op::BucketsGetIamPolicy => Box::pin(self.get_bucket_policy(exchange, bucket)),
            Op::BucketsSetIamPolicy => Box::pin(self.set_bucket_policy(exchange, bucket, body)),
            Op::BucketsTestIamPermissions => Box::pin(self.test_permissions(exchange, bucket, Place::Bucket)),
            Op::ObjectsGetIamPolicy => Box::pin(self.get_object_policy(exchange, bucket, object)),
            Op::ObjectsSetIamPolicy => Box::pin(self.set_object_policy(exchange, bucket, object, body)),
            Op::ObjectsTestIamPermissions => {
                Box::pin(self.test_permissions(exchange, bucket, Place::Object(object)))
            }
            Op::ManagedFoldersGetIamPolicy => Box::pin(self.get_folder_policy(exchange, bucket, &call.id)),
            Op::ManagedFoldersSetIamPolicy => {
                Box::pin(self.set_folder_policy(exchange, bucket, &call.id, body))
            }
            Op::ManagedFoldersTestIamPermissions => {
                Box::pin(self.test_permissions(exchange, bucket, Place::Folder(&call.id)))
            }
            Op::BucketsGetStorageLayout => Box::pin(self.bucket_layout(exchange, bucket)),
            Op::BucketAclList
            | Op::BucketAclInsert
            | Op::BucketAclGet
            | Op::BucketAclPatch
            | Op::BucketAclUpdate
            | Op::BucketAclDelete => Box::pin(self.bucket_acl(exchange, call, false, body)),
            Op::DefaultObjectAclList
            | Op::DefaultObjectAclInsert
            | Op::DefaultObjectAclGet
            | Op::DefaultObjectAclPatch
            | Op::DefaultObjectAclUpdate
            | Op::DefaultObjectAclDelete => Box::pin(self.bucket_acl(exchange, call, true, body)),
            Op::ObjectAclList
            | Op::ObjectAclInsert
            | Op::ObjectAclGet
            | Op::ObjectAclPatch
            | Op::ObjectAclUpdate
            | Op::ObjectAclDelete => Box::pin(self.object_acl(exchange, call, body)),
            Op::ObjectsList => Box::pin(self.list_objects(exchange, bucket)),
            Op::ObjectsInsert => Box::pin(self.upload(exchange, bucket, method, body)),
            Op::ObjectsGet if is_media || exchange.head.uri.path().starts_with("/download/") => {
                Box::pin(self.download(exchange, bucket, object))
            }
            Op::ObjectsGet => Box::pin(self.get_object(exchange, bucket, object)),
            Op::ObjectsPatch => Box::pin(self.change_settings(
                exchange,
                bucket,
                object,
                BodyMode::Patch { whole: exchange.whole },
                body,
            )),
            Op::ObjectsUpdate => {
                Box::pin(self.change_settings(exchange, bucket, object, BodyMode::Update, body))
            }
            Op::ObjectsDelete => Box::pin(self.delete_object(exchange, bucket, object)),
            Op::ObjectsRestore => Box::pin(self.restore_object(exchange, bucket, object)),
            Op::ObjectsCopy => Box::pin(self.copy(exchange, call, body)),
            Op::ObjectsRewrite => Box::pin(self.rewrite(exchange, call, body)),
            Op::ObjectsCompose => Box::pin(self.compose(exchange, call, body)),
            Op::ObjectsMove => Box::pin(self.move_object(exchange, call)),
            Op::NotificationsList => Box::pin(self.list_notifications(exchange, bucket)),
            Op::NotificationsInsert => Box::pin(self.insert_notification(exchange, bucket, body)),
            Op::NotificationsGet => Box::pin(self.get_notification(exchange, bucket, &call.id)),
            Op::NotificationsDelete => Box::pin(self.delete_notification(exchange, bucket, &call.id)),
            Op::HmacKeyList => Box::pin(self.list_hmac_keys(exchange, bucket)),
            Op::HmacKeyCreate => Box::pin(self.create_hmac_key(exchange, bucket)),
            Op::HmacKeyGet => Box::pin(self.get_hmac_key(exchange, bucket, &call.id)),
            Op::HmacKeyUpdate => Box::pin(self.update_hmac_key(exchange, bucket, &call.id, body)),
            Op::HmacKeyDelete => Box::pin(self.delete_hmac_key(exchange, bucket, &call.id)),
            Op::ServiceAccountGet => Box::pin(ready(self.service_account(exchange, bucket))),
            Op::ManagedFoldersList => Box::pin(self.list_managed_folders(exchange, bucket)),
            Op::ManagedFoldersInsert => Box::pin(self.insert_managed_folder(exchange, bucket, body)),
            Op::ManagedFoldersGet => Box::pin(self.get_managed_folder(exchange, bucket, &call.id)),
            Op::ManagedFoldersDelete => Box::pin(self.delete_managed_folder(exchange, bucket, &call.id)),
            Op::ObjectsBulkRestore => Box::pin(self.bulk_restore(exchange, bucket, body)),
            Op::ObjectsViewFullContext => Box::pin(self.full_context(exchange, bucket, object)),
            Op::OperationsList => Box::pin(self.list_operations(exchange, bucket)),
            Op::OperationsGet => Box::pin(self.get_operation(exchange, bucket, &call.id)),
            Op::OperationsCancel => Box::pin(self.cancel_operation(exchange, bucket, &call.id)),
            Op::FoldersList => Box::pin(self.list_folders(exchange, bucket)),
            Op::FoldersInsert => Box::pin(self.insert_folder(exchange, bucket, body)),
            Op::FoldersGet => Box::pin(self.get_folder(exchange, bucket, &call.id)),
            Op::FoldersDelete => Box::pin(self.delete_folder(exchange, bucket, &call.id)),
            Op::FoldersDeleteRecursive => {
                Box::pin(self.delete_folder_recursively(exchange, bucket, &call.id))
            }
            Op::FoldersRename => Box::pin(self.rename_folder(exchange, bucket, &call.id, &call.to_object)),
            other => Box::pin(ready(Err(ObjectError::not_implemented(other.name()).into()))),
        }
    }

    /// A new object, in one of the forms in which its bytes can come. `Content-Encoding` says in each of them how the body is
    /// sent; the encoding of the object is a parameter, or a field of its resource.
    async fn upload(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        method: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        body.unpack(exchange);
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
