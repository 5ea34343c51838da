//! Azure Table Storage.

pub mod error;
pub mod format;
pub mod limits;
pub mod row;
pub mod value;
