//! Replies as JSON, written straight from stored rows.
//!
//! A page of a thousand entities goes from the rows' bytes into one buffer; no tree and no map is
//! built between. How much metadata stands in it is the client's choice:
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

/// How much a reply says of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataLevel {
    /// `nometadata`: the data alone.
    None,
    /// `minimalmetadata`: what a client needs to read the data.
    Minimal,
    /// `fullmetadata`: links, too.
    Full,
}

impl MetadataLevel {
    /// The content type of a reply at this level.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }
}
