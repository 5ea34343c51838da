//! The load of ranges: how much it is, what causes it, and how it was before.
//!
//! [`load`] counts the requests of each range and judges a hot one: would a split help, and where? [`history`]
//! keeps what was counted, by key and by time, so that people can look back. Neither changes the map: the
//! planner ([`crate::plan`]) reads the verdicts and decides.

pub mod history;
pub mod load;
