//! Many writes, reads or deletions of different keys, as fast as a partitioned store takes them.
//!
//! A store that keeps its keys in order cuts them into ranges, and a server serves a range. Two habits make a bulk job slow there.
//!
//! * **Keys in their order.** All requests of a moment go to one range, and the other servers wait. So the jobs are taken
//!   by chance: [`Spread`] keeps a window of them and draws.
//! * **Full speed from the first second.** The store needs minutes to cut a range that became hot. Google's guideline
//!   on request rates asks a client to begin with at most 1,000 writes and 5,000 reads a second, and then to double no faster than
//!   every 20 minutes. [`Ramp`] holds a job to that, and to the fixed limits of tables; it slows down when the store answers 408,
//!   429 or 5xx, or slower than before, and comes back step by step.
//!
//! Both are pure: chance comes from a seed, and time is an argument. [`Gate`] and [`run`] put them to work, and for entities
//! [`TableGate`], where a batch counts all its entities and each partition has a limit too. These are the jobs that most programs need:
//!
//! | | objects | entities |
//! |---|---|---|
//! | write | [`upload_all`] | [`upsert_entities`] |
//! | delete | [`delete_all`] | [`delete_matching`], [`delete_keys`] |
//!
//! Each can be stopped at any moment and started again: an upload that finds an object with the same bytes skips it, an upsert may be
//! repeated, and a deletion takes what is still there.

mod entities;
mod gate;
mod lanes;
mod objects;
mod ramp;
mod run;
mod spread;
mod table_gate;
mod upsert;

pub use entities::{Deletion, delete_keys, delete_matching};
pub use gate::Gate;
pub use objects::{Outcome, delete_all, upload_all};
pub use ramp::{Pace, Ramp, Sign};
pub use run::run;
pub use spread::Spread;
pub use table_gate::{TableGate, TablePace};
pub use upsert::upsert_entities;
