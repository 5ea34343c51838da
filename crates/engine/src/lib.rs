//! Ranges on SlateDB: the only crate that names it.
//!
//! The modules stand on floors. Each uses those below it and none above; `xtask/tests/floors.rs` checks that. Read
//! from the bottom, this is the engine:
//!
//! | floor | modules | what it is |
//! |---|---|---|
//! | ground | [`store`], `steps`, `record_name`, `lease`, [`Clock`], `error`, `limits`, `tasks`, `run_to_end` | where the objects are, and what every floor needs: time, errors, limits, background tasks, the names of the steps after which a test may stop a process |
//! | database | `database` | one SlateDB database: how it is opened and with what, how scans read its sorted files, its compaction filter, the shares of memory, the way to the housekeeper |
//! | range | `range` | one range over one database: reads, writes, the gate that holds writes, timestamps, dropped tables, retirement |
//! | housekeeping, map | `housekeeping`, `map_store`, `host` | compaction, garbage and burial of all databases; the map as it is stored; what the servers of a process share |
//! | server | [`PartitionServer`] | holds ranges under a lease, and answers for their keys |
//! | change | `change` | how ranges are split, merged and moved, step by step |
//! | router, executor | [`Router`], [`Executor`] | from a key to the server that holds it; the changes of the map |
//! | blobs | [`blob`] | large payloads as files of their own, and the rows that say who uses them |
//! | sweeping | `sweeping` | the rows of dropped tables go, then the last notes of the tables |
//! | node | [`Node`], [`copy`] | a process in all its roles; backup and restore of a store, also of one that is served |
//!
//! The rustc compiler compiles the body of an async function in each crate that awaits it. So the functions that lead to
//! SlateDB, or through a whole change of ranges, return a `BoxFuture` in place of being async, and judges and visitors are
//! trait objects: otherwise the server, the simulation and each of their tests would compile the engine and SlateDB once
//! more.
//!
//! Architecture Invariant: only [`Clock`] reads the wall clock, and everything random comes from the seed in
//! [`Options`].

pub mod blob;
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
pub use database::{Borrowed, DatabaseError, Shares, TooLittleMemory};
pub use error::{Damaged, ReadError, Reason, WriteError, with_causes};
pub use executor::Executor;
pub use host::{Host, HostError, Options};
pub use lease::LeaseError;
pub use map_store::{BadMap, MAP_PREFIX, MapError, Maps};
pub use node::{Node, OpenError, Statistics, Trouble};
pub use partition_server::{NotHeld, PartitionServer};
pub use range::{
    Judge, NotReady, RangeGlance, RangeSeen, RangeStatistics, RowChanges, ScanEnd, Visit, Visitor,
    WriteRequest,
};
pub use record_name::{CHANGES_PREFIX, RecordName};
pub use router::Router;
pub use steps::{
    BlobHook, BlobStep, Hook, NamesHook, NamesStep, ScanHook, ScanStep, SpaceHook, SpaceStep, Step, StepHook,
};
