//! Ranges on SlateDB.

pub mod store;
