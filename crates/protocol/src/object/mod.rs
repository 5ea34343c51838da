//! Google Cloud Storage, as pure functions: what its requests ask, and what is answered.

pub mod batch;
pub mod multipart;
