//! The body of a request, whole and as its client meant it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::body::Incoming;
use md5::{Digest, Md5};
use rangehold_protocol::error::{ErrorCode, TableError};

use super::TableService;
use super::exchange::Exchange;
use crate::body::HeldBody;
use crate::fair::Tenant;

impl TableService {
    /// Reads the body of a request of `tenant`, which may have at most `bytes_max`; see [`crate::body::Bodies::read`] for the
    /// errors. If the request has a `Content-MD5`, the body is compared with it.
    pub(super) async fn body(
        &self,
        exchange: &Exchange<'_>,
        tenant: Tenant,
        body: &mut Incoming,
        bytes_max: usize,
    ) -> Result<HeldBody, TableError> {
        let expected = exchange.header("content-md5").map(md5_of_header).transpose()?;
        let body = self.bodies.read(body, bytes_max, tenant, exchange.deadline).await?;
        match expected {
            Some(expected) if Md5::digest(&body.bytes).as_slice() != expected => {
                Err(ErrorCode::Md5Mismatch.into())
            }
            _ => Ok(body),
        }
    }
}

fn md5_of_header(text: &str) -> Result<Vec<u8>, TableError> {
    let bytes = BASE64_STANDARD.decode(text.trim()).ok().filter(|bytes| bytes.len() == 16);
    bytes.ok_or_else(|| ErrorCode::InvalidMd5.into())
}
