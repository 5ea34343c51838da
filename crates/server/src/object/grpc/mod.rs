//! gRPC on the port of the other APIs: a request whose `Content-Type` is `application/grpc` is a call.
//!
//! ```text
//!   path -> method -> the message as a call of the JSON API -> `perform`, as every request -> the reply as a message
//! ```
//!
//! Only the bytes of objects take another way (`read`, `write`), since they come and go in messages of their own. They
//! too are judged, stored and read by the functions of the JSON API.
//!
//! The reply begins at once. Its body does the work while it is read (`answering`), so a client that goes away ends
//! its call, and a client that reads slowly slows it down.

mod answering;
mod caller;
mod incoming;
mod read;
mod unary;
mod write;

use std::ops::Deref;
use std::sync::Arc;

use futures::StreamExt;
use http::request::Parts;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::grpc::messages as message;
use rangehold_protocol::object::grpc::status::Code;
use tokio::time::Instant;
use tracing::debug;

use self::answering::{Answers, answering};
use self::caller::Caller;
use self::incoming::Messages;
use super::access::Principal;
use super::exchange::text;
use super::failure::Failure;
use super::reply::{Content, Reply, SentBody};
use super::{Arrival, ObjectService, Outcome, UNKNOWN};
use crate::fair::Tenant;
use crate::listener::Connection;

/// The type of bodies of gRPC.
const GRPC: &str = "application/grpc";
/// Where methods of objects and buckets are.
const STORAGE: &str = "/google.storage.v2.Storage/";
/// Where methods of folders, layouts and policies are.
const CONTROL: &str = "/google.storage.control.v2.StorageControl/";

/// What a call came to: the name of its operation in the metrics, and its result.
struct Ended {
    operation: &'static str,
    result: Result<(), Failure>,
}

/// Whether a request is a call. The type may say how messages are encoded, which is always the same here.
pub(super) fn is_call(headers: &HeaderMap) -> bool {
    let kind = text(headers, "content-type").and_then(|kind| kind.strip_prefix(GRPC));
    kind.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

/// The service as gRPC sees it: the calls here are its own, and all below them is the service's.
struct GrpcApi<'s>(&'s ObjectService);

impl Deref for GrpcApi<'_> {
    type Target = ObjectService;

    fn deref(&self) -> &ObjectService {
        self.0
    }
}

/// Answers one call. It never fails: an error is the status of the call.
pub(super) async fn called(
    service: &Arc<ObjectService>,
    connection: Connection,
    request: Request<Incoming>,
) -> Response<SentBody> {
    let (head, body) = request.into_parts();
    let (open, sending) = (connection.open_request(), connection.open_request());
    let arrival = Arrival { id: service.ids.next(), now: service.clock.wall(), begun: Instant::now() };
    let begun = match service.read(&connection, &head, &open, &arrival).await {
        Ok(exchange) => match service.check_origin(&exchange).await {
            Ok(()) => Ok((exchange.principal, exchange.base)),
            Err(failure) => Err(Ended { operation: UNKNOWN, result: Err(failure) }),
        },
        Err(Outcome { operation, result, .. }) => Err(Ended { operation, result: result.map(drop) }),
    };
    let service = service.clone();
    let work = move |answers: Answers| async move {
        let api = GrpcApi(&service);
        let _under_way = service.metrics.begin();
        let path = head.uri.path().to_owned();
        let ended = match begun {
            Err(ended) => ended,
            Ok((principal, base)) => {
                let tenant = api.tenant(&principal, &head);
                let caller = Caller { head, open, base, id: arrival.id, now: arrival.now, principal, tenant };
                let messages = Messages::new(&service.bodies, body, tenant, &caller.open);
                api.dispatched(&path, &caller, messages, &answers).await
            }
        };
        api.noted(&path, &ended, arrival.begun);
        answers.trailers(ended.result.err().map(|failure| failure.0))
    };
    let mut reply = Reply::empty(200).header("Content-Type", GRPC);
    reply.content = Content::Frames(answering(work).boxed());
    reply.into_response(sending, None)
}

