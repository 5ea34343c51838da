//! Replies as JSON, written straight from stored rows.
//!
//! A page of a thousand entities goes from the rows' bytes into one buffer, without a tree or a map between.
//! The client chooses how much metadata a reply has ([`MetadataLevel`](super::format::MetadataLevel)):
//!
//! | level | at the top | for an entity | for a property |
//! |---|---|---|---|
//! | none | | | |
//! | minimal | `odata.metadata` | `odata.etag` | the type of Binary, DateTime, Guid, Int64 |
//! | full | `odata.metadata` | `odata.type`, `odata.id`, `odata.etag`, `odata.editLink` | also the type of Timestamp |
//!
//! The type stands before its property. The form of a String, Boolean, Int32 or Double shows its type,
//! except for a Double that JSON cannot write as a number (`"NaN"`). `odata.metadata` repeats `$select`.
//! Recordings show all of this.

mod body;
mod double;
mod entity;
mod json;
mod page;
mod table;
mod uri;

pub use body::put_body;
pub use entity::EntityWriter;
pub use page::PageWriter;
pub use table::TableWriter;
pub use uri::{entity_uri, table_uri};
