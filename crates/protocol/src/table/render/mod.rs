//! Replies as JSON, written straight from stored rows.
//!
//! A page of a thousand entities goes from the rows' bytes into one buffer; no tree and no map is
//! built between. How much metadata stands in it is the client's
//! choice ([`MetadataLevel`](super::format::MetadataLevel)):
//!
//! | level | at the top | of an entity | of a property |
//! |---|---|---|---|
//! | none | | | |
//! | minimal | `odata.metadata` | `odata.etag` | the type of Binary, DateTime, Guid, Int64 |
//! | full | `odata.metadata` | `odata.type`, `odata.id`, `odata.etag`, `odata.editLink` | also the type of Timestamp |
//!
//! The type stands before its property. String, Boolean, Int32 and Double show theirs by their
//! form, except for a Double that JSON has no number for (`"NaN"`). All of this is recorded, and so
//! is that `odata.metadata` repeats `$select`.

mod double;
mod entity;
mod json;
mod table;
mod uri;

pub use entity::EntityWriter;
pub use table::TableWriter;
pub use uri::{entity_uri, table_uri};
