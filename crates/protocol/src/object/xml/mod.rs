//! The XML API: requests to `/bucket/name`, or to `/name` at a host `bucket.HOST`, and the XML in their bodies.
//!
//! [`request`] finds the operation, and [`headers`] reads what headers say about an object. [`list`], [`buckets`], [`parts`],
//! [`delete`], [`compose`], [`settings`] and [`acl`] read and write bodies; [`error`] writes refusals. Multipart uploads, and the
//! deletion of many objects, exist in this API alone.

pub mod acl;
pub mod buckets;
pub mod compose;
pub mod delete;
pub mod error;
pub mod headers;
mod lifecycle;
pub mod list;
pub mod parts;
pub mod request;
pub mod settings;
mod tree;
mod writer;
