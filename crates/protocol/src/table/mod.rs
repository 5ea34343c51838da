//! Azure Table Storage.
//!
//! | what | where |
//! |---|---|
//! | which operation a request asks for | [`request`] |
//! | entities: JSON in, stored form, JSON out | [`entity`], [`row`], [`render`] |
//! | the decision of a write | [`mod@write`] |
//! | queries | [`query`], [`filter`], [`key_bounds`], [`select`], [`continuation`] |
//! | entity group transactions | [`batch`] |
//! | XML documents | [`acl`], [`properties`] |
//! | replies to browsers | [`cors`] |
//! | replies to requests that are refused | [`error_reply`] |
//! | names, values, ETags, formats, limits | [`names`], [`value`], [`etag`], [`mod@format`], [`limits`] |

pub mod acl;
pub mod batch;
pub mod catalogue;
pub mod continuation;
pub mod cors;
pub mod entity;
pub mod error_reply;
pub mod etag;
pub mod filter;
pub mod format;
pub mod key_bounds;
pub mod limits;
pub mod names;
mod ordinal;
pub mod properties;
pub mod query;
pub mod render;
pub mod request;
pub mod row;
pub mod select;
pub mod value;
pub mod write;
mod xml;
