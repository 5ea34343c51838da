//! The load of ranges and of buckets: how much it is, what causes it, how it was before, and how much is borne.
//!
//! [`load`] counts the requests of each range and judges a hot one: would a split help, and where? [`history`]
//! keeps what was counted, by key and by time, so that people can look back. Neither changes the map: the
//! planner ([`crate::plan`]) reads the verdicts and decides. [`capacity`] says how many requests for its objects a
//! bucket bears, as the cloud's documents do, and [`names`] which names scale.

pub mod capacity;
mod chance;
pub mod history;
pub mod load;
pub mod names;
mod sample;
