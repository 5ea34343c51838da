//! What a sender may ask of the XML API, and at which rate it is let in.

use rangehold_map::capacity::Usage;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::xml::request::{BucketCall, ObjectCall, XmlRequest};

use super::copy::source_generation;
use super::list::listing;
use super::{XmlApi, conditions};
use crate::admission::About;
use crate::object::exchange::Exchange;
use crate::object::failure::Failure;
use crate::object::grants::{CREATE, DELETE, GET, LIST};
use crate::object::permission::owns;

impl XmlApi<'_> {
    /// Checks that the sender may do what the request asks for.
    pub(super) async fn authorise(
        &self,
        exchange: &Exchange<'_>,
        request: &XmlRequest,
    ) -> Result<(), Failure> {
        if self.options.access.is_open() {
            return Ok(());
        }
        let (call, bucket, name) = match request {
            XmlRequest::ListBuckets => {
                return Ok(owns(exchange, self.named_project(exchange)?, "storage.buckets.list")?);
            }
            XmlRequest::Bucket(call, bucket) => return self.authorise_bucket(exchange, call, bucket).await,
            XmlRequest::Object(call, bucket, name) => (call, self.bucket(bucket).await?, name),
        };
        match call {
            ObjectCall::Get | ObjectCall::Head => self.permit(exchange, GET, &bucket, Some(name)).await,
            ObjectCall::Delete => self.permit(exchange, DELETE, &bucket, Some(name)).await,
            ObjectCall::GetAcl => {
                self.permit(exchange, "storage.objects.getIamPolicy", &bucket, Some(name)).await
            }
            ObjectCall::SetAcl => {
                self.permit(exchange, "storage.objects.setIamPolicy", &bucket, Some(name)).await
            }
            // The id of an upload is a secret of the one that began it.
            ObjectCall::ContinueSession(_) | ObjectCall::CancelSession(_) => Ok(()),
            ObjectCall::Copy(source) => {
                let from = self.bucket(&source.bucket).await?;
                let generation = source_generation(exchange, source)?;
                self.permit_of(exchange, GET, &from, Some(&source.name), generation).await?;
                self.permit_write(exchange, &bucket, name).await
            }
            // The sources of a composition are in its body: they are asked for when that was read.
            ObjectCall::Put
            | ObjectCall::Compose
            | ObjectCall::BeginSession
            | ObjectCall::BeginUpload
            | ObjectCall::CompleteUpload(_) => self.permit_write(exchange, &bucket, name).await,
            ObjectCall::PutPart { .. } | ObjectCall::AbortUpload(_) | ObjectCall::ListParts(_) => {
                self.permit(exchange, CREATE, &bucket, Some(name)).await
            }
        }
    }

    async fn authorise_bucket(
        &self,
        exchange: &Exchange<'_>,
        call: &BucketCall,
        name: &str,
    ) -> Result<(), Failure> {
        let permission = match call {
            BucketCall::Create => {
                return Ok(owns(exchange, self.named_project(exchange)?, "storage.buckets.create")?);
            }
            // The signer of the policy must have the permission. It is not known before the fields are read.
            BucketCall::PostForm => return Ok(()),
            // Each object is asked for when its name was read.
            BucketCall::DeleteObjects => return Ok(()),
            BucketCall::List | BucketCall::ListUploads => LIST,
            BucketCall::Head => "storage.buckets.get",
            BucketCall::Delete => "storage.buckets.delete",
            BucketCall::Get(setting) if setting.is_list() => "storage.buckets.getIamPolicy",
            BucketCall::Set(setting) if setting.is_list() => "storage.buckets.setIamPolicy",
            BucketCall::Get(_) => "storage.buckets.get",
            BucketCall::Set(_) => "storage.buckets.update",
        };
        self.permit(exchange, permission, &self.bucket(name).await?, None).await
    }

    /// Checks that the sender may write an object: a new one or, if it may also delete, in the place of another.
    async fn permit_write(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        name: &str,
    ) -> Result<(), Failure> {
        self.permit(exchange, CREATE, bucket, Some(name)).await?;
        match conditions(exchange)?.generation_match {
            Some(0) => Ok(()),
            _ => self.permit(exchange, DELETE, bucket, Some(name)).await,
        }
    }

    /// Lets a request in, or refuses it: see [`rates`](crate::object::rates). Forms and sessions ask when they know the name. The
    /// parts of an upload ask for their bytes alone.
    pub(super) async fn admit_request(
        &self,
        exchange: &Exchange<'_>,
        request: &XmlRequest,
    ) -> Result<(), Failure> {
        match request {
            XmlRequest::Bucket(BucketCall::List, bucket) => {
                // If the parameters are wrong, the handler says so.
                let request = listing(exchange).map(|(_, request)| request).unwrap_or_default();
                self.admit(exchange, bucket, request.begins_at(), Usage::Read, About::Listing).await
            }
            // Requests about buckets are not counted.
            XmlRequest::ListBuckets | XmlRequest::Bucket(..) => Ok(()),
            XmlRequest::Object(call, bucket, name) => match call {
                ObjectCall::Get | ObjectCall::Head | ObjectCall::GetAcl => {
                    self.admit_name(exchange, bucket, name, Usage::Read).await
                }
                ObjectCall::Copy(source) => {
                    self.admit_name(exchange, &source.bucket, &source.name, Usage::Read).await?;
                    self.admit_name(exchange, bucket, name, Usage::Write).await
                }
                ObjectCall::Put
                | ObjectCall::Compose
                | ObjectCall::SetAcl
                | ObjectCall::Delete
                | ObjectCall::CompleteUpload(_) => {
                    self.admit_name(exchange, bucket, name, Usage::Write).await
                }
                ObjectCall::BeginSession
                | ObjectCall::ContinueSession(_)
                | ObjectCall::CancelSession(_)
                | ObjectCall::BeginUpload
                | ObjectCall::PutPart { .. }
                | ObjectCall::AbortUpload(_)
                | ObjectCall::ListParts(_) => Ok(()),
            },
        }
    }
}
