//! Azure Table Storage.

pub mod entity;
pub mod error;
pub mod etag;
pub mod limits;
pub mod names;
pub mod render;
pub mod row;
pub mod select;
pub mod value;
pub mod write;
