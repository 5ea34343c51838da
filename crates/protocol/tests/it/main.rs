//! The protocol by its public functions: recordings, vectors, golden files and properties.

mod batch;
mod entity;
mod filter_examples;
mod filter_properties;
mod golden;
mod intents;
mod render;
mod settings;
mod signatures;
mod signed_headers;
mod signed_urls;
mod write;
