//! Azure Table Storage.

pub mod entity;
pub mod error;
pub mod etag;
pub mod limits;
pub mod names;
pub mod row;
pub mod value;
pub mod write;
