//! What goes over the wire, as pure functions: bytes in, decisions and bytes out.
//!
//! [`table`] speaks Azure Table Storage: it turns a request into a typed operation, decides a write
//! from the row that is stored, and renders replies and errors in the form that recordings of the real
//! service show. [`auth`] decides who sent a request and what that sender may do. Both report what they
//! refuse as a [`TableError`](error::TableError).
//!
//! Architecture Invariant: no clock, no randomness, no IO, no async. `now` is always an argument.

pub mod auth;
pub mod error;
pub mod json;
pub mod letters;
pub mod object;
pub mod table;
pub mod time;
pub mod uri;
