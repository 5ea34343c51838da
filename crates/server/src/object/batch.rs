//! Batches: several calls in one request. They are independent, and each is answered as if it had come alone.

use futures::stream::{self, StreamExt};
use http::StatusCode;
use http::request::Parts;
use rangehold_protocol::object::batch::{BATCH_BYTES_MAX, BatchError, Call, CallReply, parse, render};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::multipart::Boundary;
use rangehold_protocol::object::request::{Query, api_of};
use rangehold_protocol::object::signed::Dialect;

use super::ObjectService;
use super::exchange::{Exchange, RequestBody, text};
use super::failure::Failure;
use super::finish::refused;
use super::reply::{Content, Reply};
use super::{Outcome, Speaks};

/// The calls of a batch that are answered at the same time.
const CALLS_AT_ONCE: usize = 16;
/// The header that names the project which pays, in a bucket whose requesters pay.
const PAYER: &str = "x-goog-user-project";

impl ObjectService {
    pub(super) async fn batch(
        &self,
        exchange: &Exchange<'_>,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        if matches!(body, RequestBody::Whole(_)) {
            return Err(ObjectError::not_implemented("A batch in a batch").into());
        }
        let bytes = self.whole_body(exchange, body, BATCH_BYTES_MAX).await?;
        let content_type = exchange.header("content-type").unwrap_or_default();
        let malformed = |error: BatchError| ObjectError::new(ErrorKind::ParseError, error.to_string());
        let calls = parse(content_type, bytes).map_err(malformed)?;
        let answers = calls.into_iter().map(|call| self.call(exchange, call));
        let replies: Vec<CallReply> = stream::iter(answers).buffered(CALLS_AT_ONCE).collect().await;
        let boundary = Boundary::new(&format!("batch_{}", exchange.id)).expect("an id is printable");
        let content_type = format!("multipart/mixed; boundary={}", boundary.as_str());
        Ok(Reply::with_body(200, &content_type, render(&boundary, &replies)))
    }

    async fn call(&self, outer: &Exchange<'_>, call: Call) -> CallReply {
        let content_id = call.content_id.clone();
        let outcome = match self.read_call(outer, &call) {
            Ok((head, query)) => {
                // Blobs and uploads are named by the request that uses them.
                let id = self.ids.next();
                let exchange = Exchange {
                    id: &id,
                    head: &head,
                    api: api_of(head.uri.path()),
                    dialect: Dialect::Google,
                    query,
                    base: outer.base.clone(),
                    bucket_in_host: None,
                    principal: outer.principal.clone(),
                    chunks: None,
                    ..*outer
                };
                // A call is a request in itself, so its future holds one of its own kind.
                Box::pin(self.routed(&exchange, &mut RequestBody::Whole(call.body))).await
            }
            Err(error) => {
                Outcome { operation: super::UNKNOWN, speaks: Speaks::Json, result: Err(error.into()) }
            }
        };
        let reply = outcome.result.unwrap_or_else(|failure| refused(&failure.0, outcome.speaks));
        rendered(content_id, reply)
    }

    /// The head of a call. It is sent by the sender of the batch: a token of its own must be that sender's.
    fn read_call(&self, outer: &Exchange<'_>, call: &Call) -> Result<(Parts, Query), ObjectError> {
        let mut request = http::Request::builder().method(call.method.as_str()).uri(&call.target);
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        // The project that pays is named once for all calls.
        let names_payer = call.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(PAYER));
        if let Some(project) = outer.head.headers.get(PAYER).filter(|_| !names_payer) {
            request = request.header(PAYER, project);
        }
        let request = request.body(()).map_err(|error| ObjectError::invalid("call", error, ""))?;
        let (head, ()) = request.into_parts();
        let query = Query::parse(head.uri.query().unwrap_or_default())?;
        if let Some(token) = text(&head.headers, "authorization") {
            let sender = self.options.access.principal(Some(token), &self.options.keys.load(), outer.now);
            if !sender.is_ok_and(|sender| sender == outer.principal) {
                let message = "A call in a batch has another sender than the batch.";
                return Err(ObjectError::new(ErrorKind::Unauthenticated, message));
            }
        }
        Ok((head, query))
    }
}

fn rendered(content_id: Option<String>, reply: Reply) -> CallReply {
    let reply = match reply.content {
        Content::Whole(_) => reply,
        Content::Stream(..) | Content::Unmeasured(_) | Content::Frames(_) => {
            refused(&ObjectError::not_implemented("A download of this size in a batch"), Speaks::Json)
        }
    };
    let Content::Whole(body) = reply.content else { unreachable!("errors are written whole") };
    let reason = StatusCode::from_u16(reply.status).ok().and_then(|status| status.canonical_reason());
    let headers = reply.headers.into_iter().map(|(name, value)| (name.to_owned(), value));
    CallReply {
        content_id,
        status: (reply.status, reason.unwrap_or("Unknown")),
        headers: headers.chain(reply.named).collect(),
        body,
    }
}