impl GrpcApi<'_> {
    /// In whose name a call shares what requests share. Clients name the bucket in a header, so that nobody needs to read
    /// the message for that.
    fn tenant(&self, principal: &Principal, head: &Parts) -> Tenant {
        let routed = text(&head.headers, "x-goog-request-params").unwrap_or(head.uri.path());
        let group = self.admission.hash(("objects", &principal.email));
        Tenant { group, member: self.admission.hash(routed) }
    }

    /// Counts a call that ended.
    fn noted(&self, path: &str, ended: &Ended, begun: Instant) {
        let elapsed = begun.elapsed();
        let status = ended.result.as_ref().err().map_or(200, |failure| failure.0.kind.status());
        self.metrics.finish(ended.operation, status, elapsed);
        debug!(operation = ended.operation, path, status, elapsed_us = elapsed.as_micros() as u64, "call");
    }

    /// Finds the method of a path, and carries the call out.
    async fn dispatched(
        &self,
        path: &str,
        caller: &Caller,
        messages: Messages<'_>,
        answers: &Answers,
    ) -> Ended {
        match (path.strip_prefix(STORAGE), path.strip_prefix(CONTROL)) {
            (Some(method), _) => self.storage(method, caller, messages, answers).await,
            (_, Some(method)) => self.control(method, caller, messages, answers).await,
            (None, None) => not_implemented(path),
        }
    }

    async fn storage(&self, method: &str, caller: &Caller, from: Messages<'_>, to: &Answers) -> Ended {
        match method {
            "CreateBucket" => self.ask::<message::CreateBucketRequest>(caller, from, to).await,
            "GetBucket" => self.ask::<message::GetBucketRequest>(caller, from, to).await,
            "ListBuckets" => self.ask::<message::ListBucketsRequest>(caller, from, to).await,
            "UpdateBucket" => self.ask::<message::UpdateBucketRequest>(caller, from, to).await,
            "DeleteBucket" => self.ask::<message::DeleteBucketRequest>(caller, from, to).await,
            "LockBucketRetentionPolicy" => {
                self.ask::<message::LockBucketRetentionPolicyRequest>(caller, from, to).await
            }
            "GetIamPolicy" => self.ask::<message::GetIamPolicyRequest>(caller, from, to).await,
            "SetIamPolicy" => self.ask::<message::SetIamPolicyRequest>(caller, from, to).await,
            "TestIamPermissions" => self.ask::<message::TestIamPermissionsRequest>(caller, from, to).await,
            "GetObject" => self.ask::<message::GetObjectRequest>(caller, from, to).await,
            "ListObjects" => self.ask::<message::ListObjectsRequest>(caller, from, to).await,
            "UpdateObject" => self.ask::<message::UpdateObjectRequest>(caller, from, to).await,
            "DeleteObject" => self.ask::<message::DeleteObjectRequest>(caller, from, to).await,
            "RestoreObject" => self.ask::<message::RestoreObjectRequest>(caller, from, to).await,
            "ComposeObject" => self.ask::<message::ComposeObjectRequest>(caller, from, to).await,
            "RewriteObject" => self.ask::<message::RewriteObjectRequest>(caller, from, to).await,
            "MoveObject" => self.ask::<message::MoveObjectRequest>(caller, from, to).await,
            "StartResumableWrite" => self.ask::<message::StartResumableWriteRequest>(caller, from, to).await,
            "QueryWriteStatus" => self.ask::<message::QueryWriteStatusRequest>(caller, from, to).await,
            "CancelResumableWrite" => {
                self.ask::<message::CancelResumableWriteRequest>(caller, from, to).await
            }
            "ReadObject" => self.read_object(caller, from, to).await,
            "BidiReadObject" => self.read_ranges(caller, from, to).await,
            "WriteObject" => self.write_object(caller, from, to).await,
            "BidiWriteObject" => self.write_and_tell(caller, from, to).await,
            other => not_implemented(other),
        }
    }

    async fn control(&self, method: &str, caller: &Caller, from: Messages<'_>, to: &Answers) -> Ended {
        match method {
            "GetStorageLayout" => self.ask::<message::GetStorageLayoutRequest>(caller, from, to).await,
            "CreateManagedFolder" => self.ask::<message::CreateManagedFolderRequest>(caller, from, to).await,
            "GetManagedFolder" => self.ask::<message::GetManagedFolderRequest>(caller, from, to).await,
            "ListManagedFolders" => self.ask::<message::ListManagedFoldersRequest>(caller, from, to).await,
            "DeleteManagedFolder" => self.ask::<message::DeleteManagedFolderRequest>(caller, from, to).await,
            "CreateFolder" => self.ask::<message::CreateFolderRequest>(caller, from, to).await,
            "GetFolder" => self.ask::<message::GetFolderRequest>(caller, from, to).await,
            "ListFolders" => self.ask::<message::ListFoldersRequest>(caller, from, to).await,
            "RenameFolder" => self.ask::<message::RenameFolderRequest>(caller, from, to).await,
            "DeleteFolder" => self.ask::<message::DeleteFolderRequest>(caller, from, to).await,
            "DeleteFolderRecursive" => {
                self.ask::<message::DeleteFolderRecursiveRequest>(caller, from, to).await
            }
            "GetIamPolicy" => self.ask::<message::GetIamPolicyRequest>(caller, from, to).await,
            "SetIamPolicy" => self.ask::<message::SetIamPolicyRequest>(caller, from, to).await,
            "TestIamPermissions" => self.ask::<message::TestIamPermissionsRequest>(caller, from, to).await,
            other => not_implemented(other),
        }
    }
}

/// Methods that this server does not have: caches, and what comes with later versions of the API.
fn not_implemented(method: &str) -> Ended {
    Ended { operation: UNKNOWN, result: Err(ObjectError::not_implemented(method).into()) }
}

/// The refusal of a stream of messages that breaks the rules of its method.
fn misused(message: impl Into<String>) -> Failure {
    ObjectError::new(ErrorKind::Invalid, message).into()
}

/// The number of the code, as trailers have it.
fn number(code: Code) -> u8 {
    code as u8
}
