//! The XML API: requests to `/bucket/name`, or to `/name` at a host `bucket.HOST`, and the XML in their bodies.
//!
//! [`request`] finds the operation, [`headers`] reads what headers say about an object, [`list`] and [`parts`] write and read bodies, [`error`] writes refusals. Multipart
//! uploads exist in this API alone.

pub mod error;
pub mod headers;
pub mod list;
pub mod parts;
pub mod request;
mod writer;
