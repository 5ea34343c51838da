//! Simulation: whole clusters in one thread, from one seed.
pub mod chance;
pub mod check;
pub mod client;
pub mod events;
pub mod faults;
pub mod run;
pub mod script;
pub mod store;
pub mod workload;
pub mod world;
