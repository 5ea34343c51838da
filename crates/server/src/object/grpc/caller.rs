//! The sender of a call, and the request in which it came.

use http::request::Parts;
use rangehold_map::Timestamp;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::grpc::JsonCall;
use rangehold_protocol::object::request::Api;
use rangehold_protocol::object::signed::Dialect;

use crate::fair::Tenant;
use crate::listener::OpenRequest;
use crate::object::access::Principal;
use crate::object::exchange::Exchange;
use crate::object::retry_tests::Transport;

/// Headers of a call that mean something to the operations of the JSON API.
const PASSED_ON: [&str; 2] = ["x-retry-test-id", "x-goog-user-project"];

/// A call without its messages.
pub(super) struct Caller {
    pub(super) head: Parts,
    pub(super) open: OpenRequest,
    pub(super) base: String,
    pub(super) id: String,
    pub(super) now: Timestamp,
    pub(super) principal: Principal,
    pub(super) tenant: Tenant,
}

impl Caller {
    /// The head of a request of the JSON API that does the same as this call.
    pub(super) fn head_of(&self, call: &JsonCall) -> Result<Parts, ObjectError> {
        // Retry tests are of one transport, and the request does not show otherwise that it is a call.
        let mut request = http::Request::builder().method(call.method).extension(Transport::Grpc);
        for name in PASSED_ON {
            if let Some(value) = self.head.headers.get(name) {
                request = request.header(name, value);
            }
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let request = request.body(()).map_err(|error| ObjectError::invalid("the message", error, ""))?;
        Ok(request.into_parts().0)
    }

    /// The request of the JSON API, with the head of [`head_of`](Self::head_of).
    pub(super) fn exchange<'a>(&'a self, head: &'a Parts, call: &'a JsonCall) -> Exchange<'a> {
        Exchange {
            head,
            open: &self.open,
            base: self.base.clone(),
            bucket_in_host: None,
            api: Api::Json,
            dialect: Dialect::Google,
            query: call.query.clone(),
            id: &self.id,
            now: self.now,
            principal: self.principal.clone(),
            chunks: None,
            whole: &call.whole,
            tenant: self.tenant,
        }
    }
}
