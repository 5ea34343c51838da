//! The object service as clients meet it.

mod addresses;
