//! Shard maps for SQL databases.
mod error;
pub mod limits;
mod location;
pub mod postgres;
pub mod routing;
mod sqlite;
mod store;

pub use error::{Category, Code, Error};
pub use location::Location;
pub use store::{Failure, StoreError};
