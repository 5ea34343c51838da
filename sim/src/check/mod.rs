//! Checkers take what clients saw, and find what was wrong with it.
//!
//! Each is a pure function over a history, so that it can be shown to fail on a bad one
//! (`tests/checkers.rs`).

pub mod bank;
pub mod blobs;
pub mod etags;
pub mod ids;
pub mod ledger;
pub mod pages;
pub mod register;
