//! The messages of a call as they come.

use std::time::Duration;

use hyper::body::Incoming;
use prost::Message;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::grpc::frame::Frames;
use tokio::time::Instant;

use crate::body::{Bodies, Place};
use crate::fair::Tenant;
use crate::limits;
use crate::listener::OpenRequest;
use crate::object::failure::Failure;

/// The messages of a call. A message takes room among the bodies of all requests while it comes.
pub(super) struct Messages<'c> {
    bodies: &'c Bodies,
    body: Incoming,
    tenant: Tenant,
    open: &'c OpenRequest,
    frames: Frames,
    place: Option<Place>,
}

impl<'c> Messages<'c> {
    /// The messages of `body`.
    pub(super) fn new(bodies: &'c Bodies, body: Incoming, tenant: Tenant, open: &'c OpenRequest) -> Self {
        Self { bodies, body, tenant, open, frames: Frames::default(), place: None }
    }

    /// The next message; `None` when the client has sent all. Fails if nothing comes for `quiet`.
    pub(super) async fn next<M: Message + Default>(&mut self, quiet: Duration) -> Result<Option<M>, Failure> {
        loop {
            if let Some(message) = self.frames.take()? {
                if self.frames.is_empty() {
                    self.place = None;
                }
                return Ok(Some(message));
            }
            let place = self.place.get_or_insert_with(|| self.bodies.begin(self.tenant));
            let Some(bytes) = place.more(&mut self.body, Instant::now() + quiet).await? else {
                self.place = None;
                self.frames.finish()?;
                return Ok(None);
            };
            self.open.progressed();
            self.frames.push(&bytes);
        }
    }

    /// The one message of a call that has one.
    pub(super) async fn only<M: Message + Default>(&mut self) -> Result<M, Failure> {
        let message = self.next(limits::REQUEST_WITHIN).await?;
        message.ok_or_else(|| ObjectError::required("a message").into())
    }
}
