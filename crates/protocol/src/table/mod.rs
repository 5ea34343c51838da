//! Azure Table Storage.

pub mod acl;
pub mod batch;
pub mod cors;
pub mod error;
pub mod error_reply;
pub mod limits;
pub mod properties;
pub mod row;
pub mod value;
mod xml;
