//! What goes over the wire, as pure functions: bytes in, decisions and bytes out.
//!
//! [`table`] speaks Azure Table Storage: it turns a request into a typed operation, judges a write
//! against the row it meets, and renders replies and errors as the real service was recorded
//! sending them. [`auth`] decides who sent a request and what they may do.
//!
//! Architecture Invariant: no clock, no randomness, no IO, no async. `now` is always an argument.

pub mod auth;
pub mod error;
pub mod letters;
pub mod table;
pub mod time;
pub mod uri;
