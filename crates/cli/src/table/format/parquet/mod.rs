//! Parquet: a column for each name and type of a file, such as `amount:Int64`.
//!
//! | type | in the file |
//! |---|---|
//! | String, and both keys | BYTE_ARRAY, as UTF-8 |
//! | Binary | BYTE_ARRAY |
//! | Boolean, Int32, Int64, Double | BOOLEAN, INT32, INT64, DOUBLE |
//! | DateTime | INT64: ticks of 100 ns since 1970. No time type of Parquet has them: nanoseconds reach from 1677 to 2262, a table's times from 1601 to 9999 |
//! | Guid | FIXED_LEN_BYTE_ARRAY(16), as UUID |
//!
//! A table stores no nulls. So a null in a column is a property that the entity does not have. A name with two types has
//! two columns, of which each entity has one at most. Names beyond [`COLUMNS_MAX`](crate::table::limits::COLUMNS_MAX) share
//! the column `rest:json`; a property's name cannot have a colon.

mod columns;
mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;

/// The column with the properties that have no column of their own, as a JSON object.
const REST: &str = "rest:json";
