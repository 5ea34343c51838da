//! What the tests share: real database servers, and what stands between them and their clients.

pub mod faults;
pub mod local;
pub mod mutants;
pub mod proxy;
pub mod routed;
#[macro_use]
pub mod stores;

pub use rangehold_testkit::postgres;
