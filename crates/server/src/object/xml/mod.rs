//! The XML API: buckets at `/bucket`, and objects at `/bucket/name`.
//!
//! It shares everything below with the JSON API: the same rows, judges and blobs. The files here read its requests and
//! write its replies. [`signature`] decides for all of them whether a signed request is believed, and [`entry`] what a sender may do,
//! at which rate. [`body`] checks what is announced of a body, and takes the form off that Amazon's clients give it.

mod body;
mod buckets;
mod compose;
mod copy;
mod delete_many;
mod entry;
mod form;
mod list;
mod object;
mod parts;
mod settings;
pub(super) mod signature;
mod uploads;

use std::ops::Deref;

use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::xml::headers;
use rangehold_protocol::object::xml::request::{BucketCall, ObjectCall, XmlRequest};

use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::faults::told_as_ordered;
use super::media::written;
use super::reply::Reply;
use super::{ObjectService, Outcome, Speaks, UNKNOWN};

/// The service as the XML API sees it: the handlers here are its own, and all below them is the service's.
pub(super) struct XmlApi<'s>(pub(super) &'s ObjectService);

impl Deref for XmlApi<'_> {
    type Target = ObjectService;

    fn deref(&self) -> &ObjectService {
        self.0
    }
}

impl XmlApi<'_> {
    /// Finds the operation that a request of the XML API asks for, and carries it out.
    pub(super) async fn answer(&self, exchange: &Exchange<'_>, body: &mut RequestBody) -> Outcome {
        let (method, path) = (exchange.head.method.as_str(), exchange.head.uri.path());
        let host_bucket = exchange.bucket_in_host.as_deref();
        let header = |name: &str| exchange.header(name);
        let speaks = Speaks::Xml;
        match XmlRequest::read(method, path, host_bucket, &exchange.query, header) {
            Ok(request) => {
                let result = match request.operation() {
                    None => {
                        let done = self.run(exchange, &request, body).await;
                        done.or_else(|failure| told_as_ordered(failure, exchange.api))
                    }
                    Some(operation) => {
                        let work = self.run(exchange, &request, body);
                        self.under_fault(exchange, operation.name(), work).await
                    }
                };
                Outcome { operation: request.name(), speaks, result }
            }
            Err(error) => Outcome { operation: UNKNOWN, speaks, result: Err(error.into()) },
        }
    }

    async fn run(
        &self,
        exchange: &Exchange<'_>,
        request: &XmlRequest,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        self.authorise(exchange, request).await?;
        self.admit_request(exchange, request).await?;
        match request {
            XmlRequest::ListBuckets => self.list_buckets(exchange).await,
            XmlRequest::Bucket(call, bucket) => match call {
                BucketCall::List => self.list(exchange, bucket).await,
                BucketCall::ListUploads => self.list_uploads(exchange, bucket).await,
                BucketCall::PostForm => self.form(exchange, bucket, body).await,
                BucketCall::Create => self.create_bucket(exchange, bucket, body).await,
                BucketCall::Head => self.head_bucket(bucket).await,
                BucketCall::Delete => self.delete_bucket(exchange, bucket).await,
                BucketCall::DeleteObjects => self.delete_objects(exchange, bucket, body).await,
                BucketCall::Get(setting) => self.get_setting(bucket, *setting).await,
                BucketCall::Set(setting) => self.set_setting(exchange, bucket, *setting, body).await,
            },
            XmlRequest::Object(call, bucket, name) => match call {
                ObjectCall::Get | ObjectCall::Head => self.get(exchange, bucket, name).await,
                ObjectCall::GetAcl => self.get_acl(exchange, bucket, name).await,
                ObjectCall::SetAcl => self.set_acl(exchange, bucket, name, body).await,
                ObjectCall::Put => self.put(exchange, bucket, name, body).await,
                ObjectCall::Copy(source) => self.copy(exchange, bucket, name, source).await,
                ObjectCall::Compose => self.compose(exchange, bucket, name, body).await,
                ObjectCall::Delete => self.delete(exchange, bucket, name).await,
                ObjectCall::BeginSession => self.begin_session(exchange, bucket, name).await,
                ObjectCall::ContinueSession(_) => self.continue_upload(exchange, bucket, body).await,
                ObjectCall::CancelSession(_) => self.cancel_upload(exchange, bucket).await,
                ObjectCall::BeginUpload => self.begin_upload(exchange, bucket, name).await,
                ObjectCall::PutPart { upload, number } => {
                    self.put_part(exchange, bucket, name, (upload, *number), body).await
                }
                ObjectCall::CompleteUpload(upload) => {
                    self.complete_upload(exchange, bucket, name, upload, body).await
                }
                ObjectCall::AbortUpload(upload) => self.abort_upload(exchange, bucket, name, upload).await,
                ObjectCall::ListParts(upload) => self.list_parts(exchange, bucket, name, upload).await,
            },
        }
    }
}

/// The conditions in the headers.
fn conditions(exchange: &Exchange<'_>) -> Result<Conditions, ObjectError> {
    headers::conditions(|name| exchange.header(name))
}

/// A reply with XML.
fn xml_reply(status: u16, body: String) -> Reply {
    Reply::with_body(status, "application/xml; charset=UTF-8", body)
}
