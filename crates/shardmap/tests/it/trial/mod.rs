//! Trials of the fence on real servers: a short one belongs to the tests (`torture.rs`), long ones are
//! `cargo xtask shards` (`program.rs`).

pub mod attempt;
pub mod changes;
pub mod faults;
pub mod ledger;
pub mod measure;
pub mod places;
pub mod process;
pub mod python;
pub mod scale;
pub mod settling;
pub mod stalls;
pub mod stuck;
pub mod torture;
pub mod world;
pub mod writers;
