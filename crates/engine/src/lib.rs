//! Ranges on SlateDB: the only crate that names it.
//!
//! | module | what it is |
//! |---|---|
//! | [`PartitionServer`] | holds ranges and answers for their keys; the way in |
//! | `range` | one range: opening, reading, writing, timestamps, dropped tables |
//! | `routes`, `map_store` | from keys to ranges; the map as it is stored |
//! | `tasks` | the background tasks, and what becomes of one that panics |
//! | `sweeper`, `compaction` | how the rows of dropped tables go |
//! | `housekeeping` | compaction and garbage of all databases; space that comes back after splits |
//! | `governor` | one figure of memory for the process, divided |
//! | [`Clock`] | time that never goes back |
//! | [`mutants`] | mistakes for the simulation to find |
//! | [`copy`] | backup and restore of a store, even of one that is served |
//! | [`store`] | where the objects are: in memory or in a directory |
//!
//! Architecture Invariant: nobody but [`Clock`] reads the wall clock, and nothing is drawn from
//! chance but by the seed in [`Options`].

mod change;
mod clock;
pub mod copy;
mod database;
mod error;
mod executor;
mod host;
mod housekeeping;
mod lease;
mod limits;
mod map_store;
pub mod mutants;
mod node;
mod partition_server;
mod range;
mod record_name;
mod router;
mod run_to_end;
mod steps;
pub mod store;
mod sweeping;
mod tasks;

pub use change::{ChangeError, Changed, StepError};
pub use clock::Clock;
pub use database::{Borrowed, Shares};
pub use error::{Damaged, OpenError, ReadError, WriteError};
pub use executor::Executor;
pub use host::{Host, Options};
pub use map_store::{MAP_PREFIX, Maps};
pub use node::{Node, Statistics, Trouble};
pub use partition_server::{NotHeld, PartitionServer};
pub use range::{RangeGlance, RangeSeen, RangeStatistics, RowChanges, ScanEnd, WriteRequest};
pub use record_name::{CHANGES_PREFIX, RecordName};
pub use router::Router;
pub use steps::{Hook, SpaceHook, SpaceStep, Step, StepHook};
