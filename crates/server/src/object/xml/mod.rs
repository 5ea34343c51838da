//! The XML API: objects at `/bucket/name`.
//!
//! It shares everything below with the JSON API: the same rows, judges and blobs. The files here read its requests and
//! write its replies. [`signature`] decides for all of them whether a signed request is believed.

mod copy;
mod form;
mod list;
mod object;
mod parts;
pub(super) mod signature;
mod uploads;

use std::ops::Deref;

use rangehold_map::capacity::Usage;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::generation::Generation;
use rangehold_protocol::object::request::Api;
use rangehold_protocol::object::xml::headers;
use rangehold_protocol::object::xml::request::{BucketCall, ObjectCall, XmlRequest};

use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::permission::{CREATE, DELETE, GET, LIST};
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
                let result = self.run(exchange, &request, body).await;
                Outcome { operation: request.name(), speaks, result }
            }
            Err(error) => Outcome { operation: UNKNOWN, speaks, result: Err(error.into()) },
        }
    }

    /// Checks that the sender may do what the request asks for.
    async fn authorise(&self, exchange: &Exchange<'_>, request: &XmlRequest) -> Result<(), Failure> {
        if self.options.access.is_open() {
            return Ok(());
        }
        let (call, bucket, name) = match request {
            // The signer of the policy must have the permission. It is not known before the fields are read.
            XmlRequest::Bucket(BucketCall::PostForm, _) => return Ok(()),
            XmlRequest::Bucket(BucketCall::List | BucketCall::ListUploads, bucket) => {
                return self.permit(exchange, LIST, &self.bucket(bucket).await?, None).await;
            }
            XmlRequest::Object(call, bucket, name) => (call, self.bucket(bucket).await?, name),
        };
        match call {
            ObjectCall::Get | ObjectCall::Head => self.permit(exchange, GET, &bucket, Some(name)).await,
            ObjectCall::Delete => self.permit(exchange, DELETE, &bucket, Some(name)).await,
            // The id of an upload is a secret of the one that began it.
            ObjectCall::ContinueSession(_) | ObjectCall::CancelSession(_) => Ok(()),
            ObjectCall::Copy(source) => {
                let from = self.bucket(&source.bucket).await?;
                self.permit(exchange, GET, &from, Some(&source.name)).await?;
                self.permit_write(exchange, &bucket).await
            }
            ObjectCall::Put
            | ObjectCall::BeginSession
            | ObjectCall::BeginUpload
            | ObjectCall::CompleteUpload(_) => self.permit_write(exchange, &bucket).await,
            ObjectCall::PutPart { .. } | ObjectCall::AbortUpload(_) | ObjectCall::ListParts(_) => {
                self.permit(exchange, CREATE, &bucket, None).await
            }
        }
    }

    /// Checks that the sender may write objects of a bucket: new ones or, if it may also delete, in the place of others.
    async fn permit_write(&self, exchange: &Exchange<'_>, bucket: &Bucket) -> Result<(), Failure> {
        self.permit(exchange, CREATE, bucket, None).await?;
        match conditions(exchange)?.generation_match {
            Some(0) => Ok(()),
            _ => self.permit(exchange, DELETE, bucket, None).await,
        }
    }

    /// Lets a request in, or refuses it: see [`rates`](super::rates). Forms and sessions ask when they know the name.
    async fn admit_request(&self, exchange: &Exchange<'_>, request: &XmlRequest) -> Result<(), Failure> {
        match request {
            XmlRequest::Bucket(BucketCall::List, bucket) => {
                let begins_at = exchange.parameter("start-after").or(exchange.parameter("marker"));
                let begins_at = begins_at.or(exchange.parameter("prefix")).unwrap_or_default();
                self.admit(exchange, bucket, begins_at, Usage::Read, true).await
            }
            XmlRequest::Bucket(BucketCall::PostForm | BucketCall::ListUploads, _) => Ok(()),
            XmlRequest::Object(call, bucket, name) => match call {
                ObjectCall::Get | ObjectCall::Head => {
                    self.admit_name(exchange, bucket, name, Usage::Read).await
                }
                ObjectCall::Copy(source) => {
                    self.admit_name(exchange, &source.bucket, &source.name, Usage::Read).await?;
                    self.admit_name(exchange, bucket, name, Usage::Write).await
                }
                ObjectCall::Put | ObjectCall::Delete | ObjectCall::CompleteUpload(_) => {
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

    async fn run(
        &self,
        exchange: &Exchange<'_>,
        request: &XmlRequest,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        self.authorise(exchange, request).await?;
        self.admit_request(exchange, request).await?;
        match request {
            XmlRequest::Bucket(BucketCall::List, bucket) => self.list(exchange, bucket).await,
            XmlRequest::Bucket(BucketCall::PostForm, bucket) => self.form(exchange, bucket, body).await,
            XmlRequest::Bucket(BucketCall::ListUploads, bucket) => self.list_uploads(exchange, bucket).await,
            XmlRequest::Object(call, bucket, name) => match call {
                ObjectCall::Get | ObjectCall::Head => {
                    let reply = self.get(exchange, bucket, name).await?;
                    Ok(self.charge_reply(bucket, reply).await)
                }
                ObjectCall::Put => self.put(exchange, bucket, name, body).await,
                ObjectCall::Copy(source) => self.copy(exchange, bucket, name, source).await,
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

/// A reply that tells of a generation which was just written, without its bytes.
fn written(status: u16, made: &Generation) -> Reply {
    let mut reply = Reply::empty(status);
    super::media::put_stored_headers(&mut reply, made, Api::Xml);
    reply
}

/// A reply with XML.
fn xml_reply(status: u16, body: String) -> Reply {
    Reply::with_body(status, "application/xml; charset=UTF-8", body)
}
