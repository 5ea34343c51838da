//! The store below the simulated processes, in memory and with faults.
//!
//! There is one [`Bucket`] for the whole cluster, and one [`Door`] for each life of a process. What
//! a process does to the store goes through its door, which takes time, has faults, and can be held
//! (the process is paused) or closed for good (it crashed). A process that starts again gets a new
//! door.
//!
//! ```text
//!   process 1, first life   --x  Door (closed)
//!   process 1, second life  ---  Door  ---\
//!   process 2               ---  Door  ------  Bucket
//! ```

mod bucket;
mod door;
mod fate;

pub use bucket::{Bucket, LISTED_BACK_MAX, Object};
pub use door::{Door, Passage};
pub use fate::Refused;
