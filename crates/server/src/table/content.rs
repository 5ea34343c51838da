//! The body of a request, whole and as its client meant it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hyper::body::Incoming;
use md5::{Digest, Md5};
use rangehold_protocol::error::{ErrorCode, TableError};
use tokio::time::Instant;

use super::TableService;
use super::exchange::Exchange;
use crate::body::HeldBody;
use crate::fair::Tenant;
use crate::limits;
use crate::room::Place;

/// A body that is worked on. What it has of what requests share is given back when this is dropped.
pub(super) struct Content {
    /// All bytes of the body.
    pub(super) bytes: Bytes,
    _body: HeldBody,
    _turn: Option<Place>,
}

impl TableService {
    /// Reads the body of a request of `tenant`, which may have at most `bytes_max`; see [`crate::body::Bodies::read`] for the
    /// errors. If the request has a `Content-MD5`, the body is compared with it. A large body then waits for its turn.
    pub(super) async fn body(
        &self,
        exchange: &Exchange<'_>,
        tenant: Tenant,
        body: &mut Incoming,
        bytes_max: usize,
    ) -> Result<Content, TableError> {
        let expected = exchange.header("content-md5").map(md5_of_header).transpose()?;
        let body = self.bodies.read(body, bytes_max, tenant, exchange.deadline).await?;
        match expected {
            Some(expected) if Md5::digest(&body.bytes).as_slice() != expected => {
                Err(ErrorCode::Md5Mismatch.into())
            }
            _ => {
                let turn = self.turn_of_large(tenant, body.bytes.len(), exchange.deadline).await?;
                Ok(Content { bytes: body.bytes.clone(), _body: body, _turn: turn })
            }
        }
    }

    /// Waits until a large body may be worked on. A small one need not wait.
    async fn turn_of_large(
        &self,
        tenant: Tenant,
        bytes: usize,
        deadline: Instant,
    ) -> Result<Option<Place>, TableError> {
        if bytes < limits::BODY_SMALL_BYTES {
            return Ok(None);
        }
        self.large.place(tenant, bytes, deadline).await.map(Some)
    }
}

fn md5_of_header(text: &str) -> Result<Vec<u8>, TableError> {
    let bytes = BASE64_STANDARD.decode(text.trim()).ok().filter(|bytes| bytes.len() == 16);
    bytes.ok_or_else(|| ErrorCode::InvalidMd5.into())
}
