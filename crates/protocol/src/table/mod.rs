//! Azure Table Storage.

pub mod error;
pub mod etag;
pub mod filter;
pub mod limits;
pub mod names;
pub mod ordinal;
pub mod row;
pub mod value;
