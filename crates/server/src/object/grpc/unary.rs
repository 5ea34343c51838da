//! Calls with one message and one answer.

use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::grpc::{Ask, JsonCall, JsonReply};
use serde_json::Value;

use super::answering::Answers;
use super::caller::Caller;
use super::incoming::Messages;
use super::{Ended, GrpcApi};
use crate::object::UNKNOWN;
use crate::object::exchange::{Exchange, RequestBody};
use crate::object::failure::Failure;
use crate::object::faults::ordered_failure;
use crate::object::reply::{Content, Reply};

impl GrpcApi<'_> {
    /// Carries out what a message asks for.
    pub(super) async fn ask<A: Ask>(&self, caller: &Caller, mut from: Messages<'_>, to: &Answers) -> Ended {
        let read = async {
            let asked: A = from.only().await?;
            let call = asked.call()?;
            Ok::<_, Failure>((asked, call))
        };
        let (asked, call) = match read.await {
            Ok(read) => read,
            Err(failure) => return Ended { operation: UNKNOWN, result: Err(failure) },
        };
        let answer = async {
            let reply = self.carried_out(caller, &call).await?;
            to.send(&asked.reply(reply)?).await
        };
        Ended { operation: call.call.operation.name(), result: answer.await }
    }

    /// Carries a call out, as the JSON API does.
    async fn carried_out(&self, caller: &Caller, call: &JsonCall) -> Result<JsonReply, Failure> {
        let head = caller.head_of(call)?;
        let exchange = caller.exchange(&head, call);
        let body = serde_json::to_vec(&call.body).expect("members are JSON");
        let mut body = RequestBody::Whole(body.into());
        json_reply(self.perform(&exchange, &call.call, false, call.method, &mut body).await?, call)
    }

    /// Fails if a retry test orders an error for this call as a whole. Faults at the bytes of an upload come with the bytes; other
    /// faults, of replies in the middle of their way, are those of HTTP.
    pub(super) fn fail_if_ordered(&self, exchange: &Exchange<'_>, operation: &str) -> Result<(), Failure> {
        match self.ordered_fault(exchange, operation, None) {
            Some(fault) if fault.is_early() => {
                let reply = fault.spoil(Reply::empty(200), exchange.api);
                Err(ordered_failure(if reply.status < 400 { 503 } else { reply.status }))
            }
            _ => Ok(()),
        }
    }
}

fn json_reply(reply: Reply, call: &JsonCall) -> Result<JsonReply, Failure> {
    // An upload that was cancelled is told so with 499, and this is a success.
    if reply.status >= 400 && !(reply.status == 499 && call.method == "DELETE") {
        return Err(ordered_failure(reply.status));
    }
    let body = match &reply.content {
        Content::Whole(bytes) if bytes.is_empty() => Value::Null,
        Content::Whole(bytes) => serde_json::from_slice(bytes).map_err(ObjectError::damaged)?,
        Content::Stream(..) | Content::Unmeasured(_) | Content::Frames(_) => {
            return Err(ordered_failure(503));
        }
    };
    let header = |name| reply.get(name).map(str::to_owned);
    Ok(JsonReply {
        status: reply.status,
        upload: header("X-GUploader-UploadID"),
        range: header("Range"),
        body,
    })
}
