//! What the tests share: real database servers, and what stands between them and their clients.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test uses a part, and fails by panic"
)]

pub mod faults;
pub mod local;
pub mod mutants;
pub mod proxy;
pub mod routed;
#[macro_use]
pub mod stores;

pub use rangehold_testkit::{pooler, postgres};
